//! Default route of traffic without an uplink of its own: the active uplink, or those that share new flows.
//!
//! Decision 0107 says why.

use std::collections::BTreeSet;

use gateway_common::leg_selection::spread_over;
use gateway_common::wire::{ActionValue, CHOICE_SLOTS, Choice};

use super::leg::{DefaultUplink, Leg};
use super::{Input, Legs};
use crate::indexes::LegId;
use crate::network::UplinkSettings;
use crate::plan::Dataplane;

/// Returns the numbers of the uplinks over which a plan distributes new flows: one without balancing, none if the main routing
/// table decides.
pub fn shared_uplinks(dataplane: &Dataplane) -> BTreeSet<LegId> {
    let rank = dataplane.header.direct.checked_sub(1).and_then(|rank| usize::try_from(rank).ok());
    let Some(action) = rank.and_then(|rank| dataplane.actions.get(rank)) else { return BTreeSet::new() };
    LegId::of_choice(&action.v4).chain(LegId::of_choice(&action.v6)).flatten().collect()
}

/// Selects the uplink of traffic that has none of its own.
///
/// Without a selection of the manager, the main routing table decides. It may lead to an uplink that is disabled, so
/// then the best of the enabled ones is selected here.
pub(super) fn uplink(input: &Input<'_>, legs: &Legs) -> DefaultUplink {
    // Facts may be older than the configuration.
    let is_uplink = |number: &LegId| legs.get(*number).is_some_and(|leg| leg.is_uplink());
    if let Some(active) = input.facts.uplinks.active.filter(is_uplink) {
        return DefaultUplink::Leg(active);
    }
    if input.network.disabled_uplinks.is_empty() {
        return DefaultUplink::MainTable;
    }
    let metric = |leg: &Leg| {
        let routes = input.facts.default_routes.iter().filter(|route| route.interface == leg.interface);
        routes.map(|route| route.metric).min()
    };
    let best = legs.uplinks().min_by_key(|leg| (!leg.usable, metric(leg), leg.number));
    best.map_or(DefaultUplink::Nowhere, |leg| DefaultUplink::Leg(leg.number))
}

/// Adds the action of traffic by the default route behind those of the policies. There is none where the main routing
/// table decides.
pub(super) fn lower(input: &Input<'_>, legs: &Legs, dataplane: &mut Dataplane) {
    let choose = |has: fn(&Leg) -> bool| match legs.default {
        DefaultUplink::Leg(active) => Some(choice(input, legs, active, has)),
        DefaultUplink::Nowhere => Some(Choice::REJECT),
        DefaultUplink::MainTable => None,
    };
    let Some((v4, v6)) = choose(|leg| leg.ipv4).zip(choose(|leg| leg.ipv6)) else { return };
    dataplane.actions.push(ActionValue {
        v4,
        v6,
        lasting4: v4.kept,
        lasting6: v6.kept,
        sticky: super::leg::sticky(input.network.sticky) as u8,
        ..ActionValue::default()
    });
    dataplane.header.direct = u32::try_from(dataplane.actions.len()).unwrap_or_default();
}

fn choice(input: &Input<'_>, legs: &Legs, active: LegId, has: fn(&Leg) -> bool) -> Choice {
    let is_able = |number: LegId| legs.get(number).is_some_and(has);
    let uplinks = || input.network.uplinks.iter().filter(|uplink| is_able(uplink.number));
    let shares = |uplink: &&UplinkSettings| {
        input.network.balances && uplink.balances && input.facts.uplinks.balanced.contains(&uplink.number)
    };
    let mut new: Vec<(u8, u32)> =
        uplinks().filter(shares).map(|uplink| (uplink.number.get(), u32::from(uplink.weight))).collect();
    if new.is_empty() && is_able(active) {
        new.push((active.get(), 1));
    }
    if new.is_empty() {
        return Choice::REJECT;
    }
    let is_new = |number: LegId| new.iter().any(|(leg, _)| *leg == number.get());
    let keeps = |uplink: &&UplinkSettings| {
        let is_usable = legs.get(uplink.number).is_some_and(|leg| leg.usable);
        let ends = if is_usable { uplink.failback_states } else { uplink.failover_states };
        !is_new(uplink.number) && !ends
    };
    let kept: Vec<u8> = uplinks().filter(keeps).map(|uplink| uplink.number.get()).collect();
    let room = CHOICE_SLOTS.saturating_sub(kept.len()).max(new.len());
    spread_over(&new, room).with_draining_legs(&kept)
}
