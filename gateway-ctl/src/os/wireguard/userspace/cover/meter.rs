//! Counters of the traffic with one peer while cover is on, for real packets and for cover.

use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};

use rand::Rng;

/// Number of stored packet lengths.
const MAX_PENDING: usize = 32;
/// Bytes that a data message adds to its plaintext.
pub(super) const OVERHEAD: usize = 32;

/// Lock-free counters, written by the packet tasks.
#[derive(Default)]
pub(in super::super) struct Meter {
    normal_packets: AtomicU64,
    normal_bytes: AtomicU64,
    received: AtomicU64,
    heard: AtomicU64,
    /// Plaintext lengths of the last real packets sent, 0 for unused slots.
    lengths: [AtomicU16; MAX_PENDING],
    next: AtomicUsize,
    padding_packets: AtomicU64,
    padding_bytes: AtomicU64,
    throttled: AtomicU64,
}

/// Snapshot of the counters. Bytes are those of the datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Counts {
    /// Real packets sent.
    pub(in super::super) normal_packets: u64,
    pub(in super::super) normal_bytes: u64,
    /// Real packets received.
    pub(in super::super) received: u64,
    /// Authentic messages received.
    pub(in super::super) heard: u64,
    pub(in super::super) padding_packets: u64,
    pub(in super::super) padding_bytes: u64,
    /// Cover packets that the budget held back.
    pub(in super::super) throttled: u64,
}

/// A length for a cover packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// Plaintext length.
    Fits(usize),
    /// Length of the shortest possible datagram.
    TooLong(usize),
    /// No packet was sent yet that could be imitated.
    Unknown,
}

impl Meter {
    pub(super) fn sent(&self, plaintext: usize) {
        self.normal_packets.fetch_add(1, Ordering::Relaxed);
        self.normal_bytes.fetch_add((plaintext + OVERHEAD) as u64, Ordering::Relaxed);
        if let Ok(length) = u16::try_from(plaintext) {
            let place = self.next.fetch_add(1, Ordering::Relaxed) % MAX_PENDING;
            self.lengths[place].store(length, Ordering::Relaxed);
        }
    }

    pub(super) fn received(&self, packet: bool) {
        self.heard.fetch_add(1, Ordering::Relaxed);
        self.received.fetch_add(u64::from(packet), Ordering::Relaxed);
    }

    pub(super) fn padded(&self, datagram: usize) {
        self.padding_packets.fetch_add(1, Ordering::Relaxed);
        self.padding_bytes.fetch_add(datagram as u64, Ordering::Relaxed);
    }

    pub(super) fn throttled(&self, packets: u64) {
        self.throttled.fetch_add(packets, Ordering::Relaxed);
    }

    pub(in super::super) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            normal_packets: read(&self.normal_packets),
            normal_bytes: read(&self.normal_bytes),
            received: read(&self.received),
            heard: read(&self.heard),
            padding_packets: read(&self.padding_packets),
            padding_bytes: read(&self.padding_bytes),
            throttled: read(&self.throttled),
        }
    }

    /// Draws one of the recent lengths whose datagram fits into `room` bytes. Cover thus has the lengths of the
    /// surrounding traffic, with the same frequency.
    pub(super) fn draw(&self, room: usize, rng: &mut impl Rng) -> Length {
        let mut fitting = [0; MAX_PENDING];
        let (mut n, mut shortest) = (0, usize::MAX);
        let lengths = self.lengths.iter().map(|length| usize::from(length.load(Ordering::Relaxed)));
        for length in lengths.filter(|length| *length > 0) {
            shortest = shortest.min(length + OVERHEAD);
            if length + OVERHEAD <= room {
                fitting[n] = length;
                n += 1;
            }
        }
        match (n, shortest) {
            (0, usize::MAX) => Length::Unknown,
            (0, shortest) => Length::TooLong(shortest),
            (n, _) => Length::Fits(fitting[rng.random_range(0..n)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn lengths_are_those_of_the_last_packets_that_fit() {
        let (meter, mut rng) = (Meter::default(), StdRng::seed_from_u64(1));
        assert_eq!(meter.draw(usize::MAX, &mut rng), Length::Unknown);
        meter.sent(1420);
        meter.sent(64);
        let mut drawn: Vec<_> = (0..100).map(|_| meter.draw(2000, &mut rng)).collect();
        drawn.dedup();
        assert!(drawn.contains(&Length::Fits(1420)) && drawn.contains(&Length::Fits(64)), "{drawn:?}");
        assert!((0..100).all(|_| meter.draw(1451, &mut rng) == Length::Fits(64)));
        assert_eq!(meter.draw(95, &mut rng), Length::TooLong(96));
        for _ in 0..MAX_PENDING {
            meter.sent(128);
        }
        assert!((0..100).all(|_| meter.draw(2000, &mut rng) == Length::Fits(128)));
    }

    #[test]
    fn payload_and_cover_are_counted_separately() {
        let meter = Meter::default();
        meter.sent(64);
        meter.received(true);
        meter.received(false);
        meter.padded(96);
        meter.throttled(2);
        let expected = Counts {
            normal_packets: 1,
            normal_bytes: 96,
            received: 1,
            heard: 2,
            padding_packets: 1,
            padding_bytes: 96,
            throttled: 2,
        };
        assert_eq!(meter.counts(), expected);
    }
}
