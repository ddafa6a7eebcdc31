//! Outcome for an object when one that it refers to is deleted.

use schemars::JsonSchema;
use serde::Serialize;

use crate::kinds::hops::{hop_refs, is_pool};
use crate::kinds::{FailPolicy, HopMode, HopType, RoutingPolicy};
use crate::state::State;

/// Outcome for a referring object when the target is deleted. Ascending by severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenDeleted {
    /// It loses the target as a member.
    Released,
    /// Its traffic goes on by its other hops.
    OtherHops,
    /// Its hop or its egress stays and is unavailable. Of an object with hops, the policies that use it decide.
    Unavailable,
    /// Its traffic is blocked: no usable hop is left, and it does not fail open.
    Blocked,
    /// Its traffic leaves directly: no usable hop is left, and it fails open.
    Direct,
    /// The target cannot be deleted while the object refers to it.
    Refused,
}

/// Outcome for the traffic of a policy without a hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub then: WhenDeleted,
    /// Hops that are left.
    pub hops: Vec<String>,
}

impl Loss {
    /// Returns the outcome for a policy that loses a hop. `None` if no hop is the target. Of a path, each hop is needed.
    pub(crate) fn of(policy: &RoutingPolicy, noun: &str, target: &str, state: &State) -> Option<Loss> {
        let whole = state.resolved(policy);
        let lost: Vec<String> = hop_refs(&whole.hops)
            .filter(|hop| hop.kind == noun && hop.target == target)
            .map(|hop| hop.target)
            .collect();
        if lost.is_empty() {
            return None;
        }
        let left: Vec<_> = whole.hops.iter().filter(|hop| !lost.contains(&hop.target)).collect();
        let fails = whole.fail_policy.unwrap_or_default();
        let skips = is_pool(&whole.hops, whole.splitting)
            || whole.hop_mode == HopMode::Failover
            // Such a policy never leaves by an uplink alone.
            || fails == FailPolicy::Degraded && left.iter().any(|hop| hop.r#type != HopType::Interface);
        let hops: Vec<String> = left.iter().map(|hop| hop.target.clone()).collect();
        let then = match fails {
            _ if skips && !hops.is_empty() => WhenDeleted::OtherHops,
            FailPolicy::Open => WhenDeleted::Direct,
            FailPolicy::Closed | FailPolicy::Degraded => WhenDeleted::Blocked,
        };
        Some(Loss { then, hops })
    }
}
