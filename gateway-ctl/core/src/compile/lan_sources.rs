//! Source addresses that each LAN interface may send (RFC 2827): its own networks, networks routed through it,
//! link-local addresses and the unspecified one. All other sources are dropped before any policy.
//!
//! Decision 0015 says why.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_common::wire::SourceKind;
use ipnet::IpNet;

use super::Input;
use super::well_known::{is_link_local, net4, net6};
use crate::plan::Dataplane;

/// Index of an interface's set of prefixes: its position in the list of LANs.
pub(super) fn scope_of(input: &Input<'_>, interface: &str) -> u16 {
    let position = input.network.lan.iter().position(|name| name == interface);
    position
        .and_then(|position| u16::try_from(position).ok())
        .map_or(u16::MAX, |position| position & SCOPE_MASK)
}

/// Scopes share their bits of a key with the slot.
const SCOPE_MASK: u16 = (1 << 14) - 1;

/// Prefixes that a LAN interface leads to: connected ones and those of routes.
pub fn prefixes<'a>(input: &'a Input<'_>, interface: &str) -> impl Iterator<Item = IpNet> + use<'a> {
    let connected = input.facts.addresses.get(interface).into_iter().flatten().map(IpNet::trunc);
    let routed = input.facts.prefixes.get(interface).into_iter().flatten().map(IpNet::trunc);
    connected.chain(routed).filter(|net| net.prefix_len() > 0 && !is_link_local(net.addr()))
}

pub(super) fn lower(input: &Input<'_>, dataplane: &mut Dataplane) {
    for name in &input.network.lan {
        if !input.facts.links.contains_key(name) {
            continue;
        }
        let scope = scope_of(input, name);
        let mut note = |net: IpNet, kind: SourceKind| {
            dataplane.lan_sources.insert((scope, net), kind as u32);
        };
        note(net4(Ipv4Addr::UNSPECIFIED, 32), SourceKind::Unspecified);
        note(net6(Ipv6Addr::UNSPECIFIED, 128), SourceKind::Unspecified);
        note(net4(Ipv4Addr::new(169, 254, 0, 0), 16), SourceKind::LinkLocal);
        note(net6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10), SourceKind::LinkLocal);
        for net in prefixes(input, name) {
            note(net, SourceKind::Lan);
            if let IpNet::V4(four) = net
                && four.prefix_len() < 31
            {
                note(IpNet::from(IpAddr::from(four.broadcast())), SourceKind::Denied);
            }
        }
        // Last: an address of this host within a network of the LAN is no host's.
        let own = input.facts.addresses.values().flatten().map(IpNet::addr);
        for address in own {
            note(IpNet::from(address), SourceKind::Denied);
        }
    }
}
