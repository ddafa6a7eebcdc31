//! Paths of a member to its peers. Each peer has a direct path once it answers a ping on one of its endpoints, and the relay
//! until then. A direct path that answers no more is given up. No I/O: the caller sends, and passes in what arrives.

mod peer;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

use crate::disco::{DiscoMessage, Transaction, open, seal, sender};
use crate::keys::{DiscoKey, KeyPair, NodeKey};
use peer::PeerPaths;

pub use peer::{DirectPath, is_mesh_prefix};

/// Interval of pings on the path in use. They keep NATs open and find its end.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// Time since the last pong after which the path in use is given up.
const TRUST: Duration = Duration::from_millis(10_500);
/// Interval at which all endpoints of a peer without a direct path are pinged.
const DISCOVERY: Duration = Duration::from_secs(5);
/// Time for a pong.
const PING_TIME: Duration = Duration::from_secs(5);
/// Pings without an answer that are remembered.
const MOST_PINGS: usize = 4096;

/// Entry of a peer in the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPeer {
    pub key: NodeKey,
    pub disco: DiscoKey,
    pub endpoints: Vec<SocketAddr>,
}

/// Place from which a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Direct(SocketAddr),
    /// A relay, which names the node.
    Relayed(NodeKey),
}

/// Step for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends a datagram from the socket of WireGuard.
    Send { to: SocketAddr, datagram: Vec<u8> },
    /// Sends a datagram by the relay of a peer.
    Relay { peer: NodeKey, datagram: Vec<u8> },
    /// Sends the packets of a peer to this address; by the relay if there is none.
    UsePath { peer: NodeKey, direct: Option<SocketAddr> },
}

#[derive(Clone, Copy, Debug)]
struct Ping {
    peer: NodeKey,
    to: SocketAddr,
    sent: Duration,
}

/// Paths to all peers.
#[derive(Debug)]
pub struct Paths {
    disco: KeyPair,
    node: NodeKey,
    peers: BTreeMap<NodeKey, PeerPaths>,
    pings: HashMap<Transaction, Ping>,
    /// Own endpoints, for peers to ping.
    endpoints: Vec<SocketAddr>,
}

impl Paths {
    /// Creates the paths of a node. The key of its messages lives as long as they do.
    pub fn new(disco: KeyPair, node: NodeKey) -> Paths {
        let (peers, pings, endpoints) = Default::default();
        Paths { disco, node, peers, pings, endpoints }
    }

    /// Key by which peers seal their messages.
    pub fn disco_key(&self) -> DiscoKey {
        DiscoKey(self.disco.public())
    }

    /// Sets the own endpoints.
    pub fn set_endpoints(&mut self, endpoints: Vec<SocketAddr>) {
        self.endpoints = endpoints;
    }

    /// Takes over the peers of the map. Those that stay keep their paths, unless they have a new key.
    pub fn set_peers(&mut self, peers: impl IntoIterator<Item = PathPeer>) {
        let mut before = std::mem::take(&mut self.peers);
        for peer in peers {
            let same = before.remove(&peer.key).filter(|known| known.disco == peer.disco);
            let mut paths = same.unwrap_or_else(|| PeerPaths::new(peer.disco));
            paths.set_endpoints(&peer.endpoints);
            self.peers.insert(peer.key, paths);
        }
        self.pings.retain(|_, ping| self.peers.contains_key(&ping.peer));
    }

    /// Returns the direct path to a peer.
    pub fn direct(&self, peer: NodeKey) -> Option<DirectPath> {
        self.peers.get(&peer)?.direct.map(|used| used.path)
    }

    /// Looks for a direct path to a peer now, because packets for it wait or go by the relay.
    pub fn wake(&mut self, peer: NodeKey, now: Duration) -> Vec<Action> {
        let mut actions = Vec::new();
        let is_due = self.peers.get(&peer).is_some_and(|paths| paths.discovery_is_due(now, DISCOVERY));
        if is_due {
            self.discover(peer, now, &mut actions);
        }
        actions
    }

    /// Runs the timers. `is_active` tells whether packets were just exchanged with a peer.
    pub fn tick(&mut self, now: Duration, is_active: impl Fn(NodeKey) -> bool) -> Vec<Action> {
        let mut actions = Vec::new();
        self.pings.retain(|_, ping| now.saturating_sub(ping.sent) < PING_TIME);
        let keys: Vec<NodeKey> = self.peers.keys().copied().collect();
        for key in keys {
            let Some(paths) = self.peers.get_mut(&key) else { continue };
            if paths.give_up(now, TRUST) {
                actions.push(Action::UsePath { peer: key, direct: None });
            }
            if !is_active(key) {
                continue;
            }
            match paths.direct {
                Some(used) if now.saturating_sub(used.pinged) >= HEARTBEAT => {
                    self.ping(key, used.path.address, now, &mut actions);
                }
                Some(_) => {}
                None if paths.discovery_is_due(now, DISCOVERY) => self.discover(key, now, &mut actions),
                None => {}
            }
        }
        actions
    }

    /// Reads a message. Those of nodes that are no peers have no effect.
    pub fn receive(&mut self, now: Duration, origin: Origin, datagram: &[u8]) -> Vec<Action> {
        let mut actions = Vec::new();
        let Some(from) = sender(datagram) else { return actions };
        let is_sender = |(key, paths): &(&NodeKey, &PeerPaths)| {
            paths.disco == from && (matches!(origin, Origin::Direct(_)) || origin == Origin::Relayed(**key))
        };
        let Some(peer) = self.peers.iter().find(is_sender).map(|(key, _)| *key) else { return actions };
        let Some(message) = open(&self.disco, from, datagram) else { return actions };
        match (message, origin) {
            (DiscoMessage::Ping { transaction, node }, _) if node.is_none_or(|node| node == peer) => {
                self.answer(peer, origin, transaction, now, &mut actions);
            }
            (DiscoMessage::Ping { .. }, _) => {}
            (DiscoMessage::Pong { transaction, .. }, Origin::Direct(source)) => {
                self.take_pong(peer, source, transaction, now, &mut actions);
            }
            // A pong by the relay proves no direct path.
            (DiscoMessage::Pong { .. }, Origin::Relayed(_)) => {}
            (DiscoMessage::CallMeMaybe { endpoints }, Origin::Relayed(_)) => {
                if let Some(paths) = self.peers.get_mut(&peer) {
                    paths.add_endpoints(&endpoints);
                    if paths.direct.is_none() {
                        self.ping_all(peer, now, &mut actions);
                    }
                }
            }
            // It comes by the relay, else the path is there already.
            (DiscoMessage::CallMeMaybe { .. }, Origin::Direct(_)) => {}
        }
        actions
    }

    /// Answers a ping. One from an address without a known path is answered by a ping, too.
    fn answer(
        &mut self,
        peer: NodeKey,
        origin: Origin,
        transaction: Transaction,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let source = match origin {
            Origin::Direct(source) => source,
            // The relay has no address of the peer, and peers know such pongs by this one.
            Origin::Relayed(_) => SocketAddr::from(([127, 3, 3, 40], 0)),
        };
        let Some(paths) = self.peers.get_mut(&peer) else { return };
        let Some(datagram) = seal(&self.disco, paths.disco, &DiscoMessage::Pong { transaction, source })
        else {
            return;
        };
        match origin {
            Origin::Direct(to) => {
                paths.add_endpoints(&[to]);
                let is_unknown = paths.direct.is_none();
                actions.push(Action::Send { to, datagram });
                if is_unknown && !self.is_pinging(peer, to) {
                    self.ping(peer, to, now, actions);
                }
            }
            Origin::Relayed(_) => actions.push(Action::Relay { peer, datagram }),
        }
    }

    fn take_pong(
        &mut self,
        peer: NodeKey,
        source: SocketAddr,
        transaction: Transaction,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        // NATs may answer from another address than the one that was pinged; packets go where pings went.
        let Some(ping) = self.pings.get(&transaction).copied().filter(|ping| ping.peer == peer) else {
            return;
        };
        self.pings.remove(&transaction);
        let latency = now.saturating_sub(ping.sent);
        if source != ping.to || latency >= PING_TIME {
            return;
        }
        let Some(paths) = self.peers.get_mut(&peer) else { return };
        let path = DirectPath { address: ping.to, latency };
        if paths.take_pong(path, now) {
            actions.push(Action::UsePath { peer, direct: Some(path.address) });
        }
    }

    fn is_pinging(&self, peer: NodeKey, to: SocketAddr) -> bool {
        self.pings.values().any(|ping| ping.peer == peer && ping.to == to)
    }

    /// Pings all endpoints of a peer, and asks it by the relay to do the same.
    fn discover(&mut self, peer: NodeKey, now: Duration, actions: &mut Vec<Action>) {
        self.ping_all(peer, now, actions);
        let Some(paths) = self.peers.get(&peer) else { return };
        let call = DiscoMessage::CallMeMaybe { endpoints: self.endpoints.clone() };
        actions
            .extend(seal(&self.disco, paths.disco, &call).map(|datagram| Action::Relay { peer, datagram }));
    }

    fn ping_all(&mut self, peer: NodeKey, now: Duration, actions: &mut Vec<Action>) {
        let Some(paths) = self.peers.get_mut(&peer) else { return };
        paths.discovered = Some(now);
        for to in paths.candidates() {
            self.ping(peer, to, now, actions);
        }
    }

    fn ping(&mut self, peer: NodeKey, to: SocketAddr, now: Duration, actions: &mut Vec<Action>) {
        let mut transaction = Transaction::default();
        if self.pings.len() >= MOST_PINGS || getrandom::fill(&mut transaction).is_err() {
            return;
        }
        let Some(paths) = self.peers.get_mut(&peer) else { return };
        let message = DiscoMessage::Ping { transaction, node: Some(self.node) };
        let Some(datagram) = seal(&self.disco, paths.disco, &message) else { return };
        paths.note_ping(to, now);
        self.pings.insert(transaction, Ping { peer, to, sent: now });
        actions.push(Action::Send { to, datagram });
    }
}

#[cfg(test)]
mod tests;
