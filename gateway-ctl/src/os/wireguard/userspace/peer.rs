//! One peer: boringtun's protocol machine, plus endpoint, keepalive and counters, which it leaves to its user. This
//! module does no I/O: the caller sends the returned datagrams.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

use boringtun::noise::{Tunn, TunnResult};
use boringtun::x25519::PublicKey;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::device::{PeerConfig, PeerStatus};
use super::cover::meter::Meter;
use super::identity::Identity;
use super::sockets::MAX_DATAGRAM;
use crate::clock::handshake_time;

/// Longest time since the last packet of a peer in which it may get cover; see the module `cover`.
const RECENT_RECEIVE: Duration = Duration::from_secs(4);
/// Larger than boringtun's queue for the time without a session.
const MAX_QUEUED: usize = 300;
/// Offset of the sender's index in a handshake message.
const SENDER_INDEX: std::ops::Range<usize> = 4..8;

pub(super) struct Peer {
    public_key: [u8; 32],
    index: u32,
    /// Meter for cover traffic.
    pub(super) meter: Meter,
    state: Mutex<State>,
}

struct State {
    tunn: Tunn,
    endpoint: Option<SocketAddr>,
    /// True if the endpoint stays, wherever the packets of the peer come from.
    is_pinned: bool,
    keepalive: Option<Duration>,
    /// Time of the last authentic message in either direction. `None` makes a keepalive due at once.
    last_traffic: Option<Instant>,
    /// Time of the last received authentic message.
    last_heard: Option<Instant>,
    last_handshake: Option<SystemTime>,
    /// Session for which the device sent the response. It counts as a handshake when the peer uses it.
    unconfirmed: Option<u32>,
    /// True if a handshake starts at the next tick.
    restart: bool,
    /// True if a packet must be sent at the next tick.
    nudged: bool,
    rx_bytes: u64,
    tx_bytes: u64,
}

/// Kinds of message that are processed differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Initiation,
    Response,
    Cookie,
    Data { session: u32 },
}

/// Result for a received datagram.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// The first `len` bytes of the buffer are an authentic IP packet.
    Packet { len: usize, source: IpAddr },
    /// Authentic, and without a packet for the device.
    Consumed,
    /// Forged, replayed or stale.
    Rejected,
}

impl Peer {
    pub(super) fn new(identity: &Identity, config: &PeerConfig, index: u32) -> Self {
        let state = State {
            tunn: machine(identity, config, index),
            endpoint: config.endpoint.map(canonical),
            is_pinned: false,
            keepalive: interval(config),
            last_traffic: None,
            last_heard: None,
            last_handshake: None,
            unconfirmed: None,
            restart: false,
            nudged: false,
            rx_bytes: 0,
            tx_bytes: 0,
        };
        Self { public_key: config.public_key, index, meter: Meter::default(), state: Mutex::new(state) }
    }

    pub(super) fn public_key(&self) -> &[u8; 32] {
        &self.public_key
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Applies the differences between two configurations. Sessions survive unless a key changed.
    pub(super) fn change(
        &self,
        identity: &Identity,
        new_identity: bool,
        before: &PeerConfig,
        wanted: &PeerConfig,
    ) {
        let mut state = self.state.lock();
        if before.preshared_key != wanted.preshared_key {
            state.tunn = machine(identity, wanted, self.index);
            state.last_traffic = None;
        } else if new_identity {
            let gate = identity.open_gate.clone();
            state.tunn.set_static_private(identity.private.clone(), identity.public, Some(gate));
            state.last_traffic = None;
        }
        if let Some(endpoint) = wanted.endpoint.filter(|_| before.endpoint != wanted.endpoint) {
            state.endpoint = Some(canonical(endpoint));
            state.restart = !state.has_session();
        }
        if before.persistent_keepalive != wanted.persistent_keepalive {
            state.keepalive = interval(wanted);
            state.last_traffic = None;
        }
    }

    /// Sets the endpoint for good. A handshake starts if there is no session.
    pub(super) fn pin_endpoint(&self, endpoint: SocketAddr) {
        let mut state = self.state.lock();
        (state.endpoint, state.is_pinned) = (Some(canonical(endpoint)), true);
        state.restart = !state.has_session();
    }

    /// Sends to the peer at the next tick, or starts a handshake. The peer may have to learn this end's address.
    pub(super) fn trigger_handshake(&self) {
        let mut state = self.state.lock();
        (state.nudged, state.restart) = (true, !state.has_session());
    }

    /// Encrypts an inner packet into a datagram in `out`. `None` means that it waits for a handshake in progress.
    /// `Err` means that the peer has no endpoint.
    pub(super) fn encapsulate(
        &self,
        now: Instant,
        packet: &[u8],
        out: &mut [u8],
    ) -> Result<Option<(usize, SocketAddr)>, NoEndpoint> {
        let mut state = self.state.lock();
        let endpoint = state.endpoint.ok_or(NoEndpoint)?;
        let len = match state.tunn.encapsulate(packet, out) {
            TunnResult::WriteToNetwork(datagram) => datagram.len(),
            _ => return Ok(None),
        };
        state.sent(now, len);
        Ok(Some((len, endpoint)))
    }

    /// Encrypts a cover packet like [`Peer::encapsulate`]. `None` means that the peer was not heard recently or that
    /// there is no session. The call changes neither state and queues nothing.
    pub(super) fn cover(&self, now: Instant, packet: &[u8], out: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let mut state = self.state.lock();
        let endpoint = state.endpoint?;
        let heard = state.last_heard.is_some_and(|at| now.saturating_duration_since(at) < RECENT_RECEIVE);
        if !heard || !state.has_session() {
            return None;
        }
        let len = written(state.tunn.encapsulate(packet, out))?;
        state.sent(now, len);
        Some((len, endpoint))
    }

    pub(super) fn has_session(&self) -> bool {
        self.state.lock().has_session()
    }

    /// Processes a datagram that the handshake gate admitted. `reply` sends immediate replies.
    pub(super) fn receive(
        &self,
        now: Instant,
        from: SocketAddr,
        kind: Kind,
        datagram: &[u8],
        out: &mut [u8],
        mut reply: impl FnMut(&[u8], SocketAddr),
    ) -> Received {
        let mut state = self.state.lock();
        let received = match state.tunn.decapsulate(Some(from.ip()), datagram, out) {
            TunnResult::Err(_) => return Received::Rejected,
            // Any observer of this end's message can create a cookie reply, so it proves no address.
            TunnResult::Done if kind == Kind::Cookie => return Received::Consumed,
            TunnResult::Done => Received::Consumed,
            TunnResult::WriteToTunnelV4(packet, source) => {
                Received::Packet { len: packet.len(), source: source.into() }
            }
            TunnResult::WriteToTunnelV6(packet, source) => {
                Received::Packet { len: packet.len(), source: source.into() }
            }
            TunnResult::WriteToNetwork(answer) => {
                reply(answer, from);
                let len = answer.len();
                if kind == Kind::Initiation {
                    let index = answer.get(SENDER_INDEX).and_then(|bytes| bytes.try_into().ok());
                    state.unconfirmed = index.map(u32::from_le_bytes);
                }
                state.sent(now, len);
                Received::Consumed
            }
        };
        if !state.is_pinned {
            state.endpoint = Some(from);
        }
        state.last_traffic = Some(now);
        state.last_heard = Some(now);
        state.rx_bytes += datagram.len() as u64;
        if state.completes_handshake(kind) {
            state.last_handshake = Some(handshake_time());
            state.unconfirmed = None;
            // A packet in `out` must survive, hence a separate buffer. This happens every two minutes.
            state.flush(now, from, reply);
        }
        received
    }

    /// Runs the timers. Callers invoke it a few times a second. Returns the length of a datagram in `out` and its
    /// destination.
    pub(super) fn tick(&self, now: Instant, out: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let mut state = self.state.lock();
        let endpoint = state.endpoint;
        let mut len = written(state.tunn.update_timers(out));
        let endpoint = endpoint?;
        if len.is_none() && std::mem::take(&mut state.restart) && !state.has_session() {
            len = written(state.tunn.format_handshake_initiation(out, true));
        }
        let nudged = std::mem::take(&mut state.nudged) && state.has_session();
        if len.is_none() && (nudged || state.keepalive_is_due(now)) {
            state.last_traffic = Some(now);
            // Without a session, encapsulation would queue an empty packet each time. The machine gives up after 90
            // s, but a peer with a keepalive never does.
            len = if state.has_session() {
                written(state.tunn.encapsulate(&[], out))
            } else {
                written(state.tunn.format_handshake_initiation(out, false))
            };
        }
        let len = len?;
        state.sent(now, len);
        Some((len, endpoint))
    }

    pub(super) fn status(&self) -> PeerStatus {
        let state = self.state.lock();
        PeerStatus {
            public_key: self.public_key,
            endpoint: state.endpoint,
            last_handshake: state.last_handshake,
            rx_bytes: state.rx_bytes,
            tx_bytes: state.tx_bytes,
        }
    }
}

/// Error for a peer that has neither an observed nor a configured endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoEndpoint;

impl State {
    fn has_session(&self) -> bool {
        self.tunn.time_since_last_handshake().is_some()
    }

    fn sent(&mut self, now: Instant, len: usize) {
        self.tx_bytes += len as u64;
        self.last_traffic = Some(now);
    }

    fn keepalive_is_due(&self, now: Instant) -> bool {
        self.keepalive.is_some_and(|interval| {
            self.last_traffic.is_none_or(|last| now.saturating_duration_since(last) >= interval)
        })
    }

    fn completes_handshake(&self, kind: Kind) -> bool {
        match kind {
            Kind::Response => true,
            Kind::Data { session } => self.unconfirmed == Some(session),
            Kind::Initiation | Kind::Cookie => false,
        }
    }

    /// Sends the packets that waited for the session.
    fn flush(&mut self, now: Instant, to: SocketAddr, mut send: impl FnMut(&[u8], SocketAddr)) {
        let mut buffer = vec![0; MAX_DATAGRAM];
        for _ in 0..MAX_QUEUED {
            let TunnResult::WriteToNetwork(datagram) = self.tunn.decapsulate(None, &[], &mut buffer) else {
                return;
            };
            send(datagram, to);
            let len = datagram.len();
            self.sent(now, len);
        }
    }
}

fn machine(identity: &Identity, config: &PeerConfig, index: u32) -> Tunn {
    Tunn::new(
        identity.private.clone(),
        PublicKey::from(config.public_key),
        config.preshared_key.as_ref().map(|key| *key.expose()),
        // The keepalive is handled here: it must be changeable without ending the session.
        None,
        index,
        Some(identity.open_gate.clone()),
    )
}

fn interval(config: &PeerConfig) -> Option<Duration> {
    config.persistent_keepalive.filter(|seconds| *seconds > 0).map(|s| Duration::from_secs(s.into()))
}

fn written(result: TunnResult<'_>) -> Option<usize> {
    match result {
        TunnResult::WriteToNetwork(datagram) => Some(datagram.len()),
        _ => None,
    }
}

/// Maps an IPv4-mapped IPv6 address to IPv4, so that it leaves through the IPv4 socket.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests;
