//! The connected clients of the relay, and the way of a packet from one to another. Queues are bounded: a packet for a full
//! one is dropped, as a router does.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::frame::{GoneReason, ServerFrame};
use crate::keys::NodeKey;

/// Frames that wait for a client.
const QUEUE: usize = 64;
/// Clients that learn that another one is gone.
const MOST_CORRESPONDENTS: usize = 256;
/// Clients of the relay at a time.
const MOST_CLIENTS: usize = 2048;

/// All clients of a relay.
#[derive(Debug, Default)]
pub struct Switch {
    clients: Mutex<HashMap<NodeKey, Client>>,
    attached: AtomicU64,
    relayed_packets: AtomicU64,
    relayed_bytes: AtomicU64,
    dropped_packets: AtomicU64,
}

#[derive(Debug)]
struct Client {
    attachment: u64,
    queue: mpsc::Sender<ServerFrame>,
    /// Clients that sent packets to this one.
    correspondents: HashSet<NodeKey>,
}

/// Counters of a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounters {
    pub clients: usize,
    pub relayed_packets: u64,
    pub relayed_bytes: u64,
    pub dropped_packets: u64,
}

/// The place of a connected client. Its end detaches the client.
#[derive(Debug)]
pub struct Attachment {
    switch: Arc<Switch>,
    key: NodeKey,
    number: u64,
}

impl Switch {
    /// Attaches a client in place of an older connection with the same key. The queue ends when the client is detached.
    pub fn attach(self: &Arc<Self>, key: NodeKey) -> Option<(Attachment, mpsc::Receiver<ServerFrame>)> {
        let number = self.attached.fetch_add(1, Ordering::Relaxed);
        let (queue, frames) = mpsc::channel(QUEUE);
        let mut clients = self.clients.lock();
        if clients.len() >= MOST_CLIENTS && !clients.contains_key(&key) {
            return None;
        }
        clients.insert(key, Client { attachment: number, queue, correspondents: HashSet::new() });
        drop(clients);
        Some((Attachment { switch: Arc::clone(self), key, number }, frames))
    }

    /// Ends the connection of a client.
    pub fn detach(&self, key: NodeKey) {
        let mut clients = self.clients.lock();
        if let Some(client) = clients.remove(&key) {
            let gone = ServerFrame::PeerGone { peer: key, reason: GoneReason::Disconnected };
            for correspondent in client.correspondents.iter().filter_map(|key| clients.get(key)) {
                // Best effort: the packets of a peer that does not learn it end here.
                let _ = correspondent.queue.try_send(gone.clone());
            }
        }
    }

    /// Detaches all clients that a rule does not keep.
    pub fn retain(&self, keeps: impl Fn(NodeKey) -> bool) {
        let gone: Vec<_> = self.clients.lock().keys().copied().filter(|key| !keeps(*key)).collect();
        gone.into_iter().for_each(|key| self.detach(key));
    }

    /// Returns the counters.
    pub fn counters(&self) -> RelayCounters {
        RelayCounters {
            clients: self.clients.lock().len(),
            relayed_packets: self.relayed_packets.load(Ordering::Relaxed),
            relayed_bytes: self.relayed_bytes.load(Ordering::Relaxed),
            dropped_packets: self.dropped_packets.load(Ordering::Relaxed),
        }
    }
}

impl Attachment {
    /// Sends a packet to another client. The sender learns it if that one is not here.
    pub fn send(&self, to: NodeKey, packet: &[u8]) {
        let mut clients = self.switch.clients.lock();
        // A connection that was replaced sends nothing any more.
        if clients.get(&self.key).is_none_or(|own| own.attachment != self.number) {
            return;
        }
        let Some(receiver) = clients.get_mut(&to) else {
            self.switch.dropped_packets.fetch_add(1, Ordering::Relaxed);
            if let Some(own) = clients.get(&self.key) {
                let gone = ServerFrame::PeerGone { peer: to, reason: GoneReason::NotHere };
                let _ = own.queue.try_send(gone);
            }
            return;
        };
        if receiver.correspondents.len() < MOST_CORRESPONDENTS {
            receiver.correspondents.insert(self.key);
        }
        let frame = ServerFrame::Received { from: self.key, packet: packet.to_vec() };
        if receiver.queue.try_send(frame).is_ok() {
            self.switch.relayed_packets.fetch_add(1, Ordering::Relaxed);
            self.switch.relayed_bytes.fetch_add(packet.len() as u64, Ordering::Relaxed);
        } else {
            self.switch.dropped_packets.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers the client itself.
    pub fn reply(&self, frame: ServerFrame) {
        let clients = self.switch.clients.lock();
        if let Some(own) = clients.get(&self.key).filter(|own| own.attachment == self.number) {
            // A client that does not read its answers needs none.
            let _ = own.queue.try_send(frame);
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let own = self.switch.clients.lock().get(&self.key).is_some_and(|own| own.attachment == self.number);
        if own {
            self.switch.detach(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> NodeKey {
        NodeKey([number; 32])
    }

    #[test]
    fn packet_reaches_its_receiver() {
        let switch = Arc::new(Switch::default());
        let (first, _frames) = switch.attach(key(1)).unwrap();
        let (_second, mut frames) = switch.attach(key(2)).unwrap();
        first.send(key(2), b"packet");
        let received = ServerFrame::Received { from: key(1), packet: b"packet".to_vec() };
        assert_eq!(frames.try_recv(), Ok(received));
        let counters = switch.counters();
        assert_eq!((counters.clients, counters.relayed_packets, counters.relayed_bytes), (2, 1, 6));
    }

    #[test]
    fn sender_learns_that_a_receiver_is_gone() {
        let switch = Arc::new(Switch::default());
        let (first, mut frames) = switch.attach(key(1)).unwrap();
        let gone = |reason| ServerFrame::PeerGone { peer: key(2), reason };
        first.send(key(2), b"packet");
        assert_eq!(frames.try_recv(), Ok(gone(GoneReason::NotHere)));
        let (second, _second_frames) = switch.attach(key(2)).unwrap();
        first.send(key(2), b"packet");
        drop(second);
        assert_eq!(frames.try_recv(), Ok(gone(GoneReason::Disconnected)));
    }

    #[test]
    fn detached_client_neither_sends_nor_receives() {
        let switch = Arc::new(Switch::default());
        let (first, mut first_frames) = switch.attach(key(1)).unwrap();
        let (_second, mut frames) = switch.attach(key(2)).unwrap();
        switch.retain(|kept| kept != key(1));
        first.send(key(2), b"packet");
        assert!(frames.try_recv().is_err());
        assert_eq!(first_frames.try_recv(), Err(mpsc::error::TryRecvError::Disconnected));
    }

    #[test]
    fn end_of_a_replaced_connection_leaves_the_new_one() {
        let switch = Arc::new(Switch::default());
        let (old, mut old_frames) = switch.attach(key(1)).unwrap();
        let (_new, mut frames) = switch.attach(key(1)).unwrap();
        assert_eq!(old_frames.try_recv(), Err(mpsc::error::TryRecvError::Disconnected));
        drop(old);
        let (second, _) = switch.attach(key(2)).unwrap();
        second.send(key(1), b"packet");
        assert!(frames.try_recv().is_ok());
    }

    #[test]
    fn slow_receiver_loses_packets_and_no_memory() {
        let switch = Arc::new(Switch::default());
        let (first, _frames) = switch.attach(key(1)).unwrap();
        let (_second, frames) = switch.attach(key(2)).unwrap();
        for _ in 0..QUEUE + 10 {
            first.send(key(2), b"packet");
        }
        assert_eq!((frames.len(), switch.counters().dropped_packets), (QUEUE, 10));
    }
}
