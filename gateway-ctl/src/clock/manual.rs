//! Clock for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::source::Clock;

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
