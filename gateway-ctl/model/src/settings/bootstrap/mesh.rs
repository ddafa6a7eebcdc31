//! The section `mesh` of the configuration.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};
use crate::validated::is_host_name;

/// The mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mesh {
    pub coordinator: MeshCoordinator,
}

/// Coordinator of a mesh of stock clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeshCoordinator {
    pub enabled: bool,
    /// Name or address at which clients reach the gateway. Their URL is `https://HOST:PORT`.
    pub host: String,
    /// Address of the coordinator and its relay.
    pub listen_addr: SocketAddr,
    /// Clients of uplinks may connect, not only those of the LAN.
    pub wan_access: bool,
    /// Domain of the names of nodes.
    pub domain: String,
    /// Lifetime of the key of a node without tags, in days.
    pub node_key_days: u32,
    /// Time from the end of the connection of an ephemeral node to its removal, in seconds.
    pub ephemeral_sec: u32,
    pub relay: MeshRelay,
}

/// Relay and STUN server of the coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeshRelay {
    pub enabled: bool,
    /// The relay serves nodes of the mesh only.
    pub verify_clients: bool,
    /// UDP port of STUN.
    pub stun_port: u16,
}

impl Default for MeshCoordinator {
    fn default() -> MeshCoordinator {
        MeshCoordinator {
            enabled: false,
            host: String::new(),
            listen_addr: SocketAddr::from(([0, 0, 0, 0], 8443)),
            wan_access: false,
            domain: "mesh.internal".to_owned(),
            node_key_days: 180,
            ephemeral_sec: 1800,
            relay: MeshRelay::default(),
        }
    }
}

impl Default for MeshRelay {
    fn default() -> MeshRelay {
        MeshRelay { enabled: true, verify_clients: true, stun_port: 3478 }
    }
}

const DAYS: RangeInclusive<u32> = 1..=3650;
const SECONDS: RangeInclusive<u32> = 1..=604_800;

impl MeshCoordinator {
    /// URL at which clients reach the coordinator; none without a host.
    pub fn url(&self) -> Option<String> {
        let port = self.listen_addr.port();
        if self.host.is_empty() {
            return None;
        }
        let is_ipv6 = self.host.contains(':');
        Some(if is_ipv6 {
            format!("https://[{}]:{port}", self.host)
        } else {
            format!("https://{}:{port}", self.host)
        })
    }

    pub(super) fn validate(&self, problems: &mut Problems) {
        let path = |field: &str| format!("mesh.coordinator.{field}");
        if self.host.is_empty() && self.enabled {
            problems.required(path("host"));
        } else if !self.host.is_empty() && !is_host(&self.host) {
            let message = "Expected a host name or an address, without scheme and port.";
            problems.add(code::FORMAT, path("host"), message);
        }
        if !is_host_name(&self.domain) || self.domain.parse::<std::net::IpAddr>().is_ok() {
            problems.add(code::FORMAT, path("domain"), "Expected a domain.");
        }
        if self.listen_addr.port() == 0 {
            problems.add(code::RANGE, path("listen_addr"), "The port must be from 1 to 65535.");
        }
        if self.relay.stun_port == 0 {
            problems.add(code::RANGE, path("relay.stun_port"), "The port must be from 1 to 65535.");
        }
        for (field, value, range) in
            [("node_key_days", self.node_key_days, DAYS), ("ephemeral_sec", self.ephemeral_sec, SECONDS)]
        {
            if !range.contains(&value) {
                let message = format!("Must be from {} to {}.", range.start(), range.end());
                problems.add(code::RANGE, path(field), message);
            }
        }
    }
}

fn is_host(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok() || is_host_name(text)
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_coordinator_needs_a_host_and_bounds() {
        let coordinator = |fields: &str| parse(&format!("mesh: {{ coordinator: {{ {fields} }} }}"));
        let config = coordinator("enabled: true, host: gw.example.net").expect("valid");
        assert!(config.mesh.coordinator.relay.verify_clients);
        for (fields, field) in [
            ("enabled: true", "host"),
            ("host: 'https://gw.example.net'", "host"),
            ("domain: 'a b'", "domain"),
            ("domain: 10.0.0.1", "domain"),
            ("listen_addr: '0.0.0.0:0'", "listen_addr"),
            ("relay: { stun_port: 0 }", "relay.stun_port"),
            ("node_key_days: 0", "node_key_days"),
            ("ephemeral_sec: 604801", "ephemeral_sec"),
        ] {
            let errors = coordinator(fields).expect_err(fields);
            let expected = format!("mesh.coordinator.{field}");
            assert_eq!(errors.iter().map(|error| error.path.as_str()).collect::<Vec<_>>(), [expected]);
        }
    }

    #[test]
    fn the_url_has_host_and_port() {
        let url = |host: &str| MeshCoordinator { host: host.to_owned(), ..Default::default() }.url();
        assert_eq!(url("gw.example.net").as_deref(), Some("https://gw.example.net:8443"));
        assert_eq!(url("2001:db8::1").as_deref(), Some("https://[2001:db8::1]:8443"));
        assert_eq!(url(""), None);
    }
}
