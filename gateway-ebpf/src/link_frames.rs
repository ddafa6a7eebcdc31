//! Copies of broadcast and multicast packets for the daemon. A packet socket would cost every forwarded packet.

use core::ptr::addr_of_mut;

use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;
use aya_ebpf::maps::ring_buf::RingBufEntry;
use aya_ebpf::programs::TcContext;
use gateway_common::classify::IpPacket;
use gateway_common::link_protocol::{LinkProtocol, link_protocol};
use gateway_common::wire::{LINK_PACKET, LinkFrame};

use crate::fast_path::PACKET_HOST;
use crate::maps::{ANNOUNCEMENTS, LINK_MESSAGES};

/// Length of the Ethernet header. Tags are no part of it: their packets arrive at the interface of their VLAN.
const ETHERNET: u32 = 14;

/// Copies a packet of a protocol that the daemon reads, whatever the verdict, if it is for more than this host: broadcast,
/// multicast, and a server's answer to the address that a search uses.
#[inline(always)]
pub fn copy_link_frame(context: &TcContext, packet: &IpPacket) {
    // SAFETY: the kernel gives the program its context for the time of the call.
    let kind = unsafe { (*context.skb.skb).pkt_type };
    if kind != PACKET_HOST {
        copy(context, packet);
    }
}

#[inline(never)]
fn copy(context: &TcContext, packet: &IpPacket) -> u32 {
    if packet.vlan != 0 {
        return 0;
    }
    let Some(protocol) = link_protocol(packet) else { return 0 };
    // A full ring loses packets. Hosts repeat them.
    match protocol {
        LinkProtocol::Announcement => {
            let Some(entry) = ANNOUNCEMENTS.reserve::<LinkFrame>(0) else { return 0 };
            fill(context, packet, protocol as u32, entry);
        }
        _ => {
            let Some(entry) = LINK_MESSAGES.reserve::<LinkFrame>(0) else { return 0 };
            fill(context, packet, protocol as u32, entry);
        }
    }
    0
}

#[inline(always)]
fn fill(context: &TcContext, packet: &IpPacket, protocol: u32, mut entry: RingBufEntry<LinkFrame>) {
    let length = context.len().wrapping_sub(ETHERNET);
    if length == 0 || length > LINK_PACKET as u32 {
        entry.discard(0);
        return;
    }
    let record = entry.as_mut_ptr();
    // Bounded as every verifier sees.
    let bounded = (length - 1 & (LINK_PACKET as u32 - 1)) + 1;
    // SAFETY: the record is the place that was reserved, and its field has room for the length.
    let failed = unsafe {
        (*record).interface = packet.interface;
        (*record).protocol = protocol;
        (*record).length = bounded;
        (*record).mac = packet.mac;
        (*record).padding = 0;
        let bytes = addr_of_mut!((*record).bytes).cast();
        bpf_skb_load_bytes(context.as_ptr().cast(), ETHERNET, bytes, bounded)
    };
    if failed == 0 {
        entry.submit(0);
    } else {
        entry.discard(0);
    }
}
