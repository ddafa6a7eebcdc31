//! Time of the alert engine: the wall clock for what is shown, and the monotonic clock for all intervals, so that no jump of
//! the wall clock ends or repeats an alert.

use jiff::{SignedDuration, Timestamp};

/// Time after a start in which the end of an alert of the last run is deferred: producers that have observed nothing yet
/// may report that a condition does not hold.
pub(super) const SETTLING_TIME: SignedDuration = SignedDuration::from_secs(30);

/// Retention of resolved alerts.
pub const RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Longest time of a mute. An alert that resolved in it is stored as long as its mute lasts.
pub const MAX_MUTE: SignedDuration = RETENTION;

/// Times of a mute by the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mute {
    pub began: SignedDuration,
    pub ends: SignedDuration,
}

impl Mute {
    /// Continues with a mute of the last run, from its times by the wall clock. If the clock was set back since, the mute
    /// begins again.
    pub(super) fn restore(at: Timestamp, until: Timestamp, now: Now) -> Mute {
        let began = now.boot_at(at);
        let time = until.duration_since(at).clamp(SignedDuration::ZERO, MAX_MUTE);
        Mute { began, ends: began.saturating_add(time) }
    }
}

/// Present time by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    pub wall: Timestamp,
    /// Time since boot, suspension included.
    pub boot: SignedDuration,
}

impl Now {
    /// Returns the time since boot at a past instant of the wall clock. An instant in the future counts as now.
    pub(super) fn boot_at(&self, wall: Timestamp) -> SignedDuration {
        let age = self.wall.duration_since(wall).max(SignedDuration::ZERO);
        self.boot.saturating_sub(age)
    }

    /// Reports whether an interval that began at `start` has passed.
    pub(super) fn has_passed(&self, start: SignedDuration, interval: SignedDuration) -> bool {
        self.boot.saturating_sub(start) >= interval
    }
}

/// Returns a time for a new entry: whole microseconds, and later than that of the last one.
pub(super) fn stamp(now: Timestamp, last: Timestamp) -> Timestamp {
    let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
    if now > last {
        return now;
    }
    last.checked_add(SignedDuration::from_micros(1)).unwrap_or(last)
}
