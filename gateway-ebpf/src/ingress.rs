//! LAN ingress: classify, decide, count, carry out.

use core::hint::black_box;

use aya_ebpf::bindings::{TC_ACT_SHOT, TC_ACT_UNSPEC};
use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use aya_ebpf::programs::TcContext;
use gateway_common::classify::{DNS_PORT, Headers, IpPacket, UDP, read_headers};
use gateway_common::decide::{decide_ip_by, evaluate};
use gateway_common::fast_path::entry::Validity;
use gateway_common::inspect::decide_inspected;
use gateway_common::policy_maps::{PolicyInput, PolicyMaps as _};
use gateway_common::recorded_verdict::flow_key;
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_common::wire::{Fragment, Mark};

use crate::context::{Buffer, interface, pull_headers};
use crate::counters::{self, count, count_block, count_later};
use crate::policy_maps::Kernel;
use crate::{
    client_hello, dns_source, events, fast_path, fast_path_learning, flow_table, link_frames, maps, quic, vlan,
};

const ETHERNET_HEADER: u32 = 14;

/// Data that does not fit on the stack. In a map it also shortens verification: the verifier does
/// not track map values, so paths merge after each step.
pub struct Scratch {
    packet: IpPacket,
    verdict: Verdict,
    /// Validity of entries of the fast path before the evaluation.
    fast: Validity,
}

#[map(name = "gw_scratch")]
static SCRATCH: PerCpuArray<Scratch> = PerCpuArray::with_max_entries(1, 0);

#[inline(always)]
fn decide(packet: &IpPacket, _: &Kernel, verdict: &mut Verdict) {
    if gw_decide(packet, verdict) == 0 {
        *verdict = Verdict::DROP;
    }
}

/// [`decide_ip`] as a global function: the verifier follows it once, with arguments of which it knows only the size, and
/// not for each state in which it is called (Linux commit 51c39bb1d5d1, "Introduce function-by-function verification").
/// Returns 0 for a pointer that is null, which none is.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_decide(packet: *const IpPacket, verdict: *mut Verdict) -> u32 {
    // SAFETY: the caller has references.
    let (Some(packet), Some(verdict)) = (unsafe { packet.as_ref() }, unsafe { verdict.as_mut() }) else {
        return 0;
    };
    decide_ip_by(packet, &Kernel, verdict, |input, verdict| {
        gw_evaluate(packet, input, verdict);
    });
    1
}

/// [`evaluate`] as a global function, like [`gw_decide`]. Returns 0 for a pointer that is null; the verdict stays that of a
/// drop then.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_evaluate(
    packet: *const IpPacket,
    input: *const PolicyInput,
    verdict: *mut Verdict,
) -> u32 {
    // SAFETY: the caller has references.
    let (packet, input, verdict) = unsafe { (packet.as_ref(), input.as_ref(), verdict.as_mut()) };
    let (Some(packet), Some(input), Some(verdict)) = (packet, input, verdict) else { return 0 };
    evaluate(packet, input, &Kernel, verdict);
    1
}

#[inline(always)]
pub fn run(context: &TcContext) -> i32 {
    // A program is not interrupted by itself on one processor, so the place is its own.
    let Some(scratch) = SCRATCH.get_ptr_mut(0) else { return TC_ACT_SHOT };
    // SAFETY: the pointer is to a value of the map, valid while the program runs; all zeroes are valid.
    let Scratch { packet, verdict, fast } = unsafe { &mut *scratch };
    counters::empty_if_full();
    fast_path::clear_index(context);
    if vlan::arrives_by_own_interface(context) {
        return TC_ACT_UNSPEC;
    }
    fast_path::read_validity(fast);
    if let Some(action) = fast_path::forward::<false>(context, fast) {
        return action;
    }
    pull_headers(context);
    // Read again: else the verifier follows the rest for a long and for a short packet.
    let length = black_box(context.len());
    match read_headers(&Buffer(context), interface(context), packet) {
        Headers::Ip => {}
        Headers::Other => {
            count(&maps::REASON_COUNTERS, Reason::NotIp as u32, length);
            return TC_ACT_UNSPEC;
        }
        Headers::Malformed => {
            count(&maps::REASON_COUNTERS, Reason::Malformed as u32, length);
            return TC_ACT_SHOT;
        }
    }
    link_frames::copy_link_frame(context, packet);
    decide_inspected(&Buffer(context), packet, &Kernel, verdict, decide);
    count(&maps::REASON_COUNTERS, verdict.reason as u32, length);
    count_later(verdict.policy, verdict.device, length);
    if verdict.reason.is_block() {
        count_block(verdict.device, verdict.policy, verdict.reason as u32, length);
    }
    quic::copy_initial(context, packet, verdict);
    client_hello::copy_segment(context, packet, verdict);
    if verdict.admission.is_refused() {
        count(&maps::UNRECORDED, 0, length);
    }
    if verdict.new {
        events::sample(packet, verdict);
    }
    fast_path_learning::note(context, packet, verdict, fast);
    match verdict.action {
        Action::Drop => {
            count_denied(packet);
            TC_ACT_SHOT
        }
        Action::Pass => TC_ACT_UNSPEC,
        Action::Mark => {
            context.set_mark(verdict.mark);
            if Mark(verdict.mark).is_refusal() {
                count_denied(packet);
            }
            let is_to_resolver = matches!(verdict.reason, Reason::ToGateway | Reason::ForcedDns);
            let is_to_link = matches!(verdict.reason, Reason::LinkLocal);
            // Default deny delivers to this host, too.
            if is_to_resolver || is_to_link || verdict.mark == Mark::BLOCK.0 {
                dns_source::note(context, packet, verdict);
            }
            if is_to_resolver && is_dns_query(packet) {
                // SAFETY: the map holds programs of this kind only. It returns where there is none.
                unsafe { maps::TAIL_CALLS.tail_call(context, maps::CALL_REPLY) };
            }
            TC_ACT_UNSPEC
        }
    }
}

/// Counts a denied packet in the record of its flow, by the length of its IP packet.
// A function of its own, because the stack is small.
#[inline(never)]
fn count_denied(packet: &IpPacket) -> u32 {
    // Without a plan, no flow has a record.
    let Some(plan) = Kernel.plan(Kernel.live()) else { return 0 };
    let key = flow_key(packet);
    // The kernel has taken the VLAN tag from the frame. A tag below it counts as a part of the packet.
    flow_table::count_denied(&key, key.hash(plan.seed), packet.length.saturating_sub(ETHERNET_HEADER));
    0
}

/// Returns the packet that was evaluated last on this processor, the one that the next program is called for, its verdict,
/// and the validity of entries before the evaluation.
#[inline(always)]
pub fn evaluated() -> Option<(&'static IpPacket, &'static Verdict, &'static Validity)> {
    // SAFETY: the pointer is to a value of the map, valid while the program runs.
    let Scratch { packet, verdict, fast } = unsafe { &*SCRATCH.get_ptr(0)? };
    Some((packet, verdict, fast))
}

/// Reports whether the packet can hold a DNS query over UDP.
#[inline(always)]
fn is_dns_query(packet: &IpPacket) -> bool {
    packet.protocol == UDP
        && packet.destination_port == DNS_PORT
        && packet.fragment == Fragment::Whole
        && packet.source_port != 0
}
