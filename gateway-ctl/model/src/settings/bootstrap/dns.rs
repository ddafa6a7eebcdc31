//! The section `dns` of the configuration.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{DnsBackend, UpstreamMode};
use crate::domain::DomainName;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dns {
    pub listen_addr: SocketAddr,
    /// Addresses for queries over TLS and HTTPS.
    pub tls_listen_addrs: Vec<SocketAddr>,
    pub upstream_servers: Vec<IpAddr>,
    /// Resolve the endpoints of tunnels.
    pub bootstrap_servers: Vec<IpAddr>,
    pub upstream_mode: UpstreamMode,
    /// Certificate names of upstream servers that are not well known.
    pub upstream_tls_names: BTreeMap<IpAddr, String>,
    pub backend: DnsBackend,
    pub filtering_enabled: bool,
    /// Until then nothing is blocked.
    pub blocking_paused_until: Option<Timestamp>,
    /// Queries a second over UDP that one host of the LAN may send; four times as many may come at once. 0: no limit.
    pub rate_limit_per_client: u32,
    /// Maximum number of entries of a downloaded list. A list with more is refused, and the previous one stays in use.
    pub list_max_entries: u64,
    /// Maximum number of entries of all downloaded lists. A list that would exceed it is refused, and the previous one
    /// stays in use.
    pub list_max_total_entries: u64,
    /// Lists may be fetched from this host, from the LAN and from other private addresses.
    pub list_private_targets: bool,
    /// Answers by which a public name gets a private, link-local or loopback address, or one of the gateway, are withheld.
    /// Local zones and domains with a forwarder are exempt.
    pub rebinding_protection: bool,
    /// Public domains that may have such addresses.
    pub rebinding_allowed_domains: Vec<DomainName>,
}

impl Default for Dns {
    fn default() -> Dns {
        Dns {
            listen_addr: SocketAddr::from(([0, 0, 0, 0], 53)),
            tls_listen_addrs: Vec::new(),
            upstream_servers: Vec::new(),
            bootstrap_servers: Vec::new(),
            upstream_mode: UpstreamMode::Plain,
            upstream_tls_names: BTreeMap::new(),
            backend: DnsBackend::Integrated,
            filtering_enabled: true,
            blocking_paused_until: None,
            rate_limit_per_client: 5000,
            list_max_entries: 5_000_000,
            list_max_total_entries: 10_000_000,
            list_private_targets: false,
            rebinding_protection: true,
            rebinding_allowed_domains: Vec::new(),
        }
    }
}
