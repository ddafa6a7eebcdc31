//! Buckets of the flow table: the records of the flows whose hash leads there. A full bucket forgets the flow that was
//! silent longest.
//!
//! What a search needs lies apart from the records, close together: the search for a new flow seldom misses the caches
//! of the processor, and reads no record.
//!
//! Writers do not exclude each other. Two that write one place leave a record that belongs to neither: its digest says
//! so. A flow that two processors enter at once may have two records, of which the first one is in use.

use core::hint::black_box;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{FlowKey, FlowValue, ShortFlowKey};

/// Number of records of a bucket.
pub const FLOW_PLACES: usize = 16;

/// Tags and times of the records of a bucket, which a search reads before it reads a record. They fill a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(8))]
pub struct FlowPlaces {
    /// [`flow_tag`] of each record, 0 without a record.
    pub tags: [u16; FLOW_PLACES],
    /// Low bits of [`FlowValue::seen`] of each record.
    pub seen: [u16; FLOW_PLACES],
}

/// Record of a flow whose key has a short form, in one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FlowRecord4 {
    pub key: ShortFlowKey,
    pub value: FlowValue,
    /// Packets of the flow that were denied, in a word: see [`denied_traffic`](FlowRecord::denied_traffic).
    pub denied: [u32; 2],
}

/// Record of any other flow, in two cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FlowRecord6 {
    pub key: FlowKey,
    pub value: FlowValue,
    pub _pad: u32,
    /// As in [`FlowRecord4`], at a multiple of eight bytes.
    pub denied: [u32; 2],
    pub _end: [u32; 8],
}

/// Record of one of the two tables.
pub trait FlowRecord: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + 'static {
    type Key: Copy + Into<FlowKey>;

    fn key(&self) -> &Self::Key;
    fn value(&self) -> &FlowValue;
    fn parts(&mut self) -> (&mut Self::Key, &mut FlowValue);
    /// Returns the word that counts packets, at a multiple of eight bytes in a map.
    fn denied(&mut self) -> &mut [u32; 2];
    /// Returns the packets of the flow that were denied since its record took the place: their bytes above 24 bits of
    /// their number.
    fn denied_traffic(&self) -> u64;
    /// Returns 0 if two keys are equal. Without branches: the verifier would follow each of them.
    fn difference(a: &Self::Key, b: &Self::Key) -> u32;
}

macro_rules! record {
    ($record:ty, $key:ty, $words:literal) => {
        impl FlowRecord for $record {
            type Key = $key;

            #[inline(always)]
            fn key(&self) -> &$key {
                &self.key
            }

            #[inline(always)]
            fn value(&self) -> &FlowValue {
                &self.value
            }

            #[inline(always)]
            fn parts(&mut self) -> (&mut $key, &mut FlowValue) {
                (&mut self.key, &mut self.value)
            }

            #[inline(always)]
            fn denied(&mut self) -> &mut [u32; 2] {
                &mut self.denied
            }

            #[inline(always)]
            fn denied_traffic(&self) -> u64 {
                zerocopy::transmute!(self.denied)
            }

            #[inline(always)]
            fn difference(a: &$key, b: &$key) -> u32 {
                let a: &[u32; $words] = zerocopy::transmute_ref!(a);
                let b: &[u32; $words] = zerocopy::transmute_ref!(b);
                let (mut difference, mut word) = (0, 0);
                while word < $words {
                    difference |= a[word] ^ b[word];
                    word += 1;
                }
                difference
            }
        }
    };
}

record!(FlowRecord4, ShortFlowKey, 6);
record!(FlowRecord6, FlowKey, 13);

/// Returns the index of the bucket of a flow. The count is a power of two.
#[inline(always)]
pub const fn flow_bucket(hash: u64, count: u32) -> u32 {
    (hash >> 32) as u32 & (count - 1)
}

/// Returns the tag of a flow's record in its bucket. Another flow may have the same one.
#[inline(always)]
pub const fn flow_tag(hash: u64) -> u16 {
    hash as u16 | 1
}

const PLACE_BITS: u32 = 4;
/// Ticks by which the clock of another processor may be ahead.
const SKEW: u16 = 2;

const ONES: u64 = 0x0001_0001_0001_0001;
const HIGH_BITS: u64 = ONES << 15;

impl FlowPlaces {
    /// Reports whether some record may have this tag: always, if one has it.
    #[inline(always)]
    pub const fn may_have(&self, tag: u16) -> bool {
        let words: &[u64; 8] = zerocopy::transmute_ref!(self);
        let (wanted, mut found, mut word) = (ONES * tag as u64, 0, 0);
        while word < FLOW_PLACES / 4 {
            // A tag is zero where the two are equal. Then it borrows, and its high bit becomes one.
            let difference = words[word] ^ wanted;
            found |= difference.wrapping_sub(ONES) & !difference & HIGH_BITS;
            word += 1;
        }
        found != 0
    }

    /// Returns the place of a flow's record.
    #[inline(always)]
    pub fn find<R: FlowRecord>(&self, records: &[R; FLOW_PLACES], hash: u64, key: &R::Key) -> Option<usize> {
        let (tag, mut place) = (flow_tag(hash), 0);
        if !self.may_have(tag) {
            return None;
        }
        while place < FLOW_PLACES {
            if self.tags[place] == tag && R::difference(records[place].key(), key) == 0 {
                return Some(place);
            }
            place += 1;
        }
        None
    }

    /// Returns a free place, or else that of the flow that was silent longest.
    #[inline(always)]
    pub fn oldest(&self, now: u32) -> usize {
        let now = (now as u16).wrapping_add(SKEW);
        let (mut oldest, mut place) = (0i32, 0);
        while place < FLOW_PLACES {
            let age = now.wrapping_sub(self.seen[place]) as u32;
            // Without branches: the verifier would follow each of them. A free place is older than any record.
            let free = (self.tags[place] as u32).wrapping_sub(1) >> 31;
            let candidate = ((free << u16::BITS | age) << PLACE_BITS | place as u32) as i32;
            let is_younger = black_box((candidate - oldest) >> 31);
            oldest = candidate - ((candidate - oldest) & is_younger);
            place += 1;
        }
        oldest as usize & ((1 << PLACE_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use zerocopy::FromZeros as _;

    use super::*;
    use crate::maps::{Flows4, MapSpec as _};
    use crate::wire::{Address, Mac};

    fn key(port: u16, host: u32) -> FlowKey {
        FlowKey {
            source: Address::v4_word(host),
            destination: Address::v4([198, 18, 0, 1]),
            interface: 3,
            source_port: port.to_be(),
            destination_port: 443_u16.to_be(),
            mac: Mac::new([2, 3, 4, 5, 6, 7]),
            vlan: 0,
            protocol: 17,
            fragment: 0,
            _pad: [0; 2],
        }
    }

    #[test]
    fn a_record_is_found_by_its_key_among_records_with_its_tag() {
        let (mut places, mut records) = (FlowPlaces::default(), [FlowRecord4::new_zeroed(); FLOW_PLACES]);
        let keys = [1, 2, 3].map(|port| key(port, 1).short().unwrap());
        assert_eq!(places.find(&records, 8, &keys[0]), None, "an empty bucket");
        for (place, key) in [4, 7, 15].into_iter().zip(&keys) {
            *records[place].parts().0 = *key;
            places.tags[place] = flow_tag(8);
        }
        let found = keys.map(|key| places.find(&records, 8, &key));
        assert_eq!(found, [Some(4), Some(7), Some(15)]);
        assert_eq!(places.find(&records, 8, &key(4, 1).short().unwrap()), None, "only a tag in common");
        assert_eq!(places.find(&records, 10, &keys[0]), None, "another tag");
        // All zeroes are a key as well, and no record has it.
        let zero = ShortFlowKey::new_zeroed();
        let found = (0..64).map(|hash| FlowPlaces::default().find(&records, hash, &zero));
        assert!(found.into_iter().all(|place| place.is_none()));
    }

    #[test]
    fn a_tag_is_found_at_each_place() {
        for place in 0..FLOW_PLACES {
            let mut places = FlowPlaces { seen: [0x7777; FLOW_PLACES], ..FlowPlaces::default() };
            places.tags = std::array::from_fn(|other| [1, 0, 0xffff, 0x8001][other % 4]);
            assert!(!places.may_have(0x1235) && !places.may_have(0x7777), "only the tags count");
            for tag in (1..=u16::MAX).step_by(2) {
                places.tags[place] = tag;
                assert!(places.may_have(tag), "{tag} at {place}");
            }
        }
        assert!(!FlowPlaces::default().may_have(1));
    }

    #[test]
    fn keys_differ_in_each_of_their_bytes() {
        let long = FlowKey { source: Address::v6([0xfd; 16]), ..key(5, 1) };
        let short = key(5, 1).short().unwrap();
        assert_eq!((FlowRecord6::difference(&long, &long), FlowRecord4::difference(&short, &short)), (0, 0));
        for byte in 0..size_of::<FlowKey>() {
            let mut bytes: [u8; 52] = zerocopy::transmute!(long);
            bytes[byte] ^= 0x10;
            assert_ne!(FlowRecord6::difference(&long, &zerocopy::transmute!(bytes)), 0, "byte {byte}");
        }
        for byte in 0..size_of::<ShortFlowKey>() {
            let mut bytes: [u8; 24] = zerocopy::transmute!(short);
            bytes[byte] ^= 0x10;
            assert_ne!(FlowRecord4::difference(&short, &zerocopy::transmute!(bytes)), 0, "byte {byte}");
        }
    }

    #[test]
    fn a_full_bucket_forgets_the_flow_that_was_silent_longest() {
        let mut places = FlowPlaces::default();
        let now = 0x0003_0005;
        for place in 0..FLOW_PLACES {
            assert_eq!(places.tags[places.oldest(now)], 0, "free places first");
            places.tags[place] = 9;
            places.seen[place] = (now as u16).wrapping_sub(100 + (place as u16 * 7) % 16);
        }
        let silent = |place: usize| (place * 7) % 16;
        assert_eq!(silent(places.oldest(now)), 15);
        let oldest = places.oldest(now);
        places.seen[oldest] = (now as u16).wrapping_add(1);
        assert_eq!(silent(places.oldest(now)), 14, "a clock that is ahead is no old record");
        places.seen[3] = (now as u16).wrapping_sub(40_000);
        assert_eq!(places.oldest(now), 3, "ages wrap after 19 hours only");
    }

    #[test]
    fn flows_that_differ_in_few_bits_are_spread_over_buckets_and_tags() {
        let flows = Flows4::CAPACITY * 4;
        let ports = (0..flows).map(|n| key(n as u16, 0x0100_000a + (n >> 16)));
        let hosts = (0..flows).map(|n| key(40_000, n.to_be()));
        for keys in [ports.collect::<Vec<_>>(), hosts.collect()] {
            let mut used: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
            for key in keys {
                let hash = key.hash(0x1234_5678);
                used.entry(flow_bucket(hash, Flows4::CAPACITY)).or_default().push(flow_tag(hash));
            }
            // Of 131 072 random flows, four to a bucket, all find a place, and 8 have the tag of another one.
            let full: usize = used.values().map(|tags| tags.len().saturating_sub(FLOW_PLACES)).sum();
            assert!(full < 3, "{full} flows find no place");
            let twins: usize = used
                .values_mut()
                .map(|tags| {
                    tags.sort_unstable();
                    tags.windows(2).filter(|pair| pair[0] == pair[1]).count()
                })
                .sum();
            assert!(twins < 40, "{twins} flows have the tag of another one in their bucket");
        }
    }
}
