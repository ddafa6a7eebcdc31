//! DNS filter of the kernel: what the programs at tcx and at XDP have in common. At either place, three programs call one
//! another, because one would be too long for the verifier. Each leaves the query to the resolver unless the answer is
//! certain.

use core::ffi::c_void;

use aya_ebpf::bindings::BPF_RB_NO_WAKEUP;
use aya_ebpf::btf_maps;
use aya_ebpf::helpers::generated::{bpf_csum_diff, bpf_ktime_get_coarse_ns};
use aya_ebpf::macros::{btf_map, map};
use aya_ebpf::maps::PerCpuArray;
use aya_ebpf::maps::ring_buf::RingBufEntry;
use gateway_common::dns_filter::{Buckets, Memory, answer_index, look_up, read_query};
use gateway_common::wire::{
    Address, DnsCacheKey, FILTER_ANSWERS, FILTER_HEAD, FILTER_SLOTS, FILTER_TAIL, FilterAnswer, FilterBucket,
    FilterClient, FilterClientKey, FilterHeader, FilterHit, FilterQuery, FilterSlot, Mac, QUESTION,
};

use crate::dns_query;
use crate::maps::{DNS_EPOCH, FILTER_ANSWER_MAP, FILTER_CLIENTS, FILTER_HITS};

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

/// Returns the query that the programs evaluate on this processor.
#[inline(always)]
pub fn query() -> Option<&'static mut FilterQuery> {
    let query = QUERY.get_ptr_mut(0)?;
    // SAFETY: a program is not interrupted by itself or by another one that uses the query on one processor.
    Some(unsafe { &mut *query })
}

/// Returns the key of the client's entry. The one for redirected queries has no server address.
#[inline(always)]
pub fn client_key(
    client: Address,
    server: Address,
    interface: u32,
    host: Mac,
    redirected: bool,
) -> FilterClientKey {
    let server = if redirected { Address([0; 4]) } else { server };
    FilterClientKey { client, server, interface, host, _pad: 0 }
}

/// Reads the query of the current key, which the packet cache does not answer, and hashes its name. Returns false if
/// the resolver must answer it.
#[inline(always)]
pub fn read(key: &FilterClientKey) -> Option<bool> {
    // SAFETY: plain words. A value that is overwritten meanwhile is of the same client.
    let client = unsafe { &*FILTER_CLIENTS.get_ptr(key)? };
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
    Some(read_query::<Volatile>(query, asked.length as u32, &table.header()?.key))
}

/// Looks up the name, and chooses the answer.
#[inline(always)]
pub fn find() -> Option<()> {
    let query = query()?;
    let table = Table(TABLES.get(0)?);
    let header = table.header()?;
    // The hashes are of the key of this table only.
    if header.serial != query.serial {
        return None;
    }
    let kind = look_up::<Volatile, _>(query, &table, header.buckets)?;
    query.answer = answer_index(query.serial, kind, query.variant);
    Some(())
}

/// Block answer to the current query, with a place in the log. The verifier requires that it is logged or discarded.
pub struct BlockAnswer {
    /// Length of the message without its id.
    pub length: u32,
    query: &'static FilterQuery,
    answer: &'static FilterAnswer,
    asked: &'static DnsCacheKey,
    client: *mut FilterClient,
    hit: RingBufEntry<FilterHit>,
}

/// Returns the answer that was chosen. `None` if there is no place in the log.
#[inline(always)]
pub fn choose_answer(key: &FilterClientKey) -> Option<BlockAnswer> {
    let client = FILTER_CLIENTS.get_ptr_mut(key)?;
    let (query, asked) = (query()?, dns_query::current_key()?);
    if query.answer >= 2 * FILTER_ANSWERS {
        return None;
    }
    // SAFETY: plain words; the half of the map with this serial number does not change while its table is in use.
    let answer = unsafe { &*FILTER_ANSWER_MAP.get_ptr(query.answer)? };
    if answer.serial != query.serial || answer.length as usize > FILTER_TAIL {
        return None;
    }
    if query.question_end > QUESTION as u32 {
        return None;
    }
    let length = query.question_end + answer.length as u32;
    let hit = FILTER_HITS.reserve::<FilterHit>(0)?;
    Some(BlockAnswer { length, query, answer, asked, client, hit })
}

impl BlockAnswer {
    pub fn discard(self) {
        self.hit.discard(BPF_RB_NO_WAKEUP as u64);
    }

    /// Logs the answer, and returns its parts.
    #[inline(always)]
    pub fn log(self) -> Parts {
        let BlockAnswer { length, query, answer, asked, client, mut hit } = self;
        // SAFETY: the helper has no preconditions.
        let time = unsafe { bpf_ktime_get_coarse_ns() };
        let to = hit.as_mut_ptr();
        // SAFETY: the record is valid for writes until it is submitted, and each field is written.
        unsafe {
            let (from, words) =
                (core::ptr::from_ref(asked).cast::<u32>(), (&raw mut (*to).query).cast::<u32>());
            for word in 0..size_of_val(asked) / 4 {
                words.add(word).write_volatile(from.add(word).read_volatile());
            }
            (&raw mut (*to).time).write(time);
            (&raw mut (*to).answer).write(query.answer);
            // Processors may count at once. The budget is no exact number.
            let left = (&raw mut (*client).budget).read_volatile();
            (&raw mut (*client).budget).write_volatile(left.saturating_sub(1));
        }
        hit.submit(BPF_RB_NO_WAKEUP as u64);
        // The flags RD and CD are those of the query (RFC 1035, section 4.1.1; RFC 4035, section 3.2.2).
        let mut head = answer.head;
        head[0] |= query.question[0] & 0x01;
        head[1] |= query.question[1] & 0x10;
        Parts { head, tail: &answer.tail, question_end: query.question_end, length, query }
    }
}

/// Parts of a block answer around the question, which stays where it is.
pub struct Parts {
    /// Flags and counts.
    pub head: [u8; FILTER_HEAD],
    pub tail: &'static [u8; FILTER_TAIL],
    /// Offset of the tail, from the flags on.
    question_end: u32,
    length: u32,
    query: &'static FilterQuery,
}

impl Parts {
    /// Returns the offset of the tail from the flags on, and its length, unless it is empty.
    #[inline(always)]
    pub fn place_of_tail(&self) -> Option<(u32, u32)> {
        let length = bounded::<FILTER_TAIL>(self.length - self.question_end)?;
        Some((self.question_end, length))
    }

    /// Returns the change of the checksum by the answer, which `load` reads from the packet.
    #[inline(always)]
    pub fn checksum_change(&self, load: impl FnOnce(*mut c_void, u32) -> bool) -> Option<u32> {
        let answer = ANSWER.get_ptr_mut(0)?.cast::<u32>();
        for word in 0..WORDS {
            // SAFETY: the words are those of the value.
            unsafe { answer.add(word).write_volatile(0) };
        }
        let length = bounded::<{ WORDS * 4 }>(self.length)?;
        if !load(answer.cast(), length) {
            return None;
        }
        let before = self.query.question.as_ptr().cast_mut().cast();
        // SAFETY: the lengths are at most those of the values.
        let change = unsafe { bpf_csum_diff(before, QUESTION as u32, answer, (WORDS * 4) as u32, 0) };
        if change < 0 { None } else { Some(change as u32) }
    }
}

/// Returns the length if it is between 1 and `MOST`. The compiler would express this as one comparison of the length
/// less one, from which the verifier learns nothing about the length, if it saw both.
#[inline(always)]
fn bounded<const MOST: usize>(length: u32) -> Option<u32> {
    let last = core::hint::black_box(length.wrapping_sub(1));
    if last >= MOST as u32 { None } else { Some(last + 1) }
}
