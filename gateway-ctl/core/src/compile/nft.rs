//! The nftables ruleset.

use std::collections::BTreeSet;
use std::net::IpAddr;

use gateway_common::wire::{DeviceValue, Mark, device_flags, plan_flags};
use ipnet::IpNet;

use super::blocks;
use super::leg::Leg;
use super::well_known::is_link_local;
use super::{Input, lan_ipv6, wireguard};
use crate::plan::{NftRuleset, Plan, names};

pub(super) fn lower(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    plan.nft = NftRuleset {
        lan: input.network.lan.clone(),
        tunnels: names_of(legs, Leg::is_tunnel),
        uplinks: names_of(legs, Leg::is_uplink),
        open_udp: open_ports(input, legs),
        open_tcp: input.network.mesh_ports.map(|ports| ports.tcp).into_iter().collect(),
        proxied: false,
        dns_port: input.network.dns_port,
        redirects_own_dns: blocks::forces_dns_of_all(input),
        ntp_port: if forces_ntp(plan) { names::NTP_PORT } else { 0 },
        egress: egress(legs),
        delegated: lan_ipv6::live(input).map(|(uplink, prefix)| (uplink.clone(), prefix.net)).collect(),
        sources: tunnel_sources(input, legs, plan),
        wan_access: input.network.wan_access.clone(),
        mesh: None,
    };
}

fn forces_ntp(plan: &Plan) -> bool {
    let has_flag = |device: &DeviceValue| device.flags & device_flags::FORCED_NTP != 0;
    plan.dataplane.header.flags & plan_flags::FORCED_NTP != 0
        || plan.dataplane.devices_by_mac.values().any(has_flag)
}

/// Marks of forwarded traffic with the interfaces that they lead to: the guard's list once more, for nftables.
fn egress(legs: &[Leg]) -> BTreeSet<(u32, String)> {
    let own = legs.iter().map(|leg| (leg.number.mark().0, leg.interface.clone()));
    let uplinks = legs.iter().filter(|leg| leg.is_uplink());
    own.chain(uplinks.map(|leg| (Mark::DIRECT.0, leg.interface.clone()))).collect()
}

/// Addresses that a tunnel's interface has by this plan. Those of an OpenVPN tunnel are known once it has them.
fn tunnel_sources(input: &Input<'_>, legs: &[Leg], plan: &Plan) -> BTreeSet<(String, IpAddr)> {
    let mut sources = BTreeSet::new();
    for leg in legs.iter().filter(|leg| !leg.is_uplink()) {
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

fn names_of(legs: &[Leg], wanted: fn(&Leg) -> bool) -> Vec<String> {
    legs.iter().filter(|leg| wanted(leg)).map(|leg| leg.interface.clone()).collect()
}

fn open_ports(input: &Input<'_>, legs: &[Leg]) -> Vec<u16> {
    let reachable = wireguard::up(input, legs).filter(|tunnel| tunnel.bridge.is_none());
    let stun = input.network.mesh_ports.and_then(|ports| ports.udp);
    let mesh = input.facts.mesh.as_ref().map(|mesh| mesh.port);
    let ports = reachable.filter_map(|tunnel| tunnel.listen_port).chain(stun).chain(mesh);
    ports.collect::<BTreeSet<_>>().into_iter().collect()
}
