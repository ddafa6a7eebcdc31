//! Records for the daemon: sampled verdicts and prevented leaks. A full ring loses records, never
//! packets.

use aya_ebpf::programs::TcContext;
use gateway_common::classify::IpPacket;
use gateway_common::policy_maps::PolicyMaps;
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_common::wire::EventRecord;

use crate::context::{ingress_interface, mark};
use crate::maps;
use crate::policy_maps::Kernel;

// A function of its own, because the stack is small.
#[inline(never)]
pub fn sample(packet: &IpPacket, verdict: &Verdict) -> u32 {
    if !is_sampled() {
        return 0;
    }
    write(EventRecord {
        time: now(),
        source: packet.source,
        destination: packet.destination,
        interface: packet.interface,
        mark: verdict.mark,
        policy: verdict.policy,
        device: verdict.device,
        source_port: packet.source_port,
        destination_port: packet.destination_port,
        protocol: packet.protocol,
        reason: verdict.reason as u8,
        action: verdict.action as u8,
        length: packet.length,
        ..EventRecord::default()
    });
    0
}

/// Chooses one of as many flows as the plan says.
#[inline(always)]
pub fn is_sampled() -> bool {
    let Some(plan) = maps::PLAN_HEADERS.get(Kernel.live()) else { return false };
    if plan.sample_every == 0 {
        return false;
    }
    // SAFETY: the helper has no preconditions.
    let chance = unsafe { aya_ebpf::helpers::generated::bpf_get_prandom_u32() };
    chance % plan.sample_every == 0
}

#[inline(always)]
pub fn prevented(context: &TcContext, reason: Reason) {
    prevented_from(ingress_interface(context), mark(context), context.len(), reason);
}

#[inline(always)]
pub fn prevented_from(interface: u32, mark: u32, length: u32, reason: Reason) {
    write(EventRecord {
        time: now(),
        interface,
        mark,
        reason: reason as u8,
        action: Action::Drop as u8,
        guard: 1,
        length,
        ..EventRecord::default()
    });
}

#[inline(always)]
pub fn write(record: EventRecord) {
    if let Some(mut entry) = maps::EVENTS.reserve::<EventRecord>(0) {
        entry.write(record);
        entry.submit(0);
    }
}

/// Boot-time clock in nanoseconds.
#[inline(always)]
pub fn now() -> u64 {
    // SAFETY: the helper has no preconditions.
    unsafe { aya_ebpf::helpers::generated::bpf_ktime_get_boot_ns() }
}
