//! Roles of interfaces, and leases that an interface may use.

use std::net::{IpAddr, Ipv4Addr};

use gateway_model::State;
use gateway_model::kinds::tunnel::Peer;
use ipnet::{IpNet, Ipv4Net};
use schemars::JsonSchema;
use serde::Serialize;

use crate::compile::{Input, lan_prefixes, tunnel_interface};
use crate::facts::{Facts, Lease, LinkLayer};
use crate::network::Network;

/// Role of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InterfaceRole {
    Lan,
    Uplink,
    Tunnel,
    Loopback,
    /// Belongs to a bridge or a bond.
    Port,
    /// Any other interface of the host. Nothing is forwarded by it.
    Other,
}

/// Returns the role of an interface, which need not exist.
pub fn role(state: &State, network: &Network, facts: &Facts, name: &str) -> InterfaceRole {
    let link = facts.links.get(name);
    let is_port = || {
        let master = link.and_then(|link| facts.links.get(link.master.as_ref()?));
        master.is_some_and(|master| master.kind != "vrf")
    };
    if network.lan.iter().any(|lan| lan == name) {
        InterfaceRole::Lan
    } else if network.uplinks.iter().any(|uplink| uplink.interface == name) {
        InterfaceRole::Uplink
    } else if is_tunnel(state, name) {
        InterfaceRole::Tunnel
    } else if name == "lo" || link.is_some_and(|link| link.link_layer == LinkLayer::Loopback) {
        InterfaceRole::Loopback
    } else if is_port() {
        InterfaceRole::Port
    } else {
        InterfaceRole::Other
    }
}

fn is_tunnel(state: &State, name: &str) -> bool {
    name.starts_with("wg-")
        || name.starts_with("ov-")
        || state.tunnels.iter().any(|tunnel| tunnel_interface(tunnel) == name)
}

/// Returns the reason for which an interface may not use a lease. A hostile server must not take over addresses that
/// packets of the gateway or of its LAN go to (TunnelCrack).
pub fn lease_refusal(input: &Input<'_>, interface: &str, lease: &Lease) -> Option<String> {
    let address = IpAddr::from(lease.address.addr());
    let is_of_lan = |net: &IpNet| net.contains(&address) || contains(lease.address, net.addr());
    if let Some(net) = input.network.lan.iter().flat_map(|lan| lan_prefixes(input, lan)).find(is_of_lan) {
        return Some(format!("the network {} overlaps {net} of the LAN", lease.address.trunc()));
    }
    let others = input.facts.addresses.iter().filter(|(name, _)| *name != interface);
    if let Some((name, _)) = others.clone().find(|(_, nets)| nets.iter().any(|net| net.addr() == address)) {
        return Some(format!("{address} is an address of {name}"));
    }
    let configured = input.network.interfaces.iter().filter(|(name, _)| *name != interface);
    for (name, settings) in configured {
        if settings.address.is_some_and(|net| net.contains(&address) || contains(lease.address, net.addr())) {
            return Some(format!("the network {} overlaps that of {name}", lease.address.trunc()));
        }
    }
    let endpoints = input.facts.endpoints.values().map(std::net::SocketAddr::ip).chain(literals(input.state));
    let routers = input.facts.default_routes.iter().filter_map(|route| route.gateway);
    let servers = input.network.resolvers.iter().copied();
    if endpoints.chain(routers).chain(servers).any(|needed| needed == address) {
        return Some(format!("{address} is the address of a server that the gateway uses"));
    }
    None
}

fn contains(net: Ipv4Net, address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(four) if net.contains(&four))
}

/// Addresses of the endpoints of WireGuard tunnels that are no names.
fn literals(state: &State) -> impl Iterator<Item = IpAddr> {
    let endpoint = |peer: &Peer| {
        let at: std::net::SocketAddr = peer.endpoint.as_ref()?.to_string().parse().ok()?;
        Some(at.ip())
    };
    state.tunnels.iter().flat_map(|tunnel| &tunnel.peers).filter_map(endpoint)
}

/// Reports whether a host may have this address.
pub fn is_host(address: Ipv4Addr) -> bool {
    let is_reserved = address.octets()[0] == 0 || address.octets()[0] >= 240;
    !(is_reserved || address.is_loopback() || address.is_multicast())
}
