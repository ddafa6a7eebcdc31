//! Clocks of the kernel.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::source::{Clock, SharedClock};
use crate::os::time_sync::is_synchronised;

/// Returns the wall-clock time by which the kernel dates WireGuard handshakes. It may run backwards.
#[expect(clippy::disallowed_methods, reason = "the kernel dates handshakes by this clock")]
pub fn handshake_time() -> SystemTime {
    SystemTime::now()
}

/// Clocks of the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    pub fn shared() -> SharedClock {
        Arc::new(SystemClock)
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the clock over which the one that does not run backwards is made"
    )]
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
