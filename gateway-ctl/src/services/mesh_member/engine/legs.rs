//! Peers as egresses of policies: each peer that a hop names has an interface and the number of a leg.
//!
//! A number stays with a name as long as hops have the name, so other peers move no flow. It follows from the name where that
//! is free, so it is usually the same after a restart. Tunnels count from the other end.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use gateway_core::compile::leg_number;
use gateway_core::facts::MeshLeg;
use gateway_core::indexes::LegId;
use gateway_mesh::NodeKey;
use gateway_mesh::network_map::NetworkMap;
use gateway_mesh::paths::is_mesh_prefix;
use gateway_mesh::wire::PeerNode;
use gateway_model::State;
use gateway_model::id::Revision;
use ipnet::IpNet;
use tokio::time::Instant;

use super::probe::echo_request;
use crate::os::wireguard::{DeviceStatus, PeerTunConfig};
use crate::services::mesh_member::map_reader::label;

/// Numbers of legs of peers: as many as can be in use, from the last number down.
const MAX_LEGS: u8 = 32;
/// Time without a packet of a peer after which it counts as down. WireGuard answers a packet within 10 s.
const SILENCE: Duration = Duration::from_secs(15);
/// Seconds between two echo requests to a peer.
const PROBE_INTERVAL: u32 = 3;

/// Peer of the map as an egress.
#[derive(Clone, Debug)]
struct ExitPeer {
    key: NodeKey,
    addresses: Vec<IpNet>,
    /// Approved routes, those inside the mesh left out.
    routes: BTreeSet<IpNet>,
    is_expired: bool,
}

/// Last time at which a peer sent an authentic packet.
#[derive(Clone, Copy, Debug)]
struct Heard {
    rx_bytes: u64,
    at: Option<Instant>,
}

/// Peers that hops name.
#[derive(Debug, Default)]
pub(super) struct PeerLegs {
    /// Revision of the state that the names are from.
    revision: Option<Revision>,
    /// Names in hops.
    named: BTreeSet<String>,
    /// Prefixes of peers are used without a policy.
    accepts_routes: bool,
    /// Numbers of legs of tunnels.
    tunnels: BTreeSet<LegId>,
    numbers: BTreeMap<String, LegId>,
    peers: BTreeMap<String, ExitPeer>,
    heard: BTreeMap<NodeKey, Heard>,
    ticks: u32,
}

impl PeerLegs {
    /// Takes over the peers of a map. Of several with one name, the one that joined first counts.
    pub(super) fn set_map(&mut self, map: &NetworkMap) {
        self.peers.clear();
        for peer in map.peers.values().filter(|peer| !peer.key.is_zero()) {
            self.peers.entry(label(&peer.name, &map.domain)).or_insert_with(|| exit_peer(peer));
        }
        self.assign_numbers();
    }

    /// Takes over the names in hops, and whether prefixes of peers are used without a policy.
    pub(super) fn set_state(&mut self, state: &State, accepts_routes: bool) {
        if self.revision == Some(state.revision) && self.accepts_routes == accepts_routes {
            return;
        }
        self.revision = Some(state.revision);
        self.accepts_routes = accepts_routes;
        self.named = state.mesh_peers_in_hops().into_iter().map(str::to_owned).collect();
        self.tunnels = state.tunnels.iter().filter_map(leg_number).collect();
        self.assign_numbers();
    }

    /// Peers whose prefixes are used without a policy.
    fn accepted(&self) -> impl Iterator<Item = &String> {
        let peers = self.peers.iter().filter(|_| self.accepts_routes);
        peers.filter(|(_, peer)| peer.routes.iter().any(|net| net.prefix_len() > 0)).map(|(name, _)| name)
    }

    /// Gives numbers to names that have none, those in hops first, and takes them from names that need none.
    fn assign_numbers(&mut self) {
        let wanted: Vec<String> = self.named.iter().chain(self.accepted()).cloned().collect();
        self.numbers.retain(|name, _| wanted.contains(name));
        for name in wanted {
            let is_used = |leg| self.tunnels.contains(&leg) || self.numbers.values().any(|used| *used == leg);
            if !self.numbers.contains_key(&name)
                && let Some(number) = free_number(&name, is_used)
            {
                self.numbers.insert(name, number);
            }
        }
    }

    /// Returns the wanted TUN devices.
    pub(super) fn tuns(&self, mtu: u16) -> Vec<PeerTunConfig> {
        let tun = |(number, peer): (LegId, &ExitPeer)| PeerTunConfig {
            name: interface(number),
            public_key: peer.key.0,
            networks: peer.routes.iter().copied().collect(),
            mtu,
        };
        self.in_use().map(tun).collect()
    }

    /// Peers with a number, as far as the map has them.
    fn in_use(&self) -> impl Iterator<Item = (LegId, &ExitPeer)> {
        self.numbers.iter().filter_map(|(name, number)| {
            Some((*number, self.peers.get(name).filter(|peer| !peer.is_expired)?))
        })
    }

    /// Notes which peers have sent something.
    pub(super) fn observe(&mut self, status: &DeviceStatus, now: Instant) {
        let mut heard = BTreeMap::new();
        for peer in &status.peers {
            let (key, rx_bytes) = (NodeKey(peer.public_key), peer.rx_bytes);
            let at = match self.heard.get(&key) {
                Some(before) if before.rx_bytes == rx_bytes => before.at,
                _ if rx_bytes == 0 => None,
                _ => Some(now),
            };
            heard.insert(key, Heard { rx_bytes, at });
        }
        self.heard = heard;
    }

    /// Returns the echo requests that are due, by the keys of their peers. To be called once a second.
    pub(super) fn probes(&mut self, own: &BTreeSet<IpAddr>) -> Vec<(NodeKey, Vec<u8>)> {
        self.ticks = self.ticks.wrapping_add(1);
        if !self.ticks.is_multiple_of(PROBE_INTERVAL) {
            return Vec::new();
        }
        let probe = |(_, peer): (LegId, &ExitPeer)| Some((peer.key, echo_request(own, &peer.addresses)?));
        self.in_use().filter_map(probe).collect()
    }

    /// Returns the legs as facts, and for names without a leg the reasons.
    pub(super) fn facts(&self, now: Instant) -> (BTreeMap<String, MeshLeg>, BTreeMap<String, String>) {
        let (mut legs, mut missing) = (BTreeMap::new(), BTreeMap::new());
        let wanted: BTreeSet<&String> = self.named.iter().chain(self.accepted()).collect();
        for name in wanted {
            let Some(peer) = self.peers.get(name) else {
                missing.insert(name.clone(), "the mesh has no peer of this name".to_owned());
                continue;
            };
            let Some(number) = self.numbers.get(name).filter(|_| !peer.is_expired) else {
                let reason = if peer.is_expired {
                    "the key of the peer has ended".to_owned()
                } else {
                    format!("policies name more than {MAX_LEGS} peers, or tunnels have all numbers of legs")
                };
                missing.insert(name.clone(), reason);
                continue;
            };
            let reason = self.refusal(peer, now).unwrap_or_default();
            let leg = MeshLeg {
                number: *number,
                interface: interface(*number),
                routes: peer.routes.clone(),
                accepts_routes: self.accepts_routes,
                usable: reason.is_empty(),
                reason: reason.to_owned(),
            };
            legs.insert(name.clone(), leg);
        }
        (legs, missing)
    }

    /// Returns why a peer is no egress at present.
    fn refusal(&self, peer: &ExitPeer, now: Instant) -> Option<&'static str> {
        if peer.routes.is_empty() {
            return Some("it offers no routes, or the coordinator has approved none");
        }
        match self.heard.get(&peer.key).and_then(|heard| heard.at) {
            None => Some("it has not answered yet"),
            Some(at) if now.saturating_duration_since(at) >= SILENCE => Some("no answer for 15 s"),
            Some(_) => None,
        }
    }
}

fn exit_peer(peer: &PeerNode) -> ExitPeer {
    let is_behind = |net: &&IpNet| !peer.addresses.contains(net) && !is_mesh_prefix(net);
    ExitPeer {
        key: peer.key,
        addresses: peer.addresses.clone(),
        routes: peer.allowed_ips.iter().filter(is_behind).map(IpNet::trunc).collect(),
        is_expired: peer.expired,
    }
}

fn interface(number: LegId) -> String {
    format!("mesh{number}")
}

/// Returns a number that is not in use. The search begins at the hash of the name (FNV-1a).
fn free_number(name: &str, is_used: impl Fn(LegId) -> bool) -> Option<LegId> {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let count = u32::from(MAX_LEGS);
    let first = hash % count;
    let numbers = (0..count).map(|step| (first + step) % count);
    numbers
        .filter_map(|place| u8::try_from(u32::from(u8::MAX) - place).ok().and_then(LegId::new))
        .find(|leg| !is_used(*leg))
}

#[cfg(test)]
mod tests;
