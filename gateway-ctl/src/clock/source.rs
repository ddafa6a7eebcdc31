//! Interface of all clocks.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::high_time::HighTime;

/// Source of time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns the wall-clock time, which may jump.
    fn now(&self) -> Timestamp;
    /// Returns the time since boot, including sleep; never goes back. The dataplane uses the same clock.
    fn boot(&self) -> Duration;
    /// Returns the ID of the boot that [`Clock::boot`] counts from.
    fn boot_id(&self) -> String;
    /// Returns the time zone of the wall clock for display.
    fn zone(&self) -> TimeZone;
    /// Reports whether a time source has synchronised the wall clock.
    fn is_synchronised(&self) -> bool;

    /// Returns the highest time seen, for the store to keep; `None` if this clock does not record it.
    fn high_time(&self) -> Option<HighTime> {
        None
    }

    /// Raises the clock to the highest time that an earlier run saw.
    fn raise(&self, _high: &HighTime) {}

    /// Returns the time of a synchronised source that is behind this clock. Only [`Clock::set_back`] sets the clock
    /// to it.
    fn behind(&self) -> Option<Timestamp> {
        None
    }

    /// Accepts the time of the source although it is behind.
    fn set_back(&self) {}
}

pub type SharedClock = Arc<dyn Clock>;
