//! Observed states of nodes, since the start of the daemon.

use std::collections::{BTreeMap, VecDeque};

use gateway_model::Id;
use gateway_model::kinds::{Node, NodeStatus, SyncKind};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// Time without a signed message after which a node counts as unreachable.
const SILENCE: SignedDuration = SignedDuration::from_secs(120);
/// Number of attempts in a row that fail before a node counts as unreachable.
pub(super) const MAX_FAILURES: u32 = 3;
/// Number of nonces of requests that are remembered for each node. Within [`super::serve`]'s limit of time, an honest
/// node sends fewer.
const MAX_NONCES: usize = 256;

/// Observed state of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerState {
    /// Time of the last signed message of it.
    pub last_seen: Option<Timestamp>,
    /// Time of the last pull from it that succeeded.
    pub last_sync: Option<Timestamp>,
    /// Version of its daemon.
    pub version: Option<String>,
    /// Reason why the last pull failed.
    pub error: Option<String>,
    /// The error is a conflict that an administrator has to resolve.
    pub is_conflict: bool,
    /// Number of pulls in a row that failed to reach it.
    pub failures: u32,
    /// Time of the first of them.
    pub unreachable_since: Option<Timestamp>,
}

impl PeerState {
    /// Returns the status that is shown of a node.
    pub fn status(&self, node: &Node, now: Timestamp) -> NodeStatus {
        match (node.is_approved(), self.last_seen) {
            (false, _) => node.status,
            (true, _) if self.failures >= MAX_FAILURES => NodeStatus::Unreachable,
            (true, None) => NodeStatus::Approved,
            (true, Some(seen)) if now.duration_since(seen) > SILENCE => NodeStatus::Unreachable,
            (true, Some(_)) => NodeStatus::Connected,
        }
    }
}

/// States of all nodes.
#[derive(Default)]
pub(super) struct PeerStates(Mutex<BTreeMap<Id, Observed>>);

#[derive(Default)]
struct Observed {
    state: PeerState,
    nonces: VecDeque<String>,
    /// Hashes of states that were rolled back here, which are not taken again.
    rolled_back: BTreeMap<SyncKind, String>,
    /// Hashes of the kinds that it had at its last pull.
    held: BTreeMap<SyncKind, String>,
}

impl PeerStates {
    pub(super) fn get(&self, node: Id) -> PeerState {
        self.0.lock().get(&node).map(|observed| observed.state.clone()).unwrap_or_default()
    }

    /// Changes the state of a node, and returns it as it was before.
    pub(super) fn update(&self, node: Id, change: impl FnOnce(&mut PeerState)) -> PeerState {
        let mut peers = self.0.lock();
        let state = &mut peers.entry(node).or_default().state;
        let before = state.clone();
        change(state);
        before
    }

    /// Takes the nonce of a request. False if it was taken before.
    pub(super) fn take_nonce(&self, node: Id, nonce: &str) -> bool {
        let mut peers = self.0.lock();
        let nonces = &mut peers.entry(node).or_default().nonces;
        if nonces.iter().any(|known| known == nonce) {
            return false;
        }
        if nonces.len() == MAX_NONCES {
            nonces.pop_front();
        }
        nonces.push_back(nonce.to_owned());
        true
    }

    /// Notes the hashes of the kinds that a node has.
    pub(super) fn note_held(&self, node: Id, held: BTreeMap<SyncKind, String>) {
        self.0.lock().entry(node).or_default().held = held;
    }

    /// Returns the hashes of the kinds that a node had at its last pull.
    pub(super) fn held(&self, node: Id) -> BTreeMap<SyncKind, String> {
        self.0.lock().get(&node).map(|observed| observed.held.clone()).unwrap_or_default()
    }

    pub(super) fn note_rollback(&self, node: Id, kind: SyncKind, hash: &str) {
        self.0.lock().entry(node).or_default().rolled_back.insert(kind, hash.to_owned());
    }

    pub(super) fn was_rolled_back(&self, node: Id, kind: SyncKind, hash: &str) -> bool {
        self.0
            .lock()
            .get(&node)
            .is_some_and(|observed| observed.rolled_back.get(&kind).is_some_and(|it| it == hash))
    }

    /// Forgets the nodes that no longer exist.
    pub(super) fn keep(&self, exists: impl Fn(Id) -> bool) {
        self.0.lock().retain(|node, _| exists(*node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_taken_once() {
        let (peers, node) = (PeerStates::default(), Id::from_u128(1));
        assert!(peers.take_nonce(node, "a") && !peers.take_nonce(node, "a"));
        assert!(peers.take_nonce(Id::from_u128(2), "a"));
    }

    #[test]
    fn status_comes_from_the_approval_and_from_messages() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let mut node = Node::default();
        let seen = |seconds: i64| PeerState {
            last_seen: Some(now - SignedDuration::from_secs(seconds)),
            ..PeerState::default()
        };
        assert_eq!(seen(1).status(&node, now), NodeStatus::Pending);
        node.status = NodeStatus::Approved;
        assert_eq!(PeerState::default().status(&node, now), NodeStatus::Approved);
        assert_eq!(seen(1).status(&node, now), NodeStatus::Connected);
        assert_eq!(seen(200).status(&node, now), NodeStatus::Unreachable);
        let failing = PeerState { failures: MAX_FAILURES, ..seen(1) };
        assert_eq!(failing.status(&node, now), NodeStatus::Unreachable);
        node.status = NodeStatus::Revoked;
        assert_eq!(seen(1).status(&node, now), NodeStatus::Revoked);
    }
}
