//! DNS at XDP: answers a query from the packet cache in the driver, if the tcx program has just evaluated a query of the
//! same host to the same address. If the cache has no answer, the filter follows ([`xdp_block`](mod@crate::xdp_block)).
//! Whatever is not plain here goes on to the tcx programs, unchanged.

use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS, XDP_TX};
use aya_ebpf::helpers::generated::{bpf_xdp_adjust_tail, bpf_xdp_load_bytes, bpf_xdp_store_bytes};
use aya_ebpf::programs::XdpContext;
use gateway_common::checksum;
use gateway_common::classify::{DNS_PORT, UDP};
use gateway_common::fast_path::entry::Validity;
use gateway_common::fast_path::header::{ETHERNET, Family, Head, V4, V6, read};
use gateway_common::fast_path::xdp::is_unsummed;
use gateway_common::packet::Packet as _;
use gateway_common::wire::{
    ANSWER, DnsCacheValue, DnsHit, DnsVerdictKey, MESSAGE_ID, Mac, QUESTION, TTLS, XdpAnswers, XdpLink,
    XdpMetadata,
};

use crate::dns_query::{self, HEADER_UDP, HOPS, SECOND, SHORTEST};
use crate::fast_path::{ETHERTYPE4, ETHERTYPE6, clock};
use crate::fast_path_table::{Table, Workspace};
use crate::known_verdict::{self, KnownQuery};
use crate::maps;
use crate::xdp_frame::{Frame, set_metadata, take_metadata};

/// Offset of the protocol in an IPv4 header, and of the next header in an IPv6 header.
const PROTOCOL4: usize = ETHERNET + 9;
const PROTOCOL6: usize = ETHERNET + 6;

/// Result beside the actions: the filter may answer the query.
const FILTER: u32 = u32::MAX;

/// Answers a frame that no entry of the fast path takes, if it is a query with a cached answer, else passes it.
#[inline(always)]
pub fn run(context: &XdpContext, now: &Validity, link: &XdpLink, ethertype: u16) -> u32 {
    let packet = Frame(context);
    let action = match ethertype {
        ETHERTYPE4 if may_be_query(&packet, PROTOCOL4, V4::LENGTH) => answer_as::<V4>(context, now, link),
        ETHERTYPE6 if may_be_query(&packet, PROTOCOL6, V6::LENGTH) => answer_as::<V6>(context, now, link),
        _ => XDP_PASS,
    };
    if action != FILTER {
        return action;
    }
    // SAFETY: the map holds programs of this kind only. It returns where there is none.
    unsafe { maps::XDP_CALLS.tail_call(context, maps::XDP_CALL_READ) };
    XDP_PASS
}

#[inline(always)]
fn may_be_query(packet: &Frame<'_>, protocol: usize, headers: usize) -> bool {
    packet.read::<u8>(protocol) == Some(UDP)
        && packet.read::<u16>(ETHERNET + headers + 2) == Some(DNS_PORT.to_be())
}

// As for `write_verdict`.
#[inline(never)]
fn answer_as<F: Table>(context: &XdpContext, now: &Validity, link: &XdpLink) -> u32 {
    answer::<F>(context, now, link).unwrap_or(XDP_PASS)
}

/// `None`: the frame is unchanged, and the tcx programs answer or the resolver does.
#[inline(always)]
fn answer<F: Table>(context: &XdpContext, now: &Validity, link: &XdpLink) -> Option<u32> {
    // SAFETY: the pointer is to a value of the map, valid while the program runs. A program is not interrupted by itself
    // or by another one that uses the place on one processor.
    let Workspace { head, header, .. } = unsafe { &mut *F::workspace()? };
    let packet = Frame(context);
    let before = packet.length();
    // No option, no extension header, no fragment, and a datagram as long as its packet.
    if !read::<F, _>(&packet, ETHERNET, head, header) || head.source_port == 0 {
        return None;
    }
    let [to, host] = packet.read::<[Mac; 2]>(0)?;
    if link.answers == XdpAnswers::None as u16 {
        return None;
    }
    // Of another host, or a group.
    if to.0[0] != link.mac.0[0] || to.0[1] != link.mac.0[1] || to.0[2] != link.mac.0[2] {
        return None;
    }
    let headers = ETHERNET + F::LENGTH;
    let length = head.length.wrapping_sub((F::LENGTH + HEADER_UDP + MESSAGE_ID) as u32);
    if length < SHORTEST || length > QUESTION as u32 || head.length + ETHERNET as u32 > before {
        return None;
    }
    let checksum = packet.load::<u16>(headers + 6)?;
    if is_unsummed::<F>(header, head, checksum) {
        return None;
    }
    let (source, destination) = F::addresses(header);
    let (client, server) = (F::widen(&source), F::widen(&destination));
    let interface = context.ingress_ifindex() as u32;
    let known = known_verdict::current()?;
    known.key = DnsVerdictKey { client, server, interface, host, _pad: 0 };
    known.find(now)?;
    known.source_port = head.source_port;
    known.ipv6 = F::IPV6;
    known.length = before;
    let asked = dns_query::begin_key(client, server, interface, length)?;
    let (at, to) = ((headers + HEADER_UDP + MESSAGE_ID) as u32, asked.question.as_mut_ptr().cast());
    // SAFETY: the length is at most that of the place.
    if unsafe { bpf_xdp_load_bytes(context.ctx, at, to, length) } != 0 {
        return None;
    }
    let Some(entry) = maps::DNS_CACHE.get_ptr(asked) else { return Some(FILTER) };
    // SAFETY: an entry that is overwritten meanwhile is found out below; all bit patterns are valid.
    let entry = unsafe { &*entry };
    let (id, time) = (entry.id, clock());
    if entry.epoch != *maps::DNS_EPOCH.get(0)? || time >= entry.until {
        return Some(FILTER);
    }
    // At least one byte, and no more than there are, as every verifier sees.
    let length = (entry.last as u32 & (ANSWER as u32 - 1)) + 1;
    let mut hit = maps::DNS_HITS.reserve::<DnsHit>(0)?;
    if !turn_round(context, known, link, headers, length) {
        hit.discard(BPF_RB_NO_WAKEUP as u64);
        return None;
    }
    hit.write(DnsHit { id, time });
    hit.submit(BPF_RB_NO_WAKEUP as u64);
    // The query is gone: from here on the frame is the answer, or nothing.
    let written = write_headers::<F>(context, header, head, host, link.mac, length)
        .and_then(|lengths| write_answer(context, entry, headers, length, time, (checksum, lengths)));
    // SAFETY: both are words of the entry.
    let whole = unsafe {
        (&raw const entry.id).read_volatile() == id && (&raw const entry.tail).read_volatile() == id
    };
    if written.is_none() || !whole {
        return Some(XDP_DROP);
    }
    known.count();
    Some(send_back(known, link))
}

/// Prepares the frame for its way back, and resizes it to an answer of `length` bytes from the flags on. Returns false if the
/// driver refuses; the frame is then unchanged.
#[inline(always)]
pub fn turn_round(
    context: &XdpContext,
    known: &KnownQuery,
    link: &XdpLink,
    headers: usize,
    length: u32,
) -> bool {
    let is_redirected = link.answers == XdpAnswers::Redirect as u16;
    if is_redirected {
        let metadata = XdpMetadata { epoch: known.verdict.epoch, mark: 0 };
        if set_metadata(context, metadata).is_none() {
            return false;
        }
    }
    let after = (headers + HEADER_UDP + MESSAGE_ID) as i32 + length as i32;
    // SAFETY: the context is valid while the program runs.
    let failed = unsafe { bpf_xdp_adjust_tail(context.ctx, after - known.length as i32) != 0 };
    if failed && is_redirected {
        take_metadata(context);
    }
    !failed
}

/// Sends the answer back.
#[inline(always)]
pub fn send_back(known: &KnownQuery, link: &XdpLink) -> u32 {
    if link.answers == XdpAnswers::Redirect as u16 {
        return maps::XDP_PORTS.redirect(known.key.interface, XDP_DROP as u64).unwrap_or(XDP_DROP);
    }
    XDP_TX
}

/// Writes the headers of the answer. Returns the change of a checksum by the length of the datagram.
#[inline(always)]
pub fn write_headers<F: Table>(
    context: &XdpContext,
    header: &F::Header,
    head: &Head,
    host: Mac,
    own: Mac,
    length: u32,
) -> Option<u32> {
    let datagram = length as u16 + (HEADER_UDP + MESSAGE_ID) as u16;
    let (source, destination) = F::addresses(header);
    write(context, 0, [host, own])?;
    if F::IPV6 {
        let ends = ((datagram as u32) << 16) | ((UDP as u32) << 8) | HOPS as u32;
        write(context, ETHERNET, [0x6000_0000u32.to_be(), ends.to_be()])?;
        write(context, ETHERNET + 8, [F::widen(&destination), F::widen(&source)])?;
    } else {
        let (from, to) = (F::widen(&destination).last(), F::widen(&source).last());
        let first = (0x4500_0000 | (datagram as u32 + V4::LENGTH as u32)).to_be();
        let fragment = 0x4000u32.to_be();
        let third = (((HOPS as u32) << 24) | ((UDP as u32) << 16)).to_be();
        let mut sum = checksum::add(first, fragment);
        for word in [third, from, to] {
            sum = checksum::add(sum, word);
        }
        // The checksum is the second half of the word.
        let third = (third.to_ne_bytes(), (!checksum::fold(sum)).to_ne_bytes());
        let third = u32::from_ne_bytes([third.0[0], third.0[1], third.1[0], third.1[1]]);
        write(context, ETHERNET, [first, fragment, third, from, to])?;
    }
    let ports = [head.destination_port, head.source_port, datagram.to_be()];
    write(context, ETHERNET + F::LENGTH, ports)?;
    let asked = (head.length - F::LENGTH as u32) as u16;
    Some(checksum::add(!(asked.to_be() as u32), datagram.to_be() as u32))
}

/// Writes the answer with TTLs of this instant, and its checksum: `sums` are that of the query and the change by its
/// length.
#[inline(always)]
fn write_answer(
    context: &XdpContext,
    entry: &DnsCacheValue,
    headers: usize,
    length: u32,
    now: u64,
    sums: (u16, u32),
) -> Option<()> {
    let at = (headers + HEADER_UDP + MESSAGE_ID) as u32;
    // SAFETY: the length is at most that of the place.
    if unsafe { bpf_xdp_store_bytes(context.ctx, at, entry.answer.as_ptr().cast_mut().cast(), length) } != 0 {
        return None;
    }
    // The length is in the header and in the pseudo-header.
    let (before, lengths) = sums;
    let mut change = checksum::add(entry.change, checksum::add(lengths, lengths));
    let passed = (now.saturating_sub(entry.since) / SECOND) as u32;
    for index in 0..TTLS {
        if index >= entry.ttls as usize {
            break;
        }
        let (ttl, offset) = (entry.ttl[index].to_be(), entry.at[index] as u32);
        let mut aged = entry.ttl[index].saturating_sub(passed).to_be();
        change = checksum::add(change, checksum::change(ttl, aged, offset % 2 == 1));
        // SAFETY: the helper checks that the bytes are in the frame.
        if unsafe { bpf_xdp_store_bytes(context.ctx, at + offset, (&raw mut aged).cast(), 4) } != 0 {
            return None;
        }
    }
    write_checksum(context, headers, before, change)
}

/// Writes a checksum after a change. None stays none.
#[inline(always)]
pub fn write_checksum(context: &XdpContext, headers: usize, before: u16, change: u32) -> Option<()> {
    let after = match before {
        0 => 0,
        _ => match !checksum::fold(checksum::add(!before as u32, change)) {
            0 => 0xffff,
            sum => sum,
        },
    };
    write(context, headers + 6, after)
}

#[inline(always)]
fn write<T>(context: &XdpContext, offset: usize, value: T) -> Option<()> {
    let start = context.data() + offset;
    if start + size_of::<T>() > context.data_end() {
        return None;
    }
    // SAFETY: the comparison keeps the write inside the frame; frames are exempt from alignment as in `Buffer`.
    unsafe { (start as *mut T).write_unaligned(value) };
    Some(())
}
