//! Copies of Initial packets of QUIC for the daemon, which has the means to decrypt them.

use core::ptr::addr_of_mut;

use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;
use aya_ebpf::programs::TcContext;
use gateway_common::classify::IpPacket;
use gateway_common::policy_maps::PolicyMaps as _;
use gateway_common::recorded_verdict::flow_key;
use gateway_common::verdict::{Reason, Verdict};
use gateway_common::wire::{DATAGRAM, HEADERS, QuicInitial, flow_flags, plan_flags};

use crate::maps::INITIALS;
use crate::policy_maps::Kernel;

const HEADER_UDP: u32 = 8;
/// Datagrams of a flow that the kernel has merged, and that are copied. A ClientHello needs two or three.
const SEGMENTS: u32 = 4;

/// Copies the datagram if it is held, also one that follows an Initial packet, or if it has an Initial packet that passes
/// while something of the plan goes by the names of servers, or the flow log has them.
#[inline(always)]
pub fn copy_initial(context: &TcContext, packet: &IpPacket, verdict: &Verdict) {
    let held = verdict.reason as u32 == Reason::QuicHeld as u32;
    if held || packet.payload & flow_flags::QUIC != 0 && !verdict.reason.is_block() {
        copy(context, packet, held as u32);
    }
}

#[inline(never)]
fn copy(context: &TcContext, packet: &IpPacket, held: u32) -> u32 {
    let Some(plan) = Kernel.plan(Kernel.live()) else { return 0 };
    if held == 0 && plan.flags & (plan_flags::SERVER_NAMES | plan_flags::LOGGED_NAMES) == 0 {
        return 0;
    }
    let begin = packet.transport as u32 + HEADER_UDP;
    let end = context.len();
    // SAFETY: the kernel gives the program its context for the time of the call.
    let merged = unsafe { (*context.skb.skb).gso_size };
    let size = if merged == 0 { end } else { merged };
    let mut at = begin;
    for _ in 0..SEGMENTS {
        if at >= end {
            break;
        }
        copy_datagram(context, packet, at, size.min(end - at), held);
        at += size;
    }
    0
}

#[inline(never)]
fn copy_datagram(context: &TcContext, packet: &IpPacket, begin: u32, length: u32, held: u32) -> u32 {
    let headers = packet.transport as u32 + HEADER_UDP;
    if length == 0 || length > DATAGRAM as u32 || headers > HEADERS as u32 {
        return 0;
    }
    // A full ring loses records. Their packets pass, or are sent again if they were held.
    let Some(mut entry) = INITIALS.reserve::<QuicInitial>(0) else { return 0 };
    let record = entry.as_mut_ptr();
    let skb = context.as_ptr().cast();
    // Bounded as every verifier sees.
    let bounded = (length - 1 & (DATAGRAM as u32 - 1)) + 1;
    let bounded_headers = (headers - 1 & (HEADERS as u32 - 1)) + 1;
    // SAFETY: the record is the place that was reserved, and its fields have room for the lengths.
    let failed = unsafe {
        (*record).flow = flow_key(packet);
        (*record).held = held;
        (*record).headers_length = headers;
        (*record).length = bounded;
        let headers = bpf_skb_load_bytes(skb, 0, addr_of_mut!((*record).headers).cast(), bounded_headers);
        headers | bpf_skb_load_bytes(skb, begin, addr_of_mut!((*record).bytes).cast(), bounded)
    };
    if failed == 0 {
        entry.submit(0);
    } else {
        entry.discard(0);
    }
    0
}
