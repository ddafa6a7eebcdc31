//! In-kernel DNS filter: reads the name of a query, and looks its suffixes up in a table of listed names.
//!
//! The filter is a subset of the resolver's. A table holds each name of an entry that decides; its kind is the answer of
//! the entry, or [`FilterKind::UNDECIDED`] if more than the name decides. The answer of a query is certain only if all
//! entries for its suffixes have the same kind. All other queries are the resolver's.
//!
//! A name is compared by 59 bits of a hash whose key is random for each start of the daemon, as in the resolver's own
//! table, so both find the same names. Without the key no one can search for names that share a hash.

use crate::wire::{
    FILTER_HEAD, FILTER_LABELS, FILTER_QUESTION, FilterBucket, FilterClient, FilterQuery, FilterSlot,
    NameKey, QUESTION,
};

/// Bits of the kinds in a slot: of the name itself, then of its subdomains.
const KIND_BITS: u32 = 10;
/// Offset of the kind of the subdomains.
const BELOW: u32 = 5;
/// Number of the last bits of a hash that are not compared.
pub const UNUSED_BITS: u32 = 5;
/// Maximum length of a name with all but its root label.
const NAME: u32 = (QUESTION - FILTER_HEAD - 1 - 4) as u32;
/// Bits of a length that are zero in an ordinary label (RFC 1035, section 4.1.4).
const LABEL_TYPE: u8 = 0xc0;
/// Value of [`FilterQuery::end`] while the root label is not found.
const NO_END: u32 = u32::MAX;

/// Kind of a block answer, a number of five bits. 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilterKind(pub u32);

impl FilterKind {
    pub const COUNT: u32 = 20;
    /// The resolver decides.
    pub const UNDECIDED: FilterKind = FilterKind(31);

    /// Returns the index of the first answer of this kind in its half of the map.
    pub const fn first_answer(self) -> u32 {
        (self.0 - 1) * 9
    }

    pub const fn bit(self) -> u32 {
        1 << self.0
    }
}

/// Access to variables of a loop. The kernel programs read and write them as volatile, so that they stay in memory.
pub trait Memory {
    fn read<T: Copy>(variable: &T) -> T;
    fn write<T: Copy>(variable: &mut T, value: T);
}

/// Plain memory.
#[derive(Clone, Copy, Debug)]
pub enum Plain {}

impl Memory for Plain {
    fn read<T: Copy>(variable: &T) -> T {
        *variable
    }

    fn write<T: Copy>(variable: &mut T, value: T) {
        *variable = value;
    }
}

impl NameKey {
    /// Derives the key from a random number (splitmix64).
    pub const fn new(random: u64) -> NameKey {
        const fn mix(random: u64, step: u64) -> u64 {
            let mixed = random.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        }
        NameKey { seed: mix(random, 1), factor: mix(random, 2) | 1 }
    }

    /// Returns the hash of the byte before a suffix and of the suffix. Letters are lower-cased; a length is no letter.
    #[inline(always)]
    const fn extend(&self, suffix: u64, byte: u8) -> u64 {
        // Without a branch, which the verifier would follow in each pass of a loop.
        let is_upper = (byte.wrapping_sub(b'A') as u32).wrapping_sub(26) >> 31;
        let hash = (suffix ^ (byte as u32 | is_upper << 5) as u64).wrapping_mul(self.factor);
        hash ^ hash >> 32
    }

    /// Returns the hash of a name in wire format.
    pub fn hash(&self, wire: &[u8]) -> u64 {
        let labels = wire.split_last().map_or(wire, |(_, labels)| labels);
        self.prepend(labels, self.seed)
    }

    /// Hashes all suffixes of a name in wire format, in one pass: first the whole name, last the root. Returns their
    /// number, at most that of `hashes`.
    pub fn hash_suffixes(&self, wire: &[u8], hashes: &mut [u64]) -> usize {
        // At first, the offsets of the labels are in the place of the hashes.
        let (mut end, mut count) = (0, 0);
        while let (Some(length), Some(offset)) = (wire.get(end), hashes.get_mut(count)) {
            *offset = end as u64;
            count += 1;
            if *length == 0 {
                break;
            }
            end += 1 + usize::from(*length);
        }
        let mut hash = self.seed;
        for place in hashes[..count].iter_mut().rev() {
            let start = *place as usize;
            hash = self.prepend(wire.get(start..end).unwrap_or_default(), hash);
            (*place, end) = (hash, start);
        }
        count
    }

    fn prepend(&self, bytes: &[u8], suffix: u64) -> u64 {
        bytes.iter().rev().fold(suffix, |suffix, byte| self.extend(suffix, *byte))
    }
}

/// Returns the indexes of the two buckets that may hold a name.
// Both depend on the first five bits, which are not in a slot: with 32 buckets or more, two names that differ in
// these bits only have no bucket in common.
#[inline(always)]
pub const fn buckets(hash: u64, count: u64) -> [u32; 2] {
    const fn index(bits: u32, count: u64) -> u32 {
        ((bits as u64).wrapping_mul(count) >> 32) as u32
    }
    let first = (hash >> 32) as u32;
    let second = (hash >> UNUSED_BITS) as u32 ^ (first & 0xf800_0000);
    [index(first, count), index(second, count)]
}

impl FilterSlot {
    /// Returns the slot of a name with the kinds of the name itself and of its subdomains.
    pub const fn new(hash: u64, itself: u32, below: u32) -> FilterSlot {
        let kinds = (itself & 31 | (below & 31) << BELOW) as u64;
        FilterSlot(hash >> UNUSED_BITS << KIND_BITS | kinds)
    }
}

impl FilterBucket {
    /// Returns a bit for each kind of this name, without a branch that depends on the bucket.
    #[inline(always)]
    fn kinds_of(&self, hash: u64, shift: u32) -> u32 {
        let name = FilterSlot::new(hash, 0, 0).0;
        let mut kinds = 0;
        for FilterSlot(slot) in self.slots {
            let differs = (slot ^ name) >> KIND_BITS;
            let same = (differs.wrapping_sub(1) >> 63) as u32;
            kinds |= same << ((slot >> shift) as u32 & 31);
        }
        kinds
    }
}

impl FilterClient {
    /// Reports whether the filter answers the client.
    #[inline(always)]
    pub const fn is_valid(&self, epoch: u64, now: u64) -> bool {
        self.epoch == epoch && now < self.until && self.budget > 0
    }
}

impl FilterQuery {
    pub const EMPTY: FilterQuery = FilterQuery {
        suffixes: [0; FILTER_LABELS],
        question: [0; FILTER_QUESTION],
        starts: [0; 2],
        hash: 0,
        serial: 0,
        kinds: 0,
        next: 0,
        end: 0,
        labels: 0,
        question_end: 0,
        variant: 0,
        seen: 0,
        answer: 0,
    };
}

#[inline(always)]
fn byte<M: Memory>(query: &FilterQuery, offset: u32) -> u8 {
    M::read(&query.question[offset as usize & (FILTER_QUESTION - 1)])
}

#[inline(always)]
fn pair<M: Memory>(query: &FilterQuery, offset: u32) -> u16 {
    (byte::<M>(query, offset) as u16) << 8 | byte::<M>(query, offset + 1) as u16
}

/// Reads a query of `length` bytes from the flags on, and hashes the suffixes of its name. Returns false if the
/// resolver must answer it, whatever its name is.
#[inline(always)]
pub fn read_query<M: Memory>(query: &mut FilterQuery, length: u32, key: &NameKey) -> bool {
    find_labels::<M>(query) && read_rest::<M>(query, length) && {
        hash_suffixes::<M>(query, key);
        true
    }
}

/// Finds the labels of the name. Returns false if it is the root, has too many labels, or is malformed.
#[inline(always)]
fn find_labels<M: Memory>(query: &mut FilterQuery) -> bool {
    M::write(&mut query.starts, [0; 2]);
    M::write(&mut query.next, 0);
    M::write(&mut query.labels, 0);
    M::write(&mut query.end, NO_END);
    // Not an inclusive range, which has a state of its own for its end.
    for offset in 0..NAME + 1 {
        if M::read(&query.next) != offset {
            continue;
        }
        let length = byte::<M>(query, FILTER_HEAD as u32 + offset);
        if length == 0 {
            // No later offset is the next one.
            M::write(&mut query.end, offset);
            M::write(&mut query.next, NO_END);
        } else {
            let word = &mut query.starts[(offset / 64) as usize];
            let starts = M::read(word) | 1 << (offset % 64);
            M::write(word, starts);
            // A pointer, or a label of an unknown type, counts as too many.
            let labels = M::read(&query.labels) + 1 + (length & LABEL_TYPE) as u32;
            M::write(&mut query.labels, labels);
            M::write(&mut query.next, offset + 1 + length as u32);
        }
    }
    let labels = M::read(&query.labels);
    M::read(&query.end) <= NAME && labels > 0 && labels <= FILTER_LABELS as u32
}

/// Checks everything but the name, and sets the end of the question and the variant of the answer.
#[inline(always)]
fn read_rest<M: Memory>(query: &mut FilterQuery, length: u32) -> bool {
    let name_end = FILTER_HEAD as u32 + M::read(&query.end) + 1;
    let end = name_end + 4;
    M::write(&mut query.question_end, end);
    // A standard query (opcode 0) with no other flags than RD, AD and CD, and one question.
    let head = byte::<M>(query, 0) & !0x01 | byte::<M>(query, 1) & !0x30;
    let counts = pair::<M>(query, 2) ^ 1 | pair::<M>(query, 4) | pair::<M>(query, 6);
    let additionals = pair::<M>(query, 8);
    let qtype = pair::<M>(query, name_end);
    // Class IN. Types of queries about the server, of transfers and of all records are the resolver's.
    if head != 0 || counts != 0 || pair::<M>(query, name_end + 2) != 1 {
        return false;
    }
    if matches!(qtype, 0 | 41 | 249..=255) {
        return false;
    }
    let class = match qtype {
        1 => 0,
        28 => 3,
        _ => 6,
    };
    let edns = if length == end && additionals == 0 {
        0
    } else {
        // One OPT record (RFC 6891) of version 0, empty or with a client cookie (RFC 7873), which the resolver ignores.
        let owner = byte::<M>(query, end) as u16 | pair::<M>(query, end + 1) ^ 41;
        let flags = pair::<M>(query, end + 7);
        let data = pair::<M>(query, end + 9);
        let cookie = pair::<M>(query, end + 11) ^ 10 | pair::<M>(query, end + 13) ^ 8;
        let is_empty = data == 0 && length == end + 11;
        let has_cookie = data == 12 && length == end + 23 && cookie == 0;
        if additionals != 1 || owner != 0 || pair::<M>(query, end + 5) != 0 || !(is_empty || has_cookie) {
            return false;
        }
        match flags {
            0 => 1,
            0x8000 => 2,
            _ => return false,
        }
    };
    M::write(&mut query.variant, class + edns);
    true
}

/// Hashes all suffixes of the name in one pass, from its end to its start.
#[inline(always)]
fn hash_suffixes<M: Memory>(query: &mut FilterQuery, key: &NameKey) {
    M::write(&mut query.hash, key.seed);
    M::write(&mut query.labels, 0);
    for back in 0..NAME {
        let offset = NAME - 1 - back;
        if offset >= M::read(&query.end) {
            continue;
        }
        let hash = key.extend(M::read(&query.hash), byte::<M>(query, FILTER_HEAD as u32 + offset));
        M::write(&mut query.hash, hash);
        if M::read(&query.starts[(offset / 64) as usize]) >> (offset % 64) & 1 != 0 {
            let labels = M::read(&query.labels);
            M::write(&mut query.suffixes[labels as usize & (FILTER_LABELS - 1)], hash);
            M::write(&mut query.labels, labels + 1);
        }
    }
}

/// Buckets of a table.
pub trait Buckets {
    fn bucket(&self, index: u32) -> Option<&FilterBucket>;
}

/// Looks up all suffixes. Returns the kind of the answer if it is certain, and one that the client may get.
#[inline(always)]
pub fn look_up<M: Memory, B: Buckets>(query: &mut FilterQuery, table: &B, count: u64) -> Option<FilterKind> {
    M::write(&mut query.seen, 0);
    for index in 0..FILTER_LABELS as u32 {
        let labels = M::read(&query.labels);
        if index >= labels {
            continue;
        }
        let hash = M::read(&query.suffixes[index as usize]);
        let shift = if index + 1 == labels { 0 } else { BELOW };
        let [one, other] = buckets(hash, count);
        let seen = table.bucket(one)?.kinds_of(hash, shift) | table.bucket(other)?.kinds_of(hash, shift);
        let seen = M::read(&query.seen) | seen;
        M::write(&mut query.seen, seen);
    }
    // Bit 0: a name whose form does not apply.
    kind_of(M::read(&query.seen) & !1, M::read(&query.kinds))
}

/// Returns the only kind of a set, if the client may get it.
#[inline(always)]
pub const fn kind_of(seen: u32, allowed: u32) -> Option<FilterKind> {
    let is_one = seen != 0 && seen & (seen - 1) == 0;
    if !is_one || seen & allowed == 0 || seen == FilterKind::UNDECIDED.bit() {
        return None;
    }
    Some(FilterKind(seen.trailing_zeros()))
}

/// Returns the index of an answer in the map. Tables use its halves in turn, so that no answer changes while it is sent.
#[inline(always)]
pub const fn answer_index(serial: u64, kind: FilterKind, variant: u32) -> u32 {
    (serial & 1) as u32 * crate::wire::FILTER_ANSWERS + kind.first_answer() + variant
}

#[cfg(test)]
mod tests;
