//! Failure policies that the choices of a policy needed, for devices with a stricter floor.
//!
//! A policy for all or for a subnet serves devices with different floors. An action for each floor would triple the
//! map, and with it the time of an apply. So each choice has the weakest failure policy with the same result, and the
//! decision rejects a packet whose choice needed a weaker one than the floor of its device. A device with the floor
//! `fail-degraded` is rejected when a fail-open policy takes the default route, although some hops may be usable:
//! stricter than needed, never weaker.

use gateway_common::wire::{Choice, Fallback};
use gateway_model::RoutingPolicy;
use gateway_model::kinds::routing_policy::FailPolicy;

/// Choices of a policy by kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByTraffic<T> {
    pub v4: T,
    pub v6: T,
    /// Traffic that the proxy does not take.
    pub rest: T,
}

/// Egress of a policy: the choices of both families, and the action for traffic that the proxy does not take.
pub(super) type Choices = (Choice, Choice, u8);

/// Returns the weakest failure policy with the same choices. `choose` has the choices under a failure policy.
pub(super) fn needed(
    policy: &RoutingPolicy,
    own: &Choices,
    choose: impl Fn(&RoutingPolicy) -> Choices,
) -> ByTraffic<Fallback> {
    let mut needed = ByTraffic { v4: Fallback::None, v6: Fallback::None, rest: Fallback::None };
    for (stricter, fallback) in
        [(FailPolicy::Closed, Fallback::Degraded), (FailPolicy::Degraded, Fallback::Open)]
    {
        if policy.fail_policy.unwrap_or_default().stricter(stricter) != stricter
            || policy.fail_policy == Some(stricter)
        {
            continue;
        }
        let strict = RoutingPolicy { fail_policy: Some(stricter), ..policy.clone() };
        let (v4, v6, rest) = choose(&strict);
        for (needed, differs) in
            [(&mut needed.v4, v4 != own.0), (&mut needed.v6, v6 != own.1), (&mut needed.rest, rest != own.2)]
        {
            if differs {
                *needed = fallback;
            }
        }
    }
    needed
}
