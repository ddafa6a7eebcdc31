//! Tap on LAN interfaces: sees each frame before ingress evaluates it, and behind the programs of egress. So it counts what
//! the fast path sends on, and not what a driver sends on.

use core::hint::black_box;
use core::intrinsics::{AtomicOrdering, atomic_xadd};

use aya_ebpf::programs::SkBuffContext;
use gateway_common::wire::{HostKey, HostTraffic, Mac};

use crate::fast_path::{ETHERTYPE4, ETHERTYPE6, PACKET_HOST};
use crate::maps;
use crate::tap::PACKET_OUTGOING;

/// Offsets in a frame without a VLAN tag. A tagged one is counted at its own interface.
const DESTINATION: usize = 0;
const SOURCE: usize = 6;
/// Next header and hop limit of IPv6.
const NEXT_HEADER: usize = 14 + 6;
const ICMP6: u8 = 58;
/// Hop limit of neighbour discovery (RFC 4861).
const LINK_HOP_LIMIT: u8 = 255;

/// Counts the bytes of IP packets from and to hosts that the daemon has entered. Returns the number of bytes that the socket
/// receives: none.
#[inline(always)]
pub fn run(context: &SkBuffContext) -> i64 {
    count(context);
    0
}

#[inline(always)]
fn count(context: &SkBuffContext) -> Option<()> {
    // SAFETY: the context pointer is valid for the run of the program.
    let packet = unsafe { &*context.skb.skb };
    let is_sent = packet.pkt_type == PACKET_HOST;
    if !is_sent && packet.pkt_type != PACKET_OUTGOING || packet.vlan_present != 0 {
        return None;
    }
    match packet.protocol as u16 {
        ETHERTYPE4 => {}
        // The kernel asks quiet hosts whether they are there: that is no traffic of theirs.
        ETHERTYPE6 => {
            let [next, hop_limit] = context.load::<[u8; 2]>(NEXT_HEADER).ok()?;
            if next == ICMP6 && hop_limit == LINK_HOP_LIMIT {
                return None;
            }
        }
        _ => return None,
    }
    let mac = if is_sent { context.load::<Mac>(SOURCE) } else { context.load::<Mac>(DESTINATION) };
    let key = HostKey::new(packet.ifindex, mac.ok()?);
    let traffic: *mut HostTraffic = maps::HOST_BYTES.get_ptr_mut(&key)?;
    // SAFETY: the pointer is to a value of the map, valid while the program runs; its words change atomically.
    unsafe {
        let word = if is_sent { &raw mut (*traffic).sent } else { &raw mut (*traffic).received };
        // With a use of the result, as in `counters::advance`.
        black_box(atomic_xadd::<u64, u64, { AtomicOrdering::SeqCst }>(word, packet.len as u64));
    }
    Some(())
}
