//! Verdicts in the flow table: whether one holds for a packet, and the record of a new one.

use crate::classify::{IpPacket, TCP};
use crate::policy_maps::{PolicyInput, PolicyMaps, PreviousEgress};
use crate::verdict::{Action, Reason, Verdict};
use crate::wire::*;

/// RFC 5382, requirement 5: an established TCP connection may idle for two hours and four minutes.
const TCP_IDLE_TIMEOUT: u32 = ticks(7_440);
const IDLE_TIMEOUT: u32 = ticks(300);
/// Maximum time until a SYN is retransmitted: one second (RFC 6298, section 2.1), or three by the RFC before it.
const SYN_RETRANSMIT_TIMEOUT: u32 = ticks(3);

/// Converts seconds to ticks of the flow table, rounded up.
const fn ticks(seconds: u64) -> u32 {
    ((seconds * 1_000_000_000) >> FLOW_TICK_SHIFT) as u32 + 1
}

/// Returns the key of a packet's flow.
#[inline(always)]
pub fn flow_key(packet: &IpPacket) -> FlowKey {
    FlowKey {
        source: packet.source,
        destination: packet.destination,
        interface: packet.interface,
        source_port: packet.source_port,
        destination_port: packet.destination_port,
        mac: packet.mac,
        vlan: packet.vlan,
        protocol: packet.protocol,
        fragment: packet.fragment as u8,
        _pad: [0; 2],
    }
}

/// Uses the verdict of the flow table if it is valid, and returns 1. Otherwise remembers the former state of the
/// flow.
// In the kernel program these three are separate functions, each with its own stack.
#[inline(never)]
pub fn find_flow<E: PolicyMaps>(
    packet: &IpPacket,
    input: &mut PolicyInput,
    environment: &E,
    verdict: &mut Verdict,
) -> u32 {
    let PolicyInput { plan, now, .. } = *input;
    let key = flow_key(packet);
    let hash = key.hash(plan.seed);
    let mut flow = FlowValue::default();
    if !environment.read_flow(&key, hash, &mut flow) {
        return 0;
    }
    input.recorded = true;
    let idle = if packet.protocol == TCP { TCP_IDLE_TIMEOUT } else { IDLE_TIMEOUT };
    // Another processor may have updated it after this one read the clock.
    let age = now.saturating_sub(flow.seen);
    // A SYN shortly after a SYN is a retransmission. Otherwise it opens a new connection with the ports of an earlier
    // one.
    let another =
        packet.opening && (flow.shown & flow_flags::ESTABLISHED != 0 || age > SYN_RETRANSMIT_TIMEOUT);
    if age > idle || another {
        return 0;
    }
    input.shown = flow.shown & !flow_flags::INSPECTED;
    // A protocol that the flow shows for the first time may be blocked.
    let is_news = packet.payload & !flow.shown != 0;
    if flow.generation == plan.generation && !is_news && !is_over(flow.until, environment) {
        let establishes =
            packet.protocol == TCP && !packet.opening && flow.shown & flow_flags::ESTABLISHED == 0;
        if age != 0 || establishes {
            flow.seen = now;
            if establishes {
                flow.shown |= flow_flags::ESTABLISHED;
            }
            flow.digest = flow.digest_for(hash);
            environment.remember(&key, hash, &flow);
        }
        known(&flow, verdict);
        return 1;
    }
    input.previous = PreviousEgress::of(&flow);
    input.continued = true;
    0
}

/// Records the verdict of a flow.
#[inline(never)]
pub fn record_flow<E: PolicyMaps>(
    packet: &IpPacket,
    input: &PolicyInput,
    environment: &E,
    verdict: &Verdict,
) -> u32 {
    let PolicyInput { plan, shown, now, .. } = *input;
    let key = flow_key(packet);
    let establishes = packet.protocol == TCP && !packet.opening;
    let held = if verdict.reason as u8 == Reason::QuicHeld as u8 { flow_flags::HELLO_OPEN } else { 0 };
    let held = held | verdict.shown & flow_flags::INSPECTED;
    let mut value = FlowValue {
        seen: now,
        generation: plan.generation,
        mark: verdict.mark,
        policy: verdict.policy,
        device: verdict.device,
        action: verdict.action as u8,
        reason: verdict.reason as u8,
        leg: verdict.leg,
        shown: shown | packet.payload | if establishes { flow_flags::ESTABLISHED } else { 0 } | held,
        until: verdict.until,
        digest: 0,
    };
    let hash = key.hash(plan.seed);
    value.digest = value.digest_for(hash);
    environment.remember(&key, hash, &value);
    0
}

/// Reports whether a deadline has passed. Reads the clock only if there is one.
#[inline(always)]
pub fn is_over<E: PolicyMaps>(until: u32, environment: &E) -> bool {
    until != 0 && (environment.since_boot() >> DEADLINE_SHIFT) >= until as u64
}

#[inline(always)]
fn known(flow: &FlowValue, verdict: &mut Verdict) {
    let action = match flow.action {
        1 => Action::Mark,
        2 => Action::Pass,
        _ => Action::Drop,
    };
    // Only the dataplane writes flows, and it writes no unknown number.
    let reason = match Reason::from_wire(flow.reason) {
        Some(reason) => reason,
        None => Reason::Malformed,
    };
    verdict.set(action, reason, flow.mark);
    verdict.policy = flow.policy;
    verdict.device = flow.device;
    verdict.leg = flow.leg;
    verdict.until = flow.until;
    verdict.new = false;
    verdict.shown = flow.shown;
}
