//! The map of the mesh: what a client tells about itself, and what it learns about its peers.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{HostInfo, null_as_default};
use crate::keys::{DiscoKey, MachineKey, NodeKey};

/// The keys of a coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlKeys {
    /// The key of clients of older protocols, which this coordinator does not serve.
    pub legacy_public_key: MachineKey,
    pub public_key: MachineKey,
}

/// A request for the map, which also tells how the node is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct MapRequest {
    pub version: u32,
    /// `zstd`, or empty.
    pub compress: String,
    pub node_key: NodeKey,
    #[serde(deserialize_with = "null_as_default")]
    pub disco_key: DiscoKey,
    /// True if the client follows changes of the map.
    pub stream: bool,
    #[serde(alias = "HostInfo", deserialize_with = "null_as_default")]
    pub hostinfo: HostInfo,
    #[serde(deserialize_with = "null_as_default")]
    pub endpoints: Vec<SocketAddr>,
    /// True if nothing of the request is stored.
    pub read_only: bool,
    /// True if the client wants no peers.
    pub omit_peers: bool,
}

/// A map, or what changed in it. What is absent is as before.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct MapResponse {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_alive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<PeerNode>,
    #[serde(rename = "DERPMap", skip_serializing_if = "Option::is_none")]
    pub derp_map: Option<DerpMap>,
    /// All peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peers: Option<Vec<PeerNode>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers_changed: Vec<PeerNode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers_removed: Vec<u64>,
    #[serde(rename = "DNSConfig", skip_serializing_if = "Option::is_none")]
    pub dns_config: Option<DnsConfig>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_filter: Option<Vec<FilterRule>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_profiles: Vec<UserProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_time: Option<Timestamp>,
}

/// A node of the mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct PeerNode {
    #[serde(rename = "ID")]
    pub id: u64,
    #[serde(rename = "StableID")]
    pub stable_id: String,
    /// Name with the domain of the mesh and a final dot.
    pub name: String,
    pub user: u64,
    pub key: NodeKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_expiry: Option<Timestamp>,
    pub machine: MachineKey,
    /// Absent until the node has sent it: some clients end the stream at an empty one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disco_key: Option<DiscoKey>,
    pub addresses: Vec<IpNet>,
    /// Addresses, and approved routes.
    #[serde(rename = "AllowedIPs")]
    pub allowed_ips: Vec<IpNet>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<SocketAddr>,
    /// Relay of the node as clients before version 111 read it.
    #[serde(rename = "DERP", skip_serializing_if = "String::is_empty")]
    pub legacy_derp: String,
    /// Relay at which the node is.
    #[serde(rename = "HomeDERP", skip_serializing_if = "is_zero")]
    pub home_derp: u32,
    pub hostinfo: HostInfo,
    pub created: Timestamp,
    pub cap: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub primary_routes: Vec<IpNet>,
    pub online: bool,
    pub machine_authorized: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The relays of a mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DerpMap {
    pub regions: BTreeMap<u32, DerpRegion>,
    pub omit_default_regions: bool,
}

/// Relays near each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DerpRegion {
    #[serde(rename = "RegionID")]
    pub region_id: u32,
    pub region_code: String,
    pub region_name: String,
    pub nodes: Vec<DerpNode>,
}

/// A relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DerpNode {
    pub name: String,
    #[serde(rename = "RegionID")]
    pub region_id: u32,
    pub host_name: String,
    /// `sha256-raw:` and the digest of a certificate, if clients shall accept this one alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cert_name: String,
    #[serde(rename = "IPv4", skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<IpAddr>,
    #[serde(rename = "DERPPort")]
    pub derp_port: u16,
    #[serde(rename = "STUNPort")]
    pub stun_port: i32,
}

/// Names of the mesh. This coordinator serves none yet, which an empty object says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DnsConfig {}

/// A rule of the packet filter: what these sources may reach at the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct FilterRule {
    #[serde(rename = "SrcIPs")]
    pub src_ips: Vec<String>,
    pub dst_ports: Vec<PortRange>,
}

/// Ports of destinations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct PortRange {
    #[serde(rename = "IP")]
    pub ip: String,
    pub ports: Ports,
}

/// A range of ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Ports {
    pub first: u16,
    pub last: u16,
}

/// Display of a user at clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct UserProfile {
    #[serde(rename = "ID")]
    pub id: u64,
    pub login_name: String,
    pub display_name: String,
}
