//! LAN ingress: a query for a blocked name is answered where it comes in, also the first one. Three programs call one
//! another, because one would be too long for the verifier. Each leaves the query to the resolver unless the answer is
//! certain.

use aya_ebpf::EbpfContext as _;
use aya_ebpf::bindings::{BPF_F_MARK_MANGLED_0, BPF_F_PSEUDO_HDR, BPF_RB_NO_WAKEUP, TC_ACT_SHOT};
use aya_ebpf::btf_maps;
use aya_ebpf::helpers::generated::{
    bpf_csum_diff, bpf_ktime_get_coarse_ns, bpf_redirect, bpf_skb_change_tail, bpf_skb_load_bytes,
    bpf_skb_store_bytes,
};
use aya_ebpf::macros::{btf_map, map};
use aya_ebpf::maps::PerCpuArray;
use aya_ebpf::programs::TcContext;
use gateway_common::checksum;
use gateway_common::dns_filter::{Buckets, Memory, answer_index, look_up, read_query};
use gateway_common::packet::Packet as _;
use gateway_common::verdict::Reason;
use gateway_common::wire::{
    Address, FILTER_ANSWERS, FILTER_HEAD, FILTER_SLOTS, FILTER_TAIL, FilterBucket, FilterClientKey,
    FilterHeader, FilterHit, FilterQuery, FilterSlot, MESSAGE_ID, QUESTION,
};

use crate::context::{Buffer, interface};
use crate::dns_query::{self, HEADER_UDP};
use crate::dns_reply::{ETHERNET, HEADER4, HEADER6, make_reply};
use crate::ingress;
use crate::maps::{
    CALL_BLOCK, CALL_LOOK_UP, DNS_EPOCH, FILTER_ANSWER_MAP, FILTER_CLIENTS, FILTER_HITS, TAIL_CALLS,
};

/// Maps of another size may replace the inner map (BPF_F_INNER_MAP).
const ANY_SIZE: usize = 0x1000;
/// Elements of the inner map, as an array. Before Linux 6.2, a map without BTF replaces one with BTF only if the type of
/// the elements is no structure (`bpf_map_meta_equal` compares where a timer would be).
type Elements = btf_maps::Array<[FilterSlot; FILTER_SLOTS], 1, ANY_SIZE>;
/// Maximum length of an answer from the flags on, in words.
const WORDS: usize = (QUESTION + FILTER_TAIL) / 4;

#[btf_map(name = "gw_filter_table")]
static TABLES: btf_maps::ArrayOfMaps<Elements, 1> = btf_maps::ArrayOfMaps::new();
#[map(name = "gw_filter_query")]
static QUERY: PerCpuArray<FilterQuery> = PerCpuArray::with_max_entries(1, 0);
/// Answer from the flags on.
#[map(name = "gw_filter_bytes")]
static ANSWER: PerCpuArray<[u32; WORDS]> = PerCpuArray::with_max_entries(1, 0);

/// Memory of the maps.
enum Volatile {}

impl Memory for Volatile {
    #[inline(always)]
    fn read<T: Copy>(variable: &T) -> T {
        // SAFETY: a reference is valid for reads.
        unsafe { core::ptr::from_ref(variable).read_volatile() }
    }

    #[inline(always)]
    fn write<T: Copy>(variable: &mut T, value: T) {
        // SAFETY: a reference is valid for writes.
        unsafe { core::ptr::from_mut(variable).write_volatile(value) }
    }
}

struct Table<'a>(&'a Elements);

impl Table<'_> {
    /// Returns element 0, which has the size of a bucket.
    #[inline(always)]
    fn header(&self) -> Option<&FilterHeader> {
        // SAFETY: all bit patterns are valid for both types, which have one size and alignment.
        self.0.get_ptr(0).map(|header| unsafe { &*header.cast::<FilterHeader>() })
    }
}

impl Buckets for Table<'_> {
    #[inline(always)]
    fn bucket(&self, index: u32) -> Option<&FilterBucket> {
        // SAFETY: a bucket is such an array.
        self.0.get_ptr(index + 1).map(|bucket| unsafe { &*bucket.cast::<FilterBucket>() })
    }
}

const _: () = assert!(
    size_of::<FilterHeader>() == size_of::<FilterBucket>()
        && size_of::<FilterBucket>() == size_of::<[FilterSlot; FILTER_SLOTS]>()
);

#[inline(always)]
fn query() -> Option<&'static mut FilterQuery> {
    let query = QUERY.get_ptr_mut(0)?;
    // SAFETY: a program is not interrupted by itself or by another one that uses the query on one processor.
    Some(unsafe { &mut *query })
}

/// Returns the key of the client's entry. The one for redirected queries has no server address.
#[inline(always)]
fn client_key() -> Option<FilterClientKey> {
    let (packet, verdict) = ingress::evaluated()?;
    let redirected = verdict.reason as u32 == Reason::ForcedDns as u32;
    let server = if redirected { Address([0; 4]) } else { packet.destination };
    Some(FilterClientKey { client: packet.source, server, interface: packet.interface })
}

/// Reads the query that the packet cache does not answer.
#[inline(always)]
pub fn read(context: &TcContext) -> Option<i32> {
    let key = client_key()?;
    // SAFETY: plain words. A value that is overwritten meanwhile is of the same client.
    let client = unsafe { &*FILTER_CLIENTS.get_ptr(&key)? };
    // SAFETY: the helper has no preconditions.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    if !client.is_valid(*DNS_EPOCH.get(0)?, now) {
        return None;
    }
    let asked = dns_query::current_key()?;
    let query = query()?;
    query.serial = client.serial;
    query.kinds = client.kinds;
    // Word by word, and volatile: else it becomes the call of a function.
    let (from, to) = (asked.question.as_ptr().cast::<u32>(), query.question.as_mut_ptr().cast::<u32>());
    for word in 0..QUESTION / 4 {
        // SAFETY: both arrays have so many words and are aligned as the fields before them.
        unsafe { to.add(word).write_volatile(from.add(word).read_volatile()) };
    }
    for word in QUESTION / 4..query.question.len() / 4 {
        // SAFETY: as above.
        unsafe { to.add(word).write_volatile(0) };
    }
    let table = Table(TABLES.get(0)?);
    if !read_query::<Volatile>(query, asked.length, &table.header()?.key) {
        return None;
    }
    // SAFETY: the map holds programs of this kind only. It returns where there is none.
    unsafe { TAIL_CALLS.tail_call(context, CALL_LOOK_UP) };
    None
}

/// Looks up the name.
#[inline(always)]
pub fn find(context: &TcContext) -> Option<i32> {
    let query = query()?;
    let table = Table(TABLES.get(0)?);
    let header = table.header()?;
    // The hashes are of the key of this table only.
    if header.serial != query.serial {
        return None;
    }
    let kind = look_up::<Volatile, _>(query, &table, header.buckets)?;
    query.answer = answer_index(query.serial, kind, query.variant);
    // SAFETY: as above.
    unsafe { TAIL_CALLS.tail_call(context, CALL_BLOCK) };
    None
}

/// Answers the query.
#[inline(always)]
pub fn block(context: &TcContext) -> Option<i32> {
    let (packet, _) = ingress::evaluated()?;
    let key = client_key()?;
    let client = FILTER_CLIENTS.get_ptr_mut(&key)?;
    let (query, asked) = (query()?, dns_query::current_key()?);
    if query.answer >= 2 * FILTER_ANSWERS {
        return None;
    }
    // SAFETY: plain words; the half of the map with this serial number does not change while its table is in use.
    let answer = unsafe { &*FILTER_ANSWER_MAP.get_ptr(query.answer)? };
    if answer.serial != query.serial || answer.length as usize > FILTER_TAIL {
        return None;
    }
    let headers = ETHERNET + if packet.ipv6 { HEADER6 } else { HEADER4 };
    let buffer = Buffer(context);
    let ethernet = buffer.read::<[u16; 6]>(0)?;
    let udp = buffer.read::<[u16; 4]>(headers)?;
    let question_end = query.question_end;
    if question_end > QUESTION as u32 {
        return None;
    }
    let length = question_end + answer.length as u32;
    let hit = FILTER_HITS.reserve::<FilterHit>(0);
    let mut hit = hit?;
    let size = (headers + HEADER_UDP + MESSAGE_ID) as u32 + length;
    let skb = context.as_ptr().cast();
    // SAFETY: the context is valid while the program runs.
    if unsafe { bpf_skb_change_tail(skb, size, 0) } != 0 {
        hit.discard(BPF_RB_NO_WAKEUP as u64);
        return None;
    }
    // SAFETY: the helper has no preconditions.
    let time = unsafe { bpf_ktime_get_coarse_ns() };
    let to = hit.as_mut_ptr();
    // SAFETY: the record is valid for writes until it is submitted, and each field is written.
    unsafe {
        let (from, words) = (core::ptr::from_ref(asked).cast::<u64>(), (&raw mut (*to).query).cast::<u64>());
        for word in 0..size_of_val(asked) / 8 {
            words.add(word).write_volatile(from.add(word).read_unaligned());
        }
        (&raw mut (*to).time).write(time);
        (&raw mut (*to).answer).write(query.answer);
        (&raw mut (*to)._pad).write(0);
        // Processors may count at once. The budget is no exact number.
        let left = (&raw mut (*client).budget).read_volatile();
        (&raw mut (*client).budget).write_volatile(left.saturating_sub(1));
    }
    hit.submit(BPF_RB_NO_WAKEUP as u64);
    // The query is gone: from here on the packet is the answer, or nothing.
    let done = make_reply(context, packet, headers, ethernet, udp, length as u16)
        .and_then(|lengths| fill(context, query, answer.head, &answer.tail, headers, length, lengths));
    if done.is_none() {
        return Some(TC_ACT_SHOT);
    }
    context.set_mark(0);
    // SAFETY: the helper has no preconditions.
    Some(unsafe { bpf_redirect(interface(context), 0) } as i32)
}

/// Writes what is around the question, and brings the checksum to it.
#[inline(always)]
fn fill(
    context: &TcContext,
    query: &FilterQuery,
    head: [u8; FILTER_HEAD],
    tail: &'static [u8; FILTER_TAIL],
    headers: usize,
    length: u32,
    lengths: u32,
) -> Option<()> {
    let skb = context.as_ptr().cast();
    let start = (headers + HEADER_UDP + MESSAGE_ID) as u32;
    // The flags RD and CD are those of the query (RFC 1035, section 4.1.1; RFC 4035, section 3.2.2).
    let mut head = head;
    head[0] |= query.question[0] & 0x01;
    head[1] |= query.question[1] & 0x10;
    let behind = length - query.question_end;
    // SAFETY: the sizes are those of the arrays, or at most that. The helper checks that the bytes are in the packet.
    unsafe {
        if bpf_skb_store_bytes(skb, start, head.as_ptr().cast(), FILTER_HEAD as u32, 0) != 0 {
            return None;
        }
        if behind > 0 {
            let (at, behind) = (start + query.question_end, bounded::<FILTER_TAIL>(behind)?);
            if bpf_skb_store_bytes(skb, at, tail.as_ptr().cast(), behind, 0) != 0 {
                return None;
            }
        }
    }
    let answer = ANSWER.get_ptr_mut(0)?.cast::<u32>();
    for word in 0..WORDS {
        // SAFETY: the words are those of the value.
        unsafe { answer.add(word).write_volatile(0) };
    }
    let length = bounded::<{ WORDS * 4 }>(length)?;
    // SAFETY: the lengths are at most those of the values.
    let change = unsafe {
        if bpf_skb_load_bytes(context.as_ptr().cast(), start, answer.cast(), length) != 0 {
            return None;
        }
        let before = query.question.as_ptr().cast_mut().cast();
        bpf_csum_diff(before, QUESTION as u32, answer, (WORDS * 4) as u32, 0)
    };
    if change < 0 {
        return None;
    }
    let change = checksum::add(change as u32, lengths);
    // None stays none.
    let (flags, sum) = (BPF_F_MARK_MANGLED_0 as u64, headers + 6);
    context.l4_csum_replace(sum, 0, change as u64, flags).ok()?;
    // Where the hardware is to sum up, what stands there is the sum of the pseudo header.
    let pseudo = flags | BPF_F_PSEUDO_HDR as u64;
    context.l4_csum_replace(sum, 0, lengths as u64, pseudo).ok()
}

/// Returns the length if it is between 1 and `MOST`. The compiler would express this as one comparison of the length
/// less one, from which the verifier learns nothing about the length, if it saw both.
#[inline(always)]
fn bounded<const MOST: usize>(length: u32) -> Option<u32> {
    let last = core::hint::black_box(length.wrapping_sub(1));
    if last >= MOST as u32 { None } else { Some(last + 1) }
}
