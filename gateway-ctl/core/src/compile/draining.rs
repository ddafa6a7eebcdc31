//! Legs that new flows do not take any more, and that keep for a while those they have: tunnels that a user took down,
//! and members of a pool that a splitting endpoint takes out.
//!
//! A tunnel drains only for policies with another egress for new flows. For all others it is down at once.
//!
//! The time at which the tunnel was taken down is stored, and the end of draining ends the validity of the plan. The
//! endpoint for splitting adds no member: the hops of a policy are applied, while that endpoint takes effect at once.

use std::borrow::Cow;

use gateway_model::kinds::SplittingEndpoint;
use gateway_model::kinds::routing_policy::{Hop, HopMode, HopType, RoutingPolicy, Sticky};
use gateway_model::kinds::tunnel::AdminState;
use gateway_model::{State, Tunnel};
use jiff::{SignedDuration, Timestamp};

use super::{Input, Legs};

use crate::indexes::LegId;

/// Time for which flows may stay on a leg that drains.
pub const DRAIN: SignedDuration = SignedDuration::from_secs(30);

/// Notes until when the tunnels that were taken down keep their flows.
pub(super) fn set_drain_deadlines(input: &Input<'_>, in_trial: &[Cow<'_, RoutingPolicy>], legs: &mut Legs) {
    let down: Vec<(LegId, Timestamp)> = input
        .state
        .tunnels
        .iter()
        .filter_map(|tunnel| {
            let leg = legs.of_tunnel(tunnel.meta.id)?;
            let there = input.facts.links.contains_key(&leg.interface);
            let end = end(tunnel, input.now)?;
            there.then_some((leg.number, end))
        })
        .collect();
    if down.is_empty() {
        return;
    }
    for (number, end) in down {
        let held = in_trial.iter().filter(|policy| policy.in_force(input.now)).any(|policy| {
            let keeps =
                policy.vpn_hops().any(|hop| legs.tunnel(&hop.target).is_some_and(|l| l.number == number));
            keeps && drains(policy) && policy.hops.iter().any(|hop| takes_new(input.state, policy, hop, legs))
        });
        if let Some(leg) = legs.by_number.get_mut(&number).filter(|_| held) {
            leg.draining = Some(end);
        }
    }
}

/// Reports whether flows of the policy keep a leg that new flows do not take. A sticky source moves as a whole.
pub(super) fn drains(policy: &RoutingPolicy) -> bool {
    let failover = policy.hop_mode == HopMode::Failover && policy.sticky.unwrap_or_default() == Sticky::Flow;
    policy.is_pool() || failover
}

fn takes_new(state: &State, policy: &RoutingPolicy, hop: &Hop, legs: &Legs) -> bool {
    let is_enabled = hop.r#type != HopType::Vpn
        || endpoint(state, policy, &hop.target).is_none_or(|endpoint| endpoint.enabled);
    hop.r#type.is_tunnel() && is_enabled && legs.of_hop(hop).is_some_and(|leg| leg.usable)
}

/// Reports whether a tunnel was taken down so recently that it may still keep flows.
pub fn may_drain(tunnel: &Tunnel, now: Timestamp) -> bool {
    end(tunnel, now).is_some()
}

/// Returns the end of the drain of a tunnel that was taken down.
fn end(tunnel: &Tunnel, now: Timestamp) -> Option<Timestamp> {
    let down = tunnel.enabled && tunnel.admin_state == AdminState::Down;
    after(tunnel.down_since.filter(|_| down)?, now)
}

/// Returns the end of the drain of a leg that was removed at a time. `None` if it has passed.
pub(super) fn after(since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    // A clock that was set back does not prolong it.
    since.checked_add(DRAIN).ok().filter(|end| since <= now && now < *end)
}

/// Returns the splitting endpoint of a tunnel for the pool of a policy: the one for this policy, else the one for all.
pub(super) fn endpoint<'a>(
    state: &'a State,
    policy: &RoutingPolicy,
    tunnel: &str,
) -> Option<&'a SplittingEndpoint> {
    let of =
        |policy| state.splitting_endpoints.iter().find(|one| one.tunnel == tunnel && one.policy_id == policy);
    of(Some(policy.meta.id)).or_else(|| of(None))
}
