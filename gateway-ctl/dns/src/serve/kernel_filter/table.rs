//! Table of names in the layout of the kernel: each name is in one of two buckets.

use gateway_common::wire::{FILTER_SLOTS, FilterBucket, FilterHeader, FilterSlot, NameKey};

/// Builds the elements of a table from names with their kinds. The first element is the header.
pub fn build(slots: &[FilterSlot], key: &NameKey, serial: u64) -> Vec<FilterBucket> {
    // Three of four slots are used. Hardly ever does a name find both its buckets full; then there are more buckets.
    let mut count = slots.len() / 3 + 1;
    loop {
        if let Some(mut table) = fill(slots, count) {
            let buckets = count as u64;
            let header = FilterHeader { serial, key: *key, buckets, _pad: [0; 2] };
            table[0] = header.into();
            return table;
        }
        count += count / 4 + 1;
    }
}

/// Puts each name into the emptier one of its buckets, behind an element for the header. `None`: both are full.
fn fill(slots: &[FilterSlot], count: usize) -> Option<Vec<FilterBucket>> {
    let mut table = vec![FilterBucket::default(); count + 1];
    let used =
        |bucket: &FilterBucket| bucket.slots.iter().filter(|slot| **slot != FilterSlot::default()).count();
    for slot in slots {
        let [one, other] = slot.buckets(count as u64).map(|index| index as usize + 1);
        let index = if used(&table[other]) < used(&table[one]) { other } else { one };
        let free = used(&table[index]);
        if free == FILTER_SLOTS {
            return None;
        }
        table[index].slots[free] = *slot;
    }
    Some(table)
}
