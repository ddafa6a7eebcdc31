//! The part of the bootstrap configuration that the compiler needs: which interface is what.

use std::net::IpAddr;

use serde::Serialize;

/// Interfaces and their roles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Interfaces of LANs.
    pub lan: Vec<String>,
    /// Uplinks in the order of their numbers: the first is the default way out.
    pub uplinks: Vec<UplinkSettings>,
    /// One of so many new flows is reported; 0 reports none.
    pub sample_every: u32,
    /// Port of the resolver here; 0 without one.
    pub dns_port: u16,
    /// Resolvers that the resolver here asks beside those of forwarders, unless others are set at runtime.
    pub resolvers: Vec<IpAddr>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UplinkSettings {
    pub interface: String,
    /// Without it, the gateway of the main table's default route over this interface.
    pub gateway: Option<IpAddr>,
}
