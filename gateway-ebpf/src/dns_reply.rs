//! LAN ingress: a DNS question that was just answered is answered again where it comes in. Whatever is not plain here
//! goes on to the resolver.

use aya_ebpf::EbpfContext as _;
use aya_ebpf::bindings::{BPF_F_MARK_MANGLED_0, BPF_F_PSEUDO_HDR, BPF_RB_NO_WAKEUP, TC_ACT_SHOT};
use aya_ebpf::helpers::generated::{
    bpf_ktime_get_coarse_ns, bpf_redirect, bpf_skb_change_tail, bpf_skb_load_bytes, bpf_skb_store_bytes,
};
use aya_ebpf::programs::TcContext;
use gateway_common::checksum;
use gateway_common::classify::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, IpPacket, UDP};
use gateway_common::packet::Packet as _;
use gateway_common::wire::{ANSWER, DnsCacheKey, DnsCacheValue, DnsHit, MESSAGE_ID, QUESTION, TTLS};

use crate::context::{Buffer, interface};
use crate::dns_query::{self, HEADER_UDP, HOPS, SECOND, SHORTEST};
use crate::maps::{CALL_READ, DNS_CACHE, DNS_EPOCH, DNS_HITS, TAIL_CALLS};
use crate::{ingress, known_verdict};

pub const ETHERNET: usize = 14;
pub const HEADER4: usize = 20;
pub const HEADER6: usize = 40;

/// None: the resolver answers.
#[inline(always)]
pub fn run(context: &TcContext) -> Option<i32> {
    let (packet, verdict, fast) = ingress::evaluated()?;
    let headers = ETHERNET + if packet.ipv6 { HEADER6 } else { HEADER4 };
    let (asked, udp) = question(context, packet, headers)?;
    known_verdict::keep(packet, verdict, fast);
    let answered = reply(context, packet, headers, asked, udp);
    if answered.is_none() {
        // SAFETY: the map holds programs of this kind only. It returns where there is none.
        unsafe { TAIL_CALLS.tail_call(context, CALL_READ) };
    }
    answered
}

/// Answers from the packet cache. None: the packet is unchanged.
#[inline(always)]
fn reply(
    context: &TcContext,
    packet: &IpPacket,
    headers: usize,
    asked: &DnsCacheKey,
    udp: [u16; 4],
) -> Option<i32> {
    // SAFETY: an entry that is overwritten meanwhile is found out below; all bit patterns are valid.
    let entry = unsafe { &*DNS_CACHE.get_ptr(asked)? };
    let id = entry.id;
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    if entry.epoch != *DNS_EPOCH.get(0)? || now >= entry.until {
        return None;
    }
    // At least one byte, and no more than there are, as every verifier sees.
    let length = (entry.last as u32 & (ANSWER as u32 - 1)) + 1;
    let ethernet = Buffer(context).read::<[u16; 6]>(0)?;
    let given = DNS_HITS.reserve::<DnsHit>(0);
    let mut given = given?;
    let size = (headers + HEADER_UDP + MESSAGE_ID) as u32 + length;
    let skb = context.as_ptr().cast();
    // SAFETY: the context is valid while the program runs.
    if unsafe { bpf_skb_change_tail(skb, size, 0) } != 0 {
        given.discard(BPF_RB_NO_WAKEUP as u64);
        return None;
    }
    given.write(DnsHit { id, time: now });
    given.submit(BPF_RB_NO_WAKEUP as u64);
    // The question is gone: from here on the packet is the answer, or nothing.
    let done = make_reply(context, packet, headers, ethernet, udp, length as u16)
        .and_then(|before| fill(context, entry, headers, length, now, before));
    // SAFETY: both are words of the entry.
    let whole = unsafe {
        (&raw const entry.id).read_volatile() == id && (&raw const entry.tail).read_volatile() == id
    };
    if done.is_none() || !whole {
        return Some(TC_ACT_SHOT);
    }
    context.set_mark(0);
    // SAFETY: the helper has no preconditions.
    Some(unsafe { bpf_redirect(interface(context), 0) } as i32)
}

/// The question as it is kept, and the ports and the length before it.
#[inline(always)]
fn question(
    context: &TcContext,
    packet: &IpPacket,
    headers: usize,
) -> Option<(&'static DnsCacheKey, [u16; 4])> {
    let buffer = Buffer(context);
    // SAFETY: the context pointer is valid for the run of the program.
    let skb = unsafe { &*context.skb.skb };
    if skb.vlan_present != 0 || skb.gso_size != 0 {
        return None;
    }
    // No tag, no option, no extension header.
    let first = buffer.read::<u8>(ETHERNET)?;
    let ethertype = u16::from_be(buffer.read::<u16>(ETHERNET - 2)?);
    if packet.ipv6 {
        if ethertype != ETHERTYPE_IPV6 || buffer.read::<u8>(ETHERNET + 6)? != UDP {
            return None;
        }
    } else if ethertype != ETHERTYPE_IPV4 || first != 0x45 {
        return None;
    }
    let udp = buffer.read::<[u16; 4]>(headers)?;
    let length = (u16::from_be(udp[2]) as u32).wrapping_sub((HEADER_UDP + MESSAGE_ID) as u32);
    if length < SHORTEST || length > QUESTION as u32 {
        return None;
    }
    let IpPacket { source, destination, interface, mac, .. } = *packet;
    let asked = dns_query::begin_key(source, destination, interface, mac, length)?;
    let (at, to) = ((headers + HEADER_UDP + MESSAGE_ID) as u32, asked.question.as_mut_ptr().cast());
    // SAFETY: the length is at most that of the place.
    if unsafe { bpf_skb_load_bytes(context.as_ptr().cast(), at, to, length) } != 0 {
        return None;
    }
    Some((asked, udp))
}

/// Turns the headers round; what the checksum changes by without the pseudo header.
#[inline(always)]
pub fn make_reply(
    context: &TcContext,
    packet: &IpPacket,
    headers: usize,
    ethernet: [u16; 6],
    udp: [u16; 4],
    length: u16,
) -> Option<u32> {
    let datagram = length + (HEADER_UDP + MESSAGE_ID) as u16;
    let [d0, d1, d2, s0, s1, s2] = ethernet;
    write(context, 0, [s0, s1, s2, d0, d1, d2])?;
    if packet.ipv6 {
        let [a, b, c, d] = packet.destination.0;
        let [e, f, g, h] = packet.source.0;
        let ends = ((datagram as u32) << 16) | ((UDP as u32) << 8) | HOPS as u32;
        write(context, ETHERNET, [0x6000_0000u32.to_be(), ends.to_be(), a, b, c, d, e, f, g, h])?;
    } else {
        let [a, b] = halves(packet.destination.last());
        let [c, d] = halves(packet.source.last());
        let total = (datagram + HEADER4 as u16).to_be();
        let (first, fragment) = (0x4500u16.to_be(), 0x4000u16.to_be());
        let hops = ((HOPS << 8) | UDP as u16).to_be();
        let sum = [first, total, fragment, hops, a, b, c, d];
        let mut all = 0u32;
        for word in sum {
            all += word as u32;
        }
        write(context, ETHERNET, [first, total, 0, fragment, hops, !checksum::fold(all), a, b, c, d])?;
    }
    let [from, to, before, _] = udp;
    write(context, headers, [to, from, datagram.to_be()])?;
    Some(checksum::add(!(before as u32), datagram.to_be() as u32))
}

/// Writes the answer with TTLs of this instant, and brings the checksum to it.
#[inline(always)]
fn fill(
    context: &TcContext,
    entry: &DnsCacheValue,
    headers: usize,
    length: u32,
    now: u64,
    lengths: u32,
) -> Option<()> {
    let skb = context.as_ptr().cast();
    let at = (headers + HEADER_UDP + MESSAGE_ID) as u32;
    // SAFETY: the length is at most that of the place.
    if unsafe { bpf_skb_store_bytes(skb, at, entry.answer.as_ptr().cast(), length, 0) } != 0 {
        return None;
    }
    let mut change = checksum::add(entry.change, lengths);
    let passed = (now.saturating_sub(entry.since) / SECOND) as u32;
    for index in 0..TTLS {
        if index >= entry.ttls as usize {
            break;
        }
        let (before, place) = (entry.ttl[index].to_be(), entry.at[index] as u32);
        let after = entry.ttl[index].saturating_sub(passed).to_be();
        change = checksum::add(change, checksum::change(before, after, place % 2 == 1));
        // SAFETY: the helper checks that the bytes are in the packet.
        if unsafe { bpf_skb_store_bytes(skb, at + place, (&raw const after).cast(), 4, 0) } != 0 {
            return None;
        }
    }
    // None stays none.
    let (flags, sum) = (BPF_F_MARK_MANGLED_0 as u64, headers + 6);
    context.l4_csum_replace(sum, 0, change as u64, flags).ok()?;
    // Where the hardware is to sum up, what stands there is the sum of the pseudo header.
    let pseudo = flags | BPF_F_PSEUDO_HDR as u64;
    context.l4_csum_replace(sum, 0, lengths as u64, pseudo).ok()
}

/// The halves of a word, in memory order.
#[inline(always)]
fn halves(word: u32) -> [u16; 2] {
    [word as u16, (word >> 16) as u16]
}

#[inline(always)]
fn write<T>(context: &TcContext, offset: usize, value: T) -> Option<()> {
    let start = context.data() + offset;
    if start + size_of::<T>() > context.data_end() {
        return None;
    }
    // SAFETY: the comparison keeps the write inside the packet; packets are exempt from alignment as in `Buffer`.
    unsafe { *(start as *mut T) = value };
    Some(())
}
