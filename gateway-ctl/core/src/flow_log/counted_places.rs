//! Counters of the fast path: each place of its tables has a word that counts for one entry after the other.
//!
//! A word has bytes above [`PACKET_BITS`] bits of packets, and is never reset. A packet adds to both at once, so the
//! difference of two readings has both, as long as fewer than 2^24 packets lie between. When another entry takes a place,
//! the program reports the former one with the word.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use super::record::Traffic;

/// Bits of a word that count packets.
const PACKET_BITS: u32 = 24;

/// Entry that another one has replaced, with the word of its place at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplacedEntry<K> {
    pub place: u32,
    pub key: K,
    pub word: u64,
}

/// Entry that a place has, with its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresentEntry<K> {
    pub place: u32,
    pub key: K,
    pub word: u64,
}

/// Last readings of the places.
#[derive(Debug)]
pub struct CountedPlaces<K> {
    known: HashMap<u32, Reading<K>>,
}

#[derive(Clone, Copy, Debug)]
struct Reading<K> {
    /// `None` if it is not known which entry has the place since.
    key: Option<K>,
    word: u64,
}

impl<K> Default for CountedPlaces<K> {
    fn default() -> CountedPlaces<K> {
        CountedPlaces { known: HashMap::new() }
    }
}

/// Traffic by key since the last readings. `None` where a report was lost.
pub type CountedTraffic<K> = HashMap<K, Option<Traffic>>;

impl<K: Copy + Eq + Hash> CountedPlaces<K> {
    /// Takes readings. `replaced` has the reports in their order, up to a time after the places were read.
    pub fn advance(
        &mut self,
        present: impl IntoIterator<Item = PresentEntry<K>>,
        replaced: impl IntoIterator<Item = ReplacedEntry<K>>,
    ) -> CountedTraffic<K> {
        let mut reports: HashMap<u32, Vec<ReplacedEntry<K>>> = HashMap::new();
        for report in replaced {
            reports.entry(report.place).or_default().push(report);
        }
        let present: HashMap<u32, PresentEntry<K>> =
            present.into_iter().map(|entry| (entry.place, entry)).collect();
        let places: BTreeSet<u32> = reports.keys().chain(present.keys()).copied().collect();
        let mut traffic = CountedTraffic::new();
        for place in places {
            let reading = self.known.entry(place).or_insert(Reading { key: None, word: 0 });
            let mut pending = present.get(&place);
            for report in reports.get(&place).into_iter().flatten() {
                // A report of the entry that was read is later than the reading.
                if let Some(entry) = pending.take_if(|entry| entry.key == report.key) {
                    reading.settle(entry.key, entry.word, &mut traffic);
                }
                reading.settle(report.key, report.word, &mut traffic);
                reading.key = None;
            }
            if let Some(entry) = pending {
                reading.settle(entry.key, entry.word, &mut traffic);
            }
        }
        traffic
    }
}

impl<K: Copy + Eq + Hash> Reading<K> {
    /// Adds what the word has counted to the entry that had the place.
    fn settle(&mut self, key: K, word: u64, traffic: &mut CountedTraffic<K>) {
        match self.key {
            Some(known) if known != key => {
                // A report was lost, so the count belongs to both.
                traffic.insert(known, None);
                traffic.insert(key, None);
            }
            _ => {
                if word != self.word {
                    let counted = traffic_between(self.word, word);
                    let sum = traffic.entry(key).or_insert(Some(Traffic::default()));
                    *sum = sum.map(|sum| sum.plus(counted));
                }
            }
        }
        *self = Reading { key: Some(key), word };
    }
}

/// Returns the packets between two readings of a word.
pub(super) fn traffic_between(before: u64, after: u64) -> Traffic {
    let counted = after.wrapping_sub(before);
    Traffic { packets: counted & ((1 << PACKET_BITS) - 1), bytes: counted >> PACKET_BITS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(packets: u64, bytes: u64) -> u64 {
        (bytes << PACKET_BITS).wrapping_add(packets)
    }

    fn present(place: u32, key: char, word: u64) -> PresentEntry<char> {
        PresentEntry { place, key, word }
    }

    fn replaced(place: u32, key: char, word: u64) -> ReplacedEntry<char> {
        ReplacedEntry { place, key, word }
    }

    fn some(packets: u64, bytes: u64) -> Option<Traffic> {
        Some(Traffic { packets, bytes })
    }

    #[test]
    fn differences_of_readings_are_counted_also_where_the_word_overflows() {
        let mut places = CountedPlaces::default();
        let first = places.advance([present(1, 'a', word(2, 300))], []);
        assert_eq!(first, [('a', some(2, 300))].into());
        assert!(places.advance([present(1, 'a', word(2, 300))], []).is_empty());
        let many = word((1 << PACKET_BITS) - 1, 1 << 39);
        let before = word(2, 300);
        let second = places.advance([present(1, 'a', before.wrapping_add(many))], []);
        assert_eq!(second, [('a', some((1 << PACKET_BITS) - 1, 1 << 39))].into());
        let third = places.advance([present(1, 'a', before.wrapping_add(many).wrapping_add(many))], []);
        assert_eq!(third, [('a', some((1 << PACKET_BITS) - 1, 1 << 39))].into());
    }

    #[test]
    fn entries_that_follow_one_another_in_a_place_have_counts_of_their_own() {
        let mut places = CountedPlaces::default();
        places.advance([present(1, 'a', word(1, 100))], []);
        // Two entries came and went before the reading, the third was read, and replaced after that.
        let reports =
            [replaced(1, 'a', word(3, 300)), replaced(1, 'b', word(7, 700)), replaced(1, 'c', word(9, 900))];
        let traffic = places.advance([present(1, 'c', word(8, 800))], reports);
        assert_eq!(traffic, [('a', some(2, 200)), ('b', some(4, 400)), ('c', some(2, 200))].into());
        let traffic = places.advance([present(1, 'd', word(10, 1000))], []);
        assert_eq!(traffic, [('d', some(1, 100))].into());
    }

    #[test]
    fn a_lost_report_makes_both_counts_unknown() {
        let mut places = CountedPlaces::default();
        places.advance([present(1, 'a', word(1, 100)), present(2, 'x', word(1, 50))], []);
        let traffic = places.advance([present(1, 'b', word(5, 500)), present(2, 'x', word(2, 90))], []);
        assert_eq!(traffic, [('a', None), ('b', None), ('x', some(1, 40))].into());
        assert_eq!(places.advance([present(1, 'b', word(6, 600))], []), [('b', some(1, 100))].into());
    }
}
