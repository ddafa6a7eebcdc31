//! State and facts to a plan: total, synchronous, deterministic.
//!
//! The compiler is a sequence of phases ([`compile`]). Each phase reads the results of earlier ones and never calls
//! back.
//!
//! Routing follows the *applied* policies; devices, groups, classes, tunnels and exceptions count as they are.

mod attachments;
mod blocks;
mod bridges;
mod compiled;
mod default_route;
mod devices;
mod draining;
mod exceptions;
mod fallback;
mod guard;
mod hops;
mod input;
mod interfaces;
mod lan_ipv6;
mod lan_sources;
mod leg;
mod legs;
mod locals;
mod mesh_link;
mod mesh_routes;
mod named_egress;
mod nft;
mod openvpn;
mod own_interfaces;
mod policies;
mod prefixes;
mod profiles;
mod proxies;
mod public_services;
mod routes;
mod rules;
mod segment_classes;
mod segments;
mod sysctls;
mod trial;
mod tunnel_addresses;
mod underlays;
mod virtual_links;
mod well_known;
mod wireguard;

use std::collections::{BTreeMap, BTreeSet};

use gateway_common::wire::{PlanValue, block_flags, device_flags, plan_flags};
use gateway_model::settings::groups::{PrivacyBlocks, PrivacyMode};
use ipnet::IpNet;
use jiff::Timestamp;

use crate::indexes::{LegId, Rank};
use crate::plan::Dataplane;
use policies::Ranks;

pub use attachments::attachments;
pub use bridges::{bridge_refusal, transport};
pub use compiled::{Compiled, CompiledPolicy, Finding, HopState};
pub use default_route::shared_uplinks;
pub use draining::{DRAIN, may_drain};
pub(crate) use hops::missing_mesh_peer;
pub use input::Input;
pub use lan_sources::prefixes as lan_prefixes;
pub use leg::{DefaultUplink, Leg, LegKind, Legs, Underlay, leg_number, named_leg, tunnel_interface};
pub(crate) use mesh_routes::is_mesh_route;
pub use proxies::{by_leg, proxy_address, proxy_login};
pub use segment_classes::segment_on;
pub use trial::{TriedPolicies, TriedPolicy};

/// Compiles.
pub fn compile(input: &Input<'_>) -> Compiled {
    let in_trial = input.in_trial();
    let mut compiled = Compiled { legs: legs::lower(input, &in_trial), ..Compiled::default() };
    let ranks = policies::lower(input, &in_trial, &mut compiled);
    let dataplane = &mut *compiled.plan.dataplane;
    dataplane.header = header(input, &ranks);
    devices::lower(input, &ranks, dataplane);
    default_route::lower(input, &compiled.legs, dataplane);
    blocks::lower(input, dataplane);
    lan_sources::lower(input, dataplane);
    sources_and_destinations(ranks, dataplane);
    lower_paths(input, &mut compiled);
    compiled
}

/// Compiles the policies, marks, rules and routes, and nothing that matches packets or depends on it. Such a plan says
/// where the traffic of each policy leaves, and is for views only.
pub fn compile_egress(input: &Input<'_>) -> Compiled {
    let in_trial = input.in_trial();
    let mut compiled = Compiled { legs: legs::lower(input, &in_trial), ..Compiled::default() };
    policies::lower_egress(input, &in_trial, &mut compiled);
    lower_paths(input, &mut compiled);
    compiled
}

/// Lowers what follows the decision on a packet.
fn lower_paths(input: &Input<'_>, compiled: &mut Compiled) {
    compiled.findings.extend(attachments::unsupported_lans(input.network, input.facts));
    let legs: Vec<Leg> = compiled.legs.by_number.values().cloned().collect();
    let needed = needed_legs(input, compiled, &legs);
    let plan = &mut compiled.plan;
    wireguard::lower(input, &legs, plan);
    openvpn::lower(input, &legs, plan);
    bridges::lower(input, &legs, plan);
    let interfaces = legs.iter().map(|leg| leg.interface.as_str()).collect();
    plan.fast_path = input.network.fast_path;
    plan.xdp = input.network.xdp.clone();
    plan.attach = attachments(input.network, input.facts, &interfaces);
    plan.virtual_links = input.network.virtual_links.clone();
    virtual_links::add_segments(input, plan, &mut compiled.findings);
    interfaces::lower(input, plan, &mut compiled.findings);
    virtual_links::set_up(input, plan);
    mesh_link::lower(input, plan);
    lan_ipv6::lower(input, &compiled.legs, plan);
    compiled.findings.extend(lan_ipv6::refused_delegations(input));
    locals::lower(input, &legs, plan);
    guard::lower(input, &legs, plan);
    routes::lower(input, &legs, plan);
    rules::lower(input, &legs, compiled.legs.default, &needed, plan);
    sysctls::lower(input, &legs, plan);
    nft::lower(input, &legs, plan);
    plan.nft.mesh = mesh_link::forwarding(input, compiled.legs.default);
    mesh_link::authorise(input, plan);
    proxies::lower(input, compiled);
    compiled.plan.valid_until = valid_until(input, compiled);
}

fn header(input: &Input<'_>, ranks: &Ranks) -> PlanValue {
    let mut header = PlanValue {
        all: Rank::raw(ranks.all),
        sample_every: input.network.sample_every,
        ..PlanValue::default()
    };
    if !ranks.domains.is_empty() {
        header.flags |= plan_flags::DOMAINS;
    }
    let mode = input.state.group::<PrivacyMode>().mode;
    let all = blocks::flags(input, input.state.group::<PrivacyBlocks>().all, mode);
    header.flags |= all & block_flags::ALL;
    if blocks::forces_dns_of_all(input) || all & device_flags::FORCED_DNS != 0 {
        header.flags |= plan_flags::FORCED_DNS;
    }
    if all & device_flags::FORCED_NTP != 0 {
        header.flags |= plan_flags::FORCED_NTP;
    }
    header.flags |= devices::flags_of_unknown(input.network.unknown_hosts) << plan_flags::UNKNOWN_SHIFT;
    if input.network.server_names {
        header.flags |= plan_flags::LOGGED_NAMES;
    }
    header.admin_port = input.network.admin_port.into();
    if devices::restricts_administration(input) {
        header.flags |= plan_flags::NO_ADMIN;
    }
    header
}

/// Sets the rank of each key: the kernel finds one prefix, so a longer one has the rank of all around it.
fn sources_and_destinations(ranks: Ranks, dataplane: &mut Dataplane) {
    let inherited = |prefixes: &BTreeMap<IpNet, Rank>| {
        let inherited = prefixes::inherit(prefixes).into_iter();
        inherited.map(|(net, rank)| (net, rank.get())).collect::<Vec<_>>()
    };
    dataplane.domains = ranks.domains;
    dataplane.interfaces = ranks.interfaces;
    dataplane.vlans = ranks.vlans.into_iter().map(|(id, rank)| (id, rank.get())).collect();
    dataplane.sources = inherited(&ranks.sources).into_iter().collect();
    dataplane.destinations = inherited(&ranks.destinations).into_iter().collect();
    for (port, prefixes) in &ranks.destination_ports {
        let of_port = inherited(prefixes).into_iter().map(|(net, rank)| ((*port, net), rank));
        dataplane.destination_ports.extend(of_port);
    }
    for list in ranks.lists.values() {
        let number = list.number;
        let of_list = inherited(&list.destinations).into_iter().map(|(net, rank)| ((number, net), rank));
        dataplane.list_destinations.extend(of_list);
        for (port, prefixes) in &list.ports {
            let of_port = inherited(prefixes).into_iter().map(|(net, rank)| ((number, *port, net), rank));
            dataplane.list_ports.extend(of_port);
        }
    }
}

/// The legs that need a route.
fn needed_legs(input: &Input<'_>, compiled: &Compiled, legs: &[Leg]) -> BTreeSet<LegId> {
    let mut needed = compiled.legs_in_use();
    needed.extend(legs.iter().filter_map(|leg| leg.underlay.leg()));
    needed.extend(named_egress::legs(input.state, legs.iter()));
    // Replies of this host to traffic from an uplink leave by that uplink.
    needed.extend(legs.iter().filter(|leg| leg.is_uplink()).map(|leg| leg.number));
    needed
}

/// The next time at which the plan changes by itself.
fn valid_until(input: &Input<'_>, compiled: &Compiled) -> Option<Timestamp> {
    let policies = input.state.applied.policies.iter().filter(|policy| policy.in_force(input.now));
    let ends = policies.filter_map(|policy| policy.expires_at);
    let exceptions = input.active_exceptions().filter_map(|exception| exception.expires_at);
    let starts = input.state.exceptions.iter().filter_map(|exception| exception.planned_start(input.now));
    let legs = compiled.legs.by_number.values().filter_map(|leg| leg.draining);
    let hops = compiled.policies.iter().flat_map(|policy| &policy.hops).filter_map(|hop| hop.draining);
    let prefixes = lan_ipv6::next_end(input);
    ends.chain(exceptions).chain(starts).chain(legs).chain(hops).chain(prefixes).min()
}
