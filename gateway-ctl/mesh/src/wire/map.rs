//! The map of the mesh: what a client tells about itself, and what it learns about its peers.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::{HostInfo, null_as_default};
use crate::keys::{DiscoKey, MachineKey, NodeKey};

/// The keys of a coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControlKeys {
    /// The key of clients of older protocols, which this coordinator does not serve.
    #[serde(default)]
    pub legacy_public_key: MachineKey,
    pub public_key: MachineKey,
}

/// A request for the map, which also tells how the node is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct MapRequest {
    pub version: u32,
    /// `zstd`, or empty.
    pub compress: String,
    pub node_key: NodeKey,
    #[serde(deserialize_with = "null_as_default")]
    pub disco_key: DiscoKey,
    /// True if the client wants messages while nothing changes.
    pub keep_alive: bool,
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
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
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub peers_changed: Vec<PeerNode>,
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub peers_removed: Vec<u64>,
    /// Single properties of peers. This coordinator sends whole peers.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub peers_changed_patch: Vec<PeerChange>,
    #[serde(rename = "DNSConfig", skip_serializing_if = "Option::is_none")]
    pub dns_config: Option<DnsConfig>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_filter: Option<Vec<FilterRule>>,
    /// Parts of the packet filter by name; `null` removes one, and the name `*` all others. This coordinator has one part.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub packet_filters: BTreeMap<String, Option<Vec<FilterRule>>>,
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub user_profiles: Vec<UserProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_time: Option<Timestamp>,
}

/// A node of the mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PeerNode {
    #[serde(rename = "ID")]
    pub id: u64,
    #[serde(rename = "StableID")]
    pub stable_id: String,
    /// Name with the domain of the mesh and a final dot.
    pub name: String,
    #[serde(skip_deserializing)]
    pub user: u64,
    pub key: NodeKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_expiry: Option<Timestamp>,
    pub machine: MachineKey,
    /// Absent until the node has sent it: some clients end the stream at an empty one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disco_key: Option<DiscoKey>,
    #[serde(deserialize_with = "null_as_default")]
    pub addresses: Vec<IpNet>,
    /// Addresses, and approved routes.
    #[serde(rename = "AllowedIPs", deserialize_with = "null_as_default")]
    pub allowed_ips: Vec<IpNet>,
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<SocketAddr>,
    /// Relay of the node as clients before version 111 read it.
    #[serde(rename = "DERP", skip_serializing_if = "String::is_empty")]
    pub legacy_derp: String,
    /// Relay at which the node is.
    #[serde(rename = "HomeDERP", skip_serializing_if = "is_zero")]
    pub home_derp: u32,
    #[serde(deserialize_with = "null_as_default")]
    pub hostinfo: HostInfo,
    pub created: Timestamp,
    pub cap: u32,
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub primary_routes: Vec<IpNet>,
    #[serde(deserialize_with = "null_as_default")]
    pub online: bool,
    pub machine_authorized: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
}

/// Reads an address. Some coordinators write `none`, or nothing.
fn text_of_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IpAddr>, D::Error> {
    let text: Option<String> = Option::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Changed properties of a peer. What is absent is as before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PeerChange {
    #[serde(rename = "NodeID")]
    pub node_id: u64,
    /// Relay at which the peer is.
    #[serde(rename = "DERPRegion", skip_serializing_if = "is_zero")]
    pub derp_region: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<SocketAddr>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<NodeKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disco_key: Option<DiscoKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub online: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_expiry: Option<Timestamp>,
}

/// The relays of a mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DerpMap {
    #[serde(deserialize_with = "null_as_default")]
    pub regions: BTreeMap<u32, DerpRegion>,
    pub omit_default_regions: bool,
}

/// Relays near each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DerpRegion {
    #[serde(rename = "RegionID")]
    pub region_id: u32,
    pub region_code: String,
    pub region_name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub nodes: Vec<DerpNode>,
}

/// A relay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DerpNode {
    pub name: String,
    #[serde(rename = "RegionID")]
    pub region_id: u32,
    pub host_name: String,
    /// `sha256-raw:` and the digest of a certificate, if clients shall accept this one alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cert_name: String,
    #[serde(rename = "IPv4", deserialize_with = "text_of_address", skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<IpAddr>,
    /// TCP port; 0 for that of HTTPS.
    #[serde(rename = "DERPPort")]
    pub derp_port: u16,
    /// UDP port; 0 for that of STUN, and -1 for none.
    #[serde(rename = "STUNPort")]
    pub stun_port: i32,
}

/// Names of the mesh. This coordinator serves none yet, which an empty object says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsConfig {}

/// A rule of the packet filter: what these sources may reach at the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FilterRule {
    #[serde(rename = "SrcIPs", deserialize_with = "null_as_default")]
    pub src_ips: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub dst_ports: Vec<PortRange>,
    /// Protocols by number. Empty: TCP, UDP and ICMP.
    #[serde(rename = "IPProto", deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<u8>,
}

/// Ports of destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PortRange {
    #[serde(rename = "IP")]
    pub ip: String,
    pub ports: Ports,
}

/// A range of ports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
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
