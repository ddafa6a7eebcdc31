//! Tap on interfaces that have the egress guard: sees packets when they go to the driver, behind all other programs.

use aya_ebpf::programs::SkBuffContext;
use gateway_common::guard::has_escaped;
use gateway_common::wire::EgressAllowKey;

use crate::guard::count;
use crate::maps;

/// Type of a packet that leaves (linux/if_packet.h).
pub const PACKET_OUTGOING: u32 = 4;

/// Counts packets that left past the guard. Returns the number of bytes that the socket receives: none.
#[inline(always)]
pub fn run(context: &SkBuffContext) -> i64 {
    // SAFETY: the context pointer is valid for the run of the program.
    let packet = unsafe { &*context.skb.skb };
    let (index, mark) = (packet.ifindex, packet.mark);
    // SAFETY: values are plain words, of which only the presence counts.
    let is_authorised = || unsafe { maps::EGRESS_ALLOW.get(&EgressAllowKey { mark, index }) }.is_some();
    if packet.pkt_type == PACKET_OUTGOING
        && has_escaped(packet.ingress_ifindex, packet.tc_index as u16, is_authorised)
    {
        count(&maps::ESCAPED, index, packet.len);
    }
    0
}
