//! Hops and sources that do not exist, and tunnels that would carry themselves.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::kinds::policy_source::Source;
use gateway_model::kinds::proxy::Proxy;
use gateway_model::kinds::routing_policy::{Hop, HopType, RoutingPolicy};
use gateway_model::kinds::tunnel::TunnelType;
use ipnet::IpNet;

use super::conflict::{Conflict, ConflictKind, Severity};
use crate::compile::{Compiled, Input, missing_mesh_peer};

/// Checks the parts of a policy that lead nowhere or match nothing, whatever the state of the network.
pub(super) fn check(
    input: &Input<'_>,
    compiled: &Compiled,
    policy: &RoutingPolicy,
    sources: &[Source],
    found: &mut Vec<Conflict>,
) {
    let mut note = |message: String, severity| {
        let kind = ConflictKind::UnreachableTarget;
        found.push(Conflict { kind, policies: vec![policy.meta.id], message, severity });
    };
    let wrong: Vec<String> = policy.hops.iter().filter_map(|hop| wrong_hop(input, compiled, hop)).collect();
    if !wrong.is_empty() {
        let all = wrong.len() == policy.hops.len();
        let outcome = match policy.fail_policy.unwrap_or_default() {
            fail_policy if all => format!("; its failure policy {fail_policy} applies"),
            _ => String::new(),
        };
        let severity = if all { Severity::Error } else { Severity::Warning };
        note(format!("{:?}: {}{outcome}.", policy.name, wrong.join(", ")), severity);
    }
    let narrow: Vec<String> = policy.hops.iter().filter_map(|hop| narrow_tunnel(input, hop)).collect();
    if !narrow.is_empty() {
        note(
            format!("{:?}: {}; traffic to anything else is rejected.", policy.name, narrow.join(", ")),
            Severity::Warning,
        );
    }
    let nothing: Vec<String> = sources.iter().filter_map(|source| matches_nothing(input, source)).collect();
    if !nothing.is_empty() {
        let all = nothing.len() == sources.len();
        let outcome = if all { "; it matches nothing" } else { "" };
        let more = nothing.len().saturating_sub(5);
        let more = if more > 0 { format!(" and {more} more like these") } else { String::new() };
        let first: Vec<&str> = nothing.iter().take(5).map(String::as_str).collect();
        note(format!("{:?}: {}{more}{outcome}.", policy.name, first.join(", ")), Severity::Warning);
    }
}

fn wrong_hop(input: &Input<'_>, compiled: &Compiled, hop: &Hop) -> Option<String> {
    let target = &hop.target;
    match hop.r#type {
        HopType::Vpn => match input.state.tunnel_by_name(target) {
            None => Some(format!("there is no tunnel {target}")),
            Some(tunnel) if !tunnel.enabled => Some(format!("the tunnel {target} is disabled")),
            Some(_) => None,
        },
        HopType::Interface => {
            compiled.legs.uplink(target).is_none().then(|| format!("{target} is no configured uplink"))
        }
        HopType::Proxy => match input.state.find::<Proxy>(target) {
            None => Some(format!("there is no proxy {target}")),
            Some(proxy) if !proxy.enabled => Some(format!("the proxy {target} is disabled")),
            Some(_) => None,
        },
        HopType::MeshPeer => {
            compiled.legs.mesh_peer(target).is_none().then(|| {
                format!("the mesh peer {target} is unreachable: {}", missing_mesh_peer(input, target))
            })
        }
    }
}

/// Returns a sentence about a WireGuard tunnel whose peers take no default route.
fn narrow_tunnel(input: &Input<'_>, hop: &Hop) -> Option<String> {
    let tunnel = input.state.tunnel_by_name(&hop.target).filter(|_| hop.r#type == HopType::Vpn)?;
    if tunnel.r#type != TunnelType::Wireguard {
        return None;
    }
    let allowed = tunnel.peers.iter().flat_map(|peer| peer.allowed_ips.iter().map(|net| net.net().trunc()));
    let nets = IpNet::aggregate(&allowed.collect());
    let lacks = |ipv6: bool| {
        let has_address = tunnel.addresses.iter().any(|address| address.net().addr().is_ipv6() == ipv6);
        has_address && !nets.iter().any(|net| net.addr().is_ipv6() == ipv6 && net.prefix_len() == 0)
    };
    let first: Vec<String> = nets.iter().take(3).map(ToString::to_string).collect();
    let more = if nets.len() > first.len() { " and others" } else { "" };
    (lacks(false) || lacks(true))
        .then(|| format!("the tunnel {} takes traffic to {}{more} only", tunnel.name, first.join(", ")))
}

fn matches_nothing(input: &Input<'_>, source: &Source) -> Option<String> {
    match source {
        Source::Interface(name) if !input.network.lan.iter().any(|lan| lan == name.as_str()) => {
            Some(format!("{name} is no LAN interface"))
        }
        Source::Device(id) => match input.state.devices.get(*id) {
            None => Some(format!("there is no device {id}")),
            Some(device) if device.all_macs().is_empty() => {
                Some(format!("the device {:?} has no MAC address by which to know it", device.name))
            }
            Some(_) => None,
        },
        Source::DeviceGroup(id) => match input.state.device_groups.get(*id) {
            None => Some(format!("there is no device group {id}")),
            Some(group) if group.members.is_empty() => {
                Some(format!("the device group {:?} has no members", group.name))
            }
            Some(_) => None,
        },
        _ => None,
    }
}

/// Tunnels for which two underlays are demanded, by policies or by their own setting, and circles of tunnels.
pub(super) fn underlays(input: &Input<'_>, policies: &[&RoutingPolicy], found: &mut Vec<Conflict>) {
    let mut below: BTreeMap<String, (Hop, &RoutingPolicy)> = BTreeMap::new();
    for policy in policies {
        for (tunnel, under) in policy.underlays() {
            if let Some(object) = input.state.tunnel_by_name(tunnel)
                && !object.uplink.allows(under)
            {
                found.push(Conflict {
                    kind: ConflictKind::Contradictory,
                    policies: vec![policy.meta.id],
                    message: format!(
                        "{:?} carries the tunnel {tunnel} over {} {}, but its own setting says uplink {}.",
                        policy.name, under.r#type, under.target, object.uplink
                    ),
                    severity: Severity::Error,
                });
            }
            match below.get(tunnel) {
                None => {
                    below.insert(tunnel.to_owned(), (under.clone(), policy));
                }
                Some((have, other)) if have != under => found.push(Conflict {
                    kind: ConflictKind::Contradictory,
                    policies: vec![policy.meta.id, other.meta.id],
                    message: format!(
                        "{:?} carries the tunnel {tunnel} over {} {}, {:?} over {} {}: a tunnel has one underlay at a time.",
                        policy.name, under.r#type, under.target, other.name, have.r#type, have.target
                    ),
                    severity: Severity::Error,
                }),
                Some(_) => {}
            }
        }
    }
    // Each tunnel has one underlay, so a walk ends, leaves the tunnels, or comes to where it was.
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for start in below.keys() {
        let mut walk: Vec<&str> = Vec::new();
        let mut at = start.as_str();
        while !done.contains(at) {
            if let Some(place) = walk.iter().position(|visited| *visited == at) {
                found.push(circle(&walk[place..], &below));
                break;
            }
            walk.push(at);
            match below.get(at) {
                Some((hop, _)) if hop.r#type == HopType::Vpn => at = hop.target.as_str(),
                _ => break,
            }
        }
        done.extend(walk);
    }
}

fn circle(tunnels: &[&str], below: &BTreeMap<String, (Hop, &RoutingPolicy)>) -> Conflict {
    let mut policies = Vec::new();
    for (_, policy) in tunnels.iter().filter_map(|tunnel| below.get(*tunnel)) {
        if !policies.contains(&policy.meta.id) {
            policies.push(policy.meta.id);
        }
    }
    let cycle: Vec<&str> = tunnels.iter().chain(tunnels.first()).copied().collect();
    Conflict {
        kind: ConflictKind::Loop,
        policies,
        message: format!("Tunnels would be carried inside themselves: {}.", cycle.join(" inside ")),
        severity: Severity::Error,
    }
}
