//! Result of the compiler: the plan, and the policies, legs and findings that explain it.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use gateway_common::verdict::Verdict;
use gateway_common::wire::{ActionValue, Choice};
use gateway_model::id::Id;
use gateway_model::kinds::routing_policy::{FailPolicy, Hop, PolicyStatus};
use jiff::Timestamp;
use serde::Serialize;

use super::Input;
use super::leg::Legs;
use super::trial::TriedPolicies;
use crate::indexes::{LegId, PolicyIndex, ProxyIndex, Rank};
use crate::plan::Plan;

/// Plan with the data that explains it.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    pub plan: Plan,
    /// The policies in force, by rank.
    pub policies: Vec<CompiledPolicy>,
    pub legs: Legs,
    pub findings: Vec<Finding>,
    /// The applied policies for dry runs, from the first one on.
    pub(crate) tried: OnceLock<Arc<TriedPolicies>>,
}

/// A policy as it is at work.
#[derive(Clone, Debug)]
pub struct CompiledPolicy {
    pub id: Id,
    pub name: String,
    pub priority: i64,
    pub rank: Rank,
    /// Index of its counters. An exception has none.
    pub number: Option<PolicyIndex>,
    pub fail_policy: FailPolicy,
    pub hops: Vec<HopState>,
    pub v4: Choice,
    pub v6: Choice,
    /// Action for traffic that the proxy does not take: [`ActionValue::rest`].
    pub rest: u8,
    pub status: PolicyStatus,
    /// The hop that decides where traffic leaves now.
    pub active_hop: Option<Hop>,
    /// It is no policy but an exception of a device, which ends then.
    pub exception_until: Option<Timestamp>,
}

/// A hop and whether it can be used.
#[derive(Clone, Debug)]
pub struct HopState {
    pub hop: Hop,
    /// The leg it is.
    pub leg: Option<LegId>,
    /// The proxy it is.
    pub proxy: Option<ProxyIndex>,
    /// Legs towards the proxy, `None` for the default route, whether or not the proxy is usable by them.
    pub by: Vec<Option<LegId>>,
    pub usable: bool,
    /// Human-readable reason for which the hop is not usable. Empty if it is.
    pub reason: String,
    /// Its share of new flows in a pool.
    pub weight: u32,
    /// It takes no new flows, and keeps until then those it has.
    pub draining: Option<Timestamp>,
}

/// Something about the input that a person should know. Never an error: the plan holds without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub code: &'static str,
    pub policy: Option<Id>,
    pub message: String,
}

impl CompiledPolicy {
    /// Returns the action of the policy for the dataplane.
    pub fn action(&self) -> ActionValue {
        ActionValue {
            v4: self.v4,
            v6: self.v6,
            policy: PolicyIndex::raw(self.number),
            rest: self.rest,
            ..ActionValue::default()
        }
    }
}

impl Compiled {
    /// Returns the applied policies in the order of trial. The input is that of the plan.
    pub fn tried(&self, input: &Input<'_>) -> &TriedPolicies {
        self.tried.get_or_init(|| Arc::new(TriedPolicies::of(input)))
    }

    /// Name of the proxy that marks give this number.
    pub fn proxy_name(&self, number: ProxyIndex) -> &str {
        self.plan.proxies.get(&number).map_or("?", |target| target.name.as_str())
    }

    /// The policy that has a rank.
    pub fn policy(&self, rank: Rank) -> Option<&CompiledPolicy> {
        self.policies.get(rank.index())
    }

    /// The policy that decided.
    pub fn policy_of(&self, verdict: &Verdict) -> Option<&CompiledPolicy> {
        Rank::of_wire(verdict.rank).and_then(|rank| self.policy(rank))
    }

    /// The legs that the plan may send traffic to.
    pub fn legs_in_use(&self) -> BTreeSet<LegId> {
        let choices = self.policies.iter().flat_map(|policy| [&policy.v4, &policy.v6]);
        let legs = choices.flat_map(|choice| choice.all()).map(|leg| LegId::new(*leg));
        let to_proxies =
            self.policies.iter().flat_map(|policy| policy.hops.iter().flat_map(|hop| hop.by.iter().copied()));
        legs.chain(to_proxies).flatten().collect()
    }
}
