//! Policies that match a packet, computed from the list itself.
//!
//! The kernel finds the policy in maps that hold the folded list. Here each policy is evaluated in order, so that both
//! results can be compared.

use std::fmt;
use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use gateway_model::id::Id;
use gateway_model::kinds::device::Device;
use gateway_model::kinds::policy_source::Source;
use gateway_model::kinds::routing_policy::RoutingPolicy;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Serialize;

use crate::compile::{Input, TriedPolicies, TriedPolicy};
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

/// Policies that were tried for the packets of one request.
#[derive(Clone, Debug)]
pub struct Considered {
    /// All that match a packet, and the first ones of those that match none.
    pub listed: Vec<ConsideredPolicy>,
    /// Number of those that are not listed.
    pub omitted: usize,
    /// First matching policy of each packet.
    pub first: Vec<Option<Id>>,
}

/// The applied policies in the order in which they are tried, disabled ones included; before them the exceptions,
/// behind them the profiles of devices.
pub fn consider(input: &Input<'_>, packet: &IpPacket, names: &[Name]) -> Vec<ConsideredPolicy> {
    let tried = TriedPolicies::of(input);
    consider_packets(input, &tried, std::slice::from_ref(packet), names, usize::MAX).listed
}

/// Tries the policies for packets of both address families, or of one. Reasons are for the first family, or for the
/// only one that matches. Of the policies that match no packet, only `most_unmatched` are listed, because a reason in
/// words costs far more than the match.
pub fn consider_packets(
    input: &Input<'_>,
    applied: &TriedPolicies,
    packets: &[IpPacket],
    names: &[Name],
    most_unmatched: usize,
) -> Considered {
    let of = |packet| PacketProperties { names, ..PacketProperties::of(input, packet) };
    let sights: Vec<PacketProperties<'_>> = packets.iter().map(of).collect();
    let considered = Considered { listed: Vec::new(), omitted: 0, first: vec![None; sights.len()] };
    let mut trial = Trial { input, sights, most_unmatched, unmatched: 0, considered };
    let not_applied = |trial: &mut Trial<'_, '_>, policies: Vec<RoutingPolicy>| {
        for policy in &policies {
            let (id, lifetime, sources) = (policy.meta.id, policy.lifetime(), input.sources(policy));
            trial.of(&TriedPolicy { id, lifetime, sources: &sources, policy });
        }
    };
    not_applied(&mut trial, input.tried_before());
    for policy in applied.iter() {
        trial.of(&policy);
    }
    not_applied(&mut trial, input.tried_behind());
    trial.considered
}

/// Trial of policies in their order.
struct Trial<'a, 'b> {
    input: &'b Input<'a>,
    /// Of each packet.
    sights: Vec<PacketProperties<'b>>,
    most_unmatched: usize,
    unmatched: usize,
    considered: Considered,
}

impl Trial<'_, '_> {
    /// Tries the next policy.
    fn of(&mut self, tried: &TriedPolicy<'_>) {
        let (mut by, mut by_all) = (None, true);
        for (place, sight) in self.sights.iter().enumerate() {
            if answer::<()>(self.input, tried, sight).is_ok() {
                self.considered.first[place].get_or_insert(tried.id);
                by.get_or_insert(place);
            } else {
                by_all = false;
            }
        }
        self.unmatched += usize::from(by.is_none());
        if by.is_none() && self.unmatched > self.most_unmatched {
            self.considered.omitted += 1;
            return;
        }
        let Some(sight) = self.sights.get(by.unwrap_or(0)) else { return };
        let answer = answer::<String>(self.input, tried, sight);
        let matched = answer.is_ok();
        let reason = answer.unwrap_or_else(|reason| reason);
        self.considered.listed.push(ConsideredPolicy {
            id: tried.id.to_string(),
            name: tried.policy.name.clone(),
            priority: tried.policy.priority,
            matched,
            reason: match (matched && !by_all, sight.packet.ipv6) {
                (false, _) => reason,
                (true, false) => format!("IPv4: {reason}"),
                (true, true) => format!("IPv6: {reason}"),
            },
        });
    }
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
            // The frame of a VLAN may still have its tag at the VLAN's interface (`reorder_hdr off`).
            let vlan = link.vlan.as_ref().map_or(0, |(_, id)| *id);
            if link.index == packet.interface && [0, vlan].contains(&packet.vlan) {
                sight.interface = Some(name);
                sight.vlan = vlan;
            }
        }
        sight
    }
}

fn address(packet: &IpPacket, address: gateway_common::wire::Address) -> IpAddr {
    if packet.ipv6 { IpAddr::V6(address.octets().into()) } else { address.into() }
}

/// Reason of a result. Without words, only the result is computed.
trait Reason: Sized {
    fn of(words: fmt::Arguments<'_>) -> Self;
    /// Returns the reason for which none of the elements of a policy matches.
    fn none_of(reasons: Vec<Self>) -> Self;
}

impl Reason for () {
    fn of(_: fmt::Arguments<'_>) {}

    fn none_of(_: Vec<()>) {}
}

impl Reason for String {
    fn of(words: fmt::Arguments<'_>) -> String {
        words.to_string()
    }

    fn none_of(mut reasons: Vec<String>) -> String {
        let more = reasons.len().saturating_sub(3);
        reasons.truncate(3);
        if more > 0 {
            reasons.push(format!("nor do {more} more"));
        }
        if reasons.is_empty() { "it names nothing to match".to_owned() } else { reasons.join("; ") }
    }
}

fn answer<R: Reason>(
    input: &Input<'_>,
    tried: &TriedPolicy<'_>,
    sight: &PacketProperties<'_>,
) -> Result<R, R> {
    let TriedPolicy { id, lifetime, sources, .. } = *tried;
    if !lifetime.enabled {
        return Err(R::of(format_args!("it is disabled")));
    }
    if let Some(end) = lifetime.expires_at.filter(|_| !lifetime.is_in_force(input.now)) {
        return Err(R::of(format_args!("it ended at {end:.0}")));
    }
    if let Some(only) = input.only_for(id) {
        matches::<R>(input, &Source::Device(only), sight)?;
    }
    let mut reasons = Vec::new();
    for source in sources {
        match matches(input, source, sight) {
            Ok(reason) => return Ok(reason),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(R::none_of(reasons))
}

/// Name of a device, else its identifier.
struct DeviceName<'a>(&'a Input<'a>, Id);

impl fmt::Display for DeviceName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceName(input, id) = self;
        match input.state.devices.get(*id) {
            Some(device) => device.name.fmt(f),
            None => id.fmt(f),
        }
    }
}

fn matches<R: Reason>(input: &Input<'_>, source: &Source, sight: &PacketProperties<'_>) -> Result<R, R> {
    match source {
        Source::All => Ok(R::of(format_args!("it matches all traffic"))),
        Source::Interface(name) => match sight.interface {
            Some(entered) if entered == name.as_str() => Ok(R::of(format_args!("it entered by {name}"))),
            Some(entered) => Err(R::of(format_args!("it entered by {entered}, not by {name}"))),
            None => Err(R::of(format_args!("it did not enter by {name}"))),
        },
        Source::Vlan(id) => match sight.vlan {
            vlan if vlan == *id => Ok(R::of(format_args!("it is of VLAN {id}"))),
            0 => Err(R::of(format_args!("it is untagged, not of VLAN {id}"))),
            vlan => Err(R::of(format_args!("it is of VLAN {vlan}, not of VLAN {id}"))),
        },
        Source::Subnet(net) => within("source", net, sight.source),
        Source::Device(id) => {
            let name = DeviceName(input, *id);
            match sight.device {
                Some(device) if device.meta.id == *id => {
                    Ok(R::of(format_args!("it comes from the device {name}")))
                }
                _ => Err(R::of(format_args!("it does not come from the device {name}"))),
            }
        }
        Source::DeviceGroup(id) => {
            let Some(group) = input.state.device_groups.get(*id) else {
                return Err(R::of(format_args!("the device group {id} does not exist")));
            };
            match sight.device {
                Some(device) if group.members.contains(&device.meta.id) => Ok(R::of(format_args!(
                    "it comes from {}, a member of the group {}",
                    device.name, group.name
                ))),
                _ => Err(R::of(format_args!("it comes from no member of the group {}", group.name))),
            }
        }
        Source::Destination { net, port: None } => within("destination", net, sight.destination),
        Source::Destination { net, port: Some(port) } => {
            within::<R>("destination", net, sight.destination)?;
            match (sight.packet.has_ports(), sight.packet.destination_port) {
                (true, have) if have == *port => Ok(R::of(format_args!("the destination is {source}"))),
                (true, have) => Err(R::of(format_args!("the destination port is {have}, not {port}"))),
                (false, _) => Err(R::of(format_args!("it has no port that could be {port}"))),
            }
        }
        Source::Domain(pattern) => {
            match sight.names.iter().find(|name| fqdn_match::matches(pattern, name.as_ref())) {
                Some(name) => {
                    Ok(R::of(format_args!("the destination was asked for as {name}, which {source} matches")))
                }
                None if sight.names.is_empty() => Err(R::of(format_args!(
                    "the destination was not asked for by a name that {source} could match"
                ))),
                None => {
                    Err(R::of(format_args!("the destination was asked for by no name that {source} matches")))
                }
            }
        }
    }
}

fn within<R: Reason>(what: &str, net: &IpNet, address: IpAddr) -> Result<R, R> {
    if net.contains(&address) {
        Ok(R::of(format_args!("the {what} {address} is in {net}")))
    } else {
        Err(R::of(format_args!("the {what} {address} is not in {net}")))
    }
}
