//! Delays between the attempts of a delivery.

use jiff::SignedDuration;

/// Seconds after the first, second … failure; the last holds for all others. An outage of a minute costs seconds, and
/// a receiver that is away for hours is not bothered.
const DELAYS_SECONDS: [i64; 6] = [5, 30, 120, 600, 1800, 3600];
/// Maximum delay that a receiver can ask for.
pub(super) const MAX_RETRY_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Returns the delay after this number of failures, the first of which is 1. `jitter` from 0 to 1 selects a delay from a
/// quarter less to a quarter more, so that gateways behind one outage do not all return at once. A delay that the
/// receiver asks for is the minimum.
pub(super) fn delay(failures: u32, retry_after: Option<SignedDuration>, jitter: f64) -> SignedDuration {
    let index = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
    let base = DELAYS_SECONDS[index.min(DELAYS_SECONDS.len() - 1)] as f64;
    let millis = base * 1000.0 * (0.75 + 0.5 * jitter.clamp(0.0, 1.0));
    let own = SignedDuration::from_millis(millis as i64);
    retry_after.map_or(own, |asked| own.max(asked.min(MAX_RETRY_AFTER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_an_hour_and_vary_by_a_quarter() {
        let seconds = |failures, jitter| delay(failures, None, jitter).as_secs();
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 7, 900].map(|n| seconds(n, 0.5)),
            [5, 30, 120, 600, 1800, 3600, 3600, 3600]
        );
        assert_eq!((seconds(3, 0.0), seconds(3, 1.0), seconds(3, 7.0)), (90, 150, 150));
    }

    #[test]
    fn receiver_lengthens_the_delay_up_to_a_day_and_never_shortens_it() {
        let asked = |seconds| delay(1, Some(SignedDuration::from_secs(seconds)), 0.5).as_secs();
        assert_eq!([asked(0), asked(90), asked(i64::MAX), asked(-3)], [5, 90, 86_400, 5]);
    }
}
