//! Transmit path: from the TUN device to the network. Also the protocol's clock.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use boringtun::noise::Tunn;
use futures_util::FutureExt as _;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, MissedTickBehavior};
use tun_rs::{IDEAL_BATCH_SIZE, VIRTIO_NET_HDR_LEN};

use super::outbox::Outbox;
use super::peer::{NoEndpoint, Peer};
use super::peer_tun::PeerTun;
use super::shared::{Shared, count};
use super::sockets::{MAX_DATAGRAM, Sockets};
use super::table::Table;

const TICK: Duration = Duration::from_millis(250);
/// Padding multiple for the plaintext of a data message, to blur the packet's length.
const PADDING: usize = 16;
/// Bytes that a data message adds to its plaintext.
pub(super) const OVERHEAD: usize = 32;
/// Smallest buffer for a segment, whatever the MTU: devices may supply packets of the previous MTU.
const MIN_ROOM: usize = 2048;
/// Longest protocol message without a packet, in bytes.
pub(super) const HANDSHAKE_ROOM: usize = 148;

/// Encrypts and sends the packets of the main TUN device, or of that of a single peer, until the device fails.
pub(super) async fn packets(
    shared: Arc<Shared>,
    sockets: Arc<Sockets>,
    mtu: u16,
    single: Option<Arc<PeerTun>>,
) {
    let tun = single.as_ref().map_or(&shared.tun, |single| &single.tun);
    let mtu = usize::from(mtu);
    let room = mtu.max(MIN_ROOM).next_multiple_of(PADDING);
    let mut segmented = vec![0; VIRTIO_NET_HDR_LEN + MAX_DATAGRAM];
    let mut packets = vec![vec![0; room]; IDEAL_BATCH_SIZE];
    let mut sizes = vec![0; IDEAL_BATCH_SIZE];
    let mut outbox = Outbox::new();
    loop {
        let received = {
            let reading = tun.recv_multiple(&mut segmented, &mut packets, &mut sizes, 0);
            let mut reading = pin!(reading);
            // Packets that are already available join the same burst. Then the burst is sent.
            match (&mut reading).now_or_never() {
                Some(received) => received,
                None => {
                    outbox.flush(&shared, &sockets).await;
                    reading.await
                }
            }
        };
        let n = match received {
            Ok(n) => n,
            // Only the kernel's errors have a number. The others concern one packet that cannot be split.
            Err(error) if error.raw_os_error().is_none() => {
                count(&shared.drops.device_failed);
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, "failed to read a TUN device");
                return;
            }
        };
        let (now, table) = (Instant::now(), shared.table.load());
        for (packet, size) in packets.iter_mut().zip(&sizes).take(n) {
            let Some(peer) = receiver(&table, single.as_deref(), &packet[..*size]) else {
                count(&shared.drops.no_peer);
                continue;
            };
            if let Some(layer) = shared.layer.as_ref().filter(|_| single.is_none()) {
                layer.sent(&packet[..*size]);
            }
            let padded = size.next_multiple_of(PADDING).min(mtu.max(*size));
            packet[*size..padded].fill(0);
            let room = outbox.room(&shared, &sockets, padded + OVERHEAD).await;
            match peer.encapsulate(now, &packet[..padded], room) {
                Ok(Some((len, to))) => {
                    shared.cover.sent(peer, padded);
                    outbox.add(&shared, &sockets, len, to).await;
                }
                Ok(None) => {}
                Err(NoEndpoint) => count(&shared.drops.no_peer),
            }
        }
        consume_budget().await;
    }
}

/// Returns the peer that a packet goes to: by its destination, or that of the device if the destination is behind it.
fn receiver<'t>(table: &'t Table, single: Option<&PeerTun>, packet: &[u8]) -> Option<&'t Arc<Peer>> {
    let to = Tunn::dst_address(packet)?;
    match single {
        None => table.by_address(to),
        Some(single) => table.peer(&single.key).filter(|_| single.leads_to(to)),
    }
}

/// Runs the timers of the peers: rekeys, keepalives, session ends.
pub(super) async fn timers(shared: Arc<Shared>, sockets: Arc<Sockets>) {
    let mut datagram = [0; HANDSHAKE_ROOM];
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let (now, table) = (Instant::now(), shared.table.load_full());
        table.identity.gate.reset_count();
        for peer in table.peers() {
            if let Some((len, to)) = peer.tick(now, &mut datagram) {
                send(&shared, &sockets, &datagram[..len], to).await;
            }
        }
    }
}

/// Sends a datagram. A failed send loses it, as on any network.
pub(super) async fn send(shared: &Shared, sockets: &Sockets, datagram: &[u8], to: SocketAddr) {
    let result: io::Result<()> = sockets.send(datagram, to).await;
    if let Err(error) = result {
        tracing::trace!(%to, %error, "cannot send");
        count(&shared.drops.send_failed);
    }
}
