//! Names that the own zones and reservations give to addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_core::state_machines::hosts::{Host, HostName, NameSource};
use gateway_model::kinds::dns_zone::{DnsZone, ZoneType};
use gateway_model::record::RecordType;
use gateway_model::resource::{Resource as _, ref_key};
use gateway_model::settings::groups::DhcpConfig;
use gateway_model::state::State;

/// Maximum number of such names of a host.
const MAX_NAMES: usize = 8;

/// Names by address: those of reservations first, then in the order of the records.
pub(super) struct DnsNames(BTreeMap<IpAddr, Vec<String>>);

impl DnsNames {
    pub(super) fn of(state: &State) -> DnsNames {
        let mut names: BTreeMap<IpAddr, Vec<String>> = BTreeMap::new();
        let mut add = |address: IpAddr, name: String| {
            let of_address = names.entry(address).or_default();
            if of_address.len() < MAX_NAMES && !of_address.contains(&name) {
                of_address.push(name);
            }
        };
        let domain = &state.group::<DhcpConfig>().domain;
        for reservation in state.dhcp_reservations.iter() {
            if let (Some(ip), Some(hostname)) = (reservation.ip, &reservation.hostname) {
                add(ip.into(), format!("{hostname}.{domain}"));
            }
        }
        for zone in state.dns_zones.iter().filter(|zone| zone.enabled && zone.r#type == ZoneType::Primary) {
            let of_zone = state.dns_records.with_key(&ref_key(DnsZone::NOUN, zone.name.as_str()));
            for record in of_zone.filter(|record| record.enabled) {
                let is_address = matches!(record.r#type, RecordType::A | RecordType::Aaaa);
                let is_of_one_host = !record.name.starts_with('*');
                if let Ok(address) = record.value.parse()
                    && is_address
                    && is_of_one_host
                {
                    add(address, record.full_name());
                }
            }
        }
        DnsNames(names)
    }

    /// Returns all names of a host: those of its addresses, then those that it has given itself.
    pub(super) fn with_own(&self, host: &Host) -> Vec<HostName> {
        let mut names: Vec<HostName> = Vec::new();
        // The newest address first.
        let of_addresses =
            host.addresses.iter().rev().filter_map(|(address, _)| self.0.get(address)).flatten();
        for name in of_addresses {
            let name = HostName { name: name.clone(), from: NameSource::Dns };
            if names.len() < MAX_NAMES && !names.contains(&name) {
                names.push(name);
            }
        }
        names.extend(host.names.iter().cloned());
        names
    }
}

#[cfg(test)]
mod tests {
    use gateway_model::kinds::{DhcpReservation, DnsRecord};
    use gateway_model::{Kind, MacAddr};
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn host(addresses: &[&str]) -> Host {
        let at = Timestamp::UNIX_EPOCH;
        let address = |text: &&str| (text.parse().expect("an address"), at);
        Host {
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            interface: "lan0".to_owned(),
            vlan: None,
            addresses: addresses.iter().map(address).collect(),
            names: vec![HostName { name: "own".to_owned(), from: NameSource::Dhcp }],
            vendor_class: None,
            first_seen: at,
            last_seen: at,
            confirmed_at: None,
        }
    }

    #[test]
    fn names_of_own_zones_and_reservations_come_before_those_of_the_host() {
        let mut draft = State::default().begin(Timestamp::UNIX_EPOCH);
        let mut create = |kind: &Kind, input: Value| kind.create(&mut draft, input).map(drop).expect("valid");
        create(
            &Kind::of::<DhcpReservation>(),
            json!({"mac": "02:00:00:00:00:01", "ip": "192.0.2.7", "hostname": "nas"}),
        );
        create(&Kind::of::<DnsZone>(), json!({"name": "home.example"}));
        create(&Kind::of::<DnsZone>(), json!({"name": "off.example", "enabled": false}));
        for (zone, name, kind, value) in [
            ("home.example", "files", "A", "192.0.2.7"),
            ("home.example", "*.any", "A", "192.0.2.7"),
            ("home.example", "text", "TXT", "192.0.2.7"),
            ("home.example", "six", "AAAA", "2001:db8::7"),
            ("home.example", "other", "A", "192.0.2.8"),
            ("off.example", "files", "A", "192.0.2.7"),
        ] {
            create(
                &Kind::of::<DnsRecord>(),
                json!({"zone": zone, "name": name, "type": kind, "value": value}),
            );
        }
        let names = DnsNames::of(&draft);
        let shown = |host: &Host| {
            let names = names.with_own(host).into_iter();
            names.map(|name| (name.name, name.from)).collect::<Vec<_>>()
        };
        let dns = |name: &str| (name.to_owned(), NameSource::Dns);
        let own = ("own".to_owned(), NameSource::Dhcp);
        assert_eq!(
            shown(&host(&["2001:db8::7", "192.0.2.7"])),
            [dns("nas.lan"), dns("files.home.example"), dns("six.home.example"), own.clone()]
        );
        assert_eq!(shown(&host(&["192.0.2.9"])), [own]);
    }
}
