//! Messages of the control protocol, in the names that clients use. Unknown fields are ignored; what is missing has the
//! default of its type, as it has at the clients.

mod map;
mod register;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize};

pub use map::{
    ControlKeys, DerpMap, DerpNode, DerpRegion, DnsConfig, FilterRule, MapRequest, MapResponse, PeerChange,
    PeerNode, PortRange, Ports, UserProfile,
};
pub use register::{Login, RegisterAuth, RegisterRequest, RegisterResponse, User};

/// Reads `null` as the default of a type: clients write empty lists so.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Description of the host of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostInfo {
    #[serde(rename = "OS")]
    pub os: String,
    pub hostname: String,
    /// Prefixes that the host offers to route.
    #[serde(
        rename = "RoutableIPs",
        alias = "RoutableIps",
        deserialize_with = "null_as_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub routable_ips: Vec<IpNet>,
    /// Relay that the host prefers, and other facts about its network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net_info: Option<NetInfo>,
}

/// Findings of a client about its network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NetInfo {
    /// Region of the relay at which the client is.
    #[serde(rename = "PreferredDERP", alias = "PreferredDerp")]
    pub preferred_derp: u32,
}
