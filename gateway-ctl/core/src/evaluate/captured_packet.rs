//! Decision on a packet that was captured where it came from a LAN.

use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use gateway_common::decide::decide_ip;
use gateway_common::recorded_verdict::flow_key;
use gateway_common::verdict::Verdict;
use gateway_common::wire::FlowValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evaluation::Decision;
use super::outcome::Outcome;
use super::verdict::decide_packet;
use crate::compile::{Compiled, Input};
use crate::indexes::PolicyIndex;
use crate::plan_maps::PlanMaps;

/// Decision on a captured packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapturedDecision {
    pub decision: Decision,
    /// Code of the reason, as in `/metrics`.
    pub reason: String,
    /// Name of the policy that decides; null without one.
    pub policy: Option<String>,
    /// Egress: `vpn:wg-a`, `proxy:office`, `interface:wan0`, `default`, `local`. Null if the packet does not leave.
    pub egress: Option<String>,
}

/// Decides on a packet as the kernel does: by the record of its flow if there is one, else by the plan. Without a record,
/// FQDN policies are left out, because the names that the sender resolved are not known.
pub fn decide_captured(
    input: &Input<'_>,
    compiled: &Compiled,
    packet: &IpPacket,
    record: Option<&FlowValue>,
) -> CapturedDecision {
    let mut verdict = match record {
        Some(record) => decide_recorded(compiled, packet, record),
        None => decide_packet(compiled, packet, &[]),
    };
    let number = PolicyIndex::new(verdict.policy);
    let mut numbered = compiled.policies.iter().filter(|policy| policy.number.is_some());
    if let Some(policy) = numbered.find(|policy| policy.number == number) {
        verdict.rank = policy.rank.get();
    }
    let destination: IpAddr =
        if packet.ipv6 { IpAddr::V6(packet.destination.octets().into()) } else { packet.destination.into() };
    let outcome = Outcome::of(input, compiled, packet, destination, &verdict);
    CapturedDecision {
        decision: outcome.decision(),
        reason: verdict.reason.as_str().to_owned(),
        policy: outcome.policy.map(|policy| policy.name.clone()),
        egress: outcome.via(),
    }
}

fn decide_recorded(compiled: &Compiled, packet: &IpPacket, record: &FlowValue) -> Verdict {
    let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
    maps.generation.set(record.generation);
    maps.flows.borrow_mut().insert(flow_key(packet), *record);
    let mut verdict = Verdict::DROP;
    decide_ip(packet, &maps, &mut verdict);
    verdict
}
