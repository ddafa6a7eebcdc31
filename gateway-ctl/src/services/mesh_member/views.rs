//! The membership as the API shows it.

use std::net::IpAddr;

use gateway_mesh::network_map::{NetworkMap, key_end};
use gateway_mesh::wire::PeerNode;
use gateway_model::validated::Cidr;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Serialize;

use super::MeshMember;
use super::map_reader::{approved, label};
use super::membership::Membership;
use super::observed::{Observation, PeerTraffic};
use crate::services::mesh::{
    Connection, CoordinatorStatus, DerpMode, DerpModeName, DerpStatus, MeshPeer, MeshPeerCounts, MeshRoute,
    MeshState, MeshStatus, OwnNode,
};

/// Configuration of the membership of this gateway in a mesh.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MeshConfig {
    /// The gateway follows the map of the mesh, or tries to.
    pub enabled: bool,
    /// Null: the gateway is registered at no coordinator.
    pub coordinator_url: Option<String>,
    /// Key of the coordinator, which every session has to prove.
    pub coordinator_key: Option<String>,
    /// A pre-auth key is kept. It never is: a registration uses it once.
    pub auth_key: bool,
    /// Name of this gateway in the mesh.
    pub hostname: Option<String>,
    /// Certificates of the coordinator and its relay have to come from authorities of the registration, not of the system.
    pub own_authorities: bool,
    /// Prefixes that this gateway offers to route: the setting `mesh.member.advertise_routes`.
    pub advertise_routes: Vec<Cidr>,
    /// This gateway offers to be an exit: the setting `mesh.member.advertise_exit`.
    pub advertise_exit: bool,
    /// Offered prefixes that the coordinator has approved. Only these are routed.
    pub approved_routes: Vec<Cidr>,
    /// Approved prefixes of peers are used without a policy: the setting `mesh.member.accept_routes`.
    pub accept_routes: bool,
    /// The resolver answers names of the mesh: the setting `mesh.member.accept_dns`.
    pub accept_dns: bool,
    /// Peer by which this gateway reaches the internet. There is none.
    pub exit_node: Option<String>,
    /// UDP port for the packets of peers.
    pub listen_port: Option<u16>,
    pub derp_mode: DerpModeName,
}

impl MeshMember {
    fn membership_of_views(&self) -> Option<Membership> {
        if self.observed.is_erased() || self.coordinates() {
            return None;
        }
        Membership::stored(&self.store.current())
    }

    /// Reports whether this gateway is registered at a coordinator, and coordinates no mesh itself.
    pub fn is_member(&self) -> bool {
        self.membership_of_views().is_some()
    }

    /// Returns the configuration.
    pub fn config(&self) -> MeshConfig {
        let record = Membership::stored(&self.store.current()).map(|membership| membership.record);
        let offer = self.worlds.in_force().config.mesh.member.clone();
        let approved = approved(&self.observed.get().map, &offer.offered());
        MeshConfig {
            enabled: self.wanted().is_some(),
            coordinator_url: record.as_ref().map(|record| record.coordinator_url.clone()),
            coordinator_key: record.as_ref().map(|record| record.coordinator_key.to_string()),
            auth_key: false,
            hostname: record.as_ref().map(|record| record.hostname.clone()),
            own_authorities: record.as_ref().is_some_and(|record| !record.ca_certificate.is_empty()),
            advertise_routes: offer.advertise_routes,
            advertise_exit: offer.advertise_exit,
            approved_routes: approved.into_iter().map(Cidr).collect(),
            accept_routes: offer.accept_routes,
            accept_dns: offer.accept_dns,
            exit_node: None,
            listen_port: record.as_ref().map(|record| record.listen_port),
            derp_mode: if record.is_some() { DerpModeName::Auto } else { DerpModeName::Off },
        }
    }

    /// Returns the status. `None` if this gateway is no member.
    pub fn status(&self) -> Option<MeshStatus> {
        let membership = self.membership_of_views()?;
        let seen = self.observed.get();
        let state = state(&membership, &seen);
        let peers = peers_of(&seen);
        let count = |wanted: Connection| peers.iter().filter(|peer| peer.connection == Some(wanted)).count();
        let milliseconds = seen.latencies.iter().map(|(id, latency)| (*id, latency.as_secs_f64() * 1000.0));
        Some(MeshStatus {
            state,
            node: seen.map.node.as_ref().map(|node| own_node(node, &seen.map)),
            coordinator: CoordinatorStatus {
                url: Some(membership.record.coordinator_url.clone()),
                reachable: seen.is_connected,
                last_seen: seen.last_seen,
            },
            derp: DerpStatus { home: seen.home_region, latency_ms: milliseconds.collect() },
            peers: MeshPeerCounts {
                total: peers.len(),
                online: peers.iter().filter(|peer| peer.online).count(),
                direct: Some(count(Connection::Direct)),
                relay: Some(count(Connection::Relay)),
            },
            login_url: Some(membership.record.login_url.clone()).filter(|url| !url.is_empty()),
            health: health(&membership, &seen),
        })
    }

    /// Returns the peers of the map, by their numbers. `None` if this gateway is no member.
    pub fn peers(&self) -> Option<Vec<MeshPeer>> {
        self.membership_of_views()?;
        Some(peers_of(&self.observed.get()))
    }

    /// Returns the relays of the map. `None` if this gateway is no member.
    pub fn derp_mode(&self, coordinator: DerpMode) -> DerpMode {
        if self.membership_of_views().is_none() {
            return coordinator;
        }
        let regions = self.observed.get().map.derp_map.regions.into_keys().collect();
        DerpMode { mode: DerpModeName::Auto, regions, ..coordinator }
    }
}

fn state(membership: &Membership, seen: &Observation) -> MeshState {
    let is_authorized = seen.map.node.as_ref().map(|node| node.machine_authorized);
    if !membership.record.up {
        MeshState::Down
    } else if !membership.record.login_url.is_empty() && is_authorized.is_none() || seen.is_refused {
        MeshState::NeedsLogin
    } else if is_authorized == Some(false) {
        MeshState::NeedsApproval
    } else if seen.device_failure.is_some() {
        MeshState::Error
    } else if seen.is_connected {
        MeshState::Up
    } else if seen.failure.is_some() {
        MeshState::Error
    } else {
        MeshState::Connecting
    }
}

fn health(membership: &Membership, seen: &Observation) -> Vec<String> {
    if !membership.record.up {
        return Vec::new();
    }
    let coordinator = seen.failure.iter().map(|reason| format!("The map is not followed: {reason}."));
    let device = seen.device_failure.iter().map(|reason| format!("There is no interface: {reason}."));
    let relays =
        seen.relay_failures.iter().map(|(id, reason)| format!("The relay {id} is not used: {reason}."));
    coordinator.chain(device).chain(relays).collect()
}

fn own_node(node: &PeerNode, map: &NetworkMap) -> OwnNode {
    OwnNode {
        id: node.id.to_string(),
        name: label(&node.name, &map.domain),
        ips: addresses(node),
        key_expiry: key_end(node),
    }
}

fn addresses(node: &PeerNode) -> Vec<IpAddr> {
    node.addresses.iter().map(IpNet::addr).collect()
}

fn peers_of(seen: &Observation) -> Vec<MeshPeer> {
    let none = PeerTraffic::default();
    let peers = seen.map.peers.values();
    peers.map(|peer| view(peer, &seen.map, seen.traffic.get(&peer.key).unwrap_or(&none))).collect()
}

fn view(peer: &PeerNode, map: &NetworkMap, traffic: &PeerTraffic) -> MeshPeer {
    let is_exit = |net: &&IpNet| net.prefix_len() == 0;
    let routes = peer.allowed_ips.iter().filter(|net| !peer.addresses.contains(net));
    MeshPeer {
        id: peer.id.to_string(),
        name: label(&peer.name, &map.domain),
        ips: addresses(peer),
        os: peer.hostinfo.os.clone(),
        online: peer.online,
        last_seen: None,
        connection: Some(match traffic {
            PeerTraffic { is_active: false, .. } => Connection::Idle,
            PeerTraffic { direct: Some(_), .. } => Connection::Direct,
            PeerTraffic { direct: None, .. } => Connection::Relay,
        }),
        relay_region: (peer.home_derp != 0).then_some(peer.home_derp),
        latency_ms: traffic.direct.map(|latency| latency.as_secs_f64() * 1000.0),
        rx: Some(traffic.rx),
        tx: Some(traffic.tx),
        routes: routes.clone().map(|net| MeshRoute { cidr: Cidr(*net), approved: true }).collect(),
        exit_node_option: routes.clone().any(|net| is_exit(&net)),
        key_expiry: key_end(peer),
        tags: peer.tags.clone(),
        ephemeral: None,
        created_at: peer.created,
    }
}
