//! Hops of a policy in their present state, and the egress of its traffic through them.
//!
//! Flows keep a tunnel in which they began, so failback breaks no connection: an action lists legs for new flows and,
//! behind them, legs for flows that have them already. Uplinks are not kept in this way, so a flow that had to leave
//! without a tunnel returns to one at once.

use gateway_model::RoutingPolicy;
use gateway_model::kinds::proxy::Proxy;
use gateway_model::kinds::routing_policy::{FailPolicy, Hop, HopMode, HopType, Sticky};

use super::proxies::{by_leg, number};
use super::{HopState, Input, Legs, Underlay, draining};

use crate::indexes::{LegId, ProxyIndex};

/// The hops of a policy. A hop of a path is usable only if it is reached through the one before.
pub(super) fn states(input: &Input<'_>, policy: &RoutingPolicy, legs: &Legs) -> Vec<HopState> {
    let mut states = tunnels(input, policy, legs);
    for place in 0..states.len() {
        if states[place].hop.r#type == HopType::Proxy {
            let by = legs_before(policy, &states, place);
            proxy(input, &mut states[place], by);
        }
    }
    states
}

/// Legs towards the proxy at an index. Empty if the underlay of the path is unavailable.
fn legs_before(policy: &RoutingPolicy, states: &[HopState], place: usize) -> Vec<Option<LegId>> {
    let degrades = policy.fail_policy == Some(FailPolicy::Degraded);
    let before = &states[..place];
    if policy.hop_mode == HopMode::Failover || before.is_empty() {
        return vec![None];
    }
    let usable = |hop: &&HopState| hop.usable;
    if policy.is_pool() {
        let members = before.iter().filter(usable).filter(|hop| hop.hop.r#type.is_tunnel());
        let members: Vec<Option<LegId>> = members.map(|hop| hop.leg).collect();
        if !members.is_empty() {
            return members;
        }
    }
    let last = if degrades { before.iter().rfind(usable) } else { before.last().filter(usable) };
    match last {
        Some(hop) => vec![hop.leg],
        None if degrades => vec![None],
        None => Vec::new(),
    }
}

fn tunnels(input: &Input<'_>, policy: &RoutingPolicy, legs: &Legs) -> Vec<HopState> {
    let mut states: Vec<HopState> = policy.hops.iter().map(|hop| state(input, hop, legs)).collect();
    if !draining::drains(policy) {
        states.iter_mut().for_each(|hop| hop.draining = None);
    }
    if policy.hop_mode == HopMode::Failover {
        return states;
    }
    let degrades = policy.fail_policy == Some(FailPolicy::Degraded);
    if policy.is_pool() {
        states.iter_mut().for_each(|hop| share(input, policy, hop));
        let (first, rest) = match states.split_first_mut() {
            Some((first, rest)) if first.hop.r#type == HopType::Interface => (first.leg, rest),
            _ => return states,
        };
        rest.iter_mut().for_each(|hop| check_underlay(hop, first, degrades, legs));
        return states;
    }
    for place in 1..states.len() {
        let before =
            if degrades { states[..place].iter().rfind(|hop| hop.usable) } else { states.get(place - 1) };
        if let Some(leg) = before.map(|hop| hop.leg) {
            check_underlay(&mut states[place], leg, degrades, legs);
        }
    }
    states
}

/// Applies the splitting endpoint of a pool member.
fn share(input: &Input<'_>, policy: &RoutingPolicy, hop: &mut HopState) {
    if hop.hop.r#type != HopType::Vpn {
        return;
    }
    let Some(endpoint) = draining::endpoint(input.state, policy, &hop.hop.target) else { return };
    hop.weight = u32::from(endpoint.weight);
    if !endpoint.enabled && hop.usable {
        hop.usable = false;
        "its splitting endpoint is disabled".clone_into(&mut hop.reason);
        hop.draining = draining::after(endpoint.meta.updated_at, input.now);
    }
}

/// Another policy may demand another underlay of the tunnel. A policy that fails degraded accepts any hops in between.
fn check_underlay(state: &mut HopState, under: Option<LegId>, anyhow: bool, legs: &Legs) {
    if !state.usable || !state.hop.r#type.is_tunnel() {
        return;
    }
    if state.hop.r#type == HopType::MeshPeer {
        state.usable = false;
        "a mesh peer is reached through no other hop".clone_into(&mut state.reason);
        return;
    }
    let mut underlay = state.leg.and_then(|leg| legs.get(leg)).map_or(Underlay::Nowhere, |leg| leg.underlay);
    let by = match underlay {
        Underlay::Default => "the default route".to_owned(),
        Underlay::Nowhere => "nothing".to_owned(),
        Underlay::Leg(number) => legs.get(number).map_or_else(String::new, |leg| leg.interface.clone()),
    };
    for _ in 0..legs.by_number.len() {
        match underlay.leg() {
            Some(number) if Some(number) == under => return,
            Some(number) if anyhow => {
                underlay = legs.get(number).map_or(Underlay::Nowhere, |leg| leg.underlay)
            }
            _ => break,
        }
    }
    state.usable = false;
    state.reason = format!("it is carried by {by} at present");
}

/// Returns why there is no leg of a mesh peer.
pub(crate) fn missing_mesh_peer<'a>(input: &Input<'a>, name: &str) -> &'a str {
    match &input.facts.mesh {
        None => "this gateway is in no mesh at present",
        Some(mesh) => mesh.missing.get(name).map_or("it is not looked for yet", String::as_str),
    }
}

fn state(input: &Input<'_>, hop: &Hop, legs: &Legs) -> HopState {
    let missing = match hop.r#type {
        HopType::Proxy => "there is no proxy of this name",
        HopType::Vpn => "there is no tunnel of this name",
        HopType::Interface => "it is no configured uplink",
        HopType::MeshPeer => missing_mesh_peer(input, &hop.target),
    };
    let leg = legs.of_hop(hop);
    HopState {
        hop: hop.clone(),
        leg: leg.map(|leg| leg.number),
        proxy: None,
        by: Vec::new(),
        usable: leg.is_some_and(|leg| leg.usable),
        reason: leg.map_or_else(|| missing.to_owned(), |leg| leg.reason.clone()),
        weight: leg.map_or(1, |leg| leg.weight),
        draining: leg.and_then(|leg| leg.draining),
    }
}

fn proxy(input: &Input<'_>, state: &mut HopState, by: Vec<Option<LegId>>) {
    let Some(proxy) = input.state.find::<Proxy>(&state.hop.target) else { return };
    let evaluated: Vec<Result<bool, String>> = by.iter().map(|leg| by_leg(input, proxy, *leg)).collect();
    state.proxy = number(proxy);
    state.usable = evaluated.iter().any(Result::is_ok) && state.proxy.is_some();
    let reason = evaluated.into_iter().find_map(Result::err);
    state.reason = match (state.usable, reason) {
        (true, _) => String::new(),
        (false, Some(reason)) => reason,
        (false, None) => "the way to it is unavailable".to_owned(),
    };
    state.by = by;
}

/// Egresses that the traffic of a policy may take now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResolvedEgress {
    /// Index of the hop by which new flows leave, the first of them in a pool. `None` means that the failure policy
    /// applies.
    pub active: Option<usize>,
    /// Legs for new flows; `None` is the default route to a proxy.
    pub legs: Vec<Option<LegId>>,
    /// Legs that flows keep which have them already.
    pub kept: Vec<LegId>,
    /// The proxy behind these legs.
    pub proxy: Option<ProxyIndex>,
    /// The proxy takes datagrams by all of them.
    pub udp: bool,
}

pub(super) fn resolve_egress(input: &Input<'_>, policy: &RoutingPolicy, hops: &[HopState]) -> ResolvedEgress {
    let mut resolved = by_hops(policy, hops);
    if let Some(hop) = hops.iter().find(|hop| hop.proxy.is_some() && hop.proxy == resolved.proxy) {
        let proxy = input.state.find::<Proxy>(&hop.hop.target);
        let by = |leg: &Option<LegId>| Some((*leg, by_leg(input, proxy?, *leg).ok()?));
        let by: Vec<(Option<LegId>, bool)> = hop.by.iter().filter_map(by).collect();
        resolved.udp = by.iter().all(|(_, udp)| *udp);
        resolved.legs = by.into_iter().map(|(leg, _)| leg).collect();
        resolved.kept = Vec::new();
    }
    resolved
}

fn by_hops(policy: &RoutingPolicy, hops: &[HopState]) -> ResolvedEgress {
    if policy.hop_mode == HopMode::Failover {
        return first(policy, hops);
    }
    if policy.is_pool() {
        return pool(policy, hops);
    }
    path(policy, hops)
}

fn first(policy: &RoutingPolicy, hops: &[HopState]) -> ResolvedEgress {
    let Some(active) = hops.iter().position(|hop| hop.usable) else { return ResolvedEgress::default() };
    // A flow stays in the tunnel in which it began; one that had to leave without goes back into a tunnel at once. What
    // keeps a source together moves it together.
    let stays = |hop: &&HopState| {
        (hop.usable || hop.draining.is_some()) && hop.hop.r#type.is_tunnel() && hop.leg != hops[active].leg
    };
    let kept = match policy.sticky.unwrap_or_default() {
        Sticky::Flow => hops.iter().filter(stays).filter_map(|hop| hop.leg).collect(),
        Sticky::Source | Sticky::SourceDest => Vec::new(),
    };
    ResolvedEgress { kept, ..egress_by(hops, active) }
}

/// Returns the egress by one hop, with no hop before it except its own underlay.
fn egress_by(hops: &[HopState], active: usize) -> ResolvedEgress {
    let HopState { leg, proxy, .. } = hops[active];
    ResolvedEgress {
        active: Some(active),
        legs: leg.map(Some).into_iter().collect(),
        proxy,
        ..ResolvedEgress::default()
    }
}

fn pool(policy: &RoutingPolicy, hops: &[HopState]) -> ResolvedEgress {
    let degrades = policy.fail_policy == Some(FailPolicy::Degraded);
    // The common uplink, and the proxy behind.
    let mut others = hops.iter().filter(|hop| !hop.hop.r#type.is_tunnel());
    if others.any(|hop| !hop.usable) && !degrades {
        return ResolvedEgress::default();
    }
    let proxy = |hop: &HopState| hop.usable && hop.proxy.is_some();
    let members = || hops.iter().enumerate().filter(|(_, hop)| hop.usable && hop.hop.r#type.is_tunnel());
    ResolvedEgress {
        active: members()
            .next()
            .or_else(|| hops.iter().enumerate().find(|(_, hop)| proxy(hop)))
            .map(|(place, _)| place),
        legs: members().map(|(_, hop)| hop.leg).collect(),
        kept: hops.iter().filter(|hop| hop.draining.is_some()).filter_map(|hop| hop.leg).collect(),
        proxy: hops.iter().find(|hop| proxy(hop)).and_then(|hop| hop.proxy),
        ..ResolvedEgress::default()
    }
}

/// Traffic leaves by the last hop. The hops before it are its underlays.
fn path(policy: &RoutingPolicy, hops: &[HopState]) -> ResolvedEgress {
    let degrades = policy.fail_policy == Some(FailPolicy::Degraded);
    if !degrades && hops.iter().any(|hop| !hop.usable) {
        return ResolvedEgress::default();
    }
    let Some(active) = hops.iter().rposition(|hop| hop.usable) else { return ResolvedEgress::default() };
    let only_uplinks = hops.iter().all(|hop| hop.hop.r#type == HopType::Interface);
    if hops[active].hop.r#type == HopType::Interface && !only_uplinks {
        return ResolvedEgress::default();
    }
    egress_by(hops, active)
}
