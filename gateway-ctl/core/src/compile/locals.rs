//! Destinations that need no policy: link scope, networks of the LANs, addresses of this host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_common::wire::{LocalKind, LocalValue};
use ipnet::IpNet;

use super::leg::{Leg, LegKind};
use super::well_known::{is_link_local, net4, net6};
use super::{Input, lan_sources};
use crate::plan::{AddressKey, Plan};

pub fn lower(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    let locals = &mut plan.dataplane.locals;
    let mut note = |net: IpNet, value: LocalValue| locals.insert(net.trunc(), value);
    let link_scope = [
        net4(Ipv4Addr::new(224, 0, 0, 0), 4),
        net4(Ipv4Addr::BROADCAST, 32),
        net4(Ipv4Addr::new(169, 254, 0, 0), 16),
        net6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
        net6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    ];
    for net in link_scope {
        note(net, LocalValue::new(LocalKind::Link));
    }
    let lan = |name: &String| input.network.lan.contains(name);
    for name in input.network.lan.iter().filter(|name| input.facts.links.contains_key(*name)) {
        for net in lan_sources::prefixes(input, name) {
            note(net, LocalValue::new(LocalKind::Lan));
        }
    }
    for (_, addresses) in input.facts.addresses.iter().filter(|(name, _)| lan(name)) {
        for net in addresses.iter().filter(|net| !is_link_local(net.addr())) {
            if let IpNet::V4(four) = net
                && four.prefix_len() < 31
            {
                note(IpNet::from(IpAddr::from(four.broadcast())), LocalValue::new(LocalKind::Link));
            }
        }
    }
    let value = |name: &str| match legs.iter().find(|leg| leg.interface == *name) {
        Some(leg) if leg.kind == LegKind::Uplink => LocalValue::of_leg(LocalKind::Own, leg.number),
        Some(leg) => LocalValue::of_leg(LocalKind::Forbidden, leg.number),
        None if is_left_behind(input, name) => LocalValue::new(LocalKind::Forbidden),
        None => LocalValue::new(LocalKind::Own),
    };
    for (name, addresses) in &input.facts.addresses {
        for net in addresses {
            note(IpNet::from(net.addr()), value(name));
        }
    }
    // An address that this very plan sets is known before a packet for it can come in.
    for AddressKey { interface, address } in plan.addresses.keys() {
        note(IpNet::from(address.addr()), value(interface));
    }
}

/// Reports whether an interface belongs to a deleted tunnel that is not removed yet.
fn is_left_behind(input: &Input<'_>, name: &str) -> bool {
    let named = name.starts_with("wg-") || name.starts_with("ov-");
    named && input.facts.links.get(name).is_some_and(|link| matches!(link.kind.as_str(), "wireguard" | "tun"))
}
