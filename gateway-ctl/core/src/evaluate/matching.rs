//! Policies that match a packet, computed from the list itself.
//!
//! The kernel finds the policy in maps that hold the folded list. Here each policy is evaluated in order, so that both
//! results can be compared.

use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use gateway_model::kinds::device::Device;
use gateway_model::kinds::policy_source::Source;
use gateway_model::kinds::routing_policy::RoutingPolicy;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Serialize;

use crate::compile::Input;
use crate::dns::Name;
use crate::fqdn_match;

/// Policy of the list and its result for a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConsideredPolicy {
    pub id: String,
    pub name: String,
    /// -1 for an exception, which comes before all policies; 1000001 for a profile of devices, which comes last.
    pub priority: i64,
    pub matched: bool,
    /// Human-readable reason for which the policy matches or does not.
    pub reason: String,
}

/// The applied policies in the order in which they are tried, disabled ones included; before them the exceptions,
/// behind them the profiles of devices.
pub fn consider(input: &Input<'_>, packet: &IpPacket, names: &[Name]) -> Vec<ConsideredPolicy> {
    let sight = PacketProperties { names, ..PacketProperties::of(input, packet) };
    input
        .in_trial()
        .iter()
        .map(|policy| {
            let answer = answer(input, policy, &sight);
            ConsideredPolicy {
                id: policy.meta.id.to_string(),
                name: policy.name.clone(),
                priority: policy.priority,
                matched: answer.is_ok(),
                reason: answer.unwrap_or_else(|reason| reason),
            }
        })
        .collect()
}

/// The device that a packet of this MAC and IP address comes from.
pub fn device_behind<'a>(input: &Input<'a>, mac: [u8; 6], source: IpAddr) -> Option<&'a Device> {
    let state = input.state;
    if let Some(device) = state.device_by_mac(gateway_model::MacAddr(mac)) {
        return Some(device.as_ref());
    }
    let behind = input.facts.neighbours.iter().filter(|(_, seen)| seen.contains(&source));
    let devices = behind.filter_map(|(mac, _)| state.device_by_mac(gateway_model::MacAddr(*mac)));
    devices.max_by_key(|device| device.meta.id).map(AsRef::as_ref)
}

/// Properties of a packet that a policy can match.
struct PacketProperties<'a> {
    packet: &'a IpPacket,
    source: IpAddr,
    destination: IpAddr,
    /// Names by which the sender resolved the destination.
    names: &'a [Name],
    device: Option<&'a Device>,
    /// LAN interface it entered by, as an administrator names it.
    interface: Option<&'a str>,
    vlan: u16,
}

impl<'a> PacketProperties<'a> {
    fn of(input: &Input<'a>, packet: &'a IpPacket) -> PacketProperties<'a> {
        let (source, destination) = (address(packet, packet.source), address(packet, packet.destination));
        let mut sight = PacketProperties {
            packet,
            source,
            destination,
            names: &[],
            device: device_behind(input, packet.mac.octets(), source),
            interface: None,
            vlan: packet.vlan,
        };
        for name in &input.network.lan {
            let Some(link) = input.facts.links.get(name) else { continue };
            // Frames of a VLAN are observed on the parent, with their tag, if the parent is a LAN interface.
            let parent = link.vlan.as_ref().filter(|(parent, _)| input.network.lan.contains(parent));
            let seen_at = match parent.and_then(|(parent, id)| Some((input.facts.links.get(parent)?, *id))) {
                Some((parent, id)) => (parent.index, id),
                None => (link.index, 0),
            };
            if seen_at == (packet.interface, packet.vlan) {
                sight.interface = Some(name);
                if let (0, Some((_, id))) = (packet.vlan, &link.vlan) {
                    sight.vlan = *id;
                }
            }
        }
        sight
    }
}

fn address(packet: &IpPacket, address: gateway_common::wire::Address) -> IpAddr {
    if packet.ipv6 { IpAddr::V6(address.octets().into()) } else { address.into() }
}

fn answer(input: &Input<'_>, policy: &RoutingPolicy, sight: &PacketProperties<'_>) -> Result<String, String> {
    if !policy.enabled {
        return Err("it is disabled".to_owned());
    }
    if let Some(end) = policy.expires_at.filter(|_| !policy.in_force(input.now)) {
        return Err(format!("it ended at {end:.0}"));
    }
    if let Some(only) = input.only_for(policy.meta.id) {
        matches(input, &Source::Device(only), sight)?;
    }
    let mut reasons = Vec::new();
    for source in input.sources(policy) {
        match matches(input, &source, sight) {
            Ok(reason) => return Ok(reason),
            Err(reason) => reasons.push(reason),
        }
    }
    let more = reasons.len().saturating_sub(3);
    reasons.truncate(3);
    if more > 0 {
        reasons.push(format!("nor do {more} more"));
    }
    Err(if reasons.is_empty() { "it names nothing to match".to_owned() } else { reasons.join("; ") })
}

fn matches(input: &Input<'_>, source: &Source, sight: &PacketProperties<'_>) -> Result<String, String> {
    match source {
        Source::All => Ok("it matches all traffic".to_owned()),
        Source::Interface(name) => match sight.interface {
            Some(entered) if entered == name.as_str() => Ok(format!("it entered by {name}")),
            Some(entered) => Err(format!("it entered by {entered}, not by {name}")),
            None => Err(format!("it did not enter by {name}")),
        },
        Source::Vlan(id) => match sight.vlan {
            vlan if vlan == *id => Ok(format!("it is of VLAN {id}")),
            0 => Err(format!("it is untagged, not of VLAN {id}")),
            vlan => Err(format!("it is of VLAN {vlan}, not of VLAN {id}")),
        },
        Source::Subnet(net) => within("source", net, sight.source),
        Source::Device(id) => {
            let name = input.state.devices.get(*id).map_or_else(|| id.to_string(), |d| d.name.clone());
            match sight.device {
                Some(device) if device.meta.id == *id => Ok(format!("it comes from the device {name}")),
                _ => Err(format!("it does not come from the device {name}")),
            }
        }
        Source::DeviceGroup(id) => {
            let Some(group) = input.state.device_groups.get(*id) else {
                return Err(format!("the device group {id} does not exist"));
            };
            match sight.device {
                Some(device) if group.members.contains(&device.meta.id) => {
                    Ok(format!("it comes from {}, a member of the group {}", device.name, group.name))
                }
                _ => Err(format!("it comes from no member of the group {}", group.name)),
            }
        }
        Source::Destination { net, port: None } => within("destination", net, sight.destination),
        Source::Destination { net, port: Some(port) } => {
            within("destination", net, sight.destination)?;
            match (sight.packet.has_ports(), sight.packet.destination_port) {
                (true, have) if have == *port => Ok(format!("the destination is {source}")),
                (true, have) => Err(format!("the destination port is {have}, not {port}")),
                (false, _) => Err(format!("it has no port that could be {port}")),
            }
        }
        Source::Domain(pattern) => {
            match sight.names.iter().find(|name| fqdn_match::matches(pattern, name.as_ref())) {
                Some(name) => Ok(format!("the destination was asked for as {name}, which {source} matches")),
                None if sight.names.is_empty() => {
                    Err(format!("the destination was not asked for by a name that {source} could match"))
                }
                None => Err(format!("the destination was asked for by no name that {source} matches")),
            }
        }
    }
}

fn within(what: &str, net: &IpNet, address: IpAddr) -> Result<String, String> {
    if net.contains(&address) {
        Ok(format!("the {what} {address} is in {net}"))
    } else {
        Err(format!("the {what} {address} is not in {net}"))
    }
}
