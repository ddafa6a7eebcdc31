//! Scopes from the settings, the segments and the addresses of interfaces.

use std::net::Ipv4Addr;

use gateway_model::State;
use gateway_model::kinds::Segment;
use gateway_model::settings::groups::{AddressRange, DhcpConfig};
use ipnet::{IpNet, Ipv4Net};

use super::scope::{Reservation, Scope, ServerConfig};
use crate::facts::{Facts, LinkLayer};
use crate::network::{ApNetwork, Network};

/// Configuration of the server, and what of the settings cannot be served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configured {
    pub config: ServerConfig,
    /// Human-readable reasons, one for each network that is not served.
    pub problems: Vec<String>,
    /// Something is to be served.
    pub is_enabled: bool,
}

/// Returns the configuration of the server. Interfaces that are not LAN are not served.
pub fn configured(state: &State, network: &Network, facts: &Facts) -> Configured {
    let settings = state.group::<DhcpConfig>();
    let mut configured = Configured::default();
    if settings.enabled {
        configured.add("dhcp", of_settings(&settings, network, facts));
    }
    for segment in state.segments.iter().filter(|segment| segment.dhcp) {
        configured.add(&segment.name, of_segment(segment, &settings, network, facts));
    }
    for ap in network.access_point.iter().filter(|ap| ap.dhcp) {
        configured.add_access_point(ap, &settings, network, facts);
    }
    let reservation = |reservation: &gateway_model::kinds::DhcpReservation| {
        let (mac, address) = (reservation.mac?, reservation.ip?);
        let hostname = reservation.hostname.clone();
        Some((mac, Reservation { address, hostname }))
    };
    configured.config.reservations = state.dhcp_reservations.iter().filter_map(reservation).collect();
    configured
}

impl Configured {
    /// Adds a network of the access point, unless the settings or a segment serve it. It has no interface while the access
    /// point does not run.
    fn add_access_point(&mut self, ap: &ApNetwork, settings: &DhcpConfig, network: &Network, facts: &Facts) {
        let IpNet::V4(net) = ap.address.trunc() else { return };
        let is_served = self.config.scopes.iter().any(|scope| scope.interface == ap.interface);
        if is_served || !facts.links.contains_key(&ap.interface) {
            return;
        }
        let range = upper_part(net).ok_or_else(|| format!("{net} has too few or too many addresses"));
        let scope =
            range.and_then(|range| scope(&ap.interface, &ap.interface, net, range, settings, network, facts));
        self.add(&ap.interface, scope);
    }

    fn add(&mut self, name: &str, scope: Result<Scope, String>) {
        self.is_enabled = true;
        let scope = scope.and_then(|scope| {
            let overlaps = |other: &&Scope| {
                other.network.contains(&scope.network.network())
                    || scope.network.contains(&other.network.network())
            };
            match self.config.scopes.iter().find(overlaps) {
                Some(other) => Err(format!("{} is a network of {} already", scope.network, other.name)),
                None => Ok(scope),
            }
        });
        match scope {
            Ok(scope) => self.config.scopes.push(scope),
            Err(reason) => self.problems.push(format!("{name}: {reason}")),
        }
    }
}

fn of_settings(settings: &DhcpConfig, network: &Network, facts: &Facts) -> Result<Scope, String> {
    let (Some(interface), Some(first), Some(last)) =
        (&settings.interface, settings.range_start, settings.range_end)
    else {
        return Err("interface, range_start and range_end are required".to_owned());
    };
    let net =
        Ipv4Net::with_netmask(first, settings.mask).map_err(|_| "mask is no network mask".to_owned())?;
    let range = AddressRange { first, last };
    let net = net.trunc();
    let scope = scope(interface.as_str(), interface.as_str(), net, range, settings, network, facts)?;
    if !scope.on_link {
        return Err(outside(range, interface.as_str(), facts));
    }
    Ok(Scope { router: settings.gateway, exclusions: settings.excluded().collect(), ..scope })
}

/// Returns the IPv4 networks of an interface, with its addresses in them.
fn networks<'a>(interface: &str, facts: &'a Facts) -> impl Iterator<Item = Ipv4Net> + 'a {
    let of_interface = facts.addresses.get(interface).into_iter().flatten();
    of_interface.filter_map(|net| match net {
        IpNet::V4(net) => Some(*net),
        IpNet::V6(_) => None,
    })
}

/// Returns the reason for which the settings cannot be served on their interface: no address of the interface is in the
/// network of the range. `None` also while the interface has no IPv4 address, because one may come.
pub fn outside_of_interface(settings: &DhcpConfig, facts: &Facts) -> Option<String> {
    let (interface, first, last) = (settings.interface.as_ref()?, settings.range_start?, settings.range_end?);
    let net = Ipv4Net::with_netmask(first, settings.mask).ok()?;
    let mut own = networks(interface.as_str(), facts).peekable();
    own.peek()?;
    let is_outside = !own.any(|own| net.contains(&own.addr()));
    is_outside.then(|| outside(AddressRange { first, last }, interface.as_str(), facts))
}

fn outside(range: AddressRange, interface: &str, facts: &Facts) -> String {
    let networks = networks(interface, facts).map(|net| net.to_string()).collect::<Vec<_>>().join(", ");
    format!("the range {range} is outside of the network of {interface} ({networks})")
}

fn of_segment(
    segment: &Segment,
    settings: &DhcpConfig,
    network: &Network,
    facts: &Facts,
) -> Result<Scope, String> {
    let parent = segment.interface.as_ref().ok_or("it has no interface")?.as_str();
    let Some(IpNet::V4(net)) = segment.cidr.map(|cidr| cidr.net()) else {
        return Err("cidr is no IPv4 network".to_owned());
    };
    let interface = match segment.vlan_id {
        None => parent,
        Some(id) => {
            let is_vlan = |link: &crate::facts::Link| {
                link.vlan.as_ref().is_some_and(|vlan| *vlan == (parent.to_owned(), id))
            };
            let found = facts.links.iter().find(|(_, link)| is_vlan(link));
            found
                .map(|(name, _)| name.as_str())
                .ok_or_else(|| format!("{parent} has no interface for VLAN {id}"))?
        }
    };
    let range = upper_part(net).ok_or("cidr has too few or too many addresses")?;
    scope(&segment.name, interface, net.trunc(), range, settings, network, facts)
}

/// Returns the upper three quarters of a network. The lower quarter is for hosts with fixed addresses.
fn upper_part(net: Ipv4Net) -> Option<AddressRange> {
    let size =
        1u32.checked_shl(32 - u32::from(net.prefix_len())).filter(|size| (4..=1 << 20).contains(size))?;
    let base = u32::from(net.network());
    let first = base + (size / 4).max(1);
    Some(AddressRange { first: Ipv4Addr::from(first), last: Ipv4Addr::from(base + size - 2) })
}

fn scope(
    name: &str,
    interface: &str,
    net: Ipv4Net,
    range: AddressRange,
    settings: &DhcpConfig,
    network: &Network,
    facts: &Facts,
) -> Result<Scope, String> {
    let link = facts.links.get(interface).ok_or_else(|| format!("there is no interface {interface}"))?;
    if !network.lan.iter().any(|lan| lan == interface) {
        return Err(format!("{interface} is no LAN interface"));
    }
    let mac = link.mac.filter(|_| link.link_layer == LinkLayer::Ethernet);
    let mac = mac.ok_or_else(|| format!("{interface} has no Ethernet"))?;
    let addresses: Vec<Ipv4Addr> = networks(interface, facts).map(|net| net.addr()).collect();
    let own = addresses.iter().find(|address| net.contains(*address));
    let server = own.or(addresses.first()).ok_or_else(|| format!("{interface} has no IPv4 address"))?;
    let dns = if settings.dns.is_empty() { vec![*server] } else { settings.dns.clone() };
    let options = settings.options.iter().filter_map(|option| Some((option.code, option.wire().ok()?)));
    Ok(Scope {
        name: name.to_owned(),
        interface: interface.to_owned(),
        index: link.index,
        mac,
        network: net,
        server: *server,
        on_link: own.is_some(),
        range,
        exclusions: Vec::new(),
        router: None,
        dns,
        domain: settings.domain.clone(),
        lease_sec: u32::try_from(settings.lease_sec).unwrap_or(u32::MAX),
        options: options.collect(),
        authoritative: settings.authoritative,
        probes: settings.ping_check,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gateway_model::settings::group::GroupKind;
    use serde_json::json;

    use super::*;
    use crate::facts::Link;

    fn facts() -> Facts {
        let link = |index| Link { index, mac: Some([2, 0, 0, 0, 0, 1]), ..Link::default() };
        let vlan = Link { vlan: Some(("lan0".to_owned(), 7)), ..link(4) };
        let links = [("lan0", link(2)), ("wan0", link(3)), ("lan0.7", vlan)];
        let nets = |text: &str| [text.parse().unwrap()].into();
        Facts {
            links: links.map(|(name, link)| (name.to_owned(), link)).into(),
            addresses: BTreeMap::from([
                ("lan0".to_owned(), nets("192.168.1.1/24")),
                ("lan0.7".to_owned(), nets("192.168.7.1/24")),
                ("wan0".to_owned(), nets("203.0.113.2/24")),
            ]),
            ..Facts::default()
        }
    }

    fn network() -> Network {
        Network { lan: vec!["lan0".to_owned(), "lan0.7".to_owned()], ..Network::default() }
    }

    fn state(config: serde_json::Value, segments: &[serde_json::Value]) -> State {
        let mut state = State::new("2026-11-24T12:00:00Z".parse().unwrap());
        GroupKind::find("dhcp").unwrap().put(&mut state, config).unwrap();
        for segment in segments {
            state.create(serde_json::from_value::<Segment>(segment.clone()).unwrap()).unwrap();
        }
        state
    }

    fn settings(interface: &str) -> serde_json::Value {
        json!({"enabled": true, "interface": interface, "range_start": "192.168.1.100", "range_end": "192.168.1.200"})
    }

    #[test]
    fn the_gateway_is_router_and_resolver_unless_others_are_named() {
        let configured = configured(&state(settings("lan0"), &[]), &network(), &facts());
        let [scope] = &configured.config.scopes[..] else { panic!("{configured:?}") };
        assert_eq!((scope.server, scope.on_link, scope.router), (Ipv4Addr::new(192, 168, 1, 1), true, None));
        assert_eq!((scope.dns.as_slice(), scope.index), (&[Ipv4Addr::new(192, 168, 1, 1)][..], 2));
    }

    #[test]
    fn networks_that_cannot_be_served_have_a_reason() {
        let problems =
            |interface| configured(&state(settings(interface), &[]), &network(), &facts()).problems;
        assert_eq!(problems("wan0"), ["dhcp: wan0 is no LAN interface"]);
        assert_eq!(problems("eth9"), ["dhcp: there is no interface eth9"]);
    }

    #[test]
    fn a_range_outside_of_the_network_of_its_interface_is_not_served() {
        let config = json!({
            "enabled": true, "interface": "lan0", "range_start": "10.9.0.10", "range_end": "10.9.0.18",
        });
        let state = state(config, &[]);
        let configured = configured(&state, &network(), &facts());
        assert!(configured.config.scopes.is_empty() && configured.is_enabled, "{configured:?}");
        let reason = "the range 10.9.0.10-10.9.0.18 is outside of the network of lan0 (192.168.1.1/24)";
        assert_eq!(configured.problems, [format!("dhcp: {reason}")]);
        let settings = state.group::<DhcpConfig>();
        assert_eq!(outside_of_interface(&settings, &facts()).as_deref(), Some(reason));
        let without = Facts { addresses: BTreeMap::new(), ..facts() };
        assert_eq!(outside_of_interface(&settings, &without), None, "an address may come");
        let wide = DhcpConfig { mask: Ipv4Addr::new(255, 255, 0, 0), ..settings };
        let inside = DhcpConfig { range_start: "192.168.7.1".parse().ok(), ..wide };
        assert_eq!(outside_of_interface(&inside, &facts()), None);
    }

    #[test]
    fn segments_get_the_upper_part_of_their_network() {
        let segments = [
            json!({"name": "guests", "interface": "lan0", "vlan_id": 7, "cidr": "192.168.7.0/24", "dhcp": true}),
            json!({"name": "relayed", "interface": "lan0", "cidr": "10.9.0.0/28", "dhcp": true}),
            json!({"name": "static", "interface": "lan0", "vlan_id": 9, "cidr": "192.168.9.0/24"}),
        ];
        let configured = configured(&state(json!({}), &segments), &network(), &facts());
        assert!(configured.problems.is_empty() && configured.is_enabled, "{configured:?}");
        let [guests, relayed] = &configured.config.scopes[..] else { panic!("{configured:?}") };
        assert_eq!(
            (guests.interface.as_str(), guests.range.to_string()),
            ("lan0.7", "192.168.7.64-192.168.7.254".to_owned())
        );
        assert!(guests.on_link && !relayed.on_link);
        assert_eq!(relayed.range.to_string(), "10.9.0.4-10.9.0.14");
        assert_eq!(relayed.server, Ipv4Addr::new(192, 168, 1, 1));
    }

    #[test]
    fn one_network_is_served_once() {
        let segment = json!({"name": "same", "interface": "lan0", "cidr": "192.168.1.128/25", "dhcp": true});
        let configured = configured(&state(settings("lan0"), &[segment]), &network(), &facts());
        assert_eq!(configured.config.scopes.len(), 1);
        assert_eq!(configured.problems, ["same: 192.168.1.128/25 is a network of lan0 already"]);
    }
}
