//! What the kernel needs beside the policy maps: links, addresses, routes, rules, sysctls, NAT.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_common::wire::{Address, AuthorisedKey, AuthorisedValue, LocalKind, LocalValue, Mark};
use gateway_model::Tunnel;
use gateway_model::kinds::tunnel::TunnelType;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::attachments::{attachments, unsupported_lans};
use super::legs::is_link_local;
use super::{Carrier, Compiled, Input, Leg, LegKind, bridges, lan_sources, openvpn};
use crate::outgoing::named_legs;
use crate::plan::{
    AddressKey, Family, LinkSettings, NftRuleset, Plan, RouteKey, RouteValue, RuleAction, RuleKey, RuleValue,
    SecretKey, WireGuardDevice, WireGuardPeer, names,
};

/// Main routing table (rtnetlink(7)).
const TABLE_MAIN: u32 = 254;
const RULE_DIRECT: u32 = names::RULE_FIRST;
const RULE_LOCAL: u32 = names::RULE_FIRST + 1;
const RULE_REFLECTED: u32 = names::RULE_FIRST + 2;
const RULE_RESET: u32 = names::RULE_FIRST + 7;
const RULE_REJECT: u32 = names::RULE_FIRST + 8;
const RULE_ARRIVED: u32 = names::RULE_FIRST + 9;
const RULE_LEGS: u32 = names::RULE_FIRST + 10;
/// More LAN interfaces than a host has VLANs that people name one by one.
const MAX_LANS: u32 = 1024;
/// Above the last leg's rule.
const RULE_SOURCES: u32 = RULE_LEGS + 256;
const RULE_PROHIBIT: u32 = names::RULE_LAST - (MAX_LANS - 1);
const RULE_OWN: u32 = RULE_PROHIBIT - 2;
const RULE_OWN_END: u32 = RULE_PROHIBIT - 1;
/// A leg's marks on LAN traffic, on the outer packets that the leg carries and on what came in by it differ in these bits
/// only; so do the marks of what is rejected.
const LEG_MASK: u32 = !((Mark::OWN.0 ^ Mark::PREFIX) | (Mark::ARRIVAL.0 ^ Mark::PREFIX));
const METRIC_LEG: u32 = 100;

pub fn lower(input: &Input<'_>, compiled: &mut Compiled) {
    let legs: Vec<Leg> = compiled.legs.by_number.values().cloned().collect();
    let mut needed = compiled.legs_in_use();
    needed.extend(legs.iter().filter_map(|leg| leg.carrier.leg()));
    needed.extend(named_legs(input, legs.iter()));
    // What this host answers to what came in by an uplink leaves by that uplink.
    needed.extend(legs.iter().filter(|leg| leg.kind == LegKind::Uplink).map(|leg| leg.number));
    compiled.findings.extend(unsupported_lans(input.network, input.facts));
    let plan = &mut compiled.plan;
    wireguard(input, &legs, plan);
    openvpn::lower(input, &legs, plan);
    bridges::lower(input, &legs, plan);
    let interfaces = legs.iter().map(|leg| leg.interface.as_str()).collect();
    plan.attach = attachments(input.network, input.facts, &interfaces);
    locals(input, &legs, plan);
    authorise(input, &legs, plan);
    for leg in &legs {
        leg_routes(input, leg, plan);
    }
    rules(input, &needed, plan);
    source_rules(input, &legs, plan);
    sysctls(input, &legs, plan);
    plan.nft = NftRuleset {
        lan: input.network.lan.clone(),
        tunnels: names_of(&legs, |kind| matches!(kind, LegKind::Tunnel(_))),
        uplinks: names_of(&legs, |kind| *kind == LegKind::Uplink),
        open_udp: open_ports(input, &legs),
        proxied: false,
        dns_port: input.network.dns_port,
        egress: egress(&legs),
        sources: tunnel_sources(input, &legs, plan),
    };
}

/// Marks of forwarded traffic with the interfaces that they lead to: the guard's list once more, for nftables.
fn egress(legs: &[Leg]) -> BTreeSet<(u32, String)> {
    let own = legs.iter().map(|leg| (Mark::leg(leg.number).0, leg.interface.clone()));
    let uplinks = legs.iter().filter(|leg| leg.kind == LegKind::Uplink);
    own.chain(uplinks.map(|leg| (Mark::DIRECT.0, leg.interface.clone()))).collect()
}

/// Addresses that a tunnel's interface has by this plan. Those of an OpenVPN tunnel are known once it has them.
fn tunnel_sources(input: &Input<'_>, legs: &[Leg], plan: &Plan) -> BTreeSet<(String, IpAddr)> {
    let mut sources = BTreeSet::new();
    for leg in legs.iter().filter(|leg| leg.kind != LegKind::Uplink) {
        let planned = plan.addresses.keys().filter(|key| key.interface == leg.interface);
        let mut addresses: Vec<IpAddr> = planned.map(|key| key.address.addr()).collect();
        if !plan.wireguard.contains_key(&leg.interface) {
            let present = input.facts.addresses.get(&leg.interface).into_iter().flatten();
            addresses.extend(present.map(IpNet::addr).filter(|address| !is_link_local(*address)));
        }
        sources.extend(addresses.into_iter().map(|address| (leg.interface.clone(), address)));
    }
    sources
}

fn names_of(legs: &[Leg], wanted: impl Fn(&LegKind) -> bool) -> Vec<String> {
    legs.iter().filter(|leg| wanted(&leg.kind)).map(|leg| leg.interface.clone()).collect()
}

fn up<'a>(input: &Input<'a>, legs: &[Leg]) -> impl Iterator<Item = &'a Tunnel> {
    input.state.tunnels.iter().filter(|t| t.r#type == TunnelType::Wireguard && is_to_stand(t, legs))
}

/// Whether a tunnel is there: it is wanted up, or flows may still end in it.
pub(super) fn is_to_stand(tunnel: &Tunnel, legs: &[Leg]) -> bool {
    let drains = |leg: &Leg| leg.kind == LegKind::Tunnel(tunnel.meta.id) && leg.draining.is_some();
    tunnel.wanted_up() || legs.iter().any(drains)
}

fn open_ports(input: &Input<'_>, legs: &[Leg]) -> Vec<u16> {
    let reachable = up(input, legs).filter(|tunnel| tunnel.bridge.is_none());
    reachable.filter_map(|tunnel| tunnel.listen_port).collect::<BTreeSet<_>>().into_iter().collect()
}

fn wireguard(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    for tunnel in up(input, legs) {
        let Some(leg) = legs.iter().find(|leg| leg.kind == LegKind::Tunnel(tunnel.meta.id)) else { continue };
        // A tunnel whose secrets cannot be read must not come up without them.
        let Some(key) = tunnel.private_key.key() else { continue };
        if !tunnel.peers.iter().all(|peer| peer.preshared_key.is_readable()) {
            continue;
        }
        let peers = tunnel.peers.iter().map(|peer| {
            let endpoint = peer.endpoint.as_ref().map(ToString::to_string);
            let address = endpoint
                .as_deref()
                .and_then(|text| text.parse().ok().or_else(|| input.facts.endpoints.get(text).copied()));
            let address = if tunnel.bridge.is_some() { Some(bridges::near(leg.number)) } else { address };
            let keepalive = peer.persistent_keepalive.unwrap_or(tunnel.keepalive);
            let value = WireGuardPeer {
                preshared_key: peer.preshared_key.key().map(|key| SecretKey(*key)),
                endpoint: address,
                allowed_ips: peer.allowed_ips.iter().map(|net| net.net().trunc()).collect(),
                persistent_keepalive: (keepalive > 0).then_some(keepalive),
            };
            (peer.public_key.0, value)
        });
        let device = WireGuardDevice {
            tunnel_id: tunnel.meta.id.to_string(),
            private_key: SecretKey(*key),
            listen_port: tunnel.listen_port,
            // Behind a bridge it has nothing to send but to loopback, where marks mean nothing.
            fwmark: if tunnel.bridge.is_some() { Carrier::Nowhere } else { leg.carrier }.mark(),
            mtu: leg.mtu,
            peers: peers.collect(),
        };
        plan.wireguard.insert(leg.interface.clone(), device);
        plan.links.insert(leg.interface.clone(), LinkSettings { up: true, mtu: u32::from(leg.mtu) });
        for address in &tunnel.addresses {
            // The host address alone: a wide prefix in a file from elsewhere must not become a route.
            let address = IpNet::from(address.net().addr());
            plan.addresses.insert(AddressKey { interface: leg.interface.clone(), address }, ());
        }
    }
}

fn locals(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    let locals = &mut plan.dataplane.locals;
    let mut note = |net: IpNet, value: LocalValue| locals.insert(net.trunc(), value);
    let link_scope = [
        net4(Ipv4Addr::new(224, 0, 0, 0), 4),
        net4(Ipv4Addr::BROADCAST, 32),
        net4(Ipv4Addr::new(169, 254, 0, 0), 16),
        net6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
        net6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    ];
    for net in link_scope {
        note(net, LocalValue::new(LocalKind::Link));
    }
    let lan = |name: &String| input.network.lan.contains(name);
    for name in input.network.lan.iter().filter(|name| input.facts.links.contains_key(*name)) {
        for net in lan_sources::prefixes(input, name) {
            note(net, LocalValue::new(LocalKind::Lan));
        }
    }
    for (_, addresses) in input.facts.addresses.iter().filter(|(name, _)| lan(name)) {
        for net in addresses.iter().filter(|net| !is_link_local(net.addr())) {
            if let IpNet::V4(four) = net
                && four.prefix_len() < 31
            {
                note(IpNet::from(IpAddr::from(four.broadcast())), LocalValue::new(LocalKind::Link));
            }
        }
    }
    let value = |name: &str| match legs.iter().find(|leg| leg.interface == *name) {
        Some(leg) if leg.kind == LegKind::Uplink => LocalValue::of_leg(LocalKind::Own, leg.number),
        Some(leg) => LocalValue::of_leg(LocalKind::Forbidden, leg.number),
        None if is_left_behind(input, name) => LocalValue::new(LocalKind::Forbidden),
        None => LocalValue::new(LocalKind::Own),
    };
    for (name, addresses) in &input.facts.addresses {
        for net in addresses {
            note(IpNet::from(net.addr()), value(name));
        }
    }
    // An address that this very plan sets is known before a packet for it can come in.
    for AddressKey { interface, address } in plan.addresses.keys() {
        note(IpNet::from(address.addr()), value(interface));
    }
}

/// Whether an interface is of a tunnel that was deleted and not removed yet.
fn is_left_behind(input: &Input<'_>, name: &str) -> bool {
    let named = name.starts_with("wg-") || name.starts_with("ov-");
    named && input.facts.links.get(name).is_some_and(|link| matches!(link.kind.as_str(), "wireguard" | "tun"))
}

/// Which marks may leave by the interface of each leg: forwarded traffic, traffic of this host that the leg carries, and
/// answers of this host to what came in by it.
fn authorise(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    for leg in legs {
        let Some(link) = input.facts.links.get(&leg.interface) else { continue };
        let index = link.index;
        plan.dataplane.egress_legs.insert(index, u32::from(leg.number));
        let addresses = input.facts.addresses.get(&leg.interface).into_iter().flatten().map(IpNet::addr);
        let mut value = AuthorisedValue::default();
        for address in addresses.filter(|address| !is_link_local(*address)) {
            match address {
                IpAddr::V4(four) if value.v4 == 0 => value.v4 = u32::from_ne_bytes(four.octets()),
                IpAddr::V6(six) if value.v6 == Address::default() => value.v6 = Address::v6(six.octets()),
                _ => {}
            }
        }
        let mut marks =
            vec![Mark::leg(leg.number), Mark::carried_by(leg.number), Mark::arrived_by(leg.number)];
        if leg.kind == LegKind::Uplink {
            marks.extend([Mark::DIRECT, Mark::OWN]);
        }
        for mark in marks {
            plan.dataplane.authorised.insert(AuthorisedKey { mark: mark.0, index }, value);
        }
    }
}

fn leg_routes(input: &Input<'_>, leg: &Leg, plan: &mut Plan) {
    let table = names::TABLE_BASE + u32::from(leg.number);
    for (default, able) in [(default4(), leg.ipv4), (default6(), leg.ipv6)] {
        // Last, so that a leg whose interface goes away leads nowhere instead of to the main table.
        let last = RouteKey { table, destination: default, metric: names::METRIC_LAST };
        plan.routes.insert(last, RouteValue::Unreachable);
        let ipv6 = matches!(default, IpNet::V6(_));
        let there = input.facts.links.get(&leg.interface).is_some_and(|link| link.up);
        // A tunnel's link comes up by this plan; its route can only follow it.
        if !able || !there {
            continue;
        }
        let gateway = match leg.kind {
            LegKind::Tunnel(_) => None,
            LegKind::Uplink => gateway(input, leg, ipv6),
        };
        let key = RouteKey { table, destination: default, metric: METRIC_LEG };
        plan.routes.insert(key, RouteValue::Unicast { interface: leg.interface.clone(), gateway });
    }
}

fn gateway(input: &Input<'_>, leg: &Leg, ipv6: bool) -> Option<IpAddr> {
    let settings = input.network.uplinks.iter().find(|uplink| uplink.interface == leg.interface);
    let given = settings.and_then(|uplink| uplink.gateway).filter(|gateway| gateway.is_ipv6() == ipv6);
    let mut routes: Vec<_> = input
        .facts
        .default_routes
        .iter()
        .filter(|r| r.interface == leg.interface && r.ipv6 == ipv6)
        .collect();
    routes.sort_by_key(|route| route.metric);
    given.or_else(|| routes.first().and_then(|route| route.gateway))
}

fn rules(input: &Input<'_>, needed: &BTreeSet<u8>, plan: &mut Plan) {
    for (family, default) in [(Family::V4, default4()), (Family::V6, default6())] {
        let reject =
            RouteKey { table: names::TABLE_REJECT, destination: default, metric: names::METRIC_LAST };
        plan.routes.insert(reject, RouteValue::Unreachable);
        let here = RouteKey { table: names::TABLE_RELAY, destination: default, metric: 0 };
        plan.routes.insert(here, RouteValue::Local);
        let mut rule = |priority, fwmark, action, suppress_prefix_length| {
            let value = RuleValue {
                source: None,
                fwmark: Some(fwmark),
                // What this host sends itself.
                input_interface: matches!(priority, RULE_REFLECTED | RULE_OWN_END).then(|| "lo".to_owned()),
                action,
                suppress_prefix_length,
            };
            plan.rules.insert(RuleKey { family, priority }, value);
        };
        rule(RULE_DIRECT, (Mark::DIRECT.0, u32::MAX), RuleAction::Table(TABLE_MAIN), None);
        // Local networks are in the main table; its default routes are not for this mark.
        rule(RULE_LOCAL, (Mark::LOCAL.0, u32::MAX), RuleAction::Table(TABLE_MAIN), Some(0));
        // The kernel's own answers to LAN traffic have its mark (`fwmark_reflect`): they go to networks that are near, else
        // by the leg of the traffic, and nowhere else.
        let all = RuleAction::Table(TABLE_MAIN);
        rule(RULE_REFLECTED, (Mark::PREFIX, Mark::PREFIX_MASK), all.clone(), Some(0));
        // What came in by a leg is for networks that are near; answers to it leave by the leg.
        rule(RULE_ARRIVED, (Mark::ARRIVAL.0, Mark::PREFIX_MASK), all, Some(0));
        rule(RULE_REJECT, (Mark::REJECT.0, LEG_MASK), RuleAction::Table(names::TABLE_REJECT), None);
        rule(RULE_RESET, (Mark::RESET.0, u32::MAX), RuleAction::Table(names::TABLE_RELAY), None);
        for leg in needed {
            let table = RuleAction::Table(names::TABLE_BASE + u32::from(*leg));
            rule(RULE_LEGS + u32::from(*leg), (Mark::leg(*leg).0, LEG_MASK), table, None);
        }
        // What this host sends with a mark of ours that no rule takes goes nowhere, and never by the main table.
        rule(RULE_OWN, (Mark::OWN.0, u32::MAX), RuleAction::Table(TABLE_MAIN), None);
        rule(RULE_OWN_END, (Mark::OURS, Mark::OURS_MASK), RuleAction::Unreachable, None);
        for (priority, lan) in (RULE_PROHIBIT..=names::RULE_LAST).zip(&input.network.lan) {
            let value = RuleValue {
                source: None,
                fwmark: None,
                input_interface: Some(lan.clone()),
                action: RuleAction::Prohibit,
                suppress_prefix_length: None,
            };
            plan.rules.insert(RuleKey { family, priority }, value);
        }
    }
}

/// What this host itself sends from a tunnel's address, an answer to a probe from its far end say,
/// takes the tunnel or nothing: by the main table it would show the address to the uplink.
fn source_rules(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    let mut sources: Vec<(IpNet, u8)> = Vec::new();
    for leg in legs.iter().filter(|leg| leg.kind != LegKind::Uplink) {
        let ours = plan.addresses.keys().filter(|key| key.interface == leg.interface).map(|key| key.address);
        sources.extend(ours.map(|source| (source, leg.number)));
        // Those of other tunnels are known when they are there.
        if !plan.wireguard.contains_key(&leg.interface) {
            let seen = input.facts.addresses.get(&leg.interface).into_iter().flatten().map(IpNet::addr);
            let set = |address: &IpAddr| sources.contains(&(IpNet::from(*address), leg.number));
            let seen: Vec<IpAddr> =
                seen.filter(|address| !is_link_local(*address) && !set(address)).collect();
            let seen = seen.into_iter();
            sources.extend(seen.map(|source| (IpNet::from(source), leg.number)));
        }
    }
    for (priority, (source, leg)) in (RULE_SOURCES..RULE_OWN).zip(sources) {
        let family = if matches!(source, IpNet::V4(_)) { Family::V4 } else { Family::V6 };
        let value = RuleValue {
            source: Some(source),
            fwmark: None,
            // Packets that entered anywhere are judged by their marks.
            input_interface: Some("lo".to_owned()),
            action: RuleAction::Table(names::TABLE_BASE + u32::from(leg)),
            suppress_prefix_length: None,
        };
        plan.rules.insert(RuleKey { family, priority }, value);
    }
}

fn sysctls(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    let mut set = |key: String, value: &str| plan.sysctls.insert(key, value.to_owned());
    set("net.ipv4.ip_forward".into(), "1");
    set("net.ipv6.conf.all.forwarding".into(), "1");
    // Replies come in by the leg, while the main table would answer by another interface.
    set("net.ipv4.conf.all.rp_filter".into(), "0");
    set("net.ipv4.conf.all.send_redirects".into(), "0");
    // Answers of the kernel, and connections to this host, inherit the mark of what they answer: they are routed by it.
    set("net.ipv4.fwmark_reflect".into(), "1");
    set("net.ipv6.fwmark_reflect".into(), "1");
    set("net.ipv4.tcp_fwmark_accept".into(), "1");
    for lan in input.network.lan.iter().filter(|lan| input.facts.links.contains_key(*lan)) {
        set(format!("net.ipv4.conf.{}.send_redirects", path_name(lan)), "0");
        // Answer for an address only on its own interface: neighbours must not find tunnel addresses.
        set(format!("net.ipv4.conf.{}.arp_ignore", path_name(lan)), "1");
        // Where there are rules, the kernel looks up a route back to each packet's source just to see whether the
        // source is one of ours. The ingress program asks that once per flow, and our nft table on the way in.
        set(format!("net.ipv4.conf.{}.accept_local", path_name(lan)), "1");
    }
    for leg in legs.iter().filter(|leg| input.facts.links.contains_key(&leg.interface)) {
        let name = path_name(&leg.interface);
        // Neighbours on one egress must not find addresses of another.
        set(format!("net.ipv4.conf.{name}.arp_ignore"), "1");
        match leg.kind {
            LegKind::Tunnel(_) => set(format!("net.ipv4.conf.{name}.rp_filter"), "0"),
            // A forwarding host ignores router advertisements otherwise.
            LegKind::Uplink => set(format!("net.ipv6.conf.{name}.accept_ra"), "2"),
        };
    }
}

/// In a sysctl key a dot of an interface's name is written as a slash (sysctl(8)).
fn path_name(interface: &str) -> String {
    interface.replace('.', "/")
}

fn net4(address: Ipv4Addr, length: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new(address, length).expect("a length of at most 32"))
}

fn net6(address: Ipv6Addr, length: u8) -> IpNet {
    IpNet::V6(Ipv6Net::new(address, length).expect("a length of at most 128"))
}

fn default4() -> IpNet {
    net4(Ipv4Addr::UNSPECIFIED, 0)
}

fn default6() -> IpNet {
    net6(Ipv6Addr::UNSPECIFIED, 0)
}
