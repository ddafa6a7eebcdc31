//! Wall-clock time at boot: converts points in time into deadlines of the boot clock.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::clock::SharedClock;

/// Tolerance for changes of the offset. A smaller change is an ordinary clock correction and needs no new plan.
const TOLERANCE_NS: i64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct BootTime {
    clock: SharedClock,
    /// Last reading in nanoseconds since the epoch; 0 before the first.
    last: AtomicI64,
}

impl BootTime {
    pub(super) fn new(clock: SharedClock) -> BootTime {
        BootTime { clock, last: AtomicI64::new(0) }
    }

    /// Returns wall clock minus boot clock in nanoseconds. Keeps the last value while the new one differs little from
    /// it.
    pub(super) fn nanoseconds(&self) -> i64 {
        let wall = i64::try_from(self.clock.now().as_nanosecond()).unwrap_or(i64::MAX);
        let boot = i64::try_from(self.clock.boot().as_nanos()).unwrap_or(i64::MAX);
        let reading = wall.saturating_sub(boot);
        let last = self.last.load(Ordering::Relaxed);
        if last != 0 && reading.abs_diff(last) < TOLERANCE_NS.unsigned_abs() {
            return last;
        }
        self.last.store(reading, Ordering::Relaxed);
        reading
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn small_corrections_change_nothing_and_steps_do() {
        let start: jiff::Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let clock = ManualClock::at(start);
        let boot_time = BootTime::new(clock.clone());
        let first = boot_time.nanoseconds();
        clock.advance(Duration::from_secs(3600));
        assert_eq!(boot_time.nanoseconds(), first, "time that passes");
        let slewed = start + jiff::SignedDuration::from_millis(3_600_900);
        clock.set(slewed);
        assert_eq!(boot_time.nanoseconds(), first, "a correction of 0.9 s");
        clock.set(start + jiff::SignedDuration::from_secs(7200));
        assert_eq!(boot_time.nanoseconds(), first + 3_600_000_000_000, "a step");
    }
}
