//! Health of one upstream over one path: its response time and whether it answers at all.

use std::time::Duration;

use gateway_outbound::backoff::Backoff;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::error::Error;

/// Consecutive failures after which the upstream is not used.
const DEAD_AFTER: u32 = 3;
/// Delays before the next probe.
const PROBES: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// Usual response time assumed for a server without a measured RTT.
const DEFAULT_HEDGE_DELAY: Duration = Duration::from_millis(400);

#[derive(Debug, Default)]
pub(super) struct Health(Mutex<HealthState>);

#[derive(Clone, Debug, Default)]
struct HealthState {
    /// Smoothed as in RFC 6298, in microseconds.
    rtt: Option<(f64, f64)>,
    queries: u64,
    failures: u64,
    in_a_row: u32,
    dead: bool,
    last_error: Option<String>,
    last_answer: Option<Instant>,
}

/// Health as it is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HealthStats {
    pub rtt: Option<Duration>,
    pub queries: u64,
    pub failures: u64,
    pub dead: bool,
    pub last_error: Option<String>,
    /// Time of the last answer.
    pub last_answer: Option<Instant>,
}

/// Change of health by an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HealthChange {
    None,
    Died,
    Revived,
}

impl Health {
    pub(super) fn answered(&self, after: Duration) -> HealthChange {
        let mut known = self.known();
        known.queries += 1;
        known.in_a_row = 0;
        known.last_answer = Some(Instant::now());
        let sample = after.as_secs_f64() * 1e6;
        known.rtt = Some(match known.rtt {
            None => (sample, sample / 2.0),
            Some((rtt, variation)) => {
                (rtt + (sample - rtt) / 8.0, variation + ((sample - rtt).abs() - variation) / 4.0)
            }
        });
        if std::mem::take(&mut known.dead) { HealthChange::Revived } else { HealthChange::None }
    }

    pub(super) fn failed(&self, error: &Error) -> HealthChange {
        let mut known = self.known();
        known.queries += 1;
        known.failures += 1;
        known.in_a_row = known.in_a_row.saturating_add(1);
        known.last_error = Some(error.to_string());
        let died = !known.dead && known.in_a_row >= DEAD_AFTER;
        known.dead |= died;
        if died { HealthChange::Died } else { HealthChange::None }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.known().dead
    }

    /// Returns the smoothed time to an answer.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.known().rtt.map(|(rtt, _)| micros(rtt))
    }

    /// Returns the time after which an answer is unusually late and another upstream is queried as well.
    pub(super) fn hedge_delay(&self) -> Duration {
        let usual = self
            .known()
            .rtt
            .map_or(DEFAULT_HEDGE_DELAY, |(rtt, variation)| micros(rtt * 1.5 + variation * 4.0));
        usual.clamp(Duration::from_millis(200), Duration::from_millis(1000))
    }

    /// Returns the timeout for one answer.
    pub(super) fn timeout(&self) -> Duration {
        let usual = self.known().rtt.map_or(Duration::ZERO, |(rtt, variation)| micros(rtt + variation * 4.0));
        (Duration::from_millis(1500) + usual).min(Duration::from_secs(3))
    }

    pub(super) fn figures(&self) -> HealthStats {
        let known = self.known();
        HealthStats {
            rtt: known.rtt.map(|(rtt, _)| micros(rtt)),
            queries: known.queries,
            failures: known.failures,
            dead: known.dead,
            last_error: known.last_error.clone(),
            last_answer: known.last_answer,
        }
    }

    /// Reports whether nothing was answered for so long, or the last query has failed.
    pub(super) fn is_silent(&self, silence: Duration) -> bool {
        let known = self.known();
        known.in_a_row > 0 || known.last_answer.is_none_or(|at| at.elapsed() >= silence)
    }

    fn known(&self) -> MutexGuard<'_, HealthState> {
        self.0.lock()
    }
}

fn micros(value: f64) -> Duration {
    Duration::from_micros(value.max(0.0) as u64)
}

/// Returns the delay before the `attempt`th probe. `jitter` makes it up to a quarter shorter or longer.
pub(super) fn probe_after(attempt: u32, jitter: u8) -> Duration {
    let plain = PROBES.after(attempt.saturating_add(1));
    plain * 3 / 4 + plain * u32::from(jitter) / (2 * 255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_in_a_row_kill_and_one_answer_revives() {
        let health = Health::default();
        let fail = || health.failed(&Error::Timeout);
        assert_eq!([fail(), fail()], [HealthChange::None; 2]);
        assert_eq!(health.answered(Duration::from_millis(10)), HealthChange::None);
        assert_eq!(
            [fail(), fail(), fail(), fail()],
            [HealthChange::None, HealthChange::None, HealthChange::Died, HealthChange::None]
        );
        assert!(health.is_dead());
        assert_eq!(health.answered(Duration::from_millis(10)), HealthChange::Revived);
        let figures = health.figures();
        assert_eq!((figures.queries, figures.failures, figures.dead), (8, 6, false));
        assert_eq!(figures.last_error.as_deref(), Some("no answer in time"));
    }

    #[test]
    fn time_to_an_answer_is_smoothed_and_sets_how_long_is_waited() {
        let health = Health::default();
        assert_eq!(health.hedge_delay(), DEFAULT_HEDGE_DELAY);
        health.answered(Duration::from_millis(80));
        assert_eq!(health.rtt(), Some(Duration::from_millis(80)));
        for _ in 0..50 {
            health.answered(Duration::from_millis(20));
        }
        let rtt = health.rtt().unwrap();
        assert!((20..25).contains(&rtt.as_millis()), "{rtt:?}");
        assert_eq!(health.hedge_delay(), Duration::from_millis(200));
        assert!(health.timeout() > Duration::from_millis(1500) && health.timeout() < Duration::from_secs(2));
    }

    #[test]
    fn probes_become_rarer_and_are_jittered() {
        let waits: Vec<u64> = (0..9).map(|attempt| probe_after(attempt, 0).as_millis() as u64).collect();
        assert_eq!(waits, [750, 1500, 3000, 6000, 12_000, 24_000, 45_000, 45_000, 45_000]);
        assert_eq!(probe_after(0, 255), Duration::from_millis(1250));
    }
}
