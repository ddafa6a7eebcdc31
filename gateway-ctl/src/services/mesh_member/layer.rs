//! Path layer of the device: sorts datagrams, sends to relayed peers, and applies the packet filter of the map.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use gateway_mesh::client::RelayedPacket;
use gateway_mesh::packet_filter::{PacketFilter, UdpFlows};
use gateway_mesh::paths::Origin;
use gateway_mesh::{NodeKey, disco, stun};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::os::wireguard::PathLayer;

/// Interval at which packets by the relay make the engine look for a direct path.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);

/// Message for the engine.
#[derive(Debug)]
pub(super) enum Event {
    /// A message of the search for paths.
    Disco { origin: Origin, datagram: Vec<u8> },
    /// An answer of a STUN server.
    Stun { datagram: Vec<u8> },
    /// Packets for a peer go by the relay.
    Relaying(NodeKey),
    /// Addresses of the STUN servers by region.
    StunServers(Vec<(u32, SocketAddr)>),
}

/// A peer as the layer sends to it by a relay.
#[derive(Debug)]
pub(super) struct RelayedPeer {
    pub key: NodeKey,
    /// Queue of the relay at which the peer is; none if it is at none.
    pub queue: Option<mpsc::Sender<RelayedPacket>>,
    /// Milliseconds at which the engine last learned about its packets, plus one.
    announced: AtomicU64,
}

impl RelayedPeer {
    pub(super) fn new(key: NodeKey, queue: Option<mpsc::Sender<RelayedPacket>>) -> RelayedPeer {
        RelayedPeer { key, queue, announced: AtomicU64::new(0) }
    }
}

/// Peers by the address that stands for them, and the other way round.
#[derive(Debug, Default)]
pub(super) struct RelayedPeers {
    pub by_address: HashMap<SocketAddr, RelayedPeer>,
    pub addresses: HashMap<NodeKey, SocketAddr>,
}

/// Path layer of the device.
pub(super) struct Layer {
    started: Instant,
    events: mpsc::Sender<Event>,
    peers: ArcSwap<RelayedPeers>,
    filter: ArcSwap<PacketFilter>,
    flows: Mutex<UdpFlows>,
    /// Entrance of the device for datagrams of relays.
    device: ArcSwapOption<mpsc::Sender<(SocketAddr, Vec<u8>)>>,
}

impl Layer {
    /// Creates a layer that lets nothing in.
    pub(super) fn new(events: mpsc::Sender<Event>) -> Layer {
        Layer {
            started: Instant::now(),
            events,
            peers: ArcSwap::default(),
            filter: ArcSwap::default(),
            flows: Mutex::default(),
            device: ArcSwapOption::empty(),
        }
    }

    /// Time since the start.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn set_peers(&self, peers: RelayedPeers) {
        self.peers.store(Arc::new(peers));
    }

    pub(super) fn set_filter(&self, filter: PacketFilter) {
        self.filter.store(Arc::new(filter));
    }

    pub(super) fn set_device(&self, device: Option<mpsc::Sender<(SocketAddr, Vec<u8>)>>) {
        self.device.store(device.map(Arc::new));
    }

    /// Returns the address that stands for a peer.
    pub(super) fn address(&self, peer: NodeKey) -> Option<SocketAddr> {
        self.peers.load().addresses.get(&peer).copied()
    }

    /// Sends a datagram by the relay of a peer. One for a full queue is lost, as on any network.
    pub(super) fn send_by_relay(&self, peer: NodeKey, packet: Vec<u8>) {
        let peers = self.peers.load();
        let relayed = peers.addresses.get(&peer).and_then(|address| peers.by_address.get(address));
        if let Some(queue) = relayed.and_then(|relayed| relayed.queue.as_ref()) {
            let _ = queue.try_send(RelayedPacket { peer, packet });
        }
    }

    /// Takes a packet that a relay delivers. Those of nodes that are no peers are dropped.
    pub(super) fn take_relayed(&self, RelayedPacket { peer, packet }: RelayedPacket) {
        let Some(address) = self.address(peer) else { return };
        if disco::sender(&packet).is_some() {
            self.send_event(Event::Disco { origin: Origin::Relayed(peer), datagram: packet });
        } else if let Some(device) = &*self.device.load() {
            let _ = device.try_send((address, packet));
        }
    }

    /// Tells the engine. While it is behind, messages are lost, and their senders repeat them.
    fn send_event(&self, event: Event) {
        let _ = self.events.try_send(event);
    }

    fn announce(&self, peer: &RelayedPeer) {
        let now = u64::try_from(self.now().as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        let before = peer.announced.load(Ordering::Relaxed);
        let is_due = before == 0 || u128::from(now.saturating_sub(before)) >= WAKE_INTERVAL.as_millis();
        if is_due {
            peer.announced.store(now, Ordering::Relaxed);
            self.send_event(Event::Relaying(peer.key));
        }
    }
}

impl PathLayer for Layer {
    fn take(&self, datagram: &[u8], from: SocketAddr) -> bool {
        if disco::sender(datagram).is_some() {
            self.send_event(Event::Disco { origin: Origin::Direct(from), datagram: datagram.to_vec() });
            return true;
        }
        let is_stun = stun::is_response(datagram);
        if is_stun {
            self.send_event(Event::Stun { datagram: datagram.to_vec() });
        }
        is_stun
    }

    fn relay(&self, to: SocketAddr, datagram: &[u8]) {
        let peers = self.peers.load();
        let Some(peer) = peers.by_address.get(&to) else { return };
        self.announce(peer);
        if let Some(queue) = &peer.queue {
            let _ = queue.try_send(RelayedPacket { peer: peer.key, packet: datagram.to_vec() });
        }
    }

    fn admits(&self, packet: &[u8], is_behind: bool) -> bool {
        let filter = self.filter.load();
        if is_behind {
            filter.admits_behind(packet)
        } else {
            filter.admits(packet, &self.flows.lock(), self.now())
        }
    }

    fn sent(&self, packet: &[u8]) {
        self.flows.lock().sent(packet, self.now());
    }
}
