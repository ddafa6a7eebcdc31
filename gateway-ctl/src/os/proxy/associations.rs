//! Queues of the datagrams of LAN hosts, by UDP association.

use std::collections::HashMap;
use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio::sync::mpsc;

/// Datagrams that wait for the association, or for the socket of their destination.
const MAX_QUEUED_DATAGRAMS: usize = 32;
/// Key of an association: source, proxy, leg.
pub(super) type Key = (SocketAddr, u8, u8);
pub(super) type Datagram = (SocketAddr, Box<[u8]>);

/// Senders to the associations.
#[derive(Debug, Default)]
pub(super) struct Associations(Mutex<HashMap<Key, mpsc::Sender<Datagram>>>);

impl Associations {
    /// Passes a datagram to its association. Returns the datagram if there is no association or if it has ended.
    pub(super) fn enqueue(&self, key: &Key, datagram: Datagram) -> Result<(), Datagram> {
        let associations = self.0.lock();
        let Some(sender) = associations.get(key) else { return Err(datagram) };
        match sender.try_send(datagram) {
            // The queue is full: datagrams may get lost.
            Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(datagram)) => Err(datagram),
        }
    }

    pub(super) fn open(&self, key: Key) -> mpsc::Receiver<Datagram> {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_DATAGRAMS);
        self.0.lock().insert(key, sender);
        receiver
    }

    pub(super) fn close(&self, key: &Key, receiver: mpsc::Receiver<Datagram>) {
        drop(receiver);
        let mut associations = self.0.lock();
        if associations.get(key).is_some_and(mpsc::Sender::is_closed) {
            associations.remove(key);
        }
    }
}
