//! The map of the mesh as one node sees it, and what changed since it saw it last. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use jiff::Timestamp;

use crate::addresses::host_prefix;
use crate::node::{Node, Presence};
use crate::wire::{
    DerpMap, DnsConfig, FilterRule, HostInfo, MapResponse, NetInfo, PeerNode, PortRange, Ports, UserProfile,
};

/// The user that all nodes belong to.
pub(crate) const USER: u64 = 1;
/// Version of the protocol from which clients read the region of a relay as a number. Older ones read an address.
const LEGACY_DERP: &str = "127.3.3.40";

/// Facts that are equal for all nodes of a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshProfile {
    /// Domain of the names of nodes, without dots at its ends.
    pub domain: String,
    /// Name of the owner.
    pub owner: String,
    pub derp_map: DerpMap,
}

/// Knowledge of one node about the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    node: PeerNode,
    peers: BTreeMap<u64, PeerNode>,
}

impl View {
    /// Makes the view of the node of this number. Nodes whose key has ended have no peers, and are no peers.
    pub(crate) fn of(
        id: u64,
        members: &[(&Node, &Presence)],
        profile: &MeshProfile,
        now: Timestamp,
    ) -> Option<Self> {
        let primary = primary_routes(members, now);
        let show = |(node, presence): &(&Node, &Presence)| {
            let routes: Vec<_> = node.routes().filter(|route| is_routed(*route, node.id, &primary)).collect();
            peer_node(node, presence, &routes, profile, now)
        };
        let own = members.iter().find(|(node, _)| node.id == id)?;
        let ended = own.0.is_expired(now);
        let peers = members.iter().filter(|(node, _)| !ended && node.id != id && !node.is_expired(now));
        Some(Self { node: show(own), peers: peers.map(|peer| (peer.0.id, show(peer))).collect() })
    }

    /// The first message of a stream: everything.
    pub(crate) fn whole(&self, profile: &MeshProfile, now: Timestamp) -> MapResponse {
        MapResponse {
            node: Some(self.node.clone()),
            derp_map: Some(profile.derp_map.clone()),
            peers: Some(self.peers.values().cloned().collect()),
            dns_config: Some(DnsConfig {}),
            domain: profile.domain.clone(),
            packet_filter: Some(vec![everything()]),
            user_profiles: vec![UserProfile {
                id: USER,
                login_name: profile.owner.clone(),
                display_name: profile.owner.clone(),
            }],
            control_time: Some(now),
            ..MapResponse::default()
        }
    }

    /// Returns the difference from another view, if there is one.
    pub(crate) fn since(&self, before: &Self) -> Option<MapResponse> {
        let changed = self.peers.iter().filter(|(id, peer)| before.peers.get(id) != Some(peer));
        let response = MapResponse {
            node: (self.node != before.node).then(|| self.node.clone()),
            peers_changed: changed.map(|(_, peer)| peer.clone()).collect(),
            peers_removed: before.peers.keys().copied().filter(|id| !self.peers.contains_key(id)).collect(),
            ..MapResponse::default()
        };
        (response != MapResponse::default()).then_some(response)
    }
}

/// The rule of a mesh whose members may reach each other.
fn everything() -> FilterRule {
    let ports = PortRange { ip: "*".to_owned(), ports: Ports { first: 0, last: u16::MAX } };
    FilterRule { src_ips: vec!["*".to_owned()], dst_ports: vec![ports], protocols: Vec::new() }
}

/// Chooses one node for each approved route: a connected one before others, then the one with the lowest number.
fn primary_routes(members: &[(&Node, &Presence)], now: Timestamp) -> BTreeMap<IpNet, u64> {
    let mut routers: Vec<_> = members.iter().filter(|(node, _)| !node.is_expired(now)).collect();
    routers.sort_by_key(|(node, presence)| (presence.stream.is_none(), node.id));
    let mut primary = BTreeMap::new();
    for (node, _) in routers {
        for route in node.routes() {
            primary.entry(route).or_insert(node.id);
        }
    }
    primary
}

/// Tells whether a node is the one for a route. Any number of nodes can be an exit.
fn is_routed(route: IpNet, id: u64, primary: &BTreeMap<IpNet, u64>) -> bool {
    route.prefix_len() == 0 || primary.get(&route) == Some(&id)
}

fn peer_node(
    node: &Node,
    presence: &Presence,
    routes: &[IpNet],
    profile: &MeshProfile,
    now: Timestamp,
) -> PeerNode {
    let addresses: Vec<IpNet> = node.addresses.into_iter().map(host_prefix).collect();
    let allowed: BTreeSet<IpNet> = addresses.iter().chain(routes).copied().collect();
    let home = presence.home_derp;
    PeerNode {
        id: node.id,
        stable_id: format!("n{}", node.id),
        name: format!("{}.{}.", node.name, profile.domain),
        user: USER,
        key: node.key,
        key_expiry: node.key_expiry,
        machine: node.machine,
        disco_key: (!presence.disco_key.is_zero()).then_some(presence.disco_key),
        addresses,
        allowed_ips: allowed.into_iter().collect(),
        endpoints: presence.endpoints.clone(),
        legacy_derp: if home == 0 { String::new() } else { format!("{LEGACY_DERP}:{home}") },
        home_derp: home,
        hostinfo: HostInfo {
            os: node.os.clone(),
            hostname: node.name.clone(),
            routable_ips: Vec::new(),
            net_info: (home != 0).then_some(NetInfo { preferred_derp: home }),
        },
        created: node.created,
        cap: presence.version,
        tags: node.tags.clone(),
        primary_routes: routes.iter().copied().filter(|route| route.prefix_len() != 0).collect(),
        online: presence.stream.is_some(),
        machine_authorized: true,
        expired: node.is_expired(now),
    }
}

#[cfg(test)]
mod tests;
