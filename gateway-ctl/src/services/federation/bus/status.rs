//! State of the session with the hub, and the messages that wait to be taken.

use std::collections::BTreeMap;

use gateway_core::federation::bus::inbox::{Arrival, Inbox};
use gateway_core::federation::bus::publication::Publication;
use gateway_model::Id;
use gateway_model::kinds::{ReceivedKind, SyncKind};
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::Notify;

use crate::metrics::{counter, counters, gauge};

/// State of the session with the hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BusState {
    /// The settings have no hub.
    #[default]
    Off,
    /// It is not reached, or refuses the session. Changes are pulled.
    Connecting,
    Connected,
}

/// Session with the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BusStatus {
    pub state: BusState,
    /// Time of the last change of the state. Null while it is off.
    pub since: Option<Timestamp>,
    /// Version of the server. Null before the first session.
    pub server_version: Option<String>,
    /// Reason why there is no session, or the last subject that the hub denied.
    pub error: Option<String>,
    /// Number of messages that this gateway has published since its start.
    pub published: u64,
    /// Number of messages of nodes that were verified.
    pub received: u64,
    /// Number of messages that were not signed by the key of their node, or that the node may not send.
    pub rejected: u64,
    /// Number of changes that came by the hub and are in force.
    pub taken: u64,
}

/// Session with the hub, and what has arrived.
#[derive(Debug, Default)]
pub(in crate::services::federation) struct Bus {
    status: Mutex<BusStatus>,
    inboxes: Mutex<BTreeMap<Id, Inbox>>,
    /// Last reason of a rejection, by node.
    rejections: Mutex<BTreeMap<Id, String>>,
    /// Notified when a message has arrived.
    pub(super) arrival: Notify,
}

impl Bus {
    pub(super) fn status(&self) -> BusStatus {
        self.status.lock().clone()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.status.lock().state == BusState::Connected
    }

    pub(super) fn turn_off(&self) {
        let mut status = self.status.lock();
        (status.state, status.since, status.error) = (BusState::Off, None, None);
    }

    /// Notes that a session is wanted.
    pub(super) fn begin(&self) {
        let mut status = self.status.lock();
        if status.state == BusState::Off {
            status.state = BusState::Connecting;
        }
    }

    pub(super) fn connect(&self, now: Timestamp, server_version: &str) {
        let mut status = self.status.lock();
        status.server_version = Some(server_version.to_owned());
        (status.state, status.since, status.error) = (BusState::Connected, Some(now), None);
    }

    /// Notes that there is no session. Returns false if this reason is known.
    pub(super) fn fail(&self, now: Timestamp, error: &str) -> bool {
        let mut status = self.status.lock();
        let is_new = status.state == BusState::Connected || status.error.as_deref() != Some(error);
        if status.state == BusState::Connected || status.since.is_none() {
            status.since = Some(now);
        }
        (status.state, status.error) = (BusState::Connecting, Some(error.to_owned()));
        is_new
    }

    /// Notes the last subject that the hub denied.
    pub(super) fn deny(&self, denied: Option<&str>) {
        self.status.lock().error = denied.map(str::to_owned);
    }

    pub(super) fn count_published(&self, count: u64) {
        self.status.lock().published += count;
    }

    pub(super) fn count_taken(&self) {
        self.status.lock().taken += 1;
    }

    /// Takes a verified message.
    pub(super) fn take(&self, node: Id, publication: Publication) {
        self.status.lock().received += 1;
        self.rejections.lock().remove(&node);
        self.inboxes.lock().entry(node).or_default().take(publication);
        self.arrival.notify_one();
    }

    /// Counts a message that was rejected. Returns false if the last one of the node was so for the same reason.
    pub(super) fn reject(&self, node: Id, reason: &str) -> bool {
        self.status.lock().rejected += 1;
        self.rejections.lock().insert(node, reason.to_owned()).as_deref() != Some(reason)
    }

    /// Returns the nodes that messages have come from.
    pub(super) fn senders(&self) -> Vec<Id> {
        self.inboxes.lock().keys().copied().collect()
    }

    pub(super) fn arrival_of(&self, node: Id, followed: &[SyncKind], held: &[ReceivedKind]) -> Arrival {
        self.inboxes.lock().get(&node).map_or(Arrival::Nothing, |inbox| inbox.arrival(followed, held))
    }

    /// Drops the messages of a node: the next one, or a pull, has what is newer.
    pub(super) fn forget(&self, node: Id) {
        self.inboxes.lock().remove(&node);
    }

    pub(super) fn measure(&self, registry: &mut Registry) {
        let status = self.status();
        let help = "Session with the hub of the federation: 1 if there is one";
        gauge(registry, "federation_bus_connected", help, u64::from(status.state == BusState::Connected));
        let counts =
            [("published", status.published), ("received", status.received), ("rejected", status.rejected)];
        let counts = counts.map(|(result, count)| (vec![("result", result.to_owned())], count));
        counters(registry, "federation_bus_messages", "Messages of the hub, by what became of them", counts);
        let help = "Changes that came by the hub and are in force";
        counter(registry, "federation_bus_changes", help, status.taken);
    }
}
