//! Path of each policy at work.

use std::collections::BTreeMap;

use gateway_model::id::Id;
use gateway_model::kinds::routing_policy::{FailPolicy, Hop, PolicyStatus};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::compile::{Compiled, CompiledPolicy, HopState, Input, is_mesh_route};
use crate::evaluate::Decision;
use crate::evaluate::route::{Exits, Kernel};
use crate::indexes::PolicyIndex;
use crate::matrix::present_egress;

/// A policy at work and its egress now.
#[derive(Clone, Debug)]
pub struct PolicyPath {
    pub id: Id,
    pub origin: PolicyOrigin,
    pub name: String,
    pub priority: i64,
    /// Index of its counters. An exception has none.
    pub number: Option<PolicyIndex>,
    pub fail_policy: FailPolicy,
    pub status: PolicyStatus,
    pub active_hop: Option<Hop>,
    pub hops: Vec<HopState>,
    /// End of the exception that it is.
    pub exception_until: Option<Timestamp>,
    /// Number of devices whose connections to the internet it decides on.
    pub devices: usize,
    pub decision: Decision,
    /// Names of the tunnels or uplinks that its traffic leaves by; `default` for the default route.
    pub via: Option<String>,
}

/// Object that makes a policy of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyOrigin {
    /// A routing policy.
    Policy,
    /// An exception of a device.
    Exception,
    /// A profile of devices, for traffic that no policy matches.
    Profile,
    /// A bridge between networks.
    Bridge,
    /// Prefixes behind a peer of the mesh, which are used without a policy.
    Mesh,
}

/// Returns the path of each policy. `devices` holds the number of devices by policy.
pub(super) fn paths(
    input: &Input<'_>,
    compiled: &Compiled,
    devices: &BTreeMap<Id, usize>,
) -> Vec<PolicyPath> {
    let mut exits = Exits::of(Kernel::new(compiled, input.facts));
    compiled.policies.iter().map(|policy| path(input, &mut exits, policy, devices)).collect()
}

fn path(
    input: &Input<'_>,
    exits: &mut Exits<'_>,
    policy: &CompiledPolicy,
    devices: &BTreeMap<Id, usize>,
) -> PolicyPath {
    let (decision, via) = present_egress(input, exits, policy);
    let CompiledPolicy { id, name, priority, number, fail_policy, hops, status, active_hop, .. } =
        policy.clone();
    let exception_until = policy.exception_until;
    let origin = match () {
        () if exception_until.is_some() => PolicyOrigin::Exception,
        () if input.state.applied.policies.get(id).is_some() => PolicyOrigin::Policy,
        () if input.state.profiles.get(id).is_some() => PolicyOrigin::Profile,
        () if input.state.bridges.get(id).is_some() => PolicyOrigin::Bridge,
        () if is_mesh_route(id) => PolicyOrigin::Mesh,
        // The plan is older than the state.
        () => PolicyOrigin::Policy,
    };
    let devices = devices.get(&id).copied().unwrap_or_default();
    PolicyPath {
        id,
        origin,
        name,
        priority,
        number,
        fail_policy,
        status,
        active_hop,
        hops,
        exception_until,
        devices,
        decision,
        via,
    }
}
