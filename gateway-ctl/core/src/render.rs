//! Readable form of the plan: the content of maps, rules and tables, with its meaning.
//!
//! Private and preshared keys of tunnels are not included.

mod enforcement;
mod lines;

use std::collections::BTreeMap;

use gateway_common::guard::DISABLED_LEG;
use gateway_common::maps::{self, MapSpec};
use gateway_common::wire::OWN_INTERFACE;
use gateway_model::kinds::policy_source::Source;
use gateway_model::validated::PublicKey;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::compile::Compiled;
use crate::hexadecimal::hex;
use crate::plan::DomainRule;
pub use enforcement::{
    ActionView, AttachView, Enforcement, FindingView, LegView, PolicyEnforcement, enforce,
};
pub use lines::ExcludedPrefix;

/// The compiled dataplane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Render {
    pub generation: u32,
    /// SHA-256 over all the rest, the generation apart: equal plans have equal hashes.
    pub hash: String,
    pub backend: &'static str,
    /// Maps by their kernel names.
    pub maps: BTreeMap<&'static str, MapView>,
    /// Actions of policies by rank, then IP rules, then the nftables table.
    pub rules: Vec<String>,
    pub routes: Vec<String>,
    /// Destinations that no policy routes: own addresses, networks of the LAN, multicast.
    pub excludes: Vec<ExcludedPrefix>,
    /// Always empty in this version.
    pub dns_bindings: Vec<String>,
    /// Interfaces of tunnels.
    pub wireguard: BTreeMap<String, WireGuardView>,
    /// OpenVPN processes by the name of their interface.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub openvpn: BTreeMap<String, OpenVpnView>,
    pub addresses: Vec<String>,
    pub sysctls: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapView {
    pub count: usize,
    pub entries: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WireGuardView {
    pub tunnel_id: String,
    pub listen_port: Option<u16>,
    /// Mark of the outer packets.
    pub fwmark: String,
    pub mtu: u16,
    pub peers: Vec<PeerView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OpenVpnView {
    pub tunnel_id: String,
    /// Mark of the outer packets.
    pub fwmark: String,
    /// Returns a digest that distinguishes files without revealing their content.
    pub config_hash: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeerView {
    pub public_key: String,
    pub has_preshared_key: bool,
    pub endpoint: Option<String>,
    pub allowed_ips: Vec<String>,
    pub persistent_keepalive: Option<u16>,
}

/// Renders the plan as it is in the kernel under this generation.
pub fn render(compiled: &Compiled, generation: u32) -> Render {
    let plan = &compiled.plan;
    let mut rules = lines::actions(compiled);
    rules.extend(lines::ip_rules(plan));
    rules.extend(lines::nft(plan));
    let mut render = Render {
        generation: 0,
        hash: String::new(),
        backend: "ebpf",
        maps: map_views(compiled),
        rules,
        routes: lines::routes(plan),
        excludes: lines::excludes(plan),
        dns_bindings: Vec::new(),
        wireguard: plan.wireguard.iter().map(|(name, device)| (name.clone(), wireguard(device))).collect(),
        openvpn: plan
            .openvpn
            .iter()
            .map(|(id, process)| (process.interface.clone(), openvpn(id, process)))
            .collect(),
        addresses: plan
            .addresses
            .keys()
            .map(|key| format!("{} dev {}", key.address, key.interface))
            .collect(),
        sysctls: plan.sysctls.clone(),
    };
    let text = serde_json::to_vec(&render).expect("text keys and plain values");
    render.hash = hex(&Sha256::digest(&text));
    render.generation = generation;
    render
}

fn map_views(compiled: &Compiled) -> BTreeMap<&'static str, MapView> {
    let plan = &compiled.plan.dataplane;
    let rank = |rank: u32| lines::rank(compiled, rank);
    let mut views: BTreeMap<&'static str, MapView> = BTreeMap::new();
    let mut add = |name: &'static str, entries: Vec<String>| {
        views.insert(name, MapView { count: entries.len(), entries });
    };
    add(maps::PlanHeaders::NAME, vec![lines::header(compiled)]);
    let interface =
        |(key, value): (&gateway_common::wire::InterfaceKey, &gateway_common::wire::InterfaceValue)| {
            let tag = if key.vlan == 0 { String::new() } else { format!(" vlan {}", key.vlan) };
            if value.scope == OWN_INTERFACE {
                return format!("ifindex {}{tag} -> interface of the vlan", key.index);
            }
            let is = if value.vlan == 0 { String::new() } else { format!(", itself vlan {}", value.vlan) };
            let limits = lines::limits(value);
            format!("ifindex {}{tag} -> {}{is}{limits}", key.index, rank(value.rank))
        };
    add(maps::Interfaces::NAME, plan.interfaces.iter().map(interface).collect());
    add(maps::Vlans::NAME, plan.vlans.iter().map(|(id, r)| format!("vlan {id} -> {}", rank(*r))).collect());
    let macs = plan.devices_by_mac.iter();
    let device = |value: &gateway_common::wire::DeviceValue| lines::device(compiled, value);
    add(
        maps::DeviceMacs::NAME,
        macs.map(|(mac, value)| format!("{} -> {}", gateway_model::MacAddr(*mac), device(value))).collect(),
    );
    let addresses = plan.devices_by_address.iter();
    add(
        maps::DeviceAddresses::NAME,
        addresses.map(|(address, value)| format!("{address} -> {}", device(value))).collect(),
    );
    for (name, ipv6) in [(maps::LanSources4::NAME, false), (maps::LanSources6::NAME, true)] {
        let of_family = plan.lan_sources.iter().filter(|((_, net), _)| net.addr().is_ipv6() == ipv6);
        let source = |((scope, net), kind): (&(u16, ipnet::IpNet), &u32)| {
            format!("LAN {scope}: {net} -> {}", lines::source(*kind))
        };
        add(name, of_family.map(source).collect());
    }
    let prefixes = |from: &BTreeMap<ipnet::IpNet, u32>, ipv6: bool| {
        let of_family = from.iter().filter(|(net, _)| net.addr().is_ipv6() == ipv6);
        of_family.map(|(net, r)| format!("{net} -> {}", rank(*r))).collect::<Vec<_>>()
    };
    add(maps::Sources4::NAME, prefixes(&plan.sources, false));
    add(maps::Sources6::NAME, prefixes(&plan.sources, true));
    for (name, ipv6) in [(maps::Destinations4::NAME, false), (maps::Destinations6::NAME, true)] {
        let listed = plan.list_destinations.iter().filter(|((_, net), _)| net.addr().is_ipv6() == ipv6);
        let listed = listed.map(|((list, net), r)| format!("list {list}: {net} -> {}", rank(*r)));
        add(name, prefixes(&plan.destinations, ipv6).into_iter().chain(listed).collect());
    }
    for (name, ipv6) in [(maps::DestinationPorts4::NAME, false), (maps::DestinationPorts6::NAME, true)] {
        let of_family = plan.destination_ports.iter().filter(|((_, net), _)| net.addr().is_ipv6() == ipv6);
        let of_family = of_family.map(|((port, net), r)| format!("{net} port {port} -> {}", rank(*r)));
        let listed = plan.list_ports.iter().filter(|((_, _, net), _)| net.addr().is_ipv6() == ipv6);
        let listed =
            listed.map(|((list, port, net), r)| format!("list {list}: {net} port {port} -> {}", rank(*r)));
        add(name, of_family.chain(listed).collect());
    }
    let domain = |rule: &DomainRule| {
        format!("resolved for {} -> {}", Source::Domain(rule.pattern.clone()), rank(rule.rank.get()))
    };
    add(maps::FqdnIps::NAME, plan.domains.iter().map(domain).collect());
    for (name, ipv6) in [(maps::Locals4::NAME, false), (maps::Locals6::NAME, true)] {
        let of_family = plan.locals.iter().filter(|(net, _)| net.addr().is_ipv6() == ipv6);
        add(name, of_family.map(|(net, value)| format!("{net} -> {}", lines::local(value))).collect());
    }
    let shared = plan.shared_addresses.iter();
    let shared = shared.map(|(leg, address)| format!("{address} -> leg {leg}, too")).collect();
    add(maps::SharedAddresses::NAME, shared);
    for (name, ipv6) in [(maps::DohServers4::NAME, false), (maps::DohServers6::NAME, true)] {
        let of_family = plan.doh_servers.keys().filter(|net| net.addr().is_ipv6() == ipv6);
        add(name, of_family.map(ToString::to_string).collect());
    }
    add(maps::DohNames::NAME, plan.doh_names.values().cloned().collect());
    add(maps::Actions::NAME, lines::action_entries(compiled));
    let authorised = plan.authorised.keys();
    add(
        maps::EgressAllow::NAME,
        authorised.map(|key| format!("mark {:#010x} may leave by ifindex {}", key.mark, key.index)).collect(),
    );
    let legs = plan.egress_legs.iter();
    let leg = |(index, leg): (&u32, &u32)| match *leg {
        DISABLED_LEG => format!("ifindex {index} -> disabled uplink"),
        leg => format!("ifindex {index} -> leg {leg}"),
    };
    add(maps::EgressLegs::NAME, legs.map(leg).collect());
    views
}

fn openvpn(tunnel: &str, process: &crate::plan::OpenVpnProcess) -> OpenVpnView {
    let hash = Sha256::digest(process.config.expose());
    OpenVpnView {
        tunnel_id: tunnel.to_owned(),
        fwmark: format!("{:#010x}", process.fwmark.0),
        config_hash: hex(&hash),
    }
}

fn wireguard(device: &crate::plan::WireGuardDevice) -> WireGuardView {
    let peer = |(key, peer): (&[u8; 32], &crate::plan::WireGuardPeer)| PeerView {
        public_key: PublicKey(*key).to_string(),
        has_preshared_key: peer.preshared_key.is_some(),
        endpoint: peer.endpoint.map(|endpoint| endpoint.to_string()),
        allowed_ips: peer.allowed_ips.iter().map(ToString::to_string).collect(),
        persistent_keepalive: peer.persistent_keepalive,
    };
    WireGuardView {
        tunnel_id: device.tunnel_id.clone(),
        listen_port: device.listen_port,
        fwmark: format!("{:#010x}", device.fwmark.0),
        mtu: device.mtu,
        peers: device.peers.iter().map(peer).collect(),
    }
}
