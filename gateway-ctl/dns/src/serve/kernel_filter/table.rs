//! Table of names in the layout of the kernel: each name is in one of two buckets.
//!
//! Decision 0123 says why.

use gateway_common::dns_filter::buckets;
use gateway_common::wire::{FILTER_SLOTS, FilterBucket, FilterHeader, FilterSlot, NameKey};
use gateway_core::dns::filter::CertainName;

/// Builds the elements of a table from names, of which no two have one hash. The first element is the header.
pub fn build<I: Iterator<Item = CertainName>>(
    names: impl Fn() -> I,
    key: &NameKey,
    serial: u64,
) -> Vec<FilterBucket> {
    // Three of four slots are used. Hardly ever does a name find both its buckets full; then there are more buckets.
    let mut count = names().count() * 4 / (3 * FILTER_SLOTS) + 1;
    loop {
        if let Some(mut table) = fill(names(), count) {
            let buckets = count as u64;
            let header = FilterHeader { serial, key: *key, buckets, _pad: [0; 4] };
            table[0] = header.into();
            return table;
        }
        count += count / 4 + 1;
    }
}

/// Puts each name into the emptier one of its buckets, behind an element for the header. `None`: both are full.
fn fill(names: impl Iterator<Item = CertainName>, count: usize) -> Option<Vec<FilterBucket>> {
    let mut table = vec![FilterBucket::default(); count + 1];
    let used =
        |bucket: &FilterBucket| bucket.slots.iter().filter(|slot| **slot != FilterSlot::default()).count();
    for CertainName { hash, itself, below } in names {
        let [one, other] = buckets(hash, count as u64).map(|index| index as usize + 1);
        let index = if used(&table[other]) < used(&table[one]) { other } else { one };
        let free = used(&table[index]);
        if free == FILTER_SLOTS {
            return None;
        }
        table[index].slots[free] = FilterSlot::new(hash, itself, below);
    }
    Some(table)
}
