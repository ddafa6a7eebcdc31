//! Receive path: from the network to the TUN device.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use boringtun::noise::{Packet, TunnResult};
use tokio::task::coop::consume_budget;
use tokio::time::Instant;
use tun_rs::{GROTable, VIRTIO_NET_HDR_LEN};

use super::path_layer::RelayedDatagrams;
use super::peer::{Kind, Peer, Received};
use super::peer_tun::PeerTun;
use super::shared::{Shared, count};
use super::sockets::{Family, MAX_DATAGRAM, Sockets};
use super::table::Table;

/// Number of received packets after which they go to the TUN device.
const BATCH: usize = 64;
/// Smallest buffer that the protocol machine gets for its replies.
const MIN_ROOM: usize = 2048;
const COOKIE_REPLY: usize = 64;
/// Largest number of packets per write to the device: a batch plus the maximum of one burst.
const SLOTS: usize = 2 * BATCH;
/// Pause after a failure of a socket that keeps failing without a reason.
const BACK_OFF: Duration = Duration::from_millis(10);

/// Decrypts the datagrams of one socket and writes them to the TUN device.
pub(super) async fn datagrams(shared: Arc<Shared>, sockets: Arc<Sockets>, family: Family) {
    let mut received = vec![0; MAX_DATAGRAM];
    // Capacity for the header that the device needs before each packet, and for merged packets.
    let slot = || Vec::with_capacity(2 * VIRTIO_NET_HDR_LEN + MAX_DATAGRAM);
    let mut packets: Vec<Vec<u8>> = std::iter::repeat_with(slot).take(SLOTS).collect();
    let mut merge = GROTable::default();
    loop {
        let mut ready = sockets.readable(family).await;
        let mut n = 0;
        // Packets in a row for one device are written together.
        let mut device = Target::Main;
        let (now, table) = (Instant::now(), shared.table.load_full());
        let receiver = Receiver { shared: &shared, sockets: &sockets, table: &table, now };
        while ready.is_ok() && n < BATCH {
            let (burst, from) = match sockets.try_recv(family, &mut received) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    ready = Err(error);
                    break;
                }
            };
            if burst.len == 0 {
                count(&shared.drops.malformed);
            }
            for datagram in received[..burst.len].chunks(burst.segment.max(1)) {
                if n == packets.len() {
                    device.deliver(&shared, &mut merge, &mut packets).await;
                    n = 0;
                }
                let Some(target) = receiver.receive(datagram, from, &mut packets[n]) else { continue };
                if n > 0 && !target.is_same(&device) {
                    device.deliver(&shared, &mut merge, &mut packets[..n]).await;
                    packets.swap(0, n);
                    n = 0;
                }
                device = target;
                n += 1;
            }
        }
        if n > 0 {
            device.deliver(&shared, &mut merge, &mut packets[..n]).await;
        }
        if let Err(error) = ready {
            tracing::debug!(%error, "failed to receive");
            tokio::time::sleep(BACK_OFF).await;
        }
        consume_budget().await;
    }
}

/// Decrypts the datagrams that relays deliver, and writes them to the TUN device.
pub(super) async fn relayed(shared: Arc<Shared>, sockets: Arc<Sockets>, datagrams: RelayedDatagrams) {
    let mut datagrams = datagrams.lock().await;
    let mut packets = [Vec::with_capacity(2 * VIRTIO_NET_HDR_LEN + MAX_DATAGRAM)];
    let mut merge = GROTable::default();
    while let Some((from, datagram)) = datagrams.recv().await {
        let (now, table) = (Instant::now(), shared.table.load_full());
        let receiver = Receiver { shared: &shared, sockets: &sockets, table: &table, now };
        if let Some(target) = receiver.receive(&datagram, from, &mut packets[0]) {
            target.deliver(&shared, &mut merge, &mut packets).await;
        }
        consume_budget().await;
    }
    // No relay is left; the device works on.
    std::future::pending::<()>().await;
}

/// TUN device that a packet is for.
enum Target {
    Main,
    /// That of a single peer.
    Single(Arc<PeerTun>),
}

impl Target {
    fn is_same(&self, other: &Target) -> bool {
        match (self, other) {
            (Target::Main, Target::Main) => true,
            (Target::Single(one), Target::Single(other)) => Arc::ptr_eq(one, other),
            (Target::Main, Target::Single(_)) | (Target::Single(_), Target::Main) => false,
        }
    }

    async fn deliver(&self, shared: &Shared, merge: &mut GROTable, packets: &mut [Vec<u8>]) {
        let tun = match self {
            Target::Main => &shared.tun,
            Target::Single(single) => &single.tun,
        };
        if tun.send_multiple(merge, packets, VIRTIO_NET_HDR_LEN).await.is_err() {
            count(&shared.drops.device_failed);
        }
    }
}

struct Receiver<'a> {
    shared: &'a Shared,
    sockets: &'a Sockets,
    table: &'a Table,
    now: Instant,
}

impl Receiver<'_> {
    /// Returns the device of the packet that `slot` now holds, behind the space for the device's header. `None` without one.
    fn receive(&self, datagram: &[u8], from: SocketAddr, slot: &mut Vec<u8>) -> Option<Target> {
        let drops = &self.shared.drops;
        if self.shared.layer.as_ref().is_some_and(|layer| layer.take(datagram, from)) {
            return None;
        }
        let mut cookie = [0; COOKIE_REPLY];
        let packet = match self.table.identity.gate.verify_packet(Some(from.ip()), datagram, &mut cookie) {
            Ok(packet) => packet,
            Err(TunnResult::WriteToNetwork(reply)) => {
                count(&drops.rejected);
                self.reply(reply, from);
                return None;
            }
            Err(_) => {
                count(&drops.malformed);
                return None;
            }
        };
        let kind = match &packet {
            Packet::HandshakeInit(_) => Kind::Initiation,
            Packet::HandshakeResponse(_) => Kind::Response,
            Packet::PacketCookieReply(_) => Kind::Cookie,
            Packet::PacketData(data) => Kind::Data { session: data.receiver_idx },
        };
        let Some(peer) = self.table.by_packet(&packet) else {
            count(&drops.no_peer);
            return None;
        };
        slot.resize(VIRTIO_NET_HDR_LEN + datagram.len().max(MIN_ROOM), 0);
        let out = &mut slot[VIRTIO_NET_HDR_LEN..];
        let received = peer.receive(self.now, from, kind, datagram, out, |reply, to| self.reply(reply, to));
        if received != Received::Rejected && kind != Kind::Cookie {
            self.shared.cover.received(peer, matches!(received, Received::Packet { .. }));
        }
        match received {
            Received::Packet { len, source } => {
                let packet = &slot[VIRTIO_NET_HDR_LEN..VIRTIO_NET_HDR_LEN + len];
                let target = self.target(peer, source, packet)?;
                slot.truncate(VIRTIO_NET_HDR_LEN + len);
                Some(target)
            }
            Received::Consumed => None,
            Received::Rejected => {
                count(&drops.rejected);
                None
            }
        }
    }

    /// Returns the device for a packet of a peer: the main one for sources that are the peer's own, and that of the peer for
    /// sources behind it. `None` drops the packet.
    fn target(&self, peer: &Arc<Peer>, source: IpAddr, packet: &[u8]) -> Option<Target> {
        let drops = &self.shared.drops;
        let target = match self.table.by_address(source) {
            Some(owner) if Arc::ptr_eq(owner, peer) => Target::Main,
            Some(_) => {
                count(&drops.wrong_source);
                return None;
            }
            None => {
                let tuns = self.shared.peer_tuns.load();
                let Some(single) = tuns.get(peer.public_key()).filter(|single| single.leads_to(source))
                else {
                    count(&drops.wrong_source);
                    return None;
                };
                Target::Single(Arc::clone(single))
            }
        };
        let is_single = matches!(target, Target::Single(_));
        if self.shared.layer.as_ref().is_some_and(|layer| !layer.admits(packet, is_single)) {
            count(&drops.filtered);
            return None;
        }
        Some(target)
    }

    /// Sends a reply if the socket has room now. The sender of a lost request repeats it.
    fn reply(&self, datagram: &[u8], to: SocketAddr) {
        if let Err(error) = self.sockets.try_send(datagram, to) {
            tracing::trace!(%to, %error, "cannot answer");
            count(&self.shared.drops.send_failed);
        }
    }
}
