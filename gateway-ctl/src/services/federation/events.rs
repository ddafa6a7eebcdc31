//! Events of the federation since the start of the daemon.

use std::collections::VecDeque;

use gateway_model::Id;
use jiff::Timestamp;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of events that are kept.
const MAX_EVENTS: usize = 1000;

/// Kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    PeerAdded,
    PeerApproved,
    PeerRejected,
    PeerRevoked,
    PeerUnreachable,
    PeerRestored,
    SyncStarted,
    SyncCompleted,
    SyncFailed,
    /// The node sent a state that contradicts the one held, or an object that another owner has.
    ConflictDetected,
    ConflictResolved,
    /// A change that arrived was not applied.
    ResourceRejected,
    /// The node, or this gateway, has replaced its key.
    KeyRotated,
    /// A session with the hub has begun.
    BusConnected,
    /// The session with the hub has ended; changes are pulled.
    BusLost,
}

/// Event of the federation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FederationEvent {
    /// Grows by one with each event since the start.
    pub id: u64,
    pub at: Timestamp,
    pub kind: EventKind,
    /// Id of the node; null if it is not known.
    pub node_id: Option<Id>,
    /// Name of the node at that time.
    pub node: String,
    pub message: String,
}

#[derive(Debug, Default)]
pub(super) struct EventLog(Mutex<Events>);

#[derive(Debug, Default)]
struct Events {
    last: u64,
    list: VecDeque<FederationEvent>,
}

impl EventLog {
    pub(super) fn push(
        &self,
        at: Timestamp,
        kind: EventKind,
        node_id: Option<Id>,
        node: String,
        message: String,
    ) {
        let mut events = self.0.lock();
        events.last += 1;
        if events.list.len() == MAX_EVENTS {
            events.list.pop_front();
        }
        let id = events.last;
        events.list.push_back(FederationEvent { id, at, kind, node_id, node, message });
    }

    pub(super) fn newest_first(&self) -> Vec<FederationEvent> {
        self.0.lock().list.iter().rev().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_events_give_way() {
        let log = EventLog::default();
        for _ in 0..=MAX_EVENTS {
            log.push(Timestamp::UNIX_EPOCH, EventKind::PeerAdded, None, String::new(), String::new());
        }
        let events = log.newest_first();
        assert_eq!((events.len(), events[0].id), (MAX_EVENTS, 1 + MAX_EVENTS as u64));
    }
}
