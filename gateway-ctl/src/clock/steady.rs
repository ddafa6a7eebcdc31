//! Wall clock that does not run backwards.
//!
//! Expired objects must not come back because the kernel's clock is behind: a missing battery, a wrong hour, a manual
//! step. Within a boot, this clock follows the boot clock while the kernel's wall clock is behind. Across boots, it
//! starts no earlier than the highest time in the store. Only a synchronised source can set it back, and only through
//! [`Clock::set_back`]. Before that, the caller ends the objects that must not be prolonged.
//!
//! Decision 0071 says why.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::high_time::HighTime;
use super::source::{Clock, SharedClock};
use super::system::SystemClock;

/// Tolerance for a source that is behind. A smaller difference is ignored; it disappears at the next boot.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(5);

/// Wall-clock time and its boot time.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    wall: Timestamp,
    boot: Duration,
}

impl Anchor {
    /// Returns the wall-clock time at a boot time, assuming that the wall clock continued from the anchor.
    fn at(&self, boot: Duration) -> Timestamp {
        let passed = SignedDuration::try_from(boot.saturating_sub(self.boot)).unwrap_or(SignedDuration::MAX);
        self.wall.checked_add(passed).unwrap_or(Timestamp::MAX)
    }
}

/// Clocks of the kernel with a wall clock that never goes back.
#[derive(Debug)]
pub struct SteadyClock {
    kernel: SharedClock,
    boot_id: String,
    anchor: Mutex<Anchor>,
}

impl SteadyClock {
    pub fn shared() -> SharedClock {
        Self::over(SystemClock::shared())
    }

    pub fn over(kernel: SharedClock) -> SharedClock {
        let anchor = Mutex::new(Anchor { wall: kernel.now(), boot: kernel.boot() });
        Arc::new(SteadyClock { boot_id: kernel.boot_id(), kernel, anchor })
    }

    /// Returns the current time and its boot time. Moves the anchor to a wall clock that is ahead of it.
    fn read(&self) -> (Timestamp, Duration) {
        let mut anchor = self.anchor.lock();
        // Read the wall clock first: an interruption between the two reads leaves the anchor behind but never ahead.
        let (wall, boot) = (self.kernel.now(), self.kernel.boot());
        let steady = anchor.at(boot);
        if wall < steady {
            return (steady, boot);
        }
        *anchor = Anchor { wall, boot };
        (wall, boot)
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        self.read().0
    }

    fn boot(&self) -> Duration {
        self.kernel.boot()
    }

    fn boot_id(&self) -> String {
        self.boot_id.clone()
    }

    fn zone(&self) -> TimeZone {
        self.kernel.zone()
    }

    fn is_synchronised(&self) -> bool {
        self.kernel.is_synchronised()
    }

    fn high_time(&self) -> Option<HighTime> {
        let (wall, boot) = self.read();
        Some(HighTime { wall, boot, boot_id: self.boot_id.clone() })
    }

    fn raise(&self, high: &HighTime) {
        let (now, boot) = self.read();
        // Of another boot, only the wall-clock time is meaningful.
        let since = if high.boot_id == self.boot_id { high.boot } else { boot };
        let kept = Anchor { wall: high.wall, boot: since };
        if kept.at(boot) > now {
            let behind = kept.at(boot).duration_since(now);
            if behind > TOLERANCE {
                tracing::warn!(kernel = %now, kept = %kept.at(boot), "wall clock is behind the stored time: using the stored time");
            }
            *self.anchor.lock() = kept;
        }
    }

    fn behind(&self) -> Option<Timestamp> {
        let now = self.now();
        let kernel = self.kernel.now();
        (now.duration_since(kernel) > TOLERANCE && self.is_synchronised()).then_some(kernel)
    }

    fn set_back(&self) {
        *self.anchor.lock() = Anchor { wall: self.kernel.now(), boot: self.kernel.boot() };
    }
}

#[cfg(test)]
mod tests {
    use super::super::manual::ManualClock;
    use super::*;

    fn clocks() -> (Arc<ManualClock>, SharedClock) {
        let kernel = ManualClock::at("2026-11-22T12:00:00Z".parse().unwrap());
        kernel.set_synchronised(false);
        let steady = SteadyClock::over(kernel.clone());
        (kernel, steady)
    }

    #[test]
    fn wall_clock_that_is_set_back_goes_on_with_the_boot_clock() {
        let (kernel, steady) = clocks();
        kernel.advance(Duration::from_secs(60));
        assert_eq!(steady.now().to_string(), "2026-11-22T12:01:00Z");
        for set in ["2026-11-22T10:00:00Z", "2006-01-01T00:00:00Z", "1970-01-01T00:00:00Z"] {
            kernel.set(set.parse().unwrap());
            assert_eq!(steady.now().to_string(), "2026-11-22T12:01:00Z", "{set}");
        }
        kernel.advance(Duration::from_secs(30));
        assert_eq!(steady.now().to_string(), "2026-11-22T12:01:30Z");
        kernel.set("2026-11-22T13:00:00Z".parse().unwrap());
        assert_eq!(steady.now().to_string(), "2026-11-22T13:00:00Z", "forwards it follows");
    }

    #[test]
    fn kept_time_counts_in_the_next_run_and_in_the_next_boot() {
        let (kernel, steady) = clocks();
        let high = steady.high_time().unwrap();
        assert_eq!(high.to_string().parse::<HighTime>().unwrap(), high);
        kernel.advance(Duration::from_secs(600));
        kernel.set("1970-01-01T00:00:00Z".parse().unwrap());
        // Same boot: the time between counts although nothing ran.
        let next = SteadyClock::over(kernel.clone());
        next.raise(&high);
        assert_eq!(next.now().to_string(), "2026-11-22T12:10:00Z");
        let high = next.high_time().unwrap();
        kernel.reboot();
        let next = SteadyClock::over(kernel.clone());
        next.raise(&high);
        assert_eq!(next.now().to_string(), "2026-11-22T12:10:00Z");
        kernel.advance(Duration::from_secs(1));
        assert_eq!(next.now().to_string(), "2026-11-22T12:10:01Z");
    }

    #[test]
    fn only_a_synchronised_source_sets_it_back() {
        let (kernel, steady) = clocks();
        kernel.set("2026-11-22T11:00:00Z".parse().unwrap());
        assert_eq!(steady.behind(), None);
        kernel.set_synchronised(true);
        assert_eq!(steady.behind().map(|at| at.to_string()).as_deref(), Some("2026-11-22T11:00:00Z"));
        assert_eq!(steady.now().to_string(), "2026-11-22T12:00:00Z");
        steady.set_back();
        assert_eq!((steady.now().to_string().as_str(), steady.behind()), ("2026-11-22T11:00:00Z", None));
    }
}
