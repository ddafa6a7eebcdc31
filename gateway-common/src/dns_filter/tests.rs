//! Hashes of names, and slots of the table.

use proptest::prelude::*;

use super::*;
use crate::wire::FILTER_SLOTS;

/// Bits of a hash that are compared.
const COMPARED: u64 = !((1 << UNUSED_BITS) - 1);

proptest! {
    /// A name is in either of its buckets; no name with another hash is found there.
    #[test]
    fn a_slot_is_found_by_its_hash_only(
        hash: u64,
        change in prop_oneof![any::<u64>(), (0u32..64).prop_map(|bit| 1 << bit), (0u64..32).prop_map(|top| top << 59)],
        count in 32u64..10_000_000,
        (itself, below) in (0u32..32, 0u32..32),
        (side, slot) in (0usize..2, 0..FILTER_SLOTS),
    ) {
        let place = buckets(hash, count)[side];
        let mut bucket = FilterBucket::default();
        bucket.slots[slot] = FilterSlot::new(hash, itself, below);
        let find = |hash: u64, shift| {
            let is_there = |index: &u32| *index == place;
            buckets(hash, count).iter().filter(|index| is_there(index)).fold(0, |kinds, _| kinds | bucket.kinds_of(hash, shift)) & !1
        };
        let bit = |kind: u32| 1u32 << kind & !1;
        prop_assert_eq!((find(hash, 0), find(hash, BELOW)), (bit(itself), bit(below)));
        let other = hash ^ change;
        prop_assert!(buckets(other, count).iter().all(|index| u64::from(*index) < count));
        if change & COMPARED != 0 {
            prop_assert_eq!((find(other, 0), find(other, BELOW)), (0, 0));
        }
    }

    #[test]
    fn suffixes_have_the_hashes_of_their_names(
        labels in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..8), 0..20),
        random: u64,
    ) {
        let key = NameKey::new(random);
        let wire = |labels: &[Vec<u8>]| {
            let mut wire = Vec::new();
            for label in labels {
                wire.push(u8::try_from(label.len()).expect("a label"));
                wire.extend_from_slice(label);
            }
            wire.push(0);
            wire
        };
        let mut hashes = [0; 21];
        key.hash_suffixes(&wire(&labels), &mut hashes);
        for (start, hash) in hashes[..=labels.len()].iter().enumerate() {
            let name = wire(&labels[start..]);
            prop_assert_eq!(*hash, key.hash(&name));
            prop_assert_eq!(*hash, key.hash(&name.to_ascii_uppercase()), "case");
        }
    }
}

#[test]
fn names_that_differ_in_one_byte_have_different_hashes() {
    let key = NameKey::new(7);
    let name = |byte: u8| key.hash(&[b"\x03a", &[byte][..], b"c\x07example\0"].concat()) & COMPARED;
    let bytes = || (0..=255u8).filter(|byte| !byte.is_ascii_uppercase());
    let hashes: std::collections::BTreeSet<u64> = bytes().map(name).collect();
    assert_eq!(hashes.len(), bytes().count());
}
