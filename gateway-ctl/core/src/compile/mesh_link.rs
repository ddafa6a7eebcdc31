//! Interface of this gateway as a node of a mesh: its link, its addresses, and routes to the peers.
//!
//! Peers have addresses of the prefixes of meshes only, so a foreign coordinator cannot take over other destinations. What
//! the gateway forwards does not leave by this interface: it is no leg. Each peer that policies name is a leg, with an interface
//! of its own that has the same addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use gateway_common::wire::{EgressAllowKey, EgressAllowValue, Mark};
use ipnet::IpNet;

use super::Input;
use super::leg::DefaultUplink;
use crate::facts::MeshLink;
use crate::plan::{AddressKey, LinkSettings, MeshForwarding, Plan, RouteKey, RouteValue, names};

pub(super) fn lower(input: &Input<'_>, plan: &mut Plan) {
    let Some(mesh) = &input.facts.mesh else { return };
    let MeshLink { interface, mtu, addresses, peers, legs, port: _, missing: _, offered: _, names: _ } = mesh;
    for leg in legs.values().filter(|leg| input.facts.links.contains_key(&leg.interface)) {
        add_link(plan, &leg.interface, *mtu, addresses);
    }
    // It comes and goes with the engine, and a plan that names it before would fail.
    let Some(link) = input.facts.links.get(interface) else { return };
    add_link(plan, interface, *mtu, addresses);
    if !link.up {
        return;
    }
    for destination in peers.iter().filter(|net| !is_taken(input, interface, net)) {
        let key = RouteKey { table: names::TABLE_MAIN, destination: *destination, metric: 0 };
        let route = RouteValue::Unicast { interface: interface.clone(), gateway: None };
        plan.routes.entry(key).or_insert(route);
    }
}

/// Returns the forwarding for peers: to prefixes in LANs, and to the internet if this gateway is an exit. It leaves as traffic of
/// this host does.
pub(super) fn forwarding(input: &Input<'_>, default: DefaultUplink) -> Option<MeshForwarding> {
    let mesh = input.facts.mesh.as_ref().filter(|mesh| !mesh.offered.is_empty())?;
    input.facts.links.get(&mesh.interface)?;
    let (exits, subnets): (BTreeSet<IpNet>, BTreeSet<IpNet>) =
        mesh.offered.iter().partition(|net| net.prefix_len() == 0);
    let mark = match default {
        DefaultUplink::MainTable => Some(Mark::DIRECT),
        DefaultUplink::Leg(leg) => Some(leg.mark()),
        DefaultUplink::Nowhere => None,
    };
    let has_exit = |ipv6: bool| exits.iter().any(|net| net.addr().is_ipv6() == ipv6);
    Some(MeshForwarding {
        interface: mesh.interface.clone(),
        subnets,
        exit: mark.map(|mark| mark.0).filter(|_| !exits.is_empty()),
        exit_ipv4: has_exit(false),
        exit_ipv6: has_exit(true),
    })
}

/// Lets replies to peers leave by the interface of the mesh.
pub(super) fn authorise(input: &Input<'_>, plan: &mut Plan) {
    let Some(forwarding) = &plan.nft.mesh else { return };
    let Some(link) = input.facts.links.get(&forwarding.interface) else { return };
    let key = EgressAllowKey { mark: Mark::LOCAL.0, index: link.index };
    plan.dataplane.authorised.insert(key, EgressAllowValue::REPLIES);
}

fn add_link(plan: &mut Plan, interface: &str, mtu: u16, addresses: &BTreeSet<IpAddr>) {
    plan.links.insert(interface.to_owned(), LinkSettings { up: true, mtu: u32::from(mtu) });
    for address in addresses {
        let key = AddressKey { interface: interface.to_owned(), address: IpNet::from(*address) };
        plan.addresses.insert(key, ());
    }
}

/// Reports whether a prefix has an address that this host has elsewhere, or the router of an uplink. Providers use the same
/// prefix (RFC 6598).
fn is_taken(input: &Input<'_>, interface: &str, net: &IpNet) -> bool {
    let is_leg = |name: &String| input.facts.mesh.as_ref().is_some_and(|mesh| mesh.leg_of(name).is_some());
    let elsewhere = input.facts.addresses.iter().filter(|(name, _)| *name != interface && !is_leg(name));
    let own = elsewhere.flat_map(|(_, nets)| nets.iter().map(IpNet::addr));
    let routers = input.facts.default_routes.iter().filter_map(|route| route.gateway);
    let leases = input.facts.leases.values().filter_map(|lease| lease.gateway.map(IpAddr::from));
    own.chain(routers).chain(leases).any(|address| net.contains(&address))
}
