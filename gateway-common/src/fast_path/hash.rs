//! Hash of a key and digest of an entry: multilinear hashes of words (NH of RFC 4418, section 5.2.2). The products are
//! independent of one another, so the processor computes them in parallel.

use crate::wire::{Address, FAST_PLACES, FastAction, FastTags};

/// Odd multiplier from which each word gets its own summand, so that the order of words matters.
const MULTIPLIER: u32 = 0x9e37_79b1;
/// Odd multiplier that spreads a sum over all of its bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Adds the products of pairs of words. The seed is a part of each factor, so no one without it can choose words whose
/// sums are equal.
macro_rules! sum_of_products {
    ($words:expr, $seed:expr, $($index:literal)*) => {{
        let (words, seed): (_, u32) = ($words, $seed);
        let mut sum = 0u64;
        $({
            const FIRST: u32 = MULTIPLIER.wrapping_mul(2 * $index + 1);
            const SECOND: u32 = MULTIPLIER.wrapping_mul(2 * $index + 101);
            let first = words[2 * $index].wrapping_add(FIRST).wrapping_add(seed);
            let second = words[2 * $index + 1].wrapping_add(SECOND) ^ seed;
            sum = sum.wrapping_add((first as u64).wrapping_mul(second as u64));
        })*
        sum
    }};
}

#[inline(always)]
const fn spread(sum: u64) -> u64 {
    let sum = (sum ^ sum >> 32).wrapping_mul(SPREAD);
    sum ^ sum >> 32
}

/// Hash of a key of two addresses of one word.
#[inline(always)]
pub const fn of_words4(source: u32, destination: u32, ports: u32, protocol: u32, seed: u32) -> u64 {
    spread(sum_of_products!([source, destination, ports, protocol], seed, 0 1))
}

/// Hash of a key of two addresses of four words.
#[inline(always)]
pub const fn of_words6(source: &Address, destination: &Address, ports: u32, protocol: u32, seed: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (source.0, destination.0);
    spread(sum_of_products!([a, b, c, d, e, f, g, h, ports, protocol], seed, 0 1 2 3 4))
}

/// Hash of an action.
#[inline(always)]
pub fn of_action(action: &FastAction, seed: u32) -> u64 {
    spread(sum_of_action(action, seed))
}

#[inline(always)]
fn sum_of_action(action: &FastAction, seed: u32) -> u64 {
    let words: &[u32; 18] = zerocopy::transmute_ref!(action);
    sum_of_products!(words, seed, 0 1 2 3 4 5 6 7 8)
}

/// Digest of an entry: of the hash of its key, its port, the index of its action, and that action.
#[inline(always)]
pub fn digest(key: u64, port: u16, index: u16, action: &FastAction) -> u32 {
    let word = (port as u32) << 16 | index as u32;
    let sum = sum_of_action(action, 0).wrapping_add((word as u64).wrapping_mul(SPREAD));
    let sum = key.wrapping_add(sum.wrapping_mul(MULTIPLIER as u64));
    (sum ^ sum >> 32) as u32
}

/// Returns the index of the bucket or the place of a hash. The count is a power of two.
#[inline(always)]
pub const fn index(hash: u64, count: u32) -> u32 {
    (hash >> 32) as u32 & (count - 1)
}

/// Returns the place of a bucket where the search begins: one half of the flows begins in the middle, so most are found in
/// the first cache line.
#[inline(always)]
pub const fn first_place(hash: u64) -> usize {
    hash as usize & (FAST_PLACES / 2)
}

/// Returns the tag of an entry in its bucket, never 0. Another flow may have the same one.
#[inline(always)]
pub const fn tag(hash: u64) -> u8 {
    (hash >> 8) as u8 | 1
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = ONES << 7;

impl FastTags {
    /// Reports whether some place may have this tag: always, if one has it.
    #[inline(always)]
    pub const fn may_have(self, tag: u8) -> bool {
        // A byte is zero where the tags are equal. Then it borrows, and its high bit becomes one.
        let difference = self.0 ^ (ONES * tag as u64);
        difference.wrapping_sub(ONES) & !difference & HIGH_BITS != 0
    }

    /// Returns the tag of a place.
    #[inline(always)]
    pub const fn at(self, place: usize) -> u8 {
        (self.0 >> (8 * place)) as u8
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_word_of_key_and_action_changes_the_digest() {
        let action = FastAction { epoch: 7, generation: 8, mtu: 1500, ..FastAction::default() };
        let key = of_words4(1, 2, 3, 6, 9);
        let have = digest(key, 4, 5, &action);
        for other in [
            of_words4(2, 2, 3, 6, 9),
            of_words4(1, 1, 3, 6, 9),
            of_words4(2, 1, 3, 6, 9),
            of_words4(1, 2, 4, 6, 9),
            of_words4(1, 2, 3, 17, 9),
            of_words4(1, 2, 3, 6, 10),
        ] {
            assert_ne!(digest(other, 4, 5, &action), have);
        }
        assert_ne!(digest(key, 5, 5, &action), have, "another port");
        assert_ne!(digest(key, 4, 6, &action), have, "another place of the action");
        let mut bytes: [u8; 72] = zerocopy::transmute!(action);
        for index in 0..72 {
            for bit in 0..8 {
                bytes[index] ^= 1 << bit;
                let torn: FastAction = zerocopy::transmute!(bytes);
                assert_ne!(digest(key, 4, 5, &torn), have, "bit {bit} of byte {index}");
                assert_ne!(of_action(&torn, 9), of_action(&action, 9), "bit {bit} of byte {index}");
                bytes[index] ^= 1 << bit;
            }
        }
        assert_ne!(of_action(&action, 10), of_action(&action, 9), "another secret");
    }

    #[test]
    fn each_word_of_a_long_key_changes_the_hash() {
        let (source, destination) = (Address([1, 2, 3, 4]), Address([5, 6, 7, 8]));
        let have = of_words6(&source, &destination, 9, 17, 77);
        for index in 0..4 {
            let mut other = source;
            other.0[index] ^= 1;
            assert_ne!(of_words6(&other, &destination, 9, 17, 77), have);
            let mut other = destination;
            other.0[index] ^= 1;
            assert_ne!(of_words6(&source, &other, 9, 17, 77), have);
        }
        assert_ne!(of_words6(&destination, &source, 9, 17, 77), have);
        assert_ne!(of_words6(&source, &destination, 10, 17, 77), have);
        assert_ne!(of_words6(&source, &destination, 9, 6, 77), have);
        assert_ne!(of_words6(&source, &destination, 9, 17, 78), have);
    }

    #[test]
    fn a_tag_is_found_at_each_place() {
        for place in 0..FAST_PLACES {
            for value in 1..=u8::MAX {
                let tags =
                    FastTags(0x5500_0001_80ff_7f02 & !(0xff << (8 * place)) | (value as u64) << (8 * place));
                assert_eq!(tags.at(place), value);
                for wanted in 1..=u8::MAX {
                    let has = (0..FAST_PLACES).any(|place| tags.at(place) == wanted);
                    assert!(!has || tags.may_have(wanted), "{wanted} in {tags:x?}");
                    // Only behind a place that has it can another one look as if it had it.
                    assert!(has || !tags.may_have(wanted), "{wanted} not in {tags:x?}");
                }
            }
        }
        assert!((0..1000_u64).all(|n| tag(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) != 0), "0 means no entry");
    }

    /// Counts the flows that find no place in their bucket.
    fn refused(flows: impl Iterator<Item = (u32, u32, u32)>, buckets: u32) -> u32 {
        let mut used: BTreeMap<u32, u32> = BTreeMap::new();
        let mut refused = 0;
        for (source, destination, ports) in flows {
            let place =
                used.entry(index(of_words4(source, destination, ports, 17, 0x1234), buckets)).or_default();
            *place += 1;
            refused += u32::from(*place > FAST_PLACES as u32);
        }
        refused
    }

    #[test]
    fn keys_that_differ_in_few_bits_are_spread_over_the_buckets() {
        // As many flows as half of the places; of random ones, 0.9 of 100 find none.
        let ports = (0..8192).map(|port: u16| (0x0200_000a, 0x0900_000a, u32::from(port.to_be())));
        let hosts = (0..8192).map(|host: u32| (host.to_be(), 0x0900_000a, 0x5000));
        let servers = (0..8192).map(|host: u32| (0x0200_000a, host.to_be(), 0x5000));
        for found in [refused(ports, 2048), refused(hosts, 2048), refused(servers, 2048)] {
            assert!(found < 150, "{found} of 8192");
        }
    }
}
