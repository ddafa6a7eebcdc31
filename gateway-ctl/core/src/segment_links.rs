//! VLAN interfaces of segments: each segment with a VLAN has an interface, which is a LAN of its own.
//!
//! The gateway makes the interface with the segment and removes it with it. Its address is the first one of the network of
//! the segment, unless the configuration of the interface or the host gives it another one there. An interface that the host
//! has made is used as it is, whatever its name.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_model::State;
use gateway_model::settings::virtual_link::VlanLink;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::facts::{Facts, LinkLayer};

/// Longest name of an interface.
const MAX_NAME: usize = 15;

/// VLAN interface of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentLink {
    pub parent: String,
    pub id: u16,
    /// Address of the gateway in the segment; none if its network has no room for hosts.
    pub address: Option<IpNet>,
}

/// Returns the VLAN interfaces of the segments by name. Those that the configuration names have that name.
pub fn of_segments(state: &State, configured: &[VlanLink]) -> BTreeMap<String, SegmentLink> {
    let links = state.segments.iter().filter_map(|segment| {
        let (id, parent) = (segment.vlan_id?, segment.interface.as_ref()?.as_str());
        let named = configured.iter().find(|vlan| vlan.parent.as_str() == parent && vlan.id == id);
        let name = named.map_or_else(|| name_of(parent, id), |vlan| vlan.name.to_string());
        let address = segment.cidr.and_then(|cidr| first_host(cidr.net()));
        Some((name, SegmentLink { parent: parent.to_owned(), id, address }))
    });
    links.collect()
}

/// `eth1.30`, or `vlan30-2f` with a hash of the parent if that is too long.
fn name_of(parent: &str, id: u16) -> String {
    let name = format!("{parent}.{id}");
    if name.len() <= MAX_NAME {
        return name;
    }
    let hash = parent.bytes().fold(0u16, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    format!("vlan{id}-{hash:x}")
}

/// Returns the first address of a network that a host can have, with the length of the network.
fn first_host(net: IpNet) -> Option<IpNet> {
    let first = match net.trunc() {
        IpNet::V4(net) if net.prefix_len() <= 30 => {
            IpAddr::from(Ipv4Addr::from(u32::from(net.network()) + 1))
        }
        IpNet::V6(net) if net.prefix_len() <= 126 => {
            IpAddr::from(Ipv6Addr::from(u128::from(net.network()) + 1))
        }
        _ => return None,
    };
    IpNet::new(first, net.prefix_len()).ok()
}

/// Outcome for the VLAN interface of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentLinkState {
    /// The gateway makes it, or it has.
    Made,
    /// The host has one for this VLAN, by another name.
    OfHost(String),
    /// There is no Ethernet interface with the name of the parent.
    NoParent,
}

/// Returns what becomes of the VLAN interface of a segment.
pub fn state_of(facts: &Facts, name: &str, link: &SegmentLink) -> SegmentLinkState {
    let is_same = |vlan: &(String, u16)| vlan.0 == link.parent && vlan.1 == link.id;
    let mut others = facts.links.iter().filter(|(other, _)| *other != name);
    if let Some((other, _)) = others.find(|(_, found)| found.vlan.as_ref().is_some_and(is_same)) {
        return SegmentLinkState::OfHost(other.clone());
    }
    match facts.links.get(&link.parent) {
        Some(parent) if parent.link_layer == LinkLayer::Ethernet => SegmentLinkState::Made,
        _ => SegmentLinkState::NoParent,
    }
}

#[cfg(test)]
mod tests {
    use gateway_model::kinds::Segment;
    use serde_json::json;

    use super::*;
    use crate::facts::Link;

    fn state(segments: &[serde_json::Value]) -> State {
        let mut state = State::new("2026-12-01T12:00:00Z".parse().expect("a time"));
        for segment in segments {
            let segment: Segment = serde_json::from_value(segment.clone()).expect("a segment");
            state.create(segment).expect("created");
        }
        state
    }

    #[test]
    fn each_segment_with_a_vlan_has_an_interface_with_the_first_address() {
        let state = state(&[
            json!({"name": "a", "interface": "eth1", "cidr": "192.168.1.0/24"}),
            json!({"name": "b", "interface": "eth1", "vlan_id": 30, "cidr": "192.168.30.0/24"}),
            json!({"name": "c", "interface": "enp0s31f6abcd", "vlan_id": 4094, "cidr": "fd00:30::/64"}),
            json!({"name": "d", "interface": "eth1", "vlan_id": 31, "cidr": "192.168.31.0/32"}),
        ]);
        let links = of_segments(&state, &[]);
        let of = |name: &str| links[name].address.map(|net| net.to_string());
        assert_eq!(links.len(), 3);
        assert_eq!(of("eth1.30").as_deref(), Some("192.168.30.1/24"));
        assert_eq!(of("eth1.31"), None);
        let long = links.keys().find(|name| name.starts_with("vlan4094-")).expect("a name");
        assert!(long.len() <= MAX_NAME);
        assert_eq!(of(long).as_deref(), Some("fd00:30::1/64"));
        let named = VlanLink {
            name: "office".parse().expect("a name"),
            parent: "eth1".parse().expect("a name"),
            id: 30,
        };
        assert!(of_segments(&state, &[named]).contains_key("office"));
    }

    #[test]
    fn interface_of_the_host_for_the_same_vlan_is_used() {
        let link = SegmentLink { parent: "eth1".to_owned(), id: 30, address: None };
        let mut facts = Facts::default();
        assert_eq!(state_of(&facts, "eth1.30", &link), SegmentLinkState::NoParent);
        facts.links.insert("eth1".to_owned(), Link::default());
        assert_eq!(state_of(&facts, "eth1.30", &link), SegmentLinkState::Made);
        let vlan = Link { vlan: Some(("eth1".to_owned(), 30)), ..Link::default() };
        facts.links.insert("eth1.30".to_owned(), vlan.clone());
        assert_eq!(state_of(&facts, "eth1.30", &link), SegmentLinkState::Made);
        facts.links.insert("office".to_owned(), vlan);
        assert_eq!(state_of(&facts, "eth1.30", &link), SegmentLinkState::OfHost("office".to_owned()));
    }
}
