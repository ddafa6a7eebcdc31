//! Delays between attempts: doubled after each failure up to a maximum, with jitter.

use std::time::Duration;

/// Exponential back-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
}

impl Backoff {
    pub const fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff { first, longest }
    }

    /// Returns the delay after this number of failures in a row; the first one counts as 1.
    pub fn after(&self, failures: u32) -> Duration {
        let factor = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

/// Returns a random time between `least` and `most` times the delay. If random bytes are unavailable, it is `least`
/// times the delay.
pub fn spread(wait: Duration, least: f64, most: f64) -> Duration {
    let mut byte = [0u8; 1];
    let _ = getrandom::fill(&mut byte);
    wait.mul_f64(least + (most - least) * f64::from(byte[0]) / 255.0)
}

/// Returns up to a tenth less, for delays until something is due.
pub fn up_to_a_tenth_less(wait: Duration) -> Duration {
    spread(wait, 0.9, 1.0)
}

/// Returns up to a quarter less or more.
pub fn give_or_take_a_quarter(wait: Duration) -> Duration {
    spread(wait, 0.75, 1.25)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        let waits: Vec<u64> = [0, 1, 2, 3, 6, 7, 33, u32::MAX].map(|n| backoff.after(n).as_secs()).into();
        assert_eq!(waits, [1, 1, 2, 4, 32, 60, 60, 60]);
    }

    #[test]
    fn spread_stays_within_its_bounds_and_varies() {
        let wait = Duration::from_secs(100);
        let spread: Vec<Duration> = (0..100).map(|_| spread(wait, 0.5, 1.0)).collect();
        assert!(spread.iter().all(|one| (Duration::from_secs(50)..=wait).contains(one)));
        assert!(spread.iter().any(|one| *one != spread[0]));
    }
}
