//! Names of leases and reservations, for the resolver.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use gateway_core::state_machines::dhcp::{Lease, LeaseStatus, Server};
use gateway_model::MacAddr;
use gateway_model::validated::is_host_name;
use jiff::Timestamp;

use crate::world::reports::leased_names::{LeasedName, LeasedNames};

/// Name of this gateway in the domain of the LAN.
const GATEWAY: &str = "gateway";

/// Returns the names of this gateway in the domain of the LAN: `gateway`, the name of its operating system, and those of
/// `listen.host_names` that are in it.
pub fn own_names(host_names: &[String], system: &str, domain: &str) -> BTreeSet<String> {
    let system = system.split('.').next().unwrap_or_default().to_ascii_lowercase();
    // Each host is `localhost` to itself.
    let is_name = is_host_name(&system) && system != "localhost";
    let label = |name: &String| {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let label = match name.split_once('.') {
            Some((label, rest)) => rest.eq_ignore_ascii_case(domain).then_some(label)?,
            None => name.as_str(),
        };
        Some(label.to_owned())
    };
    host_names.iter().filter_map(label).chain([GATEWAY.to_owned()]).chain(is_name.then_some(system)).collect()
}

impl LeasedNames {
    /// Returns the names of a server. Leases of other hosts than devices (by MAC address) count only if they have a name:
    /// there may be many.
    pub(super) fn of(server: &Server, devices: &BTreeSet<MacAddr>, now: Timestamp) -> LeasedNames {
        let config = server.config();
        let mut addresses: BTreeMap<MacAddr, Vec<Ipv4Addr>> = BTreeMap::new();
        let mut names = Vec::new();
        for (mac, reservation) in &config.reservations {
            if devices.contains(mac) {
                addresses.entry(*mac).or_default().push(reservation.address);
            }
            let name = reservation
                .hostname
                .as_ref()
                .map(|name| LeasedName { name: name.clone(), address: reservation.address });
            names.extend(name);
        }
        let counts = |lease: &&Lease| lease.hostname.is_some() || devices.contains(&lease.mac);
        let active = server.leases(now).filter(|(_, status)| *status == LeaseStatus::Active);
        let mut active: Vec<&Lease> = active.map(|(lease, _)| lease).filter(counts).collect();
        active.sort_by_key(|lease| (lease.starts, lease.address));
        for lease in active {
            let is_reserved = server.is_reserved(lease);
            if devices.contains(&lease.mac) && !is_reserved {
                addresses.entry(lease.mac).or_default().push(lease.address);
            }
            if let Some(name) = lease.hostname.as_ref().filter(|_| !is_reserved) {
                names.push(LeasedName { name: name.to_string(), address: lease.address });
            }
        }
        LeasedNames { names, addresses }
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::state_machines::dhcp::{LeaseState, Reservation, ServerConfig};

    use super::*;

    #[test]
    fn names_of_the_gateway_are_its_own() {
        let names = ["box.lan", "ROUTER", "gw.example.org", "door.LAN."].map(str::to_owned);
        let own = |system: &str| Vec::from_iter(own_names(&names, system, "lan"));
        assert_eq!(own("Pi5.example.net"), ["box", "door", "gateway", "pi5", "router"]);
        for system in ["", "(none)", "localhost", "router"] {
            assert_eq!(own(system), ["box", "door", "gateway", "router"], "{system}");
        }
    }

    #[test]
    fn reservations_have_names_without_a_lease_and_devices_have_addresses() {
        let at = Timestamp::from_second(100).expect("a time");
        let lease = |host: u8, starts: i64, ends: i64| Lease {
            address: Ipv4Addr::new(192, 0, 2, host),
            mac: MacAddr([2, 0, 0, 0, 0, host]),
            client_id: None,
            hostname: Some(format!("host{host}").into()),
            vendor_class: None,
            starts,
            ends,
            state: LeaseState::Active,
        };
        let mut server =
            Server::new([lease(1, 50, 200), lease(2, 40, 200), lease(3, 10, 90), lease(9, 1, 200)]);
        let reservation = |host| Reservation {
            address: Ipv4Addr::new(192, 0, 2, host),
            hostname: Some(format!("fixed{host}")),
        };
        let reservations = [8, 9].map(|host| (MacAddr([2, 0, 0, 0, 0, host]), reservation(host))).into();
        server.configure(ServerConfig { scopes: Vec::new(), reservations }, at);
        let devices = [1, 3, 8].map(|host| MacAddr([2, 0, 0, 0, 0, host])).into();
        let names = LeasedNames::of(&server, &devices, at);
        let listed: Vec<&str> = names.names.iter().map(|name| name.name.as_str()).collect();
        assert_eq!(listed, ["fixed8", "fixed9", "host2", "host1"]);
        let address = |host| (MacAddr([2, 0, 0, 0, 0, host]), vec![Ipv4Addr::new(192, 0, 2, host)]);
        assert_eq!(names.addresses, BTreeMap::from([address(1), address(8)]));
    }
}
