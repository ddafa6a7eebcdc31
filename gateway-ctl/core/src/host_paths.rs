//! Paths of LAN hosts for [`crate::fair_share`].
//!
//! First come the interface and the port of a bridge, which a host cannot make up. Then hosts that a person has recorded,
//! hosts whose address answers (there is a neighbour entry), and all others are three groups, so that made-up hosts share
//! one. Last are the device or the MAC address, and the IP address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::compile::{Input, lan_prefixes};
use crate::plan::Dataplane;

/// Interface, bridge port, group, device or MAC address, IP address.
pub type HostPath = [u128; 5];

/// Interface of link-local sources, which may be of any LAN.
const LINK_LOCAL: u128 = u128::MAX;

/// Group of a host among those of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Device = 0,
    Neighbour = 1,
    /// The address answers nothing, so it may be made up.
    Unknown = 2,
}

/// Neighbours, bridge ports and devices of the LANs, which identify their hosts.
#[derive(Clone, Debug, Default)]
pub struct HostPaths {
    lans: Vec<IpNet>,
    /// Interface of each of `lans`.
    interfaces: Vec<String>,
    own: BTreeSet<IpAddr>,
    macs: BTreeMap<IpAddr, [u8; 6]>,
    /// MAC addresses of `macs`.
    answering: BTreeSet<[u8; 6]>,
    devices_by_mac: BTreeMap<[u8; 6], u32>,
    devices_by_address: BTreeMap<IpAddr, u32>,
    ports: BTreeMap<[u8; 6], u32>,
}

impl HostPaths {
    /// `ports` are the ports of bridges behind which MAC addresses are, by the index of the port.
    pub fn new(input: &Input<'_>, dataplane: &Dataplane, ports: BTreeMap<[u8; 6], u32>) -> Self {
        let mut paths = Self { ports, ..Self::default() };
        for name in &input.network.lan {
            for net in lan_prefixes(input, name) {
                paths.lans.push(net);
                paths.interfaces.push(name.clone());
            }
        }
        paths.own = input.facts.addresses.values().flatten().map(IpNet::addr).collect();
        for (mac, addresses) in &input.facts.neighbours {
            paths.macs.extend(addresses.iter().map(|address| (*address, *mac)));
            paths.answering.insert(*mac);
        }
        let by_mac = dataplane.devices_by_mac.iter();
        paths.devices_by_mac = by_mac.map(|(mac, device)| (*mac, device.number)).collect();
        let by_address = dataplane.devices_by_address.iter();
        paths.devices_by_address = by_address.map(|(address, device)| (*address, device.number)).collect();
        paths
    }

    /// Returns the path of the host with an address. `None` for an address of this host, or of no LAN.
    pub fn of_address(&self, source: IpAddr) -> Option<HostPath> {
        if self.own.contains(&source) {
            return None;
        }
        let interface = self.interface(source)?;
        let mac = self.macs.get(&source);
        let port = mac.and_then(|mac| self.ports.get(mac)).copied().unwrap_or_default();
        let by_address = self.devices_by_address.get(&source);
        let device = mac.and_then(|mac| self.devices_by_mac.get(mac)).or(by_address);
        let (group, owner) = match (device, mac) {
            (Some(device), _) => (Group::Device, u128::from(*device)),
            (None, Some(mac)) => (Group::Neighbour, number(*mac)),
            (None, None) => (Group::Unknown, 0),
        };
        let address = match source {
            IpAddr::V4(four) => four.to_bits().into(),
            IpAddr::V6(six) => six.to_bits(),
        };
        Some([interface, port.into(), group as u128, owner, address])
    }

    /// Returns the path of the host with a MAC address at an interface. A MAC address that no neighbour entry has shares
    /// its owner with all others of its interface.
    pub fn of_mac(&self, interface: u32, mac: [u8; 6]) -> [u128; 3] {
        let (group, owner) = match self.devices_by_mac.get(&mac) {
            Some(device) => (Group::Device, u128::from(*device)),
            None if self.answering.contains(&mac) => (Group::Neighbour, number(mac)),
            None => (Group::Unknown, 0),
        };
        [interface.into(), group as u128, owner]
    }

    /// Returns the name of the interface of a path.
    pub fn interface_name(&self, path: &HostPath) -> Option<&str> {
        let name = self.interfaces.get(usize::try_from(path[0]).ok()?)?;
        Some(name)
    }

    /// Returns the position of the first network of the interface with the longest prefix of the address.
    fn interface(&self, source: IpAddr) -> Option<u128> {
        if matches!(source, IpAddr::V6(six) if six.is_unicast_link_local()) {
            return Some(LINK_LOCAL);
        }
        let of = self.lans.iter().enumerate().filter(|(_, net)| net.contains(&source));
        let (found, _) = of.max_by_key(|(_, net)| net.prefix_len())?;
        self.interfaces.iter().position(|name| *name == self.interfaces[found]).map(|first| first as u128)
    }
}

fn number(mac: [u8; 6]) -> u128 {
    mac.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use gateway_model::State;
    use jiff::Timestamp;

    use super::*;
    use crate::facts::Facts;
    use crate::network::Network;

    fn paths() -> HostPaths {
        let net = |text: &str| BTreeSet::from([text.parse().expect("a network")]);
        let addresses = [
            (
                "lan0".to_owned(),
                BTreeSet::from_iter(["10.0.0.1/24", "fd00::1/64"].map(|a| a.parse().expect("one"))),
            ),
            ("lan1".to_owned(), net("10.1.0.1/16")),
            ("wan0".to_owned(), net("198.51.100.2/24")),
        ];
        let known = |address: &str| BTreeSet::from([address.parse().expect("an address")]);
        let neighbours = [([2, 0, 0, 0, 0, 1], known("10.0.0.2")), ([2, 0, 0, 0, 0, 2], known("fd00::2"))];
        let facts = Facts { addresses: addresses.into(), neighbours: neighbours.into(), ..Facts::default() };
        let network = Network { lan: vec!["lan0".into(), "lan1".into()], ..Network::default() };
        let mut dataplane = Dataplane::default();
        let device = gateway_common::wire::DeviceValue { number: 7, ..Default::default() };
        dataplane.devices_by_mac.insert([2, 0, 0, 0, 0, 1], device);
        let state = State::default();
        let input = Input { state: &state, network: &network, facts: &facts, now: Timestamp::UNIX_EPOCH };
        HostPaths::new(&input, &dataplane, BTreeMap::from([([2, 0, 0, 0, 0, 2], 9)]))
    }

    fn of(address: &str) -> Option<HostPath> {
        paths().of_address(address.parse().expect("an address"))
    }

    #[test]
    fn hosts_are_grouped_by_interface_port_and_what_is_known_of_them() {
        let (device, neighbour, unknown) = (
            of("10.0.0.2").expect("a host"),
            of("fd00::2").expect("a host"),
            of("10.0.0.9").expect("a host"),
        );
        assert_eq!(device[..4], [0, 0, 0, 7]);
        assert_eq!(neighbour[..4], [0, 9, 1, 0x0200_0000_0002]);
        assert_eq!(unknown[..4], [0, 0, 2, 0]);
        let other = of("10.1.2.3").expect("a host");
        assert_ne!(other[0], unknown[0]);
        assert_eq!(paths().interface_name(&other), Some("lan1"));
        assert_eq!(paths().interface_name(&neighbour), Some("lan0"));
    }

    #[test]
    fn this_host_and_addresses_of_no_lan_have_no_share() {
        for address in ["10.0.0.1", "fd00::1", "198.51.100.2", "198.51.100.9", "203.0.113.1", "127.0.0.1"] {
            assert_eq!(of(address), None, "{address}");
        }
        assert!(of("fe80::1").is_some());
    }

    #[test]
    fn made_up_mac_addresses_share_one_owner() {
        let paths = paths();
        let forged = [[2, 9, 9, 9, 9, 9], [6, 1, 2, 3, 4, 5]].map(|mac| paths.of_mac(3, mac));
        assert_eq!(forged[0], forged[1]);
        assert_ne!(forged[0], paths.of_mac(4, [2, 9, 9, 9, 9, 9]));
        assert_ne!(paths.of_mac(3, [2, 0, 0, 0, 0, 1]), forged[0]);
        assert_ne!(paths.of_mac(3, [2, 0, 0, 0, 0, 2]), forged[0]);
    }
}
