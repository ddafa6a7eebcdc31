//! Clocks of the resolver. One reading serves many queries.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::WallClock;

/// One instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Wall time, for schedules and the log.
    pub wall: jiff::Timestamp,
    /// Milliseconds since the start, for TTLs. Monotonic.
    pub ms: u64,
    /// Reference for measured durations.
    pub instant: Instant,
}

#[derive(Debug)]
pub struct Clock {
    start: Instant,
    /// Milliseconds added by [`Clock::skip`].
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
        // `u64` holds half a billion years in milliseconds.
        instant.duration_since(self.start).as_millis() as u64 + self.ahead.load(Ordering::Relaxed)
    }

    /// Advances the clock of the cache, so that all entries age by `time`.
    pub fn skip(&self, time: Duration) {
        self.ahead.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }
}
