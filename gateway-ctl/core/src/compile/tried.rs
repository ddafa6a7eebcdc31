//! The applied policies as the dry run tries them: in order, close together in memory, and with what they match.
//!
//! A dry run tries each policy. Sorting them, parsing what they match and fetching each from its own place in memory
//! takes far more than the comparison with a packet, and is the same for each dry run until the policies change.

use std::ops::Range;
use std::sync::Arc;

use gateway_model::RoutingPolicy;
use gateway_model::id::Id;
use gateway_model::kinds::policy_source::Source;
use gateway_model::kinds::routing_policy::Lifetime;

use super::Input;

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
