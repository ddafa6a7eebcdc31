//! The section `mesh` of the configuration.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use crate::problem::{Problems, code};
use crate::validated::{Cidr, is_host_name};

/// The mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mesh {
    pub coordinator: MeshCoordinator,
    pub member: MeshMembership,
}

/// This gateway as a node of the mesh of another coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeshMembership {
    /// Prefixes in LANs that this gateway offers to route. The coordinator approves them.
    pub advertise_routes: Vec<Cidr>,
    /// This gateway offers to be an exit to the internet for other nodes. The coordinator approves it.
    pub advertise_exit: bool,
    /// Approved prefixes of peers are used without a policy, those of exits left out.
    pub accept_routes: bool,
    /// The resolver answers the names of the mesh, whose domain the coordinator chooses.
    pub accept_dns: bool,
}

impl Default for MeshMembership {
    fn default() -> MeshMembership {
        MeshMembership {
            advertise_routes: Vec::new(),
            advertise_exit: false,
            accept_routes: true,
            accept_dns: false,
        }
    }
}

/// Prefixes that a member offers at most.
const MAX_ROUTES: usize = 32;

impl MeshMembership {
    /// Prefixes that are offered, those of an exit as well.
    pub fn offered(&self) -> BTreeSet<IpNet> {
        let exit = [IpNet::V4(Ipv4Net::default()), IpNet::V6(Ipv6Net::default())];
        let exit = exit.into_iter().filter(|_| self.advertise_exit);
        self.advertise_routes.iter().map(|net| net.0.trunc()).chain(exit).collect()
    }

    pub(super) fn validate(&self, problems: &mut Problems) {
        let path = "mesh.member.advertise_routes";
        if self.advertise_routes.len() > MAX_ROUTES {
            problems.add(code::RANGE, path, format!("At most {MAX_ROUTES} prefixes."));
        }
        for (index, net) in self.advertise_routes.iter().enumerate() {
            if let Some(message) = refusal(net.0) {
                problems.add(code::RANGE, format!("{path}[{index}]"), message);
            }
        }
    }
}

/// Returns why a prefix cannot be offered.
fn refusal(net: IpNet) -> Option<&'static str> {
    let net = net.trunc();
    let meshes: [IpNet; 2] = [
        IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10)),
        IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(0xfd7a, 0x115c, 0xa1e0, 0, 0, 0, 0, 0), 48)),
    ];
    let address = net.addr();
    let is_link_local = match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    };
    if net.prefix_len() == 0 {
        Some("An exit is offered by mesh.member.advertise_exit.")
    } else if meshes.iter().any(|mesh| mesh.contains(&net) || net.contains(mesh)) {
        Some("Addresses of the mesh are no prefix of a LAN.")
    } else if address.is_loopback() || address.is_multicast() || is_link_local {
        Some("Expected a prefix of a LAN.")
    } else {
        None
    }
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
    fn member_offers_prefixes_of_lans_and_an_exit_by_its_name() {
        let member = |fields: &str| parse(&format!("mesh: {{ member: {{ {fields} }} }}"));
        let config = member("advertise_routes: [192.168.7.0/24], advertise_exit: true").expect("valid");
        let offered: Vec<_> = config.mesh.member.offered().iter().map(ToString::to_string).collect();
        assert_eq!(offered, ["0.0.0.0/0", "192.168.7.0/24", "::/0"]);
        for net in [
            "0.0.0.0/0",
            "::/0",
            "100.64.7.0/24",
            "96.0.0.0/3",
            "fd7a:115c:a1e0:7::/64",
            "169.254.0.0/16",
            "224.0.0.0/8",
        ] {
            let errors = member(&format!("advertise_routes: [192.168.7.0/24, '{net}']")).expect_err(net);
            let paths: Vec<_> = errors.iter().map(|error| error.path.as_str()).collect();
            assert_eq!(paths, ["mesh.member.advertise_routes[1]"], "{net}");
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
