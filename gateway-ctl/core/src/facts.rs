//! Facts: the observed state of the kernel and the health of egresses, as input of the compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::doh_servers::FeedServers;
use crate::indexes::LegId;

/// Snapshot of all facts. The drivers of `os` collect it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub links: BTreeMap<String, Link>,
    /// Addresses of this host by interface name.
    pub addresses: BTreeMap<String, BTreeSet<IpNet>>,
    /// Default routes of the main table.
    pub default_routes: Vec<DefaultRoute>,
    /// Prefixes that the main table routes by an interface, default routes left out.
    pub prefixes: BTreeMap<String, BTreeSet<IpNet>>,
    /// Lowest MTU of the routes of all tables that have one of their own, by interface.
    pub route_mtus: BTreeMap<String, u32>,
    /// Wall clock minus boot clock, in nanoseconds: turns points in time into deadlines of the dataplane.
    pub booted_at: i64,
    /// Neighbours by MAC address: IP addresses observed with it on LAN interfaces.
    pub neighbours: BTreeMap<[u8; 6], BTreeSet<IpAddr>>,
    /// Uplinks by the manager of uplinks.
    pub uplinks: UplinkFacts,
    /// Health of tunnels by id; a tunnel that is not here is down.
    pub tunnels: BTreeMap<String, TunnelFact>,
    /// Proxies by id, then by the leg to them (`None` is the default route), as far as they were probed.
    pub proxies: BTreeMap<String, BTreeMap<Option<LegId>, ProxyFact>>,
    /// Running transport bridges, by the id of their tunnel.
    pub transports: BTreeMap<String, TransportFact>,
    /// Names of the endpoints of tunnels, proxies and bridges as last resolved, with the port.
    pub endpoints: BTreeMap<String, SocketAddr>,
    /// Leases of the DHCP clients of the daemon, by interface.
    pub leases: BTreeMap<String, Lease>,
    /// Prefixes that uplinks have delegated, by interface.
    pub delegations: BTreeMap<String, DelegatedPrefix>,
    /// Public resolvers that feeds list.
    pub doh_servers: Arc<FeedServers>,
    /// The interface of this gateway in a mesh; none while it is no node of one.
    pub mesh: Option<MeshLink>,
}

/// Interface of this gateway as a node of a mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshLink {
    pub interface: String,
    pub mtu: u16,
    /// UDP port for the packets of peers.
    pub port: u16,
    /// Addresses of this gateway in the mesh.
    pub addresses: BTreeSet<IpAddr>,
    /// Addresses of the peers.
    pub peers: BTreeSet<IpNet>,
    /// Peers that hops of policies name, by their names in the mesh.
    #[serde(default)]
    pub legs: BTreeMap<String, MeshLeg>,
    /// Names in hops for which there is no leg, with the human-readable reasons.
    #[serde(default)]
    pub missing: BTreeMap<String, String>,
    /// Prefixes that this gateway routes for peers: offered, and approved by the coordinator.
    #[serde(default)]
    pub offered: BTreeSet<IpNet>,
    /// Addresses of all nodes by their names in the mesh, this gateway included.
    #[serde(default)]
    pub names: BTreeMap<String, BTreeSet<IpAddr>>,
}

/// Peer of a mesh as an egress. It has an interface of its own, so that several exits take the same destinations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshLeg {
    pub number: LegId,
    pub interface: String,
    /// Prefixes behind the peer that the coordinator has approved.
    pub routes: BTreeSet<IpNet>,
    /// These prefixes are used without a policy of a user as well, those of an exit left out.
    #[serde(default)]
    pub accepts_routes: bool,
    pub usable: bool,
    /// Human-readable reason for which it is not usable.
    pub reason: String,
}

impl MeshLink {
    /// Returns the peer whose interface this is.
    pub fn leg_of(&self, interface: &str) -> Option<&MeshLeg> {
        self.legs.values().find(|leg| leg.interface == interface)
    }
}

impl Facts {
    /// Returns an interface with those below it, at which its packets are seen again: the parent of a VLAN, the ports of
    /// a bridge.
    pub fn layers(&self, name: &str) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let mut next = vec![name];
        while let Some(name) = next.pop() {
            if all.insert(name.to_owned()) {
                next.extend(self.links.get(name).and_then(|link| link.lower.as_deref()));
                let ports = self.links.iter().filter(|(_, link)| link.master.as_deref() == Some(name));
                next.extend(ports.map(|(port, _)| port.as_str()));
            }
        }
        all
    }

    /// Returns the interface that packets of one go to, if it has a property: itself, or the bridge that it is a port of.
    pub fn bridge_or_self<'a>(&'a self, name: &'a str, has: impl Fn(&str) -> bool) -> Option<&'a str> {
        let master = || self.links.get(name).and_then(|link| link.master.as_deref());
        if has(name) { Some(name) } else { master().filter(|master| has(master)) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub index: u32,
    pub up: bool,
    pub mac: Option<[u8; 6]>,
    pub mtu: u32,
    /// `veth`, `bridge`, `tun`, `wireguard`, ...; empty for plain hardware.
    pub kind: String,
    /// For a VLAN link: its parent's name and its id.
    pub vlan: Option<(String, u16)>,
    pub link_layer: LinkLayer,
    /// Bridge, bond or VRF that it is a port of.
    pub master: Option<String>,
    /// For a VLAN, MACVLAN, IPVLAN or MACsec link: the interface below it.
    pub lower: Option<String>,
}

/// Kind of frames on a link (ARPHRD_*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkLayer {
    #[default]
    Ethernet,
    Loopback,
    /// Packets without an Ethernet header: tun, WireGuard, PPP.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultRoute {
    pub interface: String,
    pub gateway: Option<IpAddr>,
    pub metric: u32,
    pub ipv6: bool,
}

/// Lease of a DHCP server. Routes and other options are not asked for, and are not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub address: Ipv4Net,
    pub gateway: Option<Ipv4Addr>,
    pub dns: Vec<Ipv4Addr>,
    /// Address of the server.
    pub server: Option<Ipv4Addr>,
    /// Duration in seconds.
    pub seconds: u32,
}

/// Uplinks as the manager selects them. Empty with a single one, before the first decision, and while the manager only
/// observes: the main routing table decides then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UplinkFacts {
    /// Number of the active uplink's leg.
    pub active: Option<LegId>,
    /// Numbers of the uplinks that share new flows.
    pub balanced: BTreeSet<LegId>,
    /// Human-readable reasons for which uplinks are not usable although their link is up, by number.
    pub failed: BTreeMap<LegId, String>,
}

/// Prefix that an uplink has delegated (RFC 8415).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegatedPrefix {
    pub net: Ipv6Net,
    /// End of the time in which hosts begin connections from it.
    pub preferred_until: Timestamp,
    pub valid_until: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelFact {
    pub usable: bool,
    /// Human-readable reason for which it is not usable.
    pub reason: String,
    /// Addresses of this end that the remote end gave out.
    pub addresses: Vec<IpAddr>,
    /// Largest inner packet that both ends agreed on.
    pub mtu: Option<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransportFact {
    pub connected: bool,
    /// Human-readable reason for which it is not connected.
    pub reason: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyFact {
    pub usable: bool,
    /// Human-readable reason for which it is not usable.
    pub reason: String,
    /// It takes UDP, too.
    pub udp: bool,
}
