//! The mesh as a member knows it: the first map of a stream, with all changes since. No I/O.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::keys::DiscoKey;
use crate::wire::{DerpMap, FilterRule, MapResponse, PeerChange, PeerNode};

/// Peers that are kept. Further ones are ignored.
const MOST_PEERS: usize = 4096;
/// Name of the only part of a packet filter that has no names.
const BASE_FILTER: &str = "base";
/// Name by which a change removes all parts of the packet filter.
const ALL_FILTERS: &str = "*";
/// Start of the address by which older coordinators write the region of a relay.
const LEGACY_DERP: &str = "127.3.3.40:";

/// Map of the mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkMap {
    /// The member itself; none before the first map.
    pub node: Option<PeerNode>,
    /// Other nodes by their numbers.
    pub peers: BTreeMap<u64, PeerNode>,
    pub derp_map: DerpMap,
    pub domain: String,
    filters: BTreeMap<String, Vec<FilterRule>>,
}

impl NetworkMap {
    /// Takes over a message of the stream. Tells whether it changed anything.
    pub fn apply(&mut self, message: MapResponse) -> bool {
        let before = self.clone();
        if let Some(node) = message.node {
            self.node = Some(normal(node));
        }
        if let Some(derp_map) = message.derp_map {
            self.derp_map = derp_map;
        }
        if !message.domain.is_empty() {
            self.domain = message.domain;
        }
        if let Some(peers) = message.peers {
            self.peers.clear();
            peers.into_iter().for_each(|peer| self.put(peer));
        }
        message.peers_changed.into_iter().for_each(|peer| self.put(peer));
        for id in message.peers_removed {
            self.peers.remove(&id);
        }
        for change in message.peers_changed_patch {
            if let Some(peer) = self.peers.get_mut(&change.node_id) {
                patch(peer, change);
            }
        }
        if let Some(rules) = message.packet_filter {
            self.filters = BTreeMap::from([(BASE_FILTER.to_owned(), rules)]);
        }
        self.change_filters(message.packet_filters);
        *self != before
    }

    fn put(&mut self, peer: PeerNode) {
        if self.peers.len() < MOST_PEERS || self.peers.contains_key(&peer.id) {
            self.peers.insert(peer.id, normal(peer));
        }
    }

    fn change_filters(&mut self, mut changes: BTreeMap<String, Option<Vec<FilterRule>>>) {
        if let Some(None) = changes.remove(ALL_FILTERS) {
            self.filters.clear();
        }
        for (name, rules) in changes {
            match rules {
                Some(rules) => _ = self.filters.insert(name, rules),
                None => _ = self.filters.remove(&name),
            }
        }
    }

    /// Rules of the packet filter. Without any, nothing may come in.
    pub fn filter_rules(&self) -> impl Iterator<Item = &FilterRule> {
        self.filters.values().flatten()
    }
}

/// Returns the end of the key of a node; none if it does not end. Coordinators write "never" as the year 1, too.
pub fn key_end(node: &PeerNode) -> Option<Timestamp> {
    node.key_expiry.filter(|end| *end > Timestamp::UNIX_EPOCH)
}

/// Brings what coordinators write in two ways into one.
fn normal(mut node: PeerNode) -> PeerNode {
    node.disco_key = node.disco_key.filter(|key| !key.is_zero());
    if node.home_derp == 0 {
        let region = node.legacy_derp.strip_prefix(LEGACY_DERP).and_then(|region| region.parse().ok());
        node.home_derp = region.unwrap_or_default();
    }
    node
}

fn patch(peer: &mut PeerNode, change: PeerChange) {
    if change.derp_region != 0 {
        peer.home_derp = change.derp_region;
    }
    if let Some(endpoints) = change.endpoints {
        peer.endpoints = endpoints;
    }
    if let Some(key) = change.key {
        peer.key = key;
    }
    if let Some(key) = change.disco_key {
        peer.disco_key = Some(key).filter(|key: &DiscoKey| !key.is_zero());
    }
    if let Some(online) = change.online {
        peer.online = online;
    }
    if change.key_expiry.is_some() {
        peer.key_expiry = change.key_expiry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::NodeKey;

    fn message(text: &str) -> MapResponse {
        serde_json::from_str(text).expect("a message")
    }

    #[test]
    fn changes_follow_the_first_map() {
        let mut map = NetworkMap::default();
        let first = r#"{"Node":{"ID":1,"Name":"gw.mesh."},"Peers":[{"ID":2,"DERP":"127.3.3.40:7"},{"ID":3,"Tags":null}],
            "PacketFilter":[{"SrcIPs":["*"],"DstPorts":null}],"DERPMap":{"Regions":null}}"#;
        assert!(map.apply(message(first)));
        assert_eq!((map.peers.len(), map.peers[&2].home_derp, map.filter_rules().count()), (2, 7, 1));
        assert!(!map.apply(message(r#"{"KeepAlive":true}"#)));
        let key = NodeKey([4; 32]);
        let changes = format!(
            r#"{{"PeersRemoved":[3],"PeersChangedPatch":[{{"NodeID":2,"Online":true,"Key":"{key}","Endpoints":["192.0.2.1:9"]}},
                {{"NodeID":9,"Online":true}}],"PacketFilters":{{"*":null}}}}"#
        );
        assert!(map.apply(message(&changes)));
        let peer = &map.peers[&2];
        assert_eq!((map.peers.len(), peer.key, peer.online, peer.endpoints.len()), (1, key, true, 1));
        assert_eq!(map.filter_rules().count(), 0, "nothing may come in");
    }

    #[test]
    fn a_key_of_the_year_1_does_not_end() {
        let node: PeerNode = serde_json::from_str(r#"{"KeyExpiry":"0001-01-01T00:00:00Z"}"#).expect("a node");
        assert_eq!(key_end(&node), None);
    }
}
