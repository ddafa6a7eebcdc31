//! The plan: everything the gateway wants of the kernel, fully resolved, one map per subsystem.
//!
//! Pure values. The drivers of `os` compare them with the kernel, over the union of keys.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use gateway_common::wire::{
    ActionValue, DeviceValue, EgressAllowKey, EgressAllowValue, InterfaceKey, InterfaceValue, LocalValue,
    Mark, PlanValue,
};
use gateway_model::Secret;
use gateway_model::kinds::policy_source::DomainPattern;
use ipnet::{IpNet, Ipv6Net};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::indexes::{LegId, ProxyIndex, Rank};
use crate::shared::Shared;
use crate::wan_access::WanAccess;
use crate::xdp::XdpModes;

/// Everything the gateway wants, for one instant.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The policy maps of the dataplane: one generation of them.
    pub dataplane: Shared<Dataplane>,
    /// Packets of established flows pass the IP stack by.
    pub fast_path: bool,
    /// XDP mode of interfaces.
    pub xdp: XdpModes,
    /// Programs of each interface.
    pub attach: BTreeMap<String, Attachment>,
    /// Bridges and VLAN interfaces, by name.
    pub virtual_links: BTreeMap<String, VirtualLink>,
    /// WireGuard devices by interface name.
    pub wireguard: BTreeMap<String, WireGuardDevice>,
    /// OpenVPN processes by the id of their tunnel.
    pub openvpn: BTreeMap<String, OpenVpnProcess>,
    /// Interface settings of links that are ours (tunnels) or configured, by name.
    pub links: BTreeMap<String, LinkSettings>,
    /// Links of which only addresses that the gateway has set are its own. They belong to the host.
    pub configured: BTreeSet<String>,
    pub addresses: BTreeMap<AddressKey, ()>,
    pub routes: BTreeMap<RouteKey, RouteValue>,
    pub rules: BTreeMap<RuleKey, RuleValue>,
    pub sysctls: BTreeMap<String, String>,
    pub nft: NftRuleset,
    /// Proxies that policies in force name, by number.
    pub proxies: BTreeMap<ProxyIndex, ProxyTarget>,
    /// Transport bridges by the id of their tunnel.
    pub transports: BTreeMap<String, TransportTarget>,
    /// IPv6 that hosts of the LANs learn. `None`: the gateway announces none.
    pub lan_ipv6: Option<LanIpv6>,
    /// The next instant at which the same state would compile to another plan.
    pub valid_until: Option<Timestamp>,
}

impl Plan {
    /// Reports whether a route of the main table leads to the network of an address by its interface.
    pub fn has_network(&self, key: &AddressKey) -> bool {
        self.routes.iter().any(|(route, value)| {
            let leads = matches!(value, RouteValue::Unicast { interface, .. } if *interface == key.interface);
            leads && route.table == names::TABLE_MAIN && route.destination == key.address.trunc()
        })
    }
}

/// One generation of the policy maps, without the slot that the loader adds to each key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dataplane {
    pub header: PlanValue,
    /// Key: interface index and VLAN (0 = untagged).
    pub interfaces: BTreeMap<InterfaceKey, InterfaceValue>,
    /// VLAN id (outermost tag) to the rank of its best policy.
    pub vlans: BTreeMap<u16, u32>,
    pub devices_by_mac: BTreeMap<[u8; 6], DeviceValue>,
    pub devices_by_address: BTreeMap<IpAddr, DeviceValue>,
    /// Source prefixes to ranks, inherited from the prefixes around them.
    pub sources: BTreeMap<IpNet, u32>,
    pub destinations: BTreeMap<IpNet, u32>,
    /// Destination port with prefix.
    pub destination_ports: BTreeMap<(u16, IpNet), u32>,
    /// Destinations in the lists of single devices, by the number of the list.
    pub list_destinations: BTreeMap<(u16, IpNet), u32>,
    /// Number of the list, destination port, prefix.
    pub list_ports: BTreeMap<(u16, u16, IpNet), u32>,
    /// Domains that policies match. The resolver adds the addresses that clients resolve.
    pub domains: Vec<DomainRule>,
    /// Destinations that are never routed by policy: own addresses, LAN prefixes, multicast.
    pub locals: BTreeMap<IpNet, LocalValue>,
    /// Legs with an address whose entry in `locals` names another leg.
    pub shared_addresses: BTreeSet<(LegId, IpAddr)>,
    /// Prefixes of known public resolvers; empty while no device blocks DNS over HTTPS.
    pub doh_servers: BTreeMap<IpNet, u32>,
    /// Domains of the same resolvers, by [`key`](gateway_common::wire::ServerNames::key).
    pub doh_names: BTreeMap<u64, String>,
    /// Rank to action.
    pub actions: Vec<ActionValue>,
    /// Source prefixes of each LAN interface, by the interface's scope: [`SourceKind`] as a number.
    ///
    /// [`SourceKind`]: gateway_common::wire::SourceKind
    pub lan_sources: BTreeMap<(u16, IpNet), u32>,
    /// Pairs of fwmark and interface that may leave, with the addresses of the interface.
    pub authorised: BTreeMap<EgressAllowKey, EgressAllowValue>,
    /// The legs of uplinks and tunnels, by interface index.
    pub egress_legs: BTreeMap<u32, u32>,
}

/// A domain that a policy matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainRule {
    pub pattern: DomainPattern,
    pub rank: Rank,
    /// Number of the only device it is for.
    pub device: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Attachment {
    /// LAN interface: the deciding program on ingress, and the one that makes entries of the fast path on egress.
    Ingress,
    /// Uplink, tunnel or any other egress: the guard on egress, and on ingress the program that marks incoming packets.
    Guard,
}

/// A link that the gateway makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum VirtualLink {
    Bridge { ports: BTreeSet<String> },
    Vlan { parent: String, id: u16 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireGuardDevice {
    /// Tunnel of this device.
    pub tunnel_id: String,
    pub private_key: SecretKey,
    pub listen_port: Option<u16>,
    /// Mark of the outer packets.
    pub fwmark: Mark,
    pub mtu: u16,
    pub peers: BTreeMap<[u8; 32], WireGuardPeer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireGuardPeer {
    pub preshared_key: Option<SecretKey>,
    /// Literal address, or the address a name was last resolved to (from the facts).
    pub endpoint: Option<SocketAddr>,
    pub allowed_ips: Vec<IpNet>,
    pub persistent_keepalive: Option<u16>,
}

/// A process of OpenVPN. Whatever differs in one of them takes a new process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenVpnProcess {
    pub interface: String,
    /// Configuration of OpenVPN with its keys. Credentials are passed when it requests them.
    pub config: Secret,
    pub username: Secret,
    pub password: Secret,
    pub key_passphrase: Secret,
    /// Size of the largest inner packet, if the file sets it.
    pub mtu: Option<u16>,
    /// Mark of the outer packets.
    pub fwmark: Mark,
    /// Names of servers get a random label in front of each resolution (`remote-random-hostname`).
    pub randomises_hostname: bool,
}

/// A 32-byte key whose Debug form shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(pub [u8; 32]);

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey(***)")
    }
}

/// A proxy as the relay has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyTarget {
    pub proxy_id: String,
    pub name: String,
    /// Literal address, or the address its name was last resolved to (from the facts).
    pub address: Option<SocketAddr>,
    pub login: Option<ProxyLogin>,
    /// True if the proxy shall relay UDP.
    pub udp: bool,
    /// Legs by which policies use it, `None` for the default route. Connections by other legs must end.
    pub legs: BTreeSet<Option<LegId>>,
    /// Most connections at a time.
    pub connections: u32,
}

/// User name and password for a proxy (RFC 1929). The password stays sealed until it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyLogin {
    pub username: String,
    pub password: Secret,
}

/// Transport of the outer packets of one tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportTarget {
    pub bridge_id: String,
    pub kind: TransportKind,
    /// Address for the datagrams of the tunnel, on this host only.
    pub near: SocketAddr,
    /// Literal address, or the address its name was last resolved to (from the facts).
    pub address: Option<SocketAddr>,
    /// Mark of its packets.
    pub mark: Option<Mark>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// To a remote end that knows where they go.
    Udp2Tcp,
    /// To this `host:port`; a name is resolved by the proxy.
    Socks5 { to: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkSettings {
    pub up: bool,
    pub mtu: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AddressKey {
    pub interface: String,
    pub address: IpNet,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RouteKey {
    pub table: u32,
    pub destination: IpNet,
    pub metric: u32,
}

/// IPv6 of the LANs, for router advertisements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LanIpv6 {
    /// An uplink or a tunnel leads to IPv6.
    pub is_router: bool,
    /// Prefixes by LAN interface; interfaces without a prefix included.
    pub prefixes: BTreeMap<String, Vec<LanPrefix>>,
}

/// Prefix of a LAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanPrefix {
    pub net: Ipv6Net,
    /// Address of the gateway in it.
    pub address: Ipv6Addr,
    /// Uplink that delegated it. `None`: it is static.
    pub uplink: Option<String>,
    /// Hosts may begin connections from it: its uplink is usable.
    pub is_preferred: bool,
    /// Ends of its lifetimes. `None`: it has no end.
    pub preferred_until: Option<Timestamp>,
    pub valid_until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum RouteValue {
    Unicast {
        interface: String,
        gateway: Option<IpAddr>,
    },
    Unreachable,
    Prohibit,
    /// To this host itself, for any destination.
    Local,
}

/// An ip rule; the priority orders them and, with the family, names them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RuleKey {
    pub family: Family,
    pub priority: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RuleValue {
    pub source: Option<IpNet>,
    pub fwmark: Option<(u32, u32)>,
    pub input_interface: Option<String>,
    /// The interface that a socket is bound to.
    pub output_interface: Option<String>,
    pub action: RuleAction,
    /// `suppress_prefixlength`: ignore routes of at most this prefix length (0 = default routes).
    pub suppress_prefix_length: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleAction {
    Table(u32),
    Prohibit,
    Unreachable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    V4,
    V6,
}

/// Our own nftables table `inet gateway`, replaced as a whole in one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NftRuleset {
    pub lan: Vec<String>,
    /// Ways out whose traffic is masqueraded in both families.
    pub tunnels: Vec<String>,
    /// Ways out whose IPv4, and IPv6 from unique local addresses, is masqueraded.
    pub uplinks: Vec<String>,
    /// UDP ports that the outside may reach on this host by an uplink: those our WireGuard devices listen on, and STUN.
    pub open_udp: Vec<u16>,
    /// TCP ports that the outside may reach on this host by an uplink: that of the coordinator of the mesh.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_tcp: Vec<u16>,
    /// Traffic for proxies is handed to the relay.
    pub proxied: bool,
    /// Port of the resolver for redirected queries; 0 without one.
    pub dns_port: u16,
    /// Queries of this host to other resolvers are redirected, too.
    pub redirects_own_dns: bool,
    /// Port of the time server for redirected queries; 0 without one.
    pub ntp_port: u16,
    /// Marks of forwarded LAN traffic, each with an interface that they may leave by.
    pub egress: BTreeSet<(u32, String)>,
    /// Delegated prefixes with the uplinks that they belong to. By other uplinks their traffic is masqueraded.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub delegated: BTreeSet<(String, Ipv6Net)>,
    /// Own addresses of tunnels by interface. A packet with another source does not leave by a tunnel.
    pub sources: BTreeSet<(String, IpAddr)>,
    /// Access to the API by uplinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wan_access: Option<WanAccess>,
    /// Forwarding for nodes of the mesh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<MeshForwarding>,
}

/// Forwarding for nodes of the mesh of which this gateway is a member. Their packets are masqueraded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MeshForwarding {
    /// Interface of the mesh.
    pub interface: String,
    /// Prefixes in LANs that nodes reach.
    pub subnets: BTreeSet<IpNet>,
    /// Mark by which their traffic to the internet leaves; none if this gateway is no exit.
    pub exit: Option<u32>,
    pub exit_ipv4: bool,
    pub exit_ipv6: bool,
}

impl NftRuleset {
    /// Returns the rule set under which the traffic of both is let through and masqueraded.
    pub fn union(&self, want: &NftRuleset) -> NftRuleset {
        fn both<T: Ord + Clone>(one: &[T], other: &[T]) -> Vec<T> {
            let all: BTreeSet<T> = one.iter().chain(other).cloned().collect();
            all.into_iter().collect()
        }
        NftRuleset {
            lan: both(&self.lan, &want.lan),
            tunnels: both(&self.tunnels, &want.tunnels),
            uplinks: both(&self.uplinks, &want.uplinks),
            open_udp: both(&self.open_udp, &want.open_udp),
            open_tcp: want.open_tcp.clone(),
            proxied: self.proxied || want.proxied,
            dns_port: want.dns_port,
            redirects_own_dns: want.redirects_own_dns,
            ntp_port: want.ntp_port,
            egress: self.egress.union(&want.egress).cloned().collect(),
            delegated: self.delegated.union(&want.delegated).cloned().collect(),
            sources: self.sources.union(&want.sources).cloned().collect(),
            wan_access: want.wan_access.clone(),
            mesh: want.mesh.clone(),
        }
    }
}

/// Numbers that `ip rule`, `ip route` and `nft` show, with their meaning.
pub mod names {
    /// Main routing table (rtnetlink(7)).
    pub const TABLE_MAIN: u32 = 254;
    /// Route and rule protocol number of all we install ("G").
    pub const ROUTE_PROTOCOL: u8 = 71;
    /// First priority of our ip rules; the last is `RULE_LAST`.
    pub const RULE_FIRST: u32 = 4700;
    pub const RULE_LAST: u32 = 6999;
    /// Table of a leg: base + leg number.
    pub const TABLE_BASE: u32 = 47000;
    /// Table whose only routes are `unreachable`.
    pub const TABLE_REJECT: u32 = 47999;
    /// Table whose only routes lead to this host itself: for traffic that the relay takes, or that our table resets.
    pub const TABLE_RELAY: u32 = 47998;
    /// First of the two rules of each configured interface; at most so many have some.
    pub const RULE_INTERFACES: u32 = 5840;
    pub const MAX_INTERFACES: u32 = 64;
    /// Table of a configured interface that is no LAN and no uplink: base + index of the link.
    pub const TABLE_INTERFACES: u32 = 48000;
    /// Table of the networks on LAN interfaces.
    pub const TABLE_LAN: u32 = 47997;
    /// Port of the relay, on loopback addresses only.
    pub const RELAY_PORT: u16 = 4702;
    /// Port at which transport bridges take the datagrams of tunnels: at 127.71.0.LL for leg LL.
    pub const BRIDGE_PORT: u16 = 4703;
    /// Port of the time server for redirected queries, on LAN interfaces.
    pub const NTP_PORT: u16 = 4704;
    pub const NFT_TABLE: &str = "gateway";
    /// Metric of the last route of a leg's table.
    pub const METRIC_LAST: u32 = u32::MAX;
}
