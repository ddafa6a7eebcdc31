//! Observed states of nodes, in the objects of the collection.

use gateway_ctl::services::federation::PeerState;
use gateway_model::State;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::gateway::Open;

/// Replaces what the store has of a node by what is observed of it.
pub(super) fn observe(open: &Open, state: &State, shown: &mut [Value]) {
    let now = open.now();
    for value in shown {
        let id = value.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
        let Some(node) = id.and_then(|id| state.nodes.get(id)) else { continue };
        let peer = open.federation.peer(node.meta.id);
        value["status"] = peer.status(node, now).as_str().into();
        value["last_seen"] = json!(peer.last_seen);
        value["last_sync"] = json!(peer.last_sync);
        value["sync_lag_sec"] = json!(lag(&peer, now));
        value["version"] = json!(peer.version);
        value["errors"] = json!(peer.error.iter().collect::<Vec<_>>());
    }
}

/// Returns the seconds since the last pull that succeeded.
pub(super) fn lag(peer: &PeerState, now: Timestamp) -> Option<u64> {
    let since = now.duration_since(peer.last_sync?).as_secs();
    Some(u64::try_from(since).unwrap_or_default())
}
