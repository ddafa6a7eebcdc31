//! LAN ingress: a query for a blocked name is answered where it comes in, also the first one.

use aya_ebpf::EbpfContext as _;
use aya_ebpf::bindings::{BPF_F_MARK_MANGLED_0, BPF_F_PSEUDO_HDR, TC_ACT_SHOT};
use aya_ebpf::helpers::generated::{
    bpf_redirect, bpf_skb_change_tail, bpf_skb_load_bytes, bpf_skb_store_bytes,
};
use aya_ebpf::programs::TcContext;
use gateway_common::checksum;
use gateway_common::classify::IpPacket;
use gateway_common::packet::Packet as _;
use gateway_common::verdict::Reason;
use gateway_common::wire::{FILTER_HEAD, FilterClientKey, MESSAGE_ID};

use crate::context::{Buffer, interface};
use crate::dns_filter::{self, Parts};
use crate::dns_query::HEADER_UDP;
use crate::dns_reply::{ETHERNET, HEADER4, HEADER6, make_reply};
use crate::ingress;
use crate::maps::{CALL_BLOCK, CALL_LOOK_UP, TAIL_CALLS};

#[inline(always)]
fn client_key() -> Option<FilterClientKey> {
    let (packet, verdict, _) = ingress::evaluated()?;
    let redirected = verdict.reason as u32 == Reason::ForcedDns as u32;
    let IpPacket { source, destination, interface, mac, .. } = *packet;
    Some(dns_filter::client_key(source, destination, interface, mac, redirected))
}

/// Reads the query that the packet cache does not answer.
#[inline(always)]
pub fn read(context: &TcContext) -> Option<i32> {
    if !dns_filter::read(&client_key()?)? {
        return None;
    }
    // SAFETY: the map holds programs of this kind only. It returns where there is none.
    unsafe { TAIL_CALLS.tail_call(context, CALL_LOOK_UP) };
    None
}

/// Looks up the name.
#[inline(always)]
pub fn find(context: &TcContext) -> Option<i32> {
    dns_filter::find()?;
    // SAFETY: as above.
    unsafe { TAIL_CALLS.tail_call(context, CALL_BLOCK) };
    None
}

/// Answers the query.
#[inline(always)]
pub fn block(context: &TcContext) -> Option<i32> {
    let (packet, _, _) = ingress::evaluated()?;
    let headers = ETHERNET + if packet.ipv6 { HEADER6 } else { HEADER4 };
    let buffer = Buffer(context);
    let ethernet = buffer.read::<[u16; 6]>(0)?;
    let udp = buffer.read::<[u16; 4]>(headers)?;
    let answer = dns_filter::choose_answer(&client_key()?)?;
    let length = answer.length;
    let size = (headers + HEADER_UDP + MESSAGE_ID) as u32 + length;
    // SAFETY: the context is valid while the program runs.
    if unsafe { bpf_skb_change_tail(context.as_ptr().cast(), size, 0) } != 0 {
        answer.discard();
        return None;
    }
    let parts = answer.log();
    // The query is gone: from here on the packet is the answer, or nothing.
    let done = make_reply(context, packet, headers, ethernet, udp, length as u16)
        .and_then(|lengths| fill(context, &parts, headers, lengths));
    if done.is_none() {
        return Some(TC_ACT_SHOT);
    }
    context.set_mark(0);
    // SAFETY: the helper has no preconditions.
    Some(unsafe { bpf_redirect(interface(context), 0) } as i32)
}

/// Writes what is around the question, and brings the checksum to it.
#[inline(always)]
fn fill(context: &TcContext, parts: &Parts, headers: usize, lengths: u32) -> Option<()> {
    let skb = context.as_ptr().cast();
    let start = (headers + HEADER_UDP + MESSAGE_ID) as u32;
    // SAFETY: the size is that of the array. The helper checks that the bytes are in the packet.
    if unsafe { bpf_skb_store_bytes(skb, start, parts.head.as_ptr().cast(), FILTER_HEAD as u32, 0) } != 0 {
        return None;
    }
    if let Some((at, length)) = parts.place_of_tail() {
        // SAFETY: as above, or less.
        if unsafe { bpf_skb_store_bytes(skb, start + at, parts.tail.as_ptr().cast(), length, 0) } != 0 {
            return None;
        }
    }
    let change = parts.checksum_change(|to, length| {
        // SAFETY: the place has that length.
        unsafe { bpf_skb_load_bytes(context.as_ptr().cast(), start, to, length) == 0 }
    })?;
    let change = checksum::add(change, lengths);
    // None stays none.
    let (flags, sum) = (BPF_F_MARK_MANGLED_0 as u64, headers + 6);
    context.l4_csum_replace(sum, 0, change as u64, flags).ok()?;
    // Where the hardware is to sum up, what stands there is the sum of the pseudo header.
    let pseudo = flags | BPF_F_PSEUDO_HDR as u64;
    context.l4_csum_replace(sum, 0, lengths as u64, pseudo).ok()
}
