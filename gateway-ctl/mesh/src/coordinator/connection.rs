//! The stream of maps that a connected node reads.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Coordinator, LedgerError, Live};
use crate::keys::MachineKey;
use crate::netmap::View;
use crate::node::{Node, Presence};
use crate::wire::{MapRequest, MapResponse};

/// A node that reads its stream of maps. Its end makes the node absent.
pub(crate) struct Connection {
    coordinator: Arc<Coordinator>,
    id: u64,
    machine: MachineKey,
    request: MapRequest,
    /// Number of the stream; none for a single look.
    stream: Option<u64>,
    changes: watch::Receiver<u64>,
    seen: Option<View>,
}

/// Next step of a stream.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Message(Box<MapResponse>),
    /// The node sees nothing new.
    Unchanged,
    /// The node is none any more, or reads another stream.
    End,
}

impl Coordinator {
    /// Connects a node, in place of an older stream if it follows changes. None if the machine has no such node.
    pub(crate) fn connect(
        self: &Arc<Self>,
        machine: MachineKey,
        request: MapRequest,
    ) -> Result<Option<Connection>, LedgerError> {
        let mut state = self.state.lock();
        let Some(id) = state.roster.find(machine, request.node_key).map(|node| node.id) else {
            return Ok(None);
        };
        self.describe(&mut state, id, &request)?;
        let mut stream = None;
        if request.stream {
            state.streams += 1;
            stream = Some(state.streams);
            state.presences.entry(id).or_default().stream = stream;
            self.announce();
        }
        drop(state);
        let (coordinator, changes) = (Arc::clone(self), self.changes.subscribe());
        Ok(Some(Connection { coordinator, id, machine, request, stream, changes, seen: None }))
    }

    fn view(&self, state: &Live, id: u64) -> Option<View> {
        let absent = Presence::default();
        let members: Vec<(&Node, &Presence)> = state
            .roster
            .nodes()
            .map(|node| (node, state.presences.get(&node.id).unwrap_or(&absent)))
            .collect();
        View::of(id, &members, &self.settings.profile, self.now())
    }
}

impl Connection {
    /// Waits for a change that may concern the node.
    pub(crate) async fn changed(&mut self) {
        // The sender lives as long as the coordinator, which this connection holds.
        let _ = self.changes.changed().await;
    }

    /// Returns the news of the node.
    pub(crate) fn next(&mut self) -> Next {
        self.changes.mark_unchanged();
        let state = self.coordinator.state.lock();
        let current = state.presences.get(&self.id).and_then(|presence| presence.stream);
        let known =
            state.roster.find(self.machine, self.request.node_key).is_some_and(|node| node.id == self.id);
        let view = self
            .coordinator
            .view(&state, self.id)
            .filter(|_| known && self.stream.is_none() || current == self.stream);
        drop(state);
        let Some(view) = view else { return Next::End };
        let message = match &self.seen {
            Some(seen) => view.since(seen),
            None => Some(view.whole(&self.coordinator.settings.profile, self.coordinator.now())),
        };
        self.seen = Some(view);
        message.map_or(Next::Unchanged, |message| Next::Message(Box::new(message)))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.stream.is_none() {
            return;
        }
        let now = self.coordinator.now();
        let mut state = self.coordinator.state.lock();
        let Live { roster, presences, .. } = &mut *state;
        let own = presences.get_mut(&self.id).filter(|presence| presence.stream == self.stream);
        if let Some(presence) = own {
            presence.stream = None;
            // Kept with the next change: when a node was seen last is no reason to store.
            if let Some(node) = roster.node_mut(self.id) {
                node.last_seen = now;
            }
        }
        drop(state);
        self.coordinator.announce();
    }
}
