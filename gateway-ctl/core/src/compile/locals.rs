//! Destinations that need no policy: link scope, networks of the LANs, addresses of this host. And the networks of
//! uplinks, which only one leg reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_common::wire::{LocalKind, LocalValue};
use ipnet::IpNet;

use super::leg::Leg;
use super::well_known::{is_link_local, net4, net6};
use super::{Input, lan_sources, tunnel_addresses};
use crate::indexes::LegId;
use crate::plan::Plan;

/// Lengths of the largest networks of an uplink. Providers use 10.0.0.0/8 and 100.64.0.0/10 (RFC 6598).
const SHORTEST_IPV4: u8 = 8;
const SHORTEST_IPV6: u8 = 32;

pub(super) fn lower(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
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
    for (net, leg) in networks_of_uplinks(input, legs) {
        note(net, LocalValue::of_leg(LocalKind::Uplink, leg.get()));
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
    own_addresses(input, legs, plan);
}

/// Returns the networks on uplinks, each with its leg. Those that several uplinks have, such as that of equal modems,
/// identify none, and those inside a network of the LAN belong to the LAN.
fn networks_of_uplinks(input: &Input<'_>, legs: &[Leg]) -> BTreeMap<IpNet, LegId> {
    let mut found: BTreeMap<IpNet, BTreeSet<LegId>> = BTreeMap::new();
    for leg in legs.iter().filter(|leg| leg.is_uplink()) {
        for net in neighbour_networks(input, leg) {
            found.entry(net).or_default().insert(leg.number);
        }
    }
    let lans: Vec<IpNet> =
        input.network.lan.iter().flat_map(|name| lan_sources::prefixes(input, name)).collect();
    let only = |legs: BTreeSet<LegId>| if legs.len() == 1 { legs.first().copied() } else { None };
    let found = found.into_iter().filter(|(net, _)| !lans.iter().any(|lan| lan.contains(net)));
    found.filter_map(|(net, legs)| Some((net, only(legs)?))).collect()
}

/// Returns the networks on an uplink, whose hosts are not behind its router.
///
/// The address comes from the uplink, so a network that is as large as a part of the internet is no network.
pub(super) fn neighbour_networks(input: &Input<'_>, leg: &Leg) -> BTreeSet<IpNet> {
    let nets = input.facts.addresses.get(&leg.interface).into_iter().flatten();
    let is_network = |net: &&IpNet| {
        let shortest = if net.addr().is_ipv6() { SHORTEST_IPV6 } else { SHORTEST_IPV4 };
        (shortest..net.max_prefix_len()).contains(&net.prefix_len()) && !is_link_local(net.addr())
    };
    nets.filter(is_network).map(IpNet::trunc).collect()
}

/// Adds the addresses of this host. Several interfaces may have the same one: VPN providers give one address to all
/// their customers. It belongs to each of their legs.
fn own_addresses(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    let observed = input.facts.addresses.iter();
    let observed = observed.flat_map(|(name, nets)| nets.iter().map(move |net| (net.addr(), name.as_str())));
    // An address that this very plan sets is known before a packet for it can come in.
    let planned = plan.addresses.keys().map(|key| (key.address.addr(), key.interface.as_str()));
    let mut owners: BTreeMap<IpAddr, BTreeSet<Owner>> = BTreeMap::new();
    for (address, name) in observed.chain(planned) {
        owners.entry(address).or_default().insert(owner(input, legs, name));
    }
    for (address, owners) in owners {
        let mut owners = owners.into_iter();
        let Some(first) = owners.next() else { continue };
        plan.dataplane.locals.insert(IpNet::from(address), first.value());
        let further = owners.filter_map(Owner::leg).filter(|leg| Some(*leg) != first.leg());
        plan.dataplane.shared_addresses.extend(further.map(|leg| (leg, address)));
    }
}

/// Owner of an address of this host. The first one decides on packets from the LAN to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// An interface that is no leg.
    Host,
    Uplink(LegId),
    /// The interface of this gateway in a mesh. It is no leg, and as with a tunnel, no leg reaches its addresses but those of
    /// mesh peers, which have them, too.
    Mesh,
    Tunnel(LegId),
    /// A deleted tunnel that is not removed yet.
    LeftBehind,
}

impl Owner {
    fn leg(self) -> Option<LegId> {
        match self {
            Owner::Uplink(leg) | Owner::Tunnel(leg) => Some(leg),
            Owner::Host | Owner::LeftBehind | Owner::Mesh => None,
        }
    }

    fn value(self) -> LocalValue {
        let kind = match self {
            Owner::Host | Owner::Uplink(_) => LocalKind::Own,
            Owner::Tunnel(_) | Owner::LeftBehind | Owner::Mesh => LocalKind::Forbidden,
        };
        LocalValue::of_leg(kind, LegId::raw(self.leg()))
    }
}

fn owner(input: &Input<'_>, legs: &[Leg], name: &str) -> Owner {
    match legs.iter().find(|leg| leg.interface == name) {
        Some(leg) if leg.is_uplink() => Owner::Uplink(leg.number),
        Some(leg) => Owner::Tunnel(leg.number),
        None if tunnel_addresses::is_left_behind(input, name) => Owner::LeftBehind,
        None if input.facts.mesh.as_ref().is_some_and(|mesh| mesh.interface == name) => Owner::Mesh,
        None => Owner::Host,
    }
}
