//! Endpoints of one peer, and the direct path in use. No I/O.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};

use crate::keys::DiscoKey;

/// Endpoints of the map that are pinged.
const MOST_ENDPOINTS: usize = 32;
/// Endpoints that the peer itself has shown. The newest come in place of the rest.
const MOST_LEARNED: usize = 16;
/// Another path takes over once it is quicker by this part of the latency of the path in use.
const BETTER: u32 = 2;

/// Direct path to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectPath {
    pub address: SocketAddr,
    pub latency: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct UsedPath {
    pub(super) path: DirectPath,
    /// Time of the last pong.
    pub(super) answered: Duration,
    /// Time of the last ping.
    pub(super) pinged: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct PeerPaths {
    pub(super) disco: DiscoKey,
    pub(super) direct: Option<UsedPath>,
    /// Time of the last pings to all endpoints.
    pub(super) discovered: Option<Duration>,
    known: BTreeSet<SocketAddr>,
    learned: BTreeSet<SocketAddr>,
}

impl PeerPaths {
    pub(super) fn new(disco: DiscoKey) -> PeerPaths {
        let (direct, discovered, known, learned) = Default::default();
        PeerPaths { disco, direct, discovered, known, learned }
    }

    /// Sets the endpoints of the map. A new one is pinged soon.
    pub(super) fn set_endpoints(&mut self, endpoints: &[SocketAddr]) {
        let endpoints: BTreeSet<_> =
            endpoints.iter().copied().filter(is_endpoint).take(MOST_ENDPOINTS).collect();
        if !endpoints.is_subset(&self.known) {
            self.discovered = None;
        }
        self.known = endpoints;
    }

    /// Adds endpoints that the peer has shown.
    pub(super) fn add_endpoints(&mut self, endpoints: &[SocketAddr]) {
        for endpoint in endpoints.iter().copied().filter(is_endpoint).take(MOST_ENDPOINTS) {
            if self.known.contains(&endpoint) || self.learned.contains(&endpoint) {
                continue;
            }
            if self.learned.len() >= MOST_LEARNED {
                self.learned.clear();
            }
            self.learned.insert(endpoint);
        }
    }

    pub(super) fn candidates(&self) -> BTreeSet<SocketAddr> {
        self.known.union(&self.learned).copied().collect()
    }

    pub(super) fn discovery_is_due(&self, now: Duration, interval: Duration) -> bool {
        self.direct.is_none() && self.discovered.is_none_or(|last| now.saturating_sub(last) >= interval)
    }

    pub(super) fn note_ping(&mut self, to: SocketAddr, now: Duration) {
        if let Some(used) = self.direct.as_mut().filter(|used| used.path.address == to) {
            used.pinged = now;
        }
    }

    /// Takes a pong over. Returns whether packets go another path now.
    pub(super) fn take_pong(&mut self, path: DirectPath, now: Duration) -> bool {
        let is_new = match &self.direct {
            Some(used) if used.path.address == path.address => false,
            Some(used) if path.latency * BETTER > used.path.latency => return false,
            _ => true,
        };
        let pinged = self.direct.filter(|_| !is_new).map_or(now, |used| used.pinged);
        self.direct = Some(UsedPath { path, answered: now, pinged });
        is_new
    }

    /// Gives the path in use up if it does not answer. Returns whether it did.
    pub(super) fn give_up(&mut self, now: Duration, trust: Duration) -> bool {
        let is_dead = self.direct.is_some_and(|used| now.saturating_sub(used.answered) >= trust);
        if is_dead {
            self.direct = None;
            self.discovered = None;
        }
        is_dead
    }
}

/// Addresses inside a mesh: a path by them would lead through itself.
const MESH: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10);
const MESH_ULA: [u8; 6] = [0xfd, 0x7a, 0x11, 0x5c, 0xa1, 0xe0];

/// Tells whether packets may be sent to an endpoint. A map cannot make the member send to itself, or to many.
fn is_endpoint(endpoint: &SocketAddr) -> bool {
    let usable = match endpoint.ip() {
        IpAddr::V4(ip) => !ip.is_broadcast() && !ip.is_link_local() && !MESH.contains(&ip),
        IpAddr::V6(ip) => {
            !ip.is_unicast_link_local() && !ip.octets().starts_with(&MESH_ULA) && !is_discard(ip.octets())
        }
    };
    let ip = endpoint.ip();
    usable && endpoint.port() != 0 && !ip.is_multicast() && !ip.is_unspecified() && !ip.is_loopback()
}

/// The prefix of addresses that stand for relayed peers (RFC 6666).
fn is_discard(octets: [u8; 16]) -> bool {
    octets.starts_with(&[1, 0, 0, 0, 0, 0, 0, 0])
}

/// Tells whether a prefix is inside those of a mesh: nodes have no other addresses.
pub fn is_mesh_prefix(net: &IpNet) -> bool {
    match net {
        IpNet::V4(net) => net.prefix_len() >= 10 && MESH.contains(net),
        IpNet::V6(net) => net.prefix_len() >= 48 && net.addr().octets().starts_with(&MESH_ULA),
    }
}
