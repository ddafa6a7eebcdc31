//! The hops of a policy as they are, and the way that its traffic takes by them.

use gateway_model::RoutingPolicy;
use gateway_model::kinds::proxy::Proxy;
use gateway_model::kinds::routing_policy::{FailPolicy, Hop, HopMode, HopType, Sticky};

use super::{Carrier, HopState, Input, Legs};

/// The hops of a policy. A hop of a path is usable only if it is reached through the one before.
pub fn states(input: &Input<'_>, policy: &RoutingPolicy, legs: &Legs) -> Vec<HopState> {
    let mut states: Vec<HopState> = policy.hops.iter().map(|hop| state(input, hop, legs)).collect();
    if policy.hop_mode == HopMode::Failover {
        return states;
    }
    let degrades = policy.fail_policy == Some(FailPolicy::Degraded);
    if policy.is_pool() {
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

/// Another policy may have the tunnel carried by something else. A policy that fails degraded does not mind what is in
/// between.
fn check_underlay(state: &mut HopState, under: u8, anyhow: bool, legs: &Legs) {
    if !state.usable || state.hop.r#type != HopType::Vpn {
        return;
    }
    let mut carrier = legs.get(state.leg).map_or(Carrier::Nowhere, |leg| leg.carrier);
    let by = match carrier {
        Carrier::Default => "the default way".to_owned(),
        Carrier::Nowhere => "nothing".to_owned(),
        Carrier::Leg(number) => legs.get(number).map_or_else(String::new, |leg| leg.interface.clone()),
    };
    for _ in 0..legs.by_number.len() {
        match carrier.leg() {
            Some(number) if number == under => return,
            Some(number) if anyhow => carrier = legs.get(number).map_or(Carrier::Nowhere, |leg| leg.carrier),
            _ => break,
        }
    }
    state.usable = false;
    state.reason = format!("it is carried by {by} at present");
}

fn state(input: &Input<'_>, hop: &Hop, legs: &Legs) -> HopState {
    let missing = match hop.r#type {
        HopType::Proxy => return proxy(input, hop),
        HopType::Vpn => "there is no tunnel of this name",
        HopType::Interface => "it is no configured uplink",
        HopType::MeshPeer => "this version has no mesh",
    };
    let leg = legs.of_hop(hop);
    HopState {
        hop: hop.clone(),
        leg: leg.map_or(0, |leg| leg.number),
        proxy: 0,
        usable: leg.is_some_and(|leg| leg.usable),
        reason: leg.map_or_else(|| missing.to_owned(), |leg| leg.reason.clone()),
    }
}

fn proxy(input: &Input<'_>, hop: &Hop) -> HopState {
    let proxy = input.state.find::<Proxy>(&hop.target);
    let reason = match proxy {
        None => "there is no proxy of this name".to_owned(),
        Some(proxy) if !proxy.enabled => "it is disabled".to_owned(),
        Some(proxy) => match input.facts.proxies.get(&proxy.meta.id.to_string()) {
            None => "this version sends nothing to proxies".to_owned(),
            Some(fact) if fact.usable => String::new(),
            Some(fact) => fact.reason.clone(),
        },
    };
    // Numbers end at 255.
    let number = proxy.and_then(|proxy| u8::try_from(proxy.meta.slot).ok()).unwrap_or(0);
    HopState { hop: hop.clone(), leg: 0, proxy: number, usable: reason.is_empty() && number > 0, reason }
}

/// What a policy's traffic may take now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Place of the hop by which new flows leave, the first of them in a pool; none means that the failure policy applies.
    pub active: Option<usize>,
    /// Legs for new flows. Empty with a proxy that is reached by the default way.
    pub legs: Vec<u8>,
    /// Legs that flows keep which have them already.
    pub kept: Vec<u8>,
    /// Number of the proxy behind these legs, 0 without one.
    pub proxy: u8,
}

pub fn way(policy: &RoutingPolicy, hops: &[HopState]) -> Way {
    if policy.hop_mode == HopMode::Failover {
        return first(policy, hops);
    }
    if policy.is_pool() {
        return pool(policy, hops);
    }
    path(policy, hops)
}

fn first(policy: &RoutingPolicy, hops: &[HopState]) -> Way {
    let Some(active) = hops.iter().position(|hop| hop.usable) else { return Way::default() };
    // A flow stays in the tunnel in which it began; one that had to leave without goes back into a tunnel at once. What
    // keeps a source together moves it together.
    let stays = |hop: &&HopState| hop.usable && hop.hop.r#type == HopType::Vpn;
    let kept = match policy.sticky.unwrap_or_default() {
        Sticky::Flow => hops[active + 1..].iter().filter(stays).map(|hop| hop.leg).collect(),
        Sticky::Source | Sticky::SourceDest => Vec::new(),
    };
    Way { kept, ..through(hops, active) }
}

/// By one hop and nothing before it that is not its carrier anyway.
fn through(hops: &[HopState], active: usize) -> Way {
    let HopState { leg, proxy, .. } = hops[active];
    Way {
        active: Some(active),
        legs: (leg != 0).then_some(leg).into_iter().collect(),
        proxy,
        ..Way::default()
    }
}

fn pool(policy: &RoutingPolicy, hops: &[HopState]) -> Way {
    let degrades = policy.fail_policy == Some(FailPolicy::Degraded);
    // The common uplink, and the proxy behind.
    let mut others = hops.iter().filter(|hop| hop.hop.r#type != HopType::Vpn);
    if others.any(|hop| !hop.usable) && !degrades {
        return Way::default();
    }
    let members = || hops.iter().enumerate().filter(|(_, hop)| hop.usable && hop.hop.r#type == HopType::Vpn);
    Way {
        active: members().next().map(|(place, _)| place),
        legs: members().map(|(_, hop)| hop.leg).collect(),
        kept: Vec::new(),
        proxy: hops.iter().filter(|hop| hop.usable).map(|hop| hop.proxy).max().unwrap_or(0),
    }
}

/// Traffic leaves by the last hop, which is carried by those before.
fn path(policy: &RoutingPolicy, hops: &[HopState]) -> Way {
    let degrades = policy.fail_policy == Some(FailPolicy::Degraded);
    if !degrades && hops.iter().any(|hop| !hop.usable) {
        return Way::default();
    }
    let Some(active) = hops.iter().rposition(|hop| hop.usable) else { return Way::default() };
    let only_uplinks = hops.iter().all(|hop| hop.hop.r#type == HopType::Interface);
    if hops[active].hop.r#type == HopType::Interface && !only_uplinks {
        return Way::default();
    }
    let mut way = through(hops, active);
    if way.proxy != 0
        && let Some(before) = hops[..active].iter().rfind(|hop| hop.usable)
    {
        way.legs = vec![before.leg];
    }
    way
}
