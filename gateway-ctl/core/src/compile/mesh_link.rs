//! Interface of this gateway as a node of a mesh: its link, its addresses, and routes to the peers.
//!
//! Peers have addresses of the prefixes of meshes only, so a foreign coordinator cannot take over other destinations. What
//! the gateway forwards does not leave by this interface: it is no leg.

use std::net::IpAddr;

use ipnet::IpNet;

use super::Input;
use crate::facts::MeshLink;
use crate::plan::{AddressKey, LinkSettings, Plan, RouteKey, RouteValue, names};

pub(super) fn lower(input: &Input<'_>, plan: &mut Plan) {
    let Some(mesh) = &input.facts.mesh else { return };
    let MeshLink { interface, mtu, addresses, peers, port: _ } = mesh;
    // It comes and goes with the engine, and a plan that names it before would fail.
    let Some(link) = input.facts.links.get(interface) else { return };
    plan.links.insert(interface.clone(), LinkSettings { up: true, mtu: u32::from(*mtu) });
    for address in addresses {
        let key = AddressKey { interface: interface.clone(), address: IpNet::from(*address) };
        plan.addresses.insert(key, ());
    }
    if !link.up {
        return;
    }
    for destination in peers.iter().filter(|net| !is_taken(input, interface, net)) {
        let key = RouteKey { table: names::TABLE_MAIN, destination: *destination, metric: 0 };
        let route = RouteValue::Unicast { interface: interface.clone(), gateway: None };
        plan.routes.entry(key).or_insert(route);
    }
}

/// Reports whether a prefix has an address that this host has elsewhere, or the router of an uplink. Providers use the same
/// prefix (RFC 6598).
fn is_taken(input: &Input<'_>, interface: &str, net: &IpNet) -> bool {
    let elsewhere = input.facts.addresses.iter().filter(|(name, _)| *name != interface);
    let own = elsewhere.flat_map(|(_, nets)| nets.iter().map(IpNet::addr));
    let routers = input.facts.default_routes.iter().filter_map(|route| route.gateway);
    let leases = input.facts.leases.values().filter_map(|lease| lease.gateway.map(IpAddr::from));
    own.chain(routers).chain(leases).any(|address| net.contains(&address))
}
