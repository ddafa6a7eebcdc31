//! The decision over the folded maps against the list of policies, read one after the other.

use std::collections::BTreeSet;
use std::net::IpAddr;

use gateway_common::classify::{ICMP, ICMPV6, IpPacket, TCP, UDP};
use gateway_common::decide::{device, evaluate};
use gateway_common::policy_maps::PolicyInput;
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_common::wire::{Address, ClientKey, FqdnIpValue, Fragment, Mac, Mark, RANK_NONE};
use gateway_core::compile::{Compiled, Input, compile};
use gateway_core::conflicts::{ConflictKind, conflicts};
use gateway_core::dns::Name;
use gateway_core::evaluate::matching::{consider, device_behind};
use gateway_core::fqdn_match::Domains;
use gateway_core::indexes::Rank;
use gateway_core::matrix::per_hop::leak_matrix_per_hop;
use gateway_core::matrix::{Cells, Outcome};
use gateway_core::plan_maps::PlanMaps;
use gateway_model::Id;
use gateway_model::domain::DomainName;
use gateway_model::kinds::device::{Device, DeviceStatus};
use gateway_model::kinds::routing_policy::{FailPolicy, HopType, Reject, RoutingPolicy};
use gateway_model::kinds::trust_class::{Internet, LanAccess};
use gateway_model::settings::bootstrap::UnknownHosts;
use ipnet::IpNet;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::fixture::{Fixture, leg};

const MACS: [&str; 6] = [
    "02:00:00:00:00:01",
    "02:00:00:00:00:02",
    "02:00:00:00:00:03",
    "02:00:00:00:00:04",
    "02:00:00:00:00:05",
    "02:00:00:00:00:06",
];
const INTERFACES: [&str; 8] = ["lan0", "lan1", "lan0.20", "lan2.30", "lan2", "wan0", "gone0", "lan1.40"];
const TUNNELS: [&str; 3] = ["a", "b", "c"];
const CLASSES: [&str; 6] = ["trusted", "standard", "iot", "quarantine", "policy-only", "segment"];

/// A number of a small space, so that prefixes nest and packets meet policies.
fn address(ipv6: bool, outside: bool, n: u8) -> IpAddr {
    let (net, host) = (n >> 3 & 7, n & 7);
    let text = match (ipv6, outside) {
        (false, false) => format!("10.0.{net}.{host}"),
        (false, true) => format!("203.0.{net}.{host}"),
        (true, false) => format!("fd00:0:0:{net}::{host}"),
        (true, true) => format!("2001:db8:0:{net}::{host}"),
    };
    text.parse().expect("an address")
}

fn prefix() -> impl Strategy<Value = String> {
    let lengths = (select(vec![0u8, 8, 16, 21, 22, 23, 24, 29, 30, 31, 32]), any::<bool>());
    (any::<bool>(), any::<bool>(), any::<u8>(), lengths).prop_map(|(ipv6, outside, n, (length, whole))| {
        let length = if ipv6 {
            if length > 24 { 96 + length } else { length + 32 * u8::from(length > 0) }
        } else {
            length
        };
        let length = if whole { if ipv6 { 128 } else { 32 } } else { length };
        IpNet::new(address(ipv6, outside, n), length).expect("a length of the family").trunc().to_string()
    })
}

fn ports() -> impl Strategy<Value = u16> {
    select(vec![53u16, 443, 8080])
}

/// mDNS, LLMNR, SSDP, and the names and datagrams of NetBIOS.
const DISCOVERY: [u16; 5] = [5353, 5355, 1900, 137, 138];

/// Of policies.
const DOMAINS: [&str; 5] = ["example.com", "=www.example.com", "*.example.com", "~^oth", "com"];
/// Asked for.
const NAMES: [&str; 4] = ["example.com", "www.example.com", "x.www.example.com", "other.test"];

/// Source type and the elements of its value; ids of objects are written as `device:3`.
fn source() -> impl Strategy<Value = (&'static str, Vec<String>)> {
    let list = |one: BoxedStrategy<String>| prop::collection::btree_set(one, 1..4).prop_map(Vec::from_iter);
    let destination = (prefix(), prop::option::of(ports())).prop_map(|(net, port)| match port {
        None => net,
        Some(port) if net.contains(':') => format!("[{net}]:{port}"),
        Some(port) => format!("{net}:{port}"),
    });
    prop_oneof![
        1 => Just(("all", Vec::new())),
        4 => list(select(INTERFACES.to_vec()).prop_map(str::to_owned).boxed()).prop_map(|l| ("interface", l)),
        2 => list(select(vec![10u16, 20, 30, 40]).prop_map(|v| v.to_string()).boxed()).prop_map(|l| ("vlan", l)),
        4 => list(prefix().boxed()).prop_map(|l| ("subnet", l)),
        3 => list((0usize..5).prop_map(|n| format!("device:{n}")).boxed()).prop_map(|l| ("device", l)),
        2 => list((0usize..3).prop_map(|n| format!("group:{n}")).boxed()).prop_map(|l| ("device_group", l)),
        5 => list(destination.boxed()).prop_map(|l| ("destination", l)),
        3 => list(select(DOMAINS.to_vec()).prop_map(str::to_owned).boxed()).prop_map(|l| ("domain", l)),
    ]
}

/// Ways without underlays, which would make one policy's hops depend on another's.
fn way() -> impl Strategy<Value = Value> {
    let hop = |name: &'static str| match name {
        "wan0" | "wan1" | "nowan" => json!({"type": "interface", "target": name}),
        "proxy" => json!({"type": "proxy", "target": name}),
        _ => json!({"type": "vpn", "target": name}),
    };
    let any_hop = select(vec!["a", "b", "c", "missing", "wan0", "wan1", "nowan", "proxy"]);
    let several = prop::sample::subsequence(vec!["a", "b", "c", "missing", "wan0", "proxy"], 2..5);
    let pool = prop::sample::subsequence(vec!["a", "b", "c", "missing"], 2..5);
    prop_oneof![
        1 => Just(json!({"hops": []})),
        4 => any_hop.prop_map(move |name| json!({"hops": [hop(name)]})),
        2 => several.prop_map(move |names| json!({"hops": names.into_iter().map(hop).collect::<Vec<_>>(), "hop_mode": "failover"})),
        2 => pool.prop_map(move |names| json!({"hops": names.into_iter().map(hop).collect::<Vec<_>>(), "splitting": true})),
    ]
}

#[derive(Clone, Debug)]
struct PolicyPlan {
    source: (&'static str, Vec<String>),
    way: Value,
    priority: i64,
    enabled: bool,
    expired: Option<bool>,
    fail_policy: &'static str,
    reject: &'static str,
    sticky: &'static str,
}

fn policy_plan() -> impl Strategy<Value = PolicyPlan> {
    let more = (
        select(vec!["fail-closed", "fail-degraded", "fail-open"]),
        select(vec!["unreachable", "drop"]),
        select(vec!["flow", "source", "source_dest"]),
    );
    (source(), way(), 0i64..6, prop::bool::weighted(0.9), prop::option::weighted(0.2, any::<bool>()), more)
        .prop_map(|(source, way, priority, enabled, expired, (fail_policy, reject, sticky))| PolicyPlan {
            source,
            way,
            priority,
            enabled,
            expired,
            fail_policy,
            reject,
            sticky,
        })
}

#[derive(Clone, Debug)]
struct Scene {
    policies: Vec<PolicyPlan>,
    /// Index into [`CLASSES`] of each device, and its status.
    devices: Vec<(Option<usize>, &'static str)>,
    members: Vec<Vec<usize>>,
    group_class: Vec<Option<usize>>,
    /// Hosts that were observed with an address. The last of them has no record, and may share it with a device.
    neighbours: Vec<(usize, bool, u8)>,
    lan: Vec<&'static str>,
    missing: Vec<&'static str>,
    /// Of each tunnel: usable, enabled, brought up, IPv4, IPv6.
    tunnels: Vec<(bool, bool, bool, bool, bool)>,
    /// Treatment of hosts without a record.
    unknown_hosts: UnknownHosts,
}

fn scene() -> impl Strategy<Value = Scene> {
    let usually = || prop::bool::weighted(0.75);
    let class = || prop::option::weighted(0.5, 0..CLASSES.len());
    let status =
        prop_oneof![8 => Just("known"), 1 => Just("blocked"), 1 => Just("quarantined"), 1 => Just("new")];
    (
        prop::collection::vec(policy_plan(), 0..14),
        prop::collection::vec((class(), status), 5),
        prop::collection::vec(prop::collection::btree_set(0usize..5, 0..4).prop_map(Vec::from_iter), 3),
        prop::collection::vec(class(), 3),
        prop::collection::vec((0..MACS.len(), any::<bool>(), any::<u8>()), 0..6),
        prop::sample::subsequence(vec!["lan0", "lan1", "lan0.20", "lan2.30"], 1..=4),
        prop_oneof![4 => Just(Vec::new()), 1 => prop::sample::subsequence(vec!["lan0", "lan0.20", "wg-a", "wan1"], 1..3)],
        (
            prop::collection::vec((usually(), usually(), usually(), usually(), usually()), 3),
            prop_oneof![
                2 => Just(UnknownHosts::Direct),
                1 => Just(UnknownHosts::Blocked),
                1 => Just(UnknownHosts::Quarantine)
            ],
        ),
    )
        .prop_map(|(policies, devices, members, group_class, neighbours, lan, missing, rest)| Scene {
            policies,
            devices,
            members,
            group_class,
            neighbours,
            lan,
            missing,
            tunnels: rest.0,
            unknown_hosts: rest.1,
        })
}

#[derive(Clone, Debug)]
struct Probe {
    mac: usize,
    interface: Index,
    vlan: u16,
    ipv6: bool,
    source: (bool, u8),
    destination: Destination,
    protocol: u8,
    port: u16,
    fragment: Fragment,
    /// Names by which the sender resolved the destination.
    known_as: Vec<&'static str>,
}

#[derive(Clone, Debug)]
enum Destination {
    Space(bool, u8),
    Named(&'static str, &'static str),
}

fn probe() -> impl Strategy<Value = Probe> {
    let destination = prop_oneof![
        8 => (prop::bool::weighted(0.2), any::<u8>()).prop_map(|(inside, n)| Destination::Space(!inside, n)),
        1 => select(vec![
            ("224.0.0.251", "ff02::fb"),
            ("255.255.255.255", "fe80::1"),
            ("169.254.1.1", "ff0e::1"),
            ("10.0.0.1", "fd00:0:0:0::1"),
            ("10.0.0.255", "fd00:0:0:0:ffff::1"),
            ("10.64.0.2", "fd64::2"),
            ("198.51.100.2", "2001:db8:ffff::2"),
        ]).prop_map(|(four, six)| Destination::Named(four, six)),
    ];
    let fragment =
        prop_oneof![6 => Just(Fragment::Whole), 1 => Just(Fragment::First), 1 => Just(Fragment::Later)];
    let transport = (
        select(vec![TCP, TCP, UDP, UDP, ICMP, 47, 132, 136]),
        prop_oneof![9 => ports(), 3 => any::<u16>(), 1 => select(DISCOVERY.to_vec())],
    );
    (
        0..MACS.len(),
        any::<Index>(),
        select(vec![0u16, 0, 0, 10, 20, 30]),
        any::<bool>(),
        (prop::bool::weighted(0.1), any::<u8>()),
        destination,
        transport,
        (fragment, prop::sample::subsequence(NAMES.to_vec(), 0..=2)),
    )
        .prop_map(
            |(mac, interface, vlan, ipv6, source, destination, (protocol, port), (fragment, known_as))| {
                Probe { mac, interface, vlan, ipv6, source, destination, protocol, port, fragment, known_as }
            },
        )
}

impl Scene {
    fn build(&self) -> Fixture {
        let mut fixture = Fixture::new();
        fixture.facts = gateway_core::facts::Facts::default();
        fixture.network.unknown_hosts = self.unknown_hosts;
        fixture.network.lan = self.lan.iter().map(|name| (*name).to_owned()).collect();
        fixture.network.uplinks.push(gateway_core::network::UplinkSettings {
            number: leg(2),
            interface: "wan1".into(),
            ..Default::default()
        });
        fixture.link("lan0", 2).link("lan1", 3).link("lan2", 6).link("wan0", 7).link("wan1", 8);
        fixture
            .vlan_link("lan0.20", 4, "lan0", 20)
            .vlan_link("lan2.30", 5, "lan2", 30)
            .vlan_link("lan1.40", 9, "lan1", 40);
        fixture.address("lan0", "10.0.0.1/24").address("lan0", "fd00::1/64");
        fixture
            .address("lan1", "10.0.1.1/24")
            .address("lan0.20", "10.0.2.1/24")
            .address("lan0.20", "fe80::7/64");
        // Routers behind each LAN lead to all inner networks.
        for lan in ["lan0", "lan1", "lan0.20", "lan2.30"] {
            let nets = ["10.0.0.0/21", "fd00::/45"].map(|net| net.parse().expect("a network"));
            fixture.facts.prefixes.insert(lan.to_owned(), nets.into());
        }
        fixture.address("wan0", "198.51.100.2/24").address("wan0", "2001:db8:ffff::2/64");
        fixture.address("wg-a", "10.64.0.2/32").address("wg-a", "fd64::2/128");
        fixture
            .default_route("wan0", "198.51.100.1")
            .default_route("wan0", "2001:db8:ffff::1")
            .default_route("wan1", "198.51.101.1");
        fixture.create("trust_class", json!({"name": "policy-only", "internet": "policy"})).expect("a class");
        fixture.create("trust_class", json!({"name": "segment", "lan_access": "segment"})).expect("a class");
        for (name, (usable, enabled, up, ipv4, ipv6)) in TUNNELS.iter().zip(&self.tunnels) {
            let addresses: Vec<&str> = [(*ipv4, "10.64.0.2/32"), (*ipv6, "fd64::2/128")]
                .iter()
                .filter(|(has, _)| *has)
                .map(|(_, a)| *a)
                .collect();
            let id = fixture.tunnel_with(name, &addresses);
            fixture.set_usable(name, *usable);
            let change = |tunnel: &mut gateway_model::Tunnel| {
                tunnel.enabled = *enabled;
                if !up {
                    tunnel.admin_state = gateway_model::kinds::tunnel::AdminState::Down;
                }
            };
            fixture.state.update(id, None, change).expect("a change");
        }
        let class = |n: &Option<usize>| n.map(|n| CLASSES[n]);
        let devices: Vec<String> = self
            .devices
            .iter()
            .enumerate()
            .map(|(n, (trust, status))| {
                let input = json!({"name": format!("d{n}"), "mac": MACS[n], "trust_class": class(trust), "status": status});
                fixture.create("device", input).expect("a device").to_string()
            })
            .collect();
        let groups: Vec<String> = self
            .members
            .iter()
            .zip(&self.group_class)
            .enumerate()
            .map(|(n, (members, trust))| {
                let members: Vec<&String> = members.iter().map(|n| &devices[*n]).collect();
                let input = json!({"name": format!("g{n}"), "members": members, "trust_class": class(trust)});
                fixture.create("device_group", input).expect("a group").to_string()
            })
            .collect();
        for (device, ipv6, n) in &self.neighbours {
            let mac: gateway_model::MacAddr = MACS[*device].parse().expect("an address");
            fixture.facts.neighbours.entry(mac.octets()).or_default().insert(address(*ipv6, false, *n));
        }
        for plan in &self.policies {
            let named = |text: &String| match text.split_once(':') {
                Some(("device", n)) => devices[n.parse::<usize>().expect("a number")].clone(),
                Some(("group", n)) => groups[n.parse::<usize>().expect("a number")].clone(),
                _ => text.clone(),
            };
            let mut input = plan.way.clone();
            input["source_type"] = plan.source.0.into();
            input["source_value"] = plan.source.1.iter().map(named).collect::<Vec<_>>().join(",").into();
            input["priority"] = plan.priority.into();
            input["enabled"] = plan.enabled.into();
            input["fail_policy"] = plan.fail_policy.into();
            input["reject"] = plan.reject.into();
            input["sticky"] = plan.sticky.into();
            if let Some(expired) = plan.expired {
                let end = if expired { "2026-11-20T11:59:59Z" } else { "2026-11-21T00:00:00Z" };
                input["expires_at"] = end.into();
            }
            match fixture.create("routing_policy", input) {
                // Two policies that contradict each other are refused, so no packet can meet them.
                Ok(_) | Err(gateway_model::EditError::PolicyConflict { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        fixture.apply();
        for name in &self.missing {
            fixture.facts.links.remove(*name);
        }
        fixture
    }
}

impl Probe {
    fn names(&self) -> Vec<Name> {
        let name = |text: &&str| Name::from(&DomainName::parse(text).expect("a name"));
        self.known_as.iter().map(name).collect()
    }

    fn packet(&self, fixture: &Fixture) -> IpPacket {
        // Mostly where programs stand; what enters elsewhere must not confuse the decision either.
        let links = &fixture.facts.links;
        let lan = fixture.network.lan.iter().filter_map(|name| links.get(name));
        let seen: Vec<u32> =
            links.values().chain(lan.clone()).chain(lan.clone()).chain(lan).map(|link| link.index).collect();
        let mac: gateway_model::MacAddr = MACS[self.mac].parse().expect("an address");
        let destination: IpAddr = match self.destination {
            Destination::Space(outside, n) => address(self.ipv6, outside, n),
            Destination::Named(four, six) => if self.ipv6 { six } else { four }.parse().expect("an address"),
        };
        let icmp = if self.ipv6 { ICMPV6 } else { ICMP };
        IpPacket {
            source: address(self.ipv6, self.source.0, self.source.1).into(),
            destination: destination.into(),
            interface: *self.interface.get(&seen),
            length: 100,
            source_port: if self.port == 8080 { 68 } else { 40_000 },
            destination_port: if self.protocol == ICMP { 135 << 8 } else { self.port },
            mac: Mac::new(mac.octets()),
            vlan: self.vlan,
            protocol: if self.protocol == ICMP { icmp } else { self.protocol },
            fragment: self.fragment,
            ipv6: self.ipv6,
            ..IpPacket::default()
        }
    }
}

/// Expected result, by the rules as a reader understands them.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Reason(Reason),
    /// The policy wins and does this; for legs, the names of what the packet may take.
    Policy(String, Reason, BTreeSet<String>),
}

fn expected(input: &Input<'_>, packet: &IpPacket, names: &[Name]) -> Expected {
    let ip = |a: Address| if packet.ipv6 { IpAddr::V6(a.octets().into()) } else { a.into() };
    let device = device_behind(input, packet.mac.octets(), ip(packet.source));
    let class = device.and_then(|device| input.state.trust_class_of(device));
    let Some(interface) = lan_interface(input, packet) else {
        let is_of_vlan = is_of_vlan(input, packet);
        return Expected::Reason(if is_of_vlan { Reason::Spoofed } else { Reason::UnknownInterface });
    };
    let local = local(input, ip(packet.destination));
    if is_of_another_interface(input, interface, packet.vlan)
        || !belongs(input, interface, packet, ip(packet.source), local)
    {
        return Expected::Reason(Reason::Spoofed);
    }
    if device.is_some_and(|device: &Device| device.status == DeviceStatus::Blocked) {
        let essential = match packet.protocol {
            UDP => (packet.source_port, packet.destination_port) == (68, 67),
            ICMPV6 => (133..=136).contains(&(packet.destination_port >> 8)),
            _ => false,
        };
        if !(essential && matches!(local, Some(Reason::ToGateway | Reason::LinkLocal))) {
            return Expected::Reason(Reason::DeviceBlocked);
        }
    }
    if let Some(local) = local {
        let kept_off = class.is_some_and(|class| class.lan_access != LanAccess::Full)
            || device.is_none() && input.network.unknown_hosts == UnknownHosts::Quarantine;
        return Expected::Reason(if local == Reason::ToLan && kept_off {
            Reason::TrustLanDenied
        } else {
            local
        });
    }
    let is_unwelcome = device.is_none() && input.network.unknown_hosts != UnknownHosts::Direct;
    if is_unwelcome || class.is_some_and(|class| class.internet == Internet::None) {
        return Expected::Reason(Reason::TrustInternetDenied);
    }
    if packet.protocol == UDP && packet.has_ports() && DISCOVERY.contains(&packet.destination_port) {
        return Expected::Reason(Reason::DiscoveryDropped);
    }
    match consider(input, packet, names).into_iter().find(|policy| policy.matched) {
        None if class.is_some_and(|class| class.internet == Internet::Policy) => {
            Expected::Reason(Reason::NoPolicyReject)
        }
        None => Expected::Reason(Reason::NoPolicy),
        Some(winner) => {
            let policy =
                input.state.applied.policies.get(winner.id.parse().expect("an id")).expect("a policy");
            let (reason, legs) = way_of(input, policy, packet.ipv6);
            Expected::Policy(winner.id, reason, legs)
        }
    }
}

/// The LAN interface that evaluates a packet. A VLAN without one of its own is part of its parent.
fn lan_interface<'a>(input: &'a Input<'_>, packet: &IpPacket) -> Option<&'a str> {
    let link = |name: &String| input.facts.links.get(name);
    let is_here = |name: &&String| link(name).is_some_and(|link| link.index == packet.interface);
    input.network.lan.iter().find(is_here).map(String::as_str)
}

/// Reports whether the packet is of a VLAN with an interface, at a parent that is no LAN interface.
fn is_of_vlan(input: &Input<'_>, packet: &IpPacket) -> bool {
    let links = &input.facts.links;
    let Some((parent, _)) = links.iter().find(|(_, link)| link.index == packet.interface) else {
        return false;
    };
    let place = Some((parent.clone(), packet.vlan));
    links.values().any(|link| link.vlan == place)
}

/// Reports whether the VLAN has an interface of its own, where this packet is not.
fn is_of_another_interface(input: &Input<'_>, interface: &str, vlan: u16) -> bool {
    let place = Some((interface.to_owned(), vlan));
    input.network.lan.iter().any(|name| input.facts.links.get(name).is_some_and(|link| link.vlan == place))
}

/// Reports whether the source belongs to that LAN, or is link-local for an on-link destination.
fn belongs(
    input: &Input<'_>,
    interface: &str,
    packet: &IpPacket,
    source: IpAddr,
    destination: Option<Reason>,
) -> bool {
    let own = input.facts.addresses.values().flatten().any(|net| net.addr() == source);
    let nets: Vec<IpNet> = [&input.facts.addresses, &input.facts.prefixes]
        .iter()
        .filter_map(|nets| nets.get(interface))
        .flatten()
        .filter(|net| !net.addr().to_string().starts_with("fe80:"))
        .map(IpNet::trunc)
        .collect();
    if own {
        let discovery = packet.protocol == ICMPV6 && matches!(packet.destination_port >> 8, 135 | 136);
        return discovery && destination == Some(Reason::LinkLocal);
    }
    let broadcast =
        nets.iter().any(|net| matches!(net, IpNet::V4(net) if IpAddr::V4(net.broadcast()) == source));
    !broadcast && nets.iter().any(|net| net.contains(&source))
}

fn local(input: &Input<'_>, to: IpAddr) -> Option<Reason> {
    let own = input.facts.addresses.iter().find(|(_, have)| have.iter().any(|net| net.addr() == to));
    if let Some((interface, _)) = own {
        return Some(if interface.starts_with("wg-") { Reason::ToGatewayDenied } else { Reason::ToGateway });
    }
    let lans = || {
        input
            .facts
            .addresses
            .iter()
            .filter(|(name, _)| input.network.lan.contains(name))
            .flat_map(|(_, nets)| nets)
    };
    let scope = match to {
        IpAddr::V4(four) => four.is_multicast() || four.is_broadcast() || four.is_link_local(),
        IpAddr::V6(six) => six.is_multicast() || six.is_unicast_link_local(),
    };
    let broadcast = lans().any(|net| matches!(net, IpNet::V4(net) if IpAddr::V4(net.broadcast()) == to));
    if scope || broadcast {
        return Some(Reason::LinkLocal);
    }
    let there = |name: &String| input.network.lan.contains(name) && input.facts.links.contains_key(name);
    let routed = input.facts.prefixes.iter().filter(|(name, _)| there(name)).flat_map(|(_, nets)| nets);
    let connected = input.facts.addresses.iter().filter(|(name, _)| there(name)).flat_map(|(_, nets)| nets);
    routed.chain(connected).any(|net| net.contains(&to)).then_some(Reason::ToLan)
}

fn way_of(input: &Input<'_>, policy: &RoutingPolicy, ipv6: bool) -> (Reason, BTreeSet<String>) {
    let failed = match (policy.fail_policy.unwrap_or_default(), policy.reject) {
        (FailPolicy::Open, _) => Reason::PolicyDirect,
        (_, Reject::Unreachable) => Reason::PolicyReject,
        (_, Reject::Drop) => Reason::PolicyDrop,
    };
    let up = |name: &str| input.facts.links.get(name).is_some_and(|link| link.up);
    let routes = |name: &str| {
        input
            .facts
            .default_routes
            .iter()
            .filter(|r| r.interface == name)
            .map(|r| r.ipv6)
            .collect::<BTreeSet<bool>>()
    };
    // Usable at all, and able to carry the family.
    let able = |kind: HopType, target: &str| match kind {
        HopType::Vpn => match input.state.tunnel_by_name(target) {
            None => (false, false),
            Some(tunnel) => {
                let fact = input.facts.tunnels.get(&tunnel.meta.id.to_string());
                let there = input.facts.links.contains_key(&format!("wg-{target}"));
                let usable = tunnel.wanted_up() && there && fact.is_some_and(|fact| fact.usable);
                (usable, tunnel.addresses.iter().any(|a| a.net().addr().is_ipv6() == ipv6))
            }
        },
        HopType::Interface => {
            let configured = input.network.uplinks.iter().any(|uplink| uplink.interface == target);
            (configured && up(target) && !routes(target).is_empty(), routes(target).contains(&ipv6))
        }
        HopType::Proxy | HopType::MeshPeer => (false, false),
    };
    let usable = policy
        .hops
        .iter()
        .map(|hop| (hop.target.clone(), able(hop.r#type, &hop.target)))
        .filter(|(_, (usable, _))| *usable);
    let chosen: Vec<(String, (bool, bool))> =
        if policy.splitting { usable.collect() } else { usable.take(1).collect() };
    let legs: BTreeSet<String> =
        chosen.into_iter().filter(|(_, (_, carries))| *carries).map(|(name, _)| name).collect();
    if legs.is_empty() { (failed, legs) } else { (Reason::PolicyEgress, legs) }
}

fn decided(compiled: &Compiled, packet: &IpPacket, names: &[Name]) -> Verdict {
    let dataplane = &compiled.plan.dataplane;
    let environment = PlanMaps::new(Some(dataplane));
    let device = device(packet, 1, &environment).number;
    let domains = Domains::new(&dataplane.domains);
    if !names.is_empty() {
        let rank = Rank::raw(names.iter().filter_map(|name| domains.rank(name.as_ref(), device)).min());
        let key = (ClientKey::new(device, packet.mac, &packet.source), packet.destination);
        environment.domains.borrow_mut().insert(key, FqdnIpValue { rank, until: 1 });
    }
    let mut verdict = Verdict::DROP;
    let question = PolicyInput { slot: 1, plan: dataplane.header, now: 1, ..PolicyInput::default() };
    evaluate(packet, &question, &environment, &mut verdict);
    verdict
}

fn check(
    fixture: &Fixture,
    compiled: &Compiled,
    packet: &IpPacket,
    names: &[Name],
) -> Result<&'static str, TestCaseError> {
    let verdict = decided(compiled, packet, names);
    let expected = expected(&fixture.input(), packet, names);
    let named = compiled.policy_of(&verdict).map(|policy| policy.id.to_string());
    match expected {
        Expected::Reason(reason) => {
            prop_assert_eq!((verdict.reason, named), (reason, None), "{:?}", packet);
            prop_assert_eq!(verdict.rank, RANK_NONE);
            let action = match reason {
                Reason::DeviceBlocked
                | Reason::TrustLanDenied
                | Reason::ToGatewayDenied
                | Reason::DiscoveryDropped
                | Reason::Spoofed => Action::Drop,
                _ => Action::Mark,
            };
            prop_assert_eq!(verdict.action, action);
            Ok("no policy")
        }
        Expected::Policy(id, reason, legs) => {
            prop_assert_eq!((verdict.reason, named), (reason, Some(id)), "{:?}", packet);
            if reason == Reason::PolicyEgress {
                let leg = compiled.legs.get(self::leg(verdict.leg)).expect("a leg");
                let name = leg.interface.strip_prefix("wg-").unwrap_or(&leg.interface);
                prop_assert!(legs.contains(name), "{} is none of {:?}", name, legs);
                prop_assert_eq!(verdict.mark, Mark::leg(verdict.leg).0);
            }
            Ok("policy")
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn the_first_policy_of_the_list_that_matches_wins(
        scene in scene(),
        probes in prop::collection::vec(probe(), 40),
    ) {
        let fixture = scene.build();
        let compiled = compile(&fixture.input());
        for probe in &probes {
            check(&fixture, &compiled, &probe.packet(&fixture), &probe.names())?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_policy_reported_as_shadowed_never_matches(
        scene in scene(),
        probes in prop::collection::vec(probe(), 40),
    ) {
        let fixture = scene.build();
        let compiled = compile(&fixture.input());
        let silent = [ConflictKind::Shadowed, ConflictKind::Duplicate];
        let found = conflicts(&fixture.input(), &compiled);
        let shadowed: BTreeSet<Id> =
            found.iter().filter(|conflict| silent.contains(&conflict.kind)).map(|conflict| conflict.policies[0]).collect();
        for probe in &probes {
            let packet = probe.packet(&fixture);
            let winner = compiled.policy_of(&decided(&compiled, &packet, &probe.names())).map(|policy| policy.id);
            prop_assert!(winner.is_none_or(|id| !shadowed.contains(&id)), "{:?} wins {:?}", winner, packet);
        }
    }

    #[test]
    fn policies_of_tunnels_that_do_not_fail_open_are_direct_in_no_state(scene in scene()) {
        let fixture = scene.build();
        for row in leak_matrix_per_hop(&fixture.input()).rows {
            let policy = fixture.state.applied.policies.get(row.policy_id).expect("a policy");
            let tunnels_only = policy.hops.iter().all(|hop| hop.r#type != HopType::Interface);
            if row.fail_policy == FailPolicy::Open || !tunnels_only {
                continue;
            }
            let Cells { up, degraded, down, flapping, daemon_down, boot, hops } = &row.cells;
            for cell in [up, degraded, down, flapping, daemon_down, boot].into_iter().chain(hops.values()) {
                prop_assert!(cell.outcome != Outcome::Direct && cell.ipv6 != Outcome::Direct, "{:?}", row);
            }
        }
    }
}

/// The properties above would hold as well if no packet ever met a policy.
#[test]
fn generated_packets_meet_policies_of_every_source_type() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut won: std::collections::BTreeMap<&str, u32> = Default::default();
    for _ in 0..300 {
        let scene = scene().new_tree(&mut runner).expect("a scene").current();
        let fixture = scene.build();
        let compiled = compile(&fixture.input());
        for _ in 0..30 {
            let probe = probe().new_tree(&mut runner).expect("a probe").current();
            let (packet, names) = (probe.packet(&fixture), probe.names());
            check(&fixture, &compiled, &packet, &names).expect("agreement");
            let verdict = decided(&compiled, &packet, &names);
            let rank = compiled.policy_of(&verdict).map(|policy| policy.id);
            let policy = rank.and_then(|id| fixture.state.applied.policies.get(id));
            *won.entry(policy.map_or("none", |policy| policy.source_type.as_str())).or_default() += 1;
        }
    }
    for kind in
        ["none", "all", "interface", "vlan", "subnet", "device", "device_group", "destination", "domain"]
    {
        assert!(won.get(kind).is_some_and(|n| *n >= 50), "{kind}: {won:?}");
    }
}
