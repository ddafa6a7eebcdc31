//! Part of the configuration that the compiler needs: the roles of interfaces.
//!
//! Marks, flows and routing tables have the number of an uplink. With a number by its position in the list, a removed
//! uplink gave its number and live flows to the next one, and a device bound to one uplink could leave by another. So
//! an interface keeps its number, one that was used is given out last, and a start reads the numbers from the map of
//! the active plan.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_model::kinds::routing_policy::Sticky;
use gateway_model::settings::bootstrap::UnknownHosts;
use gateway_model::settings::groups::InterfaceMethod;
use ipnet::{IpNet, Ipv6Net};
use serde::{Deserialize, Serialize};

use crate::indexes::LegId;
use crate::plan::VirtualLink;
use crate::segment_links::SegmentLink;
use crate::wan_access::WanAccess;
use crate::xdp::XdpModes;

/// Most uplinks at once. Marks give them the numbers from 1 on; those of tunnels follow.
pub const MAX_UPLINKS: u8 = gateway_common::leg_selection::FIRST_TUNNEL - 1;

/// Interfaces and their roles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Interfaces of LANs.
    pub lan: Vec<String>,
    /// Those that are enabled.
    pub uplinks: Vec<UplinkSettings>,
    /// Interfaces of uplinks that are listed and disabled: nothing enters or leaves by them.
    pub disabled_uplinks: Vec<String>,
    /// Bridges and VLAN interfaces that the gateway makes, by name.
    pub virtual_links: BTreeMap<String, VirtualLink>,
    /// VLAN interfaces of segments, by name.
    #[serde(default)]
    pub segment_links: BTreeMap<String, SegmentLink>,
    /// Interfaces with a configuration of their addresses.
    pub interfaces: BTreeMap<String, InterfaceSettings>,
    /// New flows are balanced over uplinks.
    pub balances: bool,
    /// Scope of flows that stay on one uplink meanwhile.
    pub sticky: Sticky,
    /// One of so many new flows is reported; 0 reports none.
    pub sample_every: u32,
    /// Packets of established flows pass the IP stack by.
    pub fast_path: bool,
    /// Flows are logged, so the kernel counts their packets.
    pub flow_log: bool,
    /// Records of flows have the names of servers. Plans of former versions did not know it.
    #[serde(default)]
    pub server_names: bool,
    /// XDP mode of interfaces.
    pub xdp: XdpModes,
    /// Port of the resolver here; 0 without one.
    pub dns_port: u16,
    /// TCP port of the API; 0 if LAN hosts cannot reach it.
    pub admin_port: u16,
    /// Access to the API by uplinks. `None`: there is none.
    pub wan_access: Option<WanAccess>,
    /// Ports of the coordinator of the mesh that uplinks may reach. `None`: there are none.
    pub mesh_ports: Option<MeshPorts>,
    /// Upstreams of the resolver without a forwarder, unless settings at runtime name others.
    pub resolvers: Vec<IpAddr>,
    /// `None`: the gateway gives the LANs no IPv6 prefixes.
    pub ipv6: Option<LanIpv6Settings>,
    /// Treatment of hosts that are no device.
    pub unknown_hosts: UnknownHosts,
    /// Networks of the access point of this gateway.
    #[serde(default)]
    pub access_point: Vec<ApNetwork>,
}

/// Network of the access point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApNetwork {
    /// LAN interface, which may be a bridge.
    pub interface: String,
    /// Address of the gateway with the length of the network.
    pub address: IpNet,
    /// The gateway gives out addresses.
    pub dhcp: bool,
    /// Its hosts reach the internet alone.
    pub is_guest: bool,
}

/// Ports of the coordinator of the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshPorts {
    /// Coordinator and relay.
    pub tcp: u16,
    /// STUN; `None` without a relay.
    pub udp: Option<u16>,
}

/// Sources of the LANs' IPv6 prefixes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LanIpv6Settings {
    pub prefix: Option<Ipv6Net>,
    /// Prefixes of uplinks count, too.
    pub delegation: bool,
    /// Also those that are shorter than /48 or networks of public services.
    pub trust_delegation: bool,
}

/// Configuration of the addresses of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceSettings {
    pub method: InterfaceMethod,
    /// Address of the method `static`.
    pub address: Option<IpNet>,
    pub gateway: Option<IpAddr>,
    pub dns: Vec<IpAddr>,
    /// Without it, the MTU of the link stays.
    pub mtu: Option<u16>,
    /// The interface comes and goes. The DHCP client of the daemon runs on it although it is an uplink.
    #[serde(default)]
    pub on_demand: bool,
    /// The address gives way to another one that the interface has in its network.
    #[serde(default)]
    pub yields: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UplinkSettings {
    /// Number of its leg, from 1 to [`MAX_UPLINKS`]; each uplink has one of its own.
    pub number: LegId,
    pub interface: String,
    /// Name that people give it; empty without one.
    pub name: String,
    /// Addresses that its probes are sent to.
    pub probe_targets: Vec<IpAddr>,
    /// Without it, the gateway of the main table's default route over this interface.
    pub gateway: Option<IpAddr>,
    /// Share of new flows while balancing.
    pub weight: u16,
    /// Takes part in balancing.
    pub balances: bool,
    /// Its flows end when it fails, and when traffic goes back from it to another uplink.
    pub failover_states: bool,
    pub failback_states: bool,
}

impl UplinkSettings {
    /// Reports whether an uplink is meant by its interface, or by its name.
    pub fn is_called(&self, called: &str) -> bool {
        self.interface == called || !self.name.is_empty() && self.name == called
    }
}

/// Numbers of uplinks by interface. An interface keeps its number while others come and go, and for as long as there
/// are unused ones after it went: packets and flows in the kernel carry numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UplinkNumbers {
    known: BTreeMap<LegId, KnownUplink>,
    /// Counts assignments.
    turn: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownUplink {
    interface: String,
    /// Turn in which it was an uplink last.
    used: u64,
}

impl UplinkNumbers {
    /// Notes that an interface has a number already. The first note of a number or an interface counts.
    pub fn recall(&mut self, interface: &str, number: LegId) {
        let is_free = !number.is_tunnel() && !self.known.contains_key(&number);
        if is_free && self.number_of(interface).is_none() {
            self.known.insert(number, KnownUplink { interface: interface.to_owned(), used: self.turn });
        }
    }

    /// Returns the number of each uplink. Uplinks past [`MAX_UPLINKS`] get none.
    pub fn assign(&mut self, uplinks: &[&str]) -> BTreeMap<String, LegId> {
        self.turn += 1;
        let uplinks = &uplinks[..uplinks.len().min(MAX_UPLINKS.into())];
        // Those that stay first: a newcomer must not take their numbers.
        for known in self.known.values_mut().filter(|known| uplinks.contains(&known.interface.as_str())) {
            known.used = self.turn;
        }
        for interface in uplinks {
            if self.number_of(interface).is_none()
                && let Some(number) = self.least_used()
            {
                self.known
                    .insert(number, KnownUplink { interface: (*interface).to_owned(), used: self.turn });
            }
        }
        let number = |interface: &&str| Some(((*interface).to_owned(), self.number_of(interface)?));
        uplinks.iter().filter_map(number).collect()
    }

    fn number_of(&self, interface: &str) -> Option<LegId> {
        self.known.iter().find(|(_, known)| known.interface == interface).map(|(number, _)| *number)
    }

    /// Returns the number that was never used, else the one that is unused for longest.
    fn least_used(&self) -> Option<LegId> {
        let used = |number: &LegId| self.known.get(number).map_or(0, |known| known.used);
        let free = (1..=MAX_UPLINKS)
            .filter_map(LegId::new)
            .filter(|number| self.known.get(number).is_none_or(|k| k.used < self.turn));
        free.min_by_key(|number| (self.known.contains_key(number), used(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: &mut UplinkNumbers, uplinks: &[&str]) -> Vec<u8> {
        let assigned = numbers.assign(uplinks);
        uplinks.iter().map(|name| assigned[*name].get()).collect()
    }

    #[test]
    fn an_uplink_keeps_its_number_while_others_come_and_go() {
        let mut known = UplinkNumbers::default();
        assert_eq!(numbers(&mut known, &["a", "b"]), [1, 2]);
        assert_eq!(numbers(&mut known, &["b"]), [2]);
        assert_eq!(numbers(&mut known, &["c", "b"]), [3, 2], "the number of one that went may be in flows");
        assert_eq!(numbers(&mut known, &["a", "b", "c"]), [1, 2, 3], "it came back");
    }

    #[test]
    fn a_number_is_used_again_when_there_is_no_other_and_the_oldest_first() {
        let mut known = UplinkNumbers::default();
        let names: Vec<String> = (1..=u32::from(MAX_UPLINKS)).map(|n| format!("wan{n}")).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        known.assign(&all);
        known.assign(&all[1..]);
        known.assign(&all[2..]);
        let mut with_new = vec!["new"];
        with_new.extend(&all[2..]);
        assert_eq!(numbers(&mut known, &with_new)[0], 1);
    }

    #[test]
    fn more_uplinks_than_numbers_leave_the_last_without_one() {
        let names: Vec<String> = (0..=u32::from(MAX_UPLINKS)).map(|n| format!("wan{n}")).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let assigned = UplinkNumbers::default().assign(&all);
        assert_eq!(assigned.len(), usize::from(MAX_UPLINKS));
        assert!(!assigned.contains_key("wan15"));
    }

    #[test]
    fn numbers_that_the_kernel_has_count_at_start() {
        let mut known = UplinkNumbers::default();
        known.recall("b", LegId::new(2).expect("a leg"));
        known.recall("b", LegId::new(3).expect("a leg"));
        known.recall("x", LegId::new(2).expect("a leg"));
        known.recall("tunnel", LegId::new(16).expect("a leg"));
        assert_eq!(numbers(&mut known, &["b", "c"]), [2, 1]);
    }
}
