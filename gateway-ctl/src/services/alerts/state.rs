//! State of the alerts in memory.

use gateway_core::alerts::{AlertEngine, Changes, Now, Transition};
use jiff::SignedDuration;

use crate::store::Store;

/// Engine, and what it returned.
pub(super) struct State {
    pub engine: AlertEngine,
    /// Changes that are not stored yet.
    pub unsaved: Changes,
    /// The last attempt to store failed, and was logged.
    pub is_failing: bool,
    /// Numbers of notifications since the start, for metrics.
    pub raised: u64,
    pub resolved: u64,
}

impl State {
    pub(super) fn new(engine: AlertEngine) -> State {
        State { engine, unsaved: Changes::default(), is_failing: false, raised: 0, resolved: 0 }
    }

    /// Counts new notifications.
    pub(super) fn count(&mut self, changes: &Changes) {
        let count =
            |transition| changes.notifications.iter().filter(|one| one.transition == transition).count();
        self.raised += count(Transition::Raised) as u64;
        self.resolved += count(Transition::Resolved) as u64;
    }
}

/// Returns the present time by both clocks.
pub(super) fn now(store: &Store) -> Now {
    let clock = store.clock();
    Now { wall: clock.now(), boot: SignedDuration::try_from(clock.boot()).unwrap_or(SignedDuration::MAX) }
}
