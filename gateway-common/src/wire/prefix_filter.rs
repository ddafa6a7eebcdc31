//! Filter before the prefix tries: bits by which a lookup that finds nothing ends before it walks a trie.
//!
//! A trie of thousands of prefixes costs a cache miss for each of its lower levels, and most addresses have no entry in
//! most tries. Each table of prefixes has a few lengths of its own, the levels. Each prefix sets one bit: that of its
//! table, of its longest level that is no longer than itself, and of so many of its leading bits. An address whose bits
//! of all levels are clear has no entry.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Address, SLOT_NONE, Slot, list_of_slot};

/// Levels of a table.
pub const LEVELS: usize = 4;
/// Tables with a filter.
pub const TABLES: usize = 6;
/// Words of a page, which is a value of the map.
pub(super) const PAGE_WORDS: usize = 128;
const PAGE_SHIFT: u32 = (64 * PAGE_WORDS as u32).ilog2();
/// Bits of a plan: 2^20. 100 000 prefixes set every eleventh.
const BITS_SHIFT: u32 = 20;
/// Pages of a plan.
pub const FILTER_PAGES: u32 = 1 << (BITS_SHIFT - PAGE_SHIFT);

/// A table of prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PrefixTable {
    Sources4 = 0,
    Sources6 = 1,
    Destinations4 = 2,
    Destinations6 = 3,
    DestinationPorts4 = 4,
    DestinationPorts6 = 5,
}

/// Level of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FilterLevel {
    /// Mask of the leading bits. IPv4 has it in the last word.
    pub mask: Address,
    /// 0 after the last level.
    pub used: u32,
}

/// Levels of all tables of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FilterLevels(pub [[FilterLevel; LEVELS]; TABLES]);

/// Page of the bits of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FilterPage(pub [u64; PAGE_WORDS]);

impl Default for FilterPage {
    fn default() -> FilterPage {
        FilterPage([0; PAGE_WORDS])
    }
}

/// Position of a bit in a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterBit {
    /// Index of the page in the plan.
    pub page: u32,
    pub word: usize,
    pub mask: u64,
}

/// 2^64 divided by the golden ratio, odd.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
const fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    hash ^ hash >> 32
}

/// Returns the scope of an entry: its list, and its port or 0, without the slot.
#[inline(always)]
pub const fn filter_scope(slot_and_list: u32, port: u16) -> u32 {
    list_of_slot(slot_and_list).1 << 16 | port as u32
}

/// Returns the bit of an IPv4 address on a level of a table.
#[inline(always)]
pub const fn filter_bit4(table: u32, level: usize, mask: &Address, scope: u32, address: u32) -> FilterBit {
    position(mix(salt(table, level, scope), (address & mask.last()) as u64))
}

/// Returns the bit of an IPv6 address on a level.
#[inline(always)]
pub const fn filter_bit6(
    table: u32,
    level: usize,
    mask: &Address,
    scope: u32,
    address: &Address,
) -> FilterBit {
    let (a, m) = (&address.0, &mask.0);
    let high = (a[0] & m[0]) as u64 | ((a[1] & m[1]) as u64) << 32;
    let low = (a[2] & m[2]) as u64 | ((a[3] & m[3]) as u64) << 32;
    position(mix(mix(salt(table, level, scope), high), low))
}

#[inline(always)]
const fn salt(table: u32, level: usize, scope: u32) -> u64 {
    (table as u64) << 40 | (level as u64) << 32 | scope as u64
}

#[inline(always)]
const fn position(hash: u64) -> FilterBit {
    // The upper bits of a product depend on all bits of its factors.
    let bit = hash.wrapping_mul(MULTIPLIER) >> (64 - BITS_SHIFT);
    FilterBit {
        page: (bit >> PAGE_SHIFT) as u32,
        word: (bit >> 6) as usize & (PAGE_WORDS - 1),
        mask: 1 << (bit & 63),
    }
}

/// Returns the index of a page in the map. `None` without a plan.
#[inline(always)]
pub const fn filter_page_index(slot: Slot, page: u32) -> Option<u32> {
    if slot == SLOT_NONE || slot > 2 || page >= FILTER_PAGES {
        return None;
    }
    Some((slot - 1) * FILTER_PAGES + page)
}
