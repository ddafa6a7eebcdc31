//! Counters in the records of denied flows.
//!
//! A word has bytes above `PACKET_BITS` bits of packets, as those of the fast path have. It begins at zero when a record
//! takes its place, so each record has its own, and nothing is reported when it gives way.

use std::collections::HashMap;
use std::hash::Hash;

use super::counted_places::traffic_between;
use super::record::Traffic;

/// Last readings of the words.
#[derive(Debug)]
pub struct CountedWords<K> {
    /// `None` before the first reading.
    known: Option<HashMap<K, u64>>,
}

impl<K> Default for CountedWords<K> {
    fn default() -> CountedWords<K> {
        CountedWords { known: None }
    }
}

impl<K: Copy + Eq + Hash> CountedWords<K> {
    /// Takes readings of all records. Returns the traffic since the readings before; what the first ones have is of an
    /// earlier daemon, and counts as nothing.
    pub fn advance(&mut self, words: HashMap<K, u64>) -> HashMap<K, Traffic> {
        let traffic = match &self.known {
            None => words.keys().map(|key| (*key, Traffic::default())).collect(),
            Some(known) => words
                .iter()
                .map(|(key, word)| {
                    // A record that gave way and came back has begun again.
                    let before = known.get(key).copied().filter(|before| before <= word).unwrap_or(0);
                    (*key, traffic_between(before, *word))
                })
                .collect(),
        };
        self.known = Some(words);
        traffic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(packets: u64, bytes: u64) -> u64 {
        bytes << 24 | packets
    }

    #[test]
    fn packets_count_since_the_last_reading_of_a_record() {
        let mut words = CountedWords::default();
        let mut read = |readings: &[(u8, u64)]| {
            let traffic = words.advance(readings.iter().copied().collect());
            let mut all: Vec<(u8, u64, u64)> =
                traffic.iter().map(|(key, Traffic { packets, bytes })| (*key, *packets, *bytes)).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(read(&[(1, word(9, 900))]), [(1, 0, 0)], "of an earlier daemon");
        assert_eq!(read(&[(1, word(10, 960)), (2, word(2, 80))]), [(1, 1, 60), (2, 2, 80)]);
        assert_eq!(read(&[(1, word(10, 960)), (2, word(1, 40))]), [(1, 0, 0), (2, 1, 40)], "2 began again");
        assert_eq!(read(&[(2, word(1, 40))]), [(2, 0, 0)]);
        assert_eq!(read(&[(1, word(3, 120)), (2, word(1, 40))]), [(1, 3, 120), (2, 0, 0)], "1 came back");
    }
}
