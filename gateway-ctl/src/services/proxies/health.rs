//! Health of a proxy from the outcomes of its probes. Pure.

use std::time::Duration;

use gateway_model::kinds::proxy::ProxyCheck;

/// Maximum pause between probes while a possible change of the verdict is unconfirmed.
const FAST_RETRY_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No probe has completed yet.
    #[default]
    Unknown,
    Up,
    Down,
}

/// State of the health check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    verdict: Verdict,
    /// Number of consecutive probes that contradict the verdict.
    against: u32,
}

impl Health {
    pub(super) fn verdict(self) -> Verdict {
        self.verdict
    }

    /// Records the outcome of a probe. The first outcome decides by itself.
    pub(super) fn note(&mut self, ok: bool, check: &ProxyCheck) {
        let (says, needed) = if ok { (Verdict::Up, check.success) } else { (Verdict::Down, check.fail) };
        if self.verdict == says {
            self.against = 0;
            return;
        }
        self.against += 1;
        if self.verdict == Verdict::Unknown || self.against >= needed {
            *self = Health { verdict: says, against: 0 };
        }
    }

    /// Returns the pause before the next probe. `chance` is from 0 to 1 and spreads the probes of many proxies over
    /// time.
    pub(super) fn pause(self, check: &ProxyCheck, chance: f64) -> Duration {
        let interval = Duration::from_secs(u64::from(check.interval_sec));
        let plain = if self.against > 0 { interval.min(FAST_RETRY_INTERVAL) } else { interval };
        plain.mul_f64(0.9 + 0.2 * chance.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(health: &mut Health, probes: &str) -> Vec<Verdict> {
        let check = ProxyCheck { fail: 3, success: 2, ..ProxyCheck::default() };
        let probe = |probe| {
            health.note(probe == '+', &check);
            health.verdict()
        };
        probes.chars().map(probe).collect()
    }

    #[test]
    fn the_first_probe_decides_and_later_ones_have_to_agree() {
        use Verdict::{Down, Up};
        let mut health = Health::default();
        assert_eq!(run(&mut health, "+--+---"), [Up, Up, Up, Up, Up, Up, Down]);
        assert_eq!(run(&mut health, "+-++-"), [Down, Down, Down, Up, Up]);
        assert_eq!(run(&mut Health::default(), "-+"), [Down, Down]);
    }

    #[test]
    fn a_change_is_settled_within_an_interval() {
        let check = ProxyCheck::default();
        let mut health = Health::default();
        health.note(true, &check);
        assert_eq!(health.pause(&check, 0.5), Duration::from_secs(30));
        let mut waited = Duration::ZERO;
        while health.verdict() == Verdict::Up {
            health.note(false, &check);
            waited += health.pause(&check, 1.0);
        }
        assert!(waited - health.pause(&check, 1.0) < Duration::from_secs(3), "{waited:?}");
    }
}
