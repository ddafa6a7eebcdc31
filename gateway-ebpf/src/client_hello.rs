//! Copies of TCP segments with a ClientHello for the flow log. Packets of the fast path do not come here: a connection gets its
//! entries behind its ClientHello (`gateway_common::fast_path::admit`).

use core::ptr::addr_of_mut;

use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;
use aya_ebpf::programs::TcContext;
use gateway_common::blocks::is_https;
use gateway_common::classify::{IpPacket, TCP};
use gateway_common::packet::Packet as _;
use gateway_common::policy_maps::PolicyMaps as _;
use gateway_common::recorded_verdict::flow_key;
use gateway_common::verdict::Verdict;
use gateway_common::wire::{HelloSegment, SEGMENT, flow_flags, plan_flags};

use crate::context::Buffer;
use crate::maps::HELLO_SEGMENTS;
use crate::policy_maps::Kernel;

/// Copies the segment if it has a part of a ClientHello and passes, and the flow log has the names of servers.
#[inline(always)]
pub fn copy_segment(context: &TcContext, packet: &IpPacket, verdict: &Verdict) {
    let hello = flow_flags::HELLO | flow_flags::HELLO_OPEN;
    if packet.payload & hello != 0
        && packet.protocol == TCP
        && is_https(packet.destination_port)
        && !verdict.reason.is_block()
    {
        copy(context, packet);
    }
}

// A function of its own, because the stack is small.
#[inline(never)]
fn copy(context: &TcContext, packet: &IpPacket) -> u32 {
    let Some(plan) = Kernel.plan(Kernel.live()) else { return 0 };
    if plan.flags & plan_flags::LOGGED_NAMES == 0 {
        return 0;
    }
    let (buffer, transport) = (Buffer(context), packet.transport as usize);
    let Some(sequence) = buffer.load::<u32>(transport + 4) else { return 0 };
    let Some(words) = buffer.load::<u8>(transport + 12) else { return 0 };
    let begin = transport as u32 + (words >> 4) as u32 * 4;
    let end = context.len();
    if begin >= end {
        return 0;
    }
    let length = if end - begin > SEGMENT as u32 { SEGMENT as u32 } else { end - begin };
    // A full ring loses names. Their packets pass.
    let Some(mut entry) = HELLO_SEGMENTS.reserve::<HelloSegment>(0) else { return 0 };
    let record = entry.as_mut_ptr();
    let skb = context.as_ptr().cast();
    // Bounded as every verifier sees.
    let bounded = (length - 1 & (SEGMENT as u32 - 1)) + 1;
    // SAFETY: the record is the place that was reserved, and its field has room for the length.
    let failed = unsafe {
        (*record).flow = flow_key(packet);
        (*record).sequence = u32::from_be(sequence);
        (*record).length = bounded;
        bpf_skb_load_bytes(skb, begin, addr_of_mut!((*record).bytes).cast(), bounded)
    };
    if failed == 0 {
        entry.submit(0);
    } else {
        entry.discard(0);
    }
    0
}
