//! The order in which policies are tried: exceptions that divert, the applied policies, profiles of devices, segments.
//!
//! A dry run tries each policy, and finds the applied ones in order, close together in memory and parsed. Sorting them, parsing what they match and fetching each from its own place in memory
//! takes far more than the comparison with a packet, and is the same for each dry run until the policies change.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use gateway_model::RoutingPolicy;
use gateway_model::id::Id;
use gateway_model::kinds::policy_source::Source;
use gateway_model::kinds::routing_policy::{Lifetime, precedence};

use super::Input;

impl<'a> Input<'a> {
    /// The policies in the order of trial, those out of force included; before them the exceptions that divert, and
    /// behind them the profiles of devices and then the segments.
    pub fn in_trial(&self) -> Vec<Cow<'a, RoutingPolicy>> {
        let applied = self.applied_in_order().into_iter().map(|policy| Cow::Borrowed(policy.as_ref()));
        let before = self.tried_before().into_iter().map(Cow::Owned);
        before.chain(applied).chain(self.tried_behind().into_iter().map(Cow::Owned)).collect()
    }

    /// The applied policies in the order of trial, those out of force included.
    pub fn applied_in_order(&self) -> Vec<&'a Arc<RoutingPolicy>> {
        let mut applied: Vec<&Arc<RoutingPolicy>> = self.state.applied.policies.arcs().collect();
        // Each key takes a cache miss.
        applied.sort_by_cached_key(|policy| precedence(policy));
        applied
    }

    /// The exceptions that divert, as policies that are tried before the applied ones.
    pub fn tried_before(&self) -> Vec<RoutingPolicy> {
        let diversions = self.active_exceptions().filter(|exception| exception.diverts());
        diversions.map(|exception| self.diversion(exception)).collect()
    }

    /// The profiles of devices, the segments and the prefixes of mesh peers, as policies that are tried behind the applied ones.
    pub fn tried_behind(&self) -> Vec<RoutingPolicy> {
        self.defaults().into_iter().chain(self.segments()).chain(self.mesh_routes()).collect()
    }
}

/// The applied policies in the order of trial.
#[derive(Clone, Debug, Default)]
pub struct TriedPolicies {
    policies: Vec<Place>,
    sources: Vec<Source>,
}

#[derive(Clone, Debug)]
struct Place {
    id: Id,
    lifetime: Lifetime,
    /// Of `sources`.
    sources: Range<usize>,
    policy: Arc<RoutingPolicy>,
}

/// A policy, and what decides whether it matches.
#[derive(Clone, Copy, Debug)]
pub struct TriedPolicy<'a> {
    pub id: Id,
    pub lifetime: Lifetime,
    pub sources: &'a [Source],
    pub policy: &'a RoutingPolicy,
}

impl TriedPolicies {
    pub fn of(input: &Input<'_>) -> TriedPolicies {
        let mut tried = TriedPolicies::default();
        for policy in input.applied_in_order() {
            let begin = tried.sources.len();
            tried.sources.extend(input.sources(policy));
            tried.policies.push(Place {
                id: policy.meta.id,
                lifetime: policy.lifetime(),
                sources: begin..tried.sources.len(),
                policy: Arc::clone(policy),
            });
        }
        tried
    }

    pub fn iter(&self) -> impl Iterator<Item = TriedPolicy<'_>> {
        self.policies.iter().map(|place| TriedPolicy {
            id: place.id,
            lifetime: place.lifetime,
            sources: self.sources.get(place.sources.clone()).unwrap_or_default(),
            policy: &place.policy,
        })
    }
}
