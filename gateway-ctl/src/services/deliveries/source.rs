//! Source of notifications: the alert engine, as the deliveries see it.

use std::collections::BTreeSet;

use gateway_core::notifications::{AlertSnapshot, Notification};
use tokio::sync::watch;

/// Transition of an alert, by its position in the order of all transitions.
#[derive(Clone, Debug)]
pub struct SourceEvent {
    pub sequence: u64,
    /// `None`: receivers are not notified of it, such as of an acknowledgement.
    pub notification: Option<Notification>,
}

/// Source of notifications. Its functions may block on the disk, except [`NotificationSource::changes`].
pub trait NotificationSource: Send + Sync + 'static {
    /// Returns the transitions after this sequence, in order. It may return only the first of many, and none if it cannot
    /// read them now.
    fn events_after(&self, sequence: u64) -> Vec<SourceEvent>;

    /// Returns the active alerts that receivers were notified of, without those that are muted.
    fn active(&self) -> Vec<AlertSnapshot>;

    /// Returns the fingerprints of the alerts that are muted: receivers are not notified that they begin.
    fn muted(&self) -> BTreeSet<String>;

    /// Returns a receiver of the sequence of the last transition. It falls only if the source has lost its history.
    fn changes(&self) -> watch::Receiver<u64>;
}
