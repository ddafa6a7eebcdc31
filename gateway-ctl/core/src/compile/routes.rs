//! Routing tables: one for each leg, one for the networks of the LAN, one that rejects, one that leads to the relay.

use std::net::IpAddr;

use ipnet::IpNet;

use super::leg::Leg;
use super::well_known::{default4, default6, is_link_local, mesh_prefixes};
use super::{Input, locals};
use crate::plan::{Plan, RouteKey, RouteValue, names};

const METRIC_LEG: u32 = 100;

pub(super) fn lower(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    for leg in legs {
        leg_routes(input, leg, plan);
    }
    lan_routes(input, plan);
    for default in [default4(), default6()] {
        let reject =
            RouteKey { table: names::TABLE_REJECT, destination: default, metric: names::METRIC_LAST };
        plan.routes.insert(reject, RouteValue::Unreachable);
        let here = RouteKey { table: names::TABLE_RELAY, destination: default, metric: 0 };
        plan.routes.insert(here, RouteValue::Local);
    }
}

/// Adds the networks on LAN interfaces.
fn lan_routes(input: &Input<'_>, plan: &mut Plan) {
    let is_up = |name: &&String| input.facts.links.get(*name).is_some_and(|link| link.up);
    for lan in input.network.lan.iter().filter(is_up) {
        for net in input.facts.addresses.get(lan).into_iter().flatten() {
            let is_network = (1..net.max_prefix_len()).contains(&net.prefix_len());
            if is_network && !is_link_local(net.addr()) {
                let key = RouteKey { table: names::TABLE_LAN, destination: net.trunc(), metric: METRIC_LEG };
                let route = || RouteValue::Unicast { interface: lan.clone(), gateway: None };
                plan.routes.entry(key).or_insert_with(route);
            }
        }
    }
}

fn leg_routes(input: &Input<'_>, leg: &Leg, plan: &mut Plan) {
    let table = names::TABLE_BASE + u32::from(leg.number);
    for (default, able) in [(default4(), leg.ipv4), (default6(), leg.ipv6)] {
        // Last, so that a leg whose interface goes away leads nowhere instead of to the main table.
        let last = RouteKey { table, destination: default, metric: names::METRIC_LAST };
        plan.routes.insert(last, RouteValue::Unreachable);
        let ipv6 = matches!(default, IpNet::V6(_));
        let there = input.facts.links.get(&leg.interface).is_some_and(|link| link.up);
        // A tunnel's link comes up by this plan; its route can only follow it.
        if !able || !there {
            continue;
        }
        let gateway = if leg.is_uplink() { gateway(input, leg, ipv6) } else { None };
        for destination in destinations(input, plan, leg, default) {
            let key = RouteKey { table, destination, metric: METRIC_LEG };
            plan.routes.insert(key, RouteValue::Unicast { interface: leg.interface.clone(), gateway });
        }
        if leg.is_uplink() {
            neighbour_routes(input, leg, ipv6, plan);
        }
    }
    if leg.mesh_peer().is_some() {
        // Other nodes of the mesh are not behind a peer.
        for destination in mesh_prefixes() {
            let key = RouteKey { table, destination, metric: METRIC_LEG };
            plan.routes.insert(key, RouteValue::Unreachable);
        }
    }
}

/// Returns the destinations that a tunnel takes. A WireGuard tunnel drops what is outside of `AllowedIPs`, and one to a mesh
/// peer what is outside of its routes, so the kernel rejects it, and hosts need not wait for a time-out.
fn destinations(input: &Input<'_>, plan: &Plan, leg: &Leg, default: IpNet) -> Vec<IpNet> {
    let of_mesh = input.facts.mesh.as_ref().and_then(|mesh| mesh.leg_of(&leg.interface));
    let allowed: Vec<IpNet> = match (plan.wireguard.get(&leg.interface), of_mesh) {
        (Some(device), _) => {
            device.peers.values().flat_map(|peer| peer.allowed_ips.iter().copied()).collect()
        }
        (None, Some(peer)) => peer.routes.iter().copied().collect(),
        (None, None) => return vec![default],
    };
    let of_family = allowed.into_iter().filter(|net| net.addr().is_ipv6() == default.addr().is_ipv6());
    IpNet::aggregate(&of_family.collect())
}

/// Adds the networks on an uplink: its neighbours, such as the modem, are not behind its router.
fn neighbour_routes(input: &Input<'_>, leg: &Leg, ipv6: bool, plan: &mut Plan) {
    let table = names::TABLE_BASE + u32::from(leg.number);
    let networks = locals::neighbour_networks(input, leg).into_iter();
    for destination in networks.filter(|net| net.addr().is_ipv6() == ipv6) {
        let key = RouteKey { table, destination, metric: METRIC_LEG };
        let route = RouteValue::Unicast { interface: leg.interface.clone(), gateway: None };
        plan.routes.insert(key, route);
    }
}

fn gateway(input: &Input<'_>, leg: &Leg, ipv6: bool) -> Option<IpAddr> {
    let settings = input.network.uplinks.iter().find(|uplink| uplink.interface == leg.interface);
    let given = settings.and_then(|uplink| uplink.gateway).filter(|gateway| gateway.is_ipv6() == ipv6);
    let mut routes: Vec<_> = input
        .facts
        .default_routes
        .iter()
        .filter(|r| r.interface == leg.interface && r.ipv6 == ipv6)
        .collect();
    routes.sort_by_key(|route| route.metric);
    given.or_else(|| routes.first().and_then(|route| route.gateway))
}
