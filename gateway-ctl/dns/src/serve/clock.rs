//! The instants that a question is judged by: read once for many.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::WallClock;

/// One instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Of the schedules and the log.
    pub wall: jiff::Timestamp,
    /// Milliseconds since the start, of TTLs; only grows.
    pub ms: u64,
    /// What times are measured from.
    pub instant: Instant,
}

#[derive(Debug)]
pub struct Clock {
    start: Instant,
    /// Milliseconds that were skipped.
    ahead: AtomicU64,
    wall: WallClock,
}

impl Clock {
    pub fn new(wall: WallClock) -> Clock {
        Clock { start: Instant::now(), ahead: AtomicU64::new(0), wall }
    }

    pub fn now(&self) -> Now {
        let instant = Instant::now();
        Now { wall: self.wall.now(), ms: self.at(instant), instant }
    }

    pub fn ms(&self) -> u64 {
        self.at(Instant::now())
    }

    fn at(&self, instant: Instant) -> u64 {
        // Half a billion years fit.
        instant.duration_since(self.start).as_millis() as u64 + self.ahead.load(Ordering::Relaxed)
    }

    /// Lets time pass for all that is cached.
    pub fn skip(&self, time: Duration) {
        self.ahead.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }
}
