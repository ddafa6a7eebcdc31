//! The answer of the dry run.

use gateway_model::id::Id;
use gateway_model::kinds::exception::ExceptionType;
use gateway_model::kinds::routing_policy::{FailPolicy, Hop};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::matching::ConsideredPolicy;
use crate::flow_log::FlowId;
use crate::phrase::Phrase;

/// Destination of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Block,
    Tunnel,
    Direct,
}

/// The answer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Evaluation {
    /// The answer in one sentence.
    pub sentence: String,
    /// Of both families the one that exposes more: direct before tunnel before block.
    pub decision: Decision,
    pub device: EvaluatedDevice,
    /// The policies that match, the winner first.
    pub matched_policies: Vec<MatchedPolicy>,
    /// Every policy in the order of trial.
    pub considered: Vec<ConsideredPolicy>,
    /// Policies that do not match and are left out of `considered` because there are very many.
    pub considered_omitted: usize,
    pub effective: EffectiveSettings,
    /// Hops of the policy that won.
    pub hops: Vec<HopView>,
    pub families: Families,
    pub kernel: KernelView,
    /// Policies that are stored and differ from those at work.
    pub pending_changes: usize,
    /// Plan of the time `at` of the request, or of its flow. Null for a decision of now.
    pub as_of: Option<PlanInForce>,
    /// Flow of the `flow_id` of the request, and whether the log agrees with the decision. Null without one.
    pub flow: Option<EvaluatedFlow>,
    /// Assumptions and results, step by step.
    pub trace: Vec<String>,
}

/// Path of a flow in the log, and the decision function on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvaluatedFlow {
    pub flow_id: FlowId,
    /// Time from which on the flow took this path.
    pub at: Timestamp,
    /// Name of the reason in the log, as in `/flows`.
    pub reason: Option<&'static str>,
    /// Policy in the log. Null where none decided.
    pub policy: Option<Id>,
    /// Egress in the log: name of the tunnel, uplink or proxy. Null where there was none.
    pub egress: Option<String>,
    /// Later paths of the flow, of the same or of other plans: see `/flows`.
    pub later_paths: usize,
    pub comparison: FlowComparison,
}

/// Comparison of the log with the decision function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FlowComparison {
    pub result: ComparisonResult,
    /// Human-readable difference, or the reason for which there is no result. Null if both agree.
    pub detail: Option<String>,
}

/// Result of a comparison of the log with the decision function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonResult {
    Agrees,
    Differs,
    /// The decision rests on what the log does not have.
    Unknown,
}

impl FlowComparison {
    pub const AGREES: FlowComparison = FlowComparison { result: ComparisonResult::Agrees, detail: None };

    pub fn unknown(reason: impl Into<String>) -> FlowComparison {
        FlowComparison { result: ComparisonResult::Unknown, detail: Some(reason.into()) }
    }

    pub fn differs(difference: String) -> FlowComparison {
        FlowComparison { result: ComparisonResult::Differs, detail: Some(difference) }
    }
}

/// Plan that was in force at an earlier time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanInForce {
    /// Time of the decision.
    pub at: Timestamp,
    /// Number of the plan, as in `/render` and in records of flows. No other plan of this gateway has it.
    pub generation: u32,
    /// Time from which the plan was in force.
    pub from: Timestamp,
    /// Time until which it was in force. Null while it is.
    pub until: Option<Timestamp>,
    /// Revision of the configuration.
    pub revision: u64,
    /// Time of the last change of what is known of the network, before the decision.
    pub observed_at: Timestamp,
    /// The plan that is compiled from the configuration and the network of then is the one that was in force. False if this
    /// version of the gateway compiles another one: its decisions may differ.
    pub reproduced: bool,
}

/// Device whose traffic was evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EvaluatedDevice {
    /// None: no device record has this MAC address.
    pub id: Option<String>,
    pub name: Option<String>,
    pub mac: Option<String>,
    pub status: Option<String>,
    pub trust_class: Option<String>,
    pub groups: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MatchedPolicy {
    pub id: String,
    pub name: String,
    pub priority: i64,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PolicyRef {
    pub id: Id,
    pub name: String,
}

/// Settings in force for the traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EffectiveSettings {
    pub policy: Option<PolicyRef>,
    /// Hop by which the traffic leaves. Null if it does not leave, or leaves by the default route.
    pub hop: Option<Hop>,
    pub fail_policy: Option<FailPolicy>,
    /// Result of the device's DNS query to the gateway for the destination if that is a name, else for names without a
    /// rule: `192.0.2.53 by wg-a`, `blocked by the blocklist ads.example`. Decided by the name only: the addresses of
    /// an answer may still be blocked. Null without the resolver.
    pub dns: Option<String>,
    /// That of the policy, else that of the device. Of the latter this version enforces only whether exceptions are
    /// allowed.
    pub privacy_class: Option<String>,
    /// The active ones of the device.
    pub exceptions: Vec<ActiveException>,
}

/// An exception of the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ActiveException {
    pub id: Id,
    pub r#type: ExceptionType,
    pub allow_direct: bool,
    pub expires_at: Option<Timestamp>,
    /// True if it changes the treatment of traffic.
    pub effective: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HopView {
    pub r#type: String,
    pub target: String,
    pub usable: bool,
    pub reason: String,
}

/// Verdict for each address family. Null for a family that was not requested.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Families {
    pub ipv4: Option<FamilyVerdict>,
    pub ipv6: Option<FamilyVerdict>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FamilyVerdict {
    pub decision: Decision,
    /// Egress: `vpn:wg-a`, `proxy:office`, `interface:wan0`, `default`, `local`. Null if the traffic does not leave.
    pub via: Option<String>,
    /// Interface it leaves by.
    pub interface: Option<String>,
    pub reason: String,
    /// The reason as codes with parameters, for clients with texts of their own.
    pub phrases: Vec<Phrase>,
    pub policy: Option<PolicyRef>,
    pub source: String,
    pub destination: String,
    pub kernel: KernelView,
    /// Stays on the LAN.
    pub local: bool,
    /// Names of all tunnels or uplinks that new connections are shared among.
    pub ways: Vec<String>,
    /// Name of the proxy that they lead to.
    pub proxy: Option<String>,
    pub fast_path: FastPathView,
}

/// Fast path for the packets of such a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FastPathView {
    /// Packets after the first ones pass the IP stack by.
    pub possible: bool,
    /// Cause for which they do not: `off` (the setting `dataplane.fast_path`, or the gateway could not turn it on: see
    /// `/status`), `vlan` (the tag has no LAN interface of its own), `protocol` (neither TCP nor UDP), `verdict`
    /// (the traffic goes to no uplink, tunnel or other network of the LAN), `deadline` (the verdict ends at a certain
    /// time, for example with an exception), `inspected` (a privacy class evaluates each packet), `unrecorded` (the device
    /// exceeds its budget of new flows) or `port` (DNS, or a protocol whose payload has addresses). Null if they do.
    pub reason: Option<&'static str>,
}

impl FastPathView {
    pub const fn impossible(reason: &'static str) -> Self {
        Self { possible: false, reason: Some(reason) }
    }
}

/// The packet as the kernel sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KernelView {
    /// Packet mark; null if the packet is dropped at once.
    pub mark: Option<String>,
    /// Routing table that the mark leads to.
    pub table: Option<u32>,
    pub leg: Option<u8>,
    /// Place of the policy in the order of trial, from 0.
    pub rank: Option<u32>,
}
