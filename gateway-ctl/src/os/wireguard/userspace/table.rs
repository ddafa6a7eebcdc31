//! Immutable table of a device's peers with its lookup indexes. Each change builds a new one.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use boringtun::noise::{Packet, handshake};

use super::super::allowed_ips::AllowedIps;
use super::super::device::DeviceConfig;
use super::identity::Identity;
use super::peer::Peer;

/// The low byte of a session index counts the sessions of a peer.
const SESSION_BITS: u32 = 8;

pub(super) struct Table {
    pub(super) identity: Arc<Identity>,
    by_key: BTreeMap<[u8; 32], Arc<Peer>>,
    by_index: BTreeMap<u32, Arc<Peer>>,
    by_address: AllowedIps<Arc<Peer>>,
}

impl Table {
    /// Builds the table for a configuration. Peers of the previous one stay, with their sessions.
    pub(super) fn build(
        config: &DeviceConfig,
        previous: Option<(&Self, &DeviceConfig)>,
    ) -> Result<Self, getrandom::Error> {
        let same = previous.filter(|(_, before)| before.private_key == config.private_key);
        let identity = match same {
            Some((old, _)) => Arc::clone(&old.identity),
            None => Arc::new(Identity::new(&config.private_key)),
        };
        let mut by_key = BTreeMap::new();
        let mut by_index = BTreeMap::new();
        let mut staying = Vec::new();
        for wanted in &config.peers {
            let known = previous.and_then(|(old, before)| {
                let before = before.peers.iter().find(|peer| peer.public_key == wanted.public_key)?;
                Some((old.by_key.get(&wanted.public_key)?, before))
            });
            let peer = if let Some((peer, before)) = known {
                staying.push((peer, before, wanted));
                Arc::clone(peer)
            } else {
                let taken = |index| {
                    by_index.contains_key(&index)
                        || previous.is_some_and(|(old, _)| old.by_index.contains_key(&index))
                };
                Arc::new(Peer::new(&identity, wanted, free_index(taken)?))
            };
            by_index.insert(peer.index(), Arc::clone(&peer));
            by_key.insert(wanted.public_key, peer);
        }
        let by_address = AllowedIps::new(config.peers.iter().flat_map(|wanted| {
            let peer = &by_key[&wanted.public_key];
            wanted.allowed_ips.iter().map(|net| (*net, Arc::clone(peer)))
        }));
        // Last, because no further step can fail.
        for (peer, before, wanted) in staying {
            peer.change(&identity, same.is_none(), before, wanted);
        }
        Ok(Self { identity, by_key, by_index, by_address })
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.by_key.values()
    }

    /// Returns the peer with this key.
    pub(super) fn peer(&self, key: &[u8; 32]) -> Option<&Arc<Peer>> {
        self.by_key.get(key)
    }

    /// Returns the peer that an inner address belongs to.
    pub(super) fn by_address(&self, address: IpAddr) -> Option<&Arc<Peer>> {
        self.by_address.find(address)
    }

    /// Returns the peer that a datagram claims as its sender. Only the peer itself can verify the claim.
    pub(super) fn by_packet(&self, packet: &Packet<'_>) -> Option<&Arc<Peer>> {
        let receiver = match packet {
            Packet::HandshakeInit(init) => {
                let Identity { private, public, .. } = &*self.identity;
                let half = handshake::parse_handshake_anon(private, public, init).ok()?;
                return self.by_key.get(&half.peer_static_public);
            }
            Packet::HandshakeResponse(response) => response.receiver_idx,
            Packet::PacketCookieReply(reply) => reply.receiver_idx,
            Packet::PacketData(data) => data.receiver_idx,
        };
        self.by_index.get(&(receiver >> SESSION_BITS))
    }
}

/// Returns a random index, so that it does not reveal the number of peers.
fn free_index(taken: impl Fn(u32) -> bool) -> Result<u32, getrandom::Error> {
    loop {
        let index = getrandom::u32()? >> SESSION_BITS;
        if !taken(index) {
            return Ok(index);
        }
    }
}
