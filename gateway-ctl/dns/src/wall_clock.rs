//! Wall clock of the daemon. Schedules, ends of pauses and the query log follow it.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// Source of the wall time. The clock of the daemon never runs backwards.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl WallClock {
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> WallClock {
        WallClock(Arc::new(now))
    }

    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WallClock({})", self.now())
    }
}
