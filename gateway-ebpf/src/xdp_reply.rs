//! DNS at XDP: answers a query from the packet cache in the driver. If the cache has no answer, the filter follows
//! ([`xdp_block`](mod@crate::xdp_block)).

use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_TX};
use aya_ebpf::helpers::generated::{bpf_xdp_adjust_tail, bpf_xdp_store_bytes};
use aya_ebpf::programs::XdpContext;
use gateway_common::checksum;
use gateway_common::classify::UDP;
use gateway_common::fast_path::header::{ETHERNET, Family, V4, V6};
use gateway_common::wire::{ANSWER, DnsCacheValue, DnsHit, MESSAGE_ID, TTLS, XdpAnswers, XdpMetadata};

use crate::dns_query::{self, HEADER_UDP, HOPS, SECOND};
use crate::fast_path::clock;
use crate::fast_path_table::{Table, Workspace};
use crate::known_verdict::{self, KnownQuery};
use crate::maps;
use crate::xdp_frame::{set_metadata, take_metadata};

/// Result beside the actions: the filter may answer the query.
const FILTER: u32 = u32::MAX;

/// `None`: the frame is unchanged, and the tcx programs answer or the resolver does.
#[inline(always)]
pub fn run(context: &XdpContext) -> Option<u32> {
    let known = known_verdict::current()?;
    let action = if known.ipv6 { answer::<V6>(context, known)? } else { answer::<V4>(context, known)? };
    if action != FILTER {
        return Some(action);
    }
    // SAFETY: the map holds programs of this kind only. It returns where there is none.
    unsafe { maps::XDP_CALLS.tail_call(context, maps::CALL_READ) };
    None
}

#[inline(always)]
fn answer<F: Table>(context: &XdpContext, known: &KnownQuery) -> Option<u32> {
    let asked = dns_query::current_key()?;
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
    if !turn_round::<F>(context, known, length) {
        hit.discard(BPF_RB_NO_WAKEUP as u64);
        return None;
    }
    hit.write(DnsHit { id, time });
    hit.submit(BPF_RB_NO_WAKEUP as u64);
    // The query is gone: from here on the frame is the answer, or nothing.
    let written = write_headers::<F>(context, known, length)
        .and_then(|lengths| write_answer::<F>(context, known, entry, length, time, lengths));
    // SAFETY: both are words of the entry.
    let whole = unsafe {
        (&raw const entry.id).read_volatile() == id && (&raw const entry.tail).read_volatile() == id
    };
    if written.is_none() || !whole {
        return Some(XDP_DROP);
    }
    known.count();
    Some(send_back(known))
}

/// Prepares the frame for its way back, and resizes it to an answer of `length` bytes from the flags on. Returns false if the
/// driver refuses; the frame is then unchanged.
#[inline(always)]
pub fn turn_round<F: Table>(context: &XdpContext, known: &KnownQuery, length: u32) -> bool {
    let is_redirected = known.answers == XdpAnswers::Redirect as u16;
    if is_redirected {
        let metadata = XdpMetadata { epoch: known.verdict.epoch, mark: 0 };
        if set_metadata(context, metadata).is_none() {
            return false;
        }
    }
    let after = (ETHERNET + F::LENGTH + HEADER_UDP + MESSAGE_ID) as i32 + length as i32;
    // SAFETY: the context is valid while the program runs.
    let failed = unsafe { bpf_xdp_adjust_tail(context.ctx, after - known.length as i32) != 0 };
    if failed && is_redirected {
        take_metadata(context);
    }
    !failed
}

/// Sends the answer back.
#[inline(always)]
pub fn send_back(known: &KnownQuery) -> u32 {
    if known.answers == XdpAnswers::Redirect as u16 {
        return maps::XDP_PORTS.redirect(known.key.interface, XDP_DROP as u64).unwrap_or(XDP_DROP);
    }
    XDP_TX
}

/// Writes the headers of the answer. Returns the change of a checksum by the length of the datagram.
#[inline(always)]
pub fn write_headers<F: Table>(context: &XdpContext, known: &KnownQuery, length: u32) -> Option<u32> {
    // SAFETY: the pointer is to a value of the map, which the program before this one filled for the same frame.
    let Workspace { head, header, .. } = unsafe { &*F::workspace()? };
    let datagram = length as u16 + (HEADER_UDP + MESSAGE_ID) as u16;
    let (source, destination) = F::addresses(header);
    write(context, 0, [known.key.host, known.own])?;
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

/// Writes the answer with TTLs of this instant, and its checksum. `lengths` is the change by its length.
#[inline(always)]
fn write_answer<F: Table>(
    context: &XdpContext,
    known: &KnownQuery,
    entry: &DnsCacheValue,
    length: u32,
    now: u64,
    lengths: u32,
) -> Option<()> {
    let at = (ETHERNET + F::LENGTH + HEADER_UDP + MESSAGE_ID) as u32;
    // SAFETY: the length is at most that of the place.
    if unsafe { bpf_xdp_store_bytes(context.ctx, at, entry.answer.as_ptr().cast_mut().cast(), length) } != 0 {
        return None;
    }
    // The length is in the header and in the pseudo-header.
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
    write_checksum::<F>(context, known, change)
}

/// Writes a checksum after a change. None stays none.
#[inline(always)]
pub fn write_checksum<F: Table>(context: &XdpContext, known: &KnownQuery, change: u32) -> Option<()> {
    let before = known.checksum;
    let after = match before {
        0 => 0,
        _ => match !checksum::fold(checksum::add(!before as u32, change)) {
            0 => 0xffff,
            sum => sum,
        },
    };
    write(context, ETHERNET + F::LENGTH + 6, after)
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
