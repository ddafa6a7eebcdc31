//! Budget of cover traffic: a share of the real traffic, a trickle without traffic, and an absolute ceiling.

use std::time::{Duration, Instant};

/// Bytes per second that are always allowed.
pub(super) const BASE_BYTES_PER_SECOND: u64 = 64;
/// Largest unused budget, in bytes. Over any period, cover stays within share, floor and this amount.
pub(super) const MAX_SAVED_BYTES: u64 = 16 << 10;
/// Upper limit in bytes per second, whatever the share allows.
const CEILING: u64 = 128 << 10;
/// Budget units per byte. One byte per second equals one unit per microsecond.
const MICRO: u64 = 1_000_000;
const PERCENT: u64 = MICRO / 100;

/// Budget in millionths of bytes, so that frequent calls lose nothing to rounding.
pub(super) struct Budget {
    pct: u64,
    saved: u64,
    below_ceiling: u64,
    at: Instant,
}

impl Budget {
    pub(super) fn new(pct: u64, now: Instant) -> Self {
        Self { pct, saved: 0, below_ceiling: CEILING * MICRO, at: now }
    }

    /// Credits elapsed time and bytes of real traffic.
    pub(super) fn credit(&mut self, now: Instant, bytes: u64) {
        let passed = now.saturating_duration_since(self.at);
        self.at = self.at.max(now);
        let micros = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
        let share = bytes.saturating_mul(self.pct * PERCENT);
        let more = micros.saturating_mul(BASE_BYTES_PER_SECOND).saturating_add(share);
        self.saved = self.saved.saturating_add(more).min(MAX_SAVED_BYTES * MICRO);
        let room = self.below_ceiling.saturating_add(micros.saturating_mul(CEILING));
        self.below_ceiling = room.min(CEILING * MICRO);
    }

    /// Returns the number of bytes that may be sent now.
    pub(super) fn left(&self) -> usize {
        usize::try_from(self.saved.min(self.below_ceiling) / MICRO).unwrap_or(usize::MAX)
    }

    pub(super) fn spend(&mut self, bytes: usize) {
        let micros = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(MICRO);
        self.saved = self.saved.saturating_sub(micros);
        self.below_ceiling = self.below_ceiling.saturating_sub(micros);
    }

    /// Returns the time until `bytes` may be sent without other traffic.
    pub(super) fn wait(&self, bytes: usize) -> Duration {
        let wanted = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(MICRO);
        let until = |have: u64, rate: u64| wanted.saturating_sub(have).div_ceil(rate);
        Duration::from_micros(
            until(self.saved, BASE_BYTES_PER_SECOND).max(until(self.below_ceiling, CEILING)),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_budget_begins_empty_and_grows_with_time() {
        let start = Instant::now();
        let mut budget = Budget::new(10, start);
        assert_eq!(budget.left(), 0);
        assert_eq!(budget.wait(128), Duration::from_secs(2));
        for n in 1..=1000 {
            budget.credit(start + Duration::from_millis(2 * n), 0);
        }
        assert_eq!((budget.left(), budget.wait(128)), (128, Duration::ZERO));
    }

    #[test]
    fn a_long_silence_saves_no_more_than_a_burst() {
        let start = Instant::now();
        let mut budget = Budget::new(50, start);
        budget.credit(start + Duration::from_secs(86_400), u64::MAX);
        assert_eq!(budget.left(), MAX_SAVED_BYTES as usize);
    }

    #[test]
    fn the_ceiling_holds_however_much_flows() {
        let start = Instant::now();
        let mut budget = Budget::new(50, start);
        let mut sent = 0;
        for n in 0..1000 {
            budget.credit(start + Duration::from_millis(n), 10 << 20);
            let now = budget.left();
            budget.spend(now);
            sent += now as u64;
        }
        assert!((CEILING..=2 * CEILING).contains(&sent), "{sent}");
    }

    proptest! {
        /// Over every period between two checks, not only from the beginning.
        #[test]
        fn no_span_has_more_cover_than_its_share_its_floor_and_what_was_saved(
            pct in 1_u64..=50,
            steps in prop::collection::vec((0_u64..5_000, 0_u64..200_000, 0_usize..3_000), 1..60),
        ) {
            let start = Instant::now();
            let mut budget = Budget::new(pct, start);
            let (mut at, mut spans) = (0, Vec::new());
            for (millis, bytes, wanted) in steps {
                at += millis;
                budget.credit(start + Duration::from_millis(at), bytes);
                let cover = wanted.min(budget.left());
                budget.spend(cover);
                spans.push((millis, bytes, cover as u64));
            }
            for from in 0..spans.len() {
                let (mut millis, mut bytes, mut cover) = (0, 0, 0);
                for span in &spans[from..] {
                    (millis, bytes, cover) = (millis + span.0, bytes + span.1, cover + span.2);
                    prop_assert!(cover * 1000 <= bytes * pct * 10 + millis * BASE_BYTES_PER_SECOND + MAX_SAVED_BYTES * 1000 + 1000);
                }
            }
        }
    }
}
