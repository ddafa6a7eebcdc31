//! Decisions on flows of the log, made again by the plan that made them.
//!
//! The log has the packet that began a flow, and the result. What else a decision depends on is not in it: what the flow has
//! shown, whether a name was still fresh, which of several legs came next. So each of the possible values is tried, and only
//! a result that none of them gives is a difference.
//!
//! Decision 0201 says why.

use gateway_common::classify::{ICMP, ICMPV6, IpPacket, TCP, UDP};
use gateway_common::policy_maps::PreviousEgress;
use gateway_common::verdict::{Reason, Verdict};
use gateway_common::wire::Mark;
use gateway_common::wire::{Mac, flow_flags};
use gateway_model::Id;
use gateway_model::domain::DomainName;
use jiff::Timestamp;

use super::evaluation::FlowComparison;
use super::request::{Protocol, Request};
use super::verdict::{FlowState, decide_of_flow};
use crate::compile::Compiled;
use crate::dns::Name;
use crate::flow_log::{Decision, FlowPath, FlowRecord, PacketKey};
use crate::indexes::{LegId, PolicyIndex};
use crate::plan_history::PlanInputs;

/// Reasons that depend on an earlier plan, or on none.
const NOT_COMPARED: &[Reason] = &[Reason::NoPlan, Reason::PolicyReset];

/// Contents that a flow may have shown when it was blocked.
const CONTENTS: &[u8] = &[
    0,
    flow_flags::STUN,
    flow_flags::QUIC,
    flow_flags::QUIC_OTHER,
    flow_flags::HELLO | flow_flags::DOH_NAME,
];

/// Returns the request for the decision on a flow. `None` if the log does not name its client, or if no request has its
/// protocol.
pub fn request_of(record: &FlowRecord) -> Option<Request> {
    let client = record.client.as_ref()?;
    let protocol = match record.protocol {
        TCP => Protocol::Tcp,
        UDP => Protocol::Udp,
        ICMP | ICMPV6 => Protocol::Icmp,
        _ => return None,
    };
    let destination = match protocol {
        Protocol::Icmp => record.destination.to_string(),
        Protocol::Tcp | Protocol::Udp => {
            std::net::SocketAddr::new(record.destination, record.destination_port).to_string()
        }
    };
    Some(Request {
        mac: Some(client.mac),
        destination: Some(destination),
        known_as: names_of(record),
        protocol: Some(protocol),
        interface: client.interface_name.clone(),
        vlan: (client.vlan != 0).then_some(client.vlan),
        source: Some(client.address),
        previous_leg: record.paths.first().and_then(|path| path.leg),
        ..Request::default()
    })
}

fn names_of(record: &FlowRecord) -> Vec<Name> {
    let names = record.names.iter().filter_map(|name| DomainName::parse(name).ok());
    names.map(|name| Name::from(&name)).collect()
}

/// Compares a path of a flow with the decision of its plan, which `inputs` compile to.
pub fn compare(
    inputs: &PlanInputs,
    compiled: &Compiled,
    record: &FlowRecord,
    path: &FlowPath,
) -> FlowComparison {
    let Some(key) = record.packet_key() else { return FlowComparison::unknown("the client is not logged") };
    let Some(logged) = Outcome::of_path(path) else {
        return FlowComparison::unknown("another version wrote the reason");
    };
    if NOT_COMPARED.contains(&logged.reason) {
        return FlowComparison::unknown("the decision rests on an earlier plan");
    }
    let (packet, names) = (packet(&key), names_of(record));
    let since_boot = since_boot(inputs, path.at);
    let decided = |names: &[Name], shown, time| {
        let previous = PreviousEgress { leg: path.leg.unwrap_or(0), ..PreviousEgress::NONE };
        let flow = FlowState { shown, previous };
        decide_of_flow(&compiled.plan.dataplane, &packet, names, flow, time)
    };
    let contents = if is_of_content(logged.reason) { CONTENTS } else { &CONTENTS[..1] };
    // A packet may have come before a deadline of the plan, or after it; before a name was resolved, or after it expired.
    let agrees = contents.iter().any(|shown| {
        [0, since_boot].iter().any(|time| {
            [&names[..], &[]]
                .iter()
                .any(|names| logged.is_of(&Outcome::of_verdict(compiled, &decided(names, *shown, *time))))
        })
    });
    if agrees {
        return FlowComparison::AGREES;
    }
    if matches_domains(compiled, logged.policy) {
        return FlowComparison::unknown("the names that the client had resolved are not in the log");
    }
    let expected = Outcome::of_verdict(compiled, &decided(&names, 0, since_boot));
    FlowComparison::differs(format!(
        "the log says {}, the plan {} says {}",
        logged.words(),
        path.generation,
        expected.words()
    ))
}

/// Result of a decision, as far as the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    reason: Reason,
    decision: Decision,
    policy: Option<Id>,
    leg: Option<u8>,
}

impl Outcome {
    fn of_path(path: &FlowPath) -> Option<Outcome> {
        let reason = Reason::from_wire(path.reason)?;
        Some(Outcome { reason, decision: path.decision, policy: path.policy, leg: path.leg })
    }

    fn of_verdict(compiled: &Compiled, verdict: &Verdict) -> Outcome {
        let decision = Decision::of(verdict.action as u8, Mark(verdict.mark));
        let number = PolicyIndex::new(verdict.policy);
        let mut policies = compiled.policies.iter().filter(|policy| policy.number.is_some());
        Outcome {
            reason: verdict.reason,
            decision,
            policy: policies.find(|policy| policy.number == number).map(|policy| policy.id),
            leg: LegId::new(verdict.leg).filter(|_| decision.is_permitted()).map(LegId::get),
        }
    }

    /// Reports whether the log has this result.
    fn is_of(&self, decided: &Outcome) -> bool {
        // A policy that was removed before the log read the flow has no name in it.
        let is_policy = self.policy == decided.policy || self.policy.is_none() && is_by_policy(self.reason);
        // A proxy may be reached by the default route, or by one of several legs.
        let is_leg =
            self.leg == decided.leg || self.leg.is_none() && matches!(self.reason, Reason::PolicyProxy);
        self.reason == decided.reason && self.decision == decided.decision && is_policy && is_leg
    }

    fn words(&self) -> String {
        let policy = self.policy.map(|policy| format!(" by policy {policy}")).unwrap_or_default();
        let leg = self.leg.map(|leg| format!(" through leg {leg}")).unwrap_or_default();
        format!("{} ({}){policy}{leg}", self.decision, self.reason.as_str())
    }
}

fn is_by_policy(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::PolicyEgress
            | Reason::PolicyProxy
            | Reason::PolicyDirect
            | Reason::PolicyReject
            | Reason::PolicyDrop
            | Reason::PolicyEnded
            | Reason::FloorReject
    ) || reason.is_block()
}

/// Reports whether a reason may rest on what a flow has shown.
fn is_of_content(reason: Reason) -> bool {
    matches!(reason, Reason::DohBlocked | Reason::QuicBlocked | Reason::StunBlocked)
}

/// Reports whether a policy matches by names.
fn matches_domains(compiled: &Compiled, policy: Option<Id>) -> bool {
    let domains = &compiled.plan.dataplane.domains;
    domains
        .iter()
        .any(|rule| compiled.policy(rule.rank).map(|policy| policy.id) == policy && policy.is_some())
}

/// Returns the nanoseconds from the boot of the host until a time.
fn since_boot(inputs: &PlanInputs, at: Timestamp) -> u64 {
    let nanoseconds = at.as_nanosecond() - i128::from(inputs.facts.booted_at);
    u64::try_from(nanoseconds).unwrap_or(0)
}

/// Returns the packet that began a flow.
fn packet(key: &PacketKey) -> IpPacket {
    IpPacket {
        source: key.source.into(),
        destination: key.destination.into(),
        interface: key.interface,
        source_port: key.source_port,
        destination_port: key.destination_port,
        mac: Mac::new(key.mac.octets()),
        vlan: key.vlan,
        protocol: key.protocol,
        ipv6: key.destination.is_ipv6(),
        opening: key.protocol == TCP,
        ..IpPacket::default()
    }
}
