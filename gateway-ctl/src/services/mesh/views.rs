//! The mesh as the API shows it. What a coordinator does not observe of a node is null.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_mesh::{Member, Node, Presence};
use gateway_model::settings::bootstrap::MeshCoordinator;
use gateway_model::validated::Cidr;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Mesh, OpenError, REGION, ledger};

/// State of the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MeshState {
    /// The coordinator is off, and so is the membership in a mesh.
    Down,
    /// The coordinator opens its listeners, or this gateway connects to another one.
    Connecting,
    /// The coordinator serves its nodes at all its addresses, or this gateway follows the map of another one.
    Up,
    /// The gateway waits for a login at another coordinator.
    NeedsLogin,
    /// The gateway waits for an approval at another coordinator.
    NeedsApproval,
    /// The coordinator does not serve its nodes, or not at all its addresses; or this gateway does not follow the map of another
    /// one.
    Error,
}

/// Path between this gateway and a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Connection {
    Direct,
    Relay,
    Idle,
}

/// This gateway as a node of the mesh.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OwnNode {
    pub id: String,
    pub name: String,
    pub ips: Vec<IpAddr>,
    /// Null: it does not end.
    pub key_expiry: Option<Timestamp>,
}

/// Coordinator of the mesh.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CoordinatorStatus {
    /// URL for clients, or that of the coordinator of which this gateway is a member. Null while `mesh.coordinator.host` is not
    /// set.
    pub url: Option<String>,
    /// The coordinator accepts connections at all its addresses, or this gateway follows its map.
    pub reachable: bool,
    /// Time at which it was last found so. Null while that is unknown.
    pub last_seen: Option<Timestamp>,
}

/// Relays of this gateway.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DerpStatus {
    /// Region of the relay at which peers reach this gateway. Null: there is none, or the gateway is no node of a mesh.
    pub home: Option<u32>,
    /// Latency by region, in milliseconds. Empty: it is no node of a mesh.
    pub latency_ms: BTreeMap<u32, f64>,
}

/// Number of peers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MeshPeerCounts {
    pub total: usize,
    /// Connected to the coordinator.
    pub online: usize,
    /// With a direct path to this gateway. Null: it is no node of a mesh.
    pub direct: Option<usize>,
    /// With a path by a relay to this gateway. Null: it is no node of a mesh.
    pub relay: Option<usize>,
}

/// The mesh of this gateway.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MeshStatus {
    pub state: MeshState,
    /// This gateway as a node. Null: it coordinates the mesh, or is no node of one.
    pub node: Option<OwnNode>,
    pub coordinator: CoordinatorStatus,
    pub derp: DerpStatus,
    pub peers: MeshPeerCounts,
    /// URL at which a person has to log in, so that the coordinator admits this gateway. Null: none.
    pub login_url: Option<String>,
    /// Faults. Empty: there are none.
    pub health: Vec<String>,
}

/// Prefix that a peer offers to route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MeshRoute {
    pub cidr: Cidr,
    /// Other peers send to it by this peer.
    pub approved: bool,
}

/// Peer of the mesh.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MeshPeer {
    pub id: String,
    /// DNS label, below the domain of the mesh.
    pub name: String,
    pub ips: Vec<IpAddr>,
    /// System as the client names it.
    pub os: String,
    /// Connected to the coordinator.
    pub online: bool,
    /// Null: only the coordinator knows it, and this gateway is a member.
    pub last_seen: Option<Timestamp>,
    /// Path between this gateway and the peer. Null: this gateway is no node of the mesh.
    pub connection: Option<Connection>,
    /// Region of the relay at which the peer is. Null while that is unknown.
    pub relay_region: Option<u32>,
    /// Null: this gateway is no node of the mesh.
    pub latency_ms: Option<f64>,
    /// Bytes that this gateway has received from it. Null: this gateway is no node of the mesh.
    pub rx: Option<u64>,
    /// Bytes that this gateway has sent to it. Null: this gateway is no node of the mesh.
    pub tx: Option<u64>,
    pub routes: Vec<MeshRoute>,
    /// Other peers may send all their traffic by it.
    pub exit_node_option: bool,
    /// End of its key. Null: it does not end.
    pub key_expiry: Option<Timestamp>,
    pub tags: Vec<String>,
    /// It is removed once it is gone for `mesh.coordinator.ephemeral_sec`. Null: only the coordinator knows it, and this gateway is
    /// a member.
    pub ephemeral: Option<bool>,
    pub created_at: Timestamp,
}

/// Source of the relays of the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DerpModeName {
    /// Those of the map that the coordinator sends.
    Auto,
    /// Those of the public map.
    Public,
    /// The own relay alone.
    Embedded,
    /// A list.
    Custom,
    /// None.
    Off,
}

/// Relay of the coordinator.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EmbeddedRelay {
    pub enabled: bool,
    pub region_id: u32,
    /// It serves nodes of the mesh only.
    pub verify_clients: bool,
    pub stun_port: u16,
}

/// Relays of the mesh.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DerpMode {
    pub mode: DerpModeName,
    pub embedded: EmbeddedRelay,
    /// Maps of further relays.
    pub map_urls: Vec<String>,
    /// Regions of the relays that the coordinator of this gateway names.
    pub regions: Vec<u32>,
}

impl DerpMode {
    fn of(settings: &MeshCoordinator) -> DerpMode {
        let relay = settings.relay;
        let enabled = settings.enabled && relay.enabled;
        DerpMode {
            mode: if enabled { DerpModeName::Embedded } else { DerpModeName::Off },
            embedded: EmbeddedRelay {
                enabled,
                region_id: REGION,
                verify_clients: relay.verify_clients,
                stun_port: relay.stun_port,
            },
            map_urls: Vec::new(),
            regions: Vec::new(),
        }
    }
}

impl MeshPeer {
    fn of(Member { node, presence }: &Member, now: Timestamp) -> MeshPeer {
        let online = presence.stream.is_some();
        let is_approved = |route| node.approved.contains(route);
        MeshPeer {
            id: node.id.to_string(),
            name: node.name.clone(),
            ips: node.addresses.to_vec(),
            os: node.os.clone(),
            online,
            last_seen: Some(if online { now } else { node.last_seen }),
            connection: None,
            relay_region: (online && presence.home_derp != 0).then_some(presence.home_derp),
            latency_ms: None,
            rx: None,
            tx: None,
            routes: node
                .advertised
                .iter()
                .map(|route| MeshRoute { cidr: Cidr(*route), approved: is_approved(route) })
                .collect(),
            exit_node_option: node.routes().any(|route| route.prefix_len() == 0),
            key_expiry: node.key_expiry,
            tags: node.tags.clone(),
            ephemeral: Some(node.ephemeral),
            created_at: node.created,
        }
    }
}

impl Mesh {
    /// Returns the peers by their numbers. May block on the disk.
    pub fn peers(&self) -> Result<Vec<MeshPeer>, OpenError> {
        let now = self.store.clock().now();
        Ok(self.members()?.iter().map(|member| MeshPeer::of(member, now)).collect())
    }

    /// Returns the relays.
    pub fn derp_mode(&self) -> DerpMode {
        DerpMode::of(&self.settings())
    }

    /// Returns the status of the mesh. May block on the disk.
    pub fn status(&self) -> Result<MeshStatus, OpenError> {
        let (settings, members) = (self.settings(), self.members()?);
        let (serves, health) = (self.listening.is_serving(), self.listening.failures());
        let state = match (settings.enabled, serves) {
            (false, _) => MeshState::Down,
            (true, true) => MeshState::Up,
            (true, false) if health.is_empty() => MeshState::Connecting,
            (true, false) => MeshState::Error,
        };
        let reachable = state == MeshState::Up;
        Ok(MeshStatus {
            state,
            node: None,
            coordinator: CoordinatorStatus {
                url: settings.url(),
                reachable,
                last_seen: reachable.then(|| self.store.clock().now()),
            },
            derp: DerpStatus { home: None, latency_ms: BTreeMap::new() },
            peers: MeshPeerCounts {
                total: members.len(),
                online: members.iter().filter(|member| member.is_connected()).count(),
                direct: None,
                relay: None,
            },
            login_url: None,
            health: if settings.enabled { health } else { Vec::new() },
        })
    }

    /// Returns the nodes, connected or not.
    pub(super) fn members(&self) -> Result<Vec<Member>, OpenError> {
        match self.open()? {
            Some(opened) => Ok(opened.coordinator.members()),
            None => {
                let (roster, _) = ledger::stored(&self.store.current()).map_err(OpenError::Roster)?;
                let absent = |node: &Node| Member { node: node.clone(), presence: Presence::default() };
                Ok(roster.nodes().map(absent).collect())
            }
        }
    }
}
