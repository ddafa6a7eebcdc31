//! Clocks. Only this module calls the system clocks; all other code receives a time or a [`Clock`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;

mod steady;

pub use steady::{HighTime, SteadyClock};

use crate::os::time_sync::is_synchronised;

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

/// Returns the wall-clock time by which the kernel dates WireGuard handshakes. It may run backwards.
pub fn handshake_time() -> SystemTime {
    SystemTime::now()
}

pub type SharedClock = Arc<dyn Clock>;

/// Clocks of the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    pub fn shared() -> SharedClock {
        Arc::new(SystemClock)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn boot(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    }

    fn boot_id(&self) -> String {
        // Without an ID, every start counts as another boot, and only the wall clock is used.
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|id| id.trim().to_owned())
            .unwrap_or_else(|_| uuid::Uuid::new_v4().to_string())
    }

    fn zone(&self) -> TimeZone {
        TimeZone::system()
    }

    fn is_synchronised(&self) -> bool {
        is_synchronised()
    }
}

/// Manually advanced clock for tests.
#[derive(Debug)]
pub struct ManualClock {
    wall_micros: AtomicI64,
    boot_micros: AtomicU64,
    boots: AtomicU64,
    synchronised: AtomicBool,
}

impl ManualClock {
    pub fn at(now: Timestamp) -> Arc<ManualClock> {
        Arc::new(ManualClock {
            wall_micros: AtomicI64::new(now.as_microsecond()),
            boot_micros: AtomicU64::new(1_000_000),
            boots: AtomicU64::new(0),
            synchronised: AtomicBool::new(true),
        })
    }

    pub fn advance(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.boot_micros.fetch_add(micros, Ordering::SeqCst);
        self.wall_micros.fetch_add(i64::try_from(micros).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Starts another boot.
    pub fn reboot(&self) {
        self.boots.fetch_add(1, Ordering::SeqCst);
        self.boot_micros.store(1_000_000, Ordering::SeqCst);
    }

    /// Sets whether the wall clock counts as synchronised.
    pub fn set_synchronised(&self, synchronised: bool) {
        self.synchronised.store(synchronised, Ordering::SeqCst);
    }

    /// Sets the wall clock, as an administrator or NTP would.
    pub fn set(&self, now: Timestamp) {
        self.wall_micros.store(now.as_microsecond(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.wall_micros.load(Ordering::SeqCst)).unwrap_or(Timestamp::MAX)
    }

    fn boot(&self) -> Duration {
        Duration::from_micros(self.boot_micros.load(Ordering::SeqCst))
    }

    fn boot_id(&self) -> String {
        self.boots.load(Ordering::SeqCst).to_string()
    }

    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }

    fn is_synchronised(&self) -> bool {
        self.synchronised.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_does_not_go_back() {
        let first = SystemClock.boot();
        assert!(SystemClock.boot() >= first && first > Duration::ZERO);
    }

    #[test]
    fn a_manual_clock_moves_only_on_request() {
        let start: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let clock = ManualClock::at(start);
        assert_eq!(clock.now(), start);
        clock.advance(Duration::from_secs(60));
        assert_eq!(clock.now().to_string(), "2026-11-20T12:01:00Z");
        clock.set(start);
        assert_eq!((clock.now(), clock.boot()), (start, Duration::from_secs(61)));
    }
}
