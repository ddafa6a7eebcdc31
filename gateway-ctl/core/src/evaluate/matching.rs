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
use serde_json::{Value, json};

use crate::compile::{Input, TriedPolicies, TriedPolicy};
use crate::dns::Name;
use crate::fqdn_match;
use crate::phrase::Phrase;

/// Policy of the list and its result for a packet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ConsideredPolicy {
    pub id: String,
    pub name: String,
    /// -1 for an exception, which comes before all policies; 1000001 for a profile of devices, which comes last.
    pub priority: i64,
    pub matched: bool,
    /// Human-readable reason for which the policy matches or does not.
    pub reason: String,
    /// The reason as codes with parameters, for clients with texts of their own.
    pub phrases: Vec<Phrase>,
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
        let answer = answer::<Vec<Phrase>>(self.input, tried, sight);
        let matched = answer.is_ok();
        let mut phrases = answer.unwrap_or_else(|phrases| phrases);
        let texts: Vec<&str> = phrases.iter().map(|phrase| phrase.text.as_str()).collect();
        let mut reason = texts.join("; ");
        if matched && !by_all {
            let family = if sight.packet.ipv6 { "IPv6" } else { "IPv4" };
            reason = format!("{family}: {reason}");
            phrases.insert(0, Phrase::new("only_family", [("family", json!(family))], format!("{family}:")));
        }
        self.considered.listed.push(ConsideredPolicy {
            id: tried.id.to_string(),
            name: tried.policy.name.clone(),
            priority: tried.policy.priority,
            matched,
            reason,
            phrases,
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

/// Parameters of a reason.
type Params<const N: usize> = [(&'static str, Value); N];

/// Reason of a result. Without words, only the result is computed.
trait Reason: Sized {
    fn of<const N: usize>(
        code: &'static str,
        params: impl FnOnce() -> Params<N>,
        words: fmt::Arguments<'_>,
    ) -> Self;
    /// Returns the reason for which none of the elements of a policy matches.
    fn none_of(reasons: Vec<Self>) -> Self;
}

impl Reason for () {
    fn of<const N: usize>(_: &'static str, _: impl FnOnce() -> Params<N>, _: fmt::Arguments<'_>) {}

    fn none_of(_: Vec<()>) {}
}

impl Reason for Vec<Phrase> {
    fn of<const N: usize>(
        code: &'static str,
        params: impl FnOnce() -> Params<N>,
        words: fmt::Arguments<'_>,
    ) -> Vec<Phrase> {
        vec![Phrase::new(code, params(), words.to_string())]
    }

    fn none_of(reasons: Vec<Vec<Phrase>>) -> Vec<Phrase> {
        let more = reasons.len().saturating_sub(3);
        let mut phrases: Vec<Phrase> = reasons.into_iter().take(3).flatten().collect();
        if more > 0 {
            let params = [("count", json!(more))];
            phrases.push(Phrase::new("more_reasons", params, format!("nor do {more} more")));
        }
        if phrases.is_empty() {
            phrases.push(Phrase::new("nothing_to_match", [], "it names nothing to match"));
        }
        phrases
    }
}

fn answer<R: Reason>(
    input: &Input<'_>,
    tried: &TriedPolicy<'_>,
    sight: &PacketProperties<'_>,
) -> Result<R, R> {
    let TriedPolicy { id, lifetime, sources, .. } = *tried;
    if !lifetime.enabled {
        return Err(R::of("disabled", || [], format_args!("it is disabled")));
    }
    if let Some(end) = lifetime.expires_at.filter(|_| !lifetime.is_in_force(input.now)) {
        return Err(R::of(
            "ended",
            || [("until", json!(format!("{end:.0}")))],
            format_args!("it ended at {end:.0}"),
        ));
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
        Source::All => Ok(R::of("all_traffic", || [], format_args!("it matches all traffic"))),
        Source::Interface(name) => {
            let params = || [("interface", json!(name.as_str())), ("entered", json!(sight.interface))];
            match sight.interface {
                Some(entered) if entered == name.as_str() => {
                    Ok(R::of("interface_is", params, format_args!("it entered by {name}")))
                }
                Some(entered) => {
                    let words = format_args!("it entered by {entered}, not by {name}");
                    Err(R::of("interface_is_not", params, words))
                }
                None => Err(R::of("interface_is_not", params, format_args!("it did not enter by {name}"))),
            }
        }
        Source::Vlan(id) => {
            let params = || [("vlan", json!(id)), ("entered", json!(sight.vlan))];
            match sight.vlan {
                vlan if vlan == *id => Ok(R::of("vlan_is", params, format_args!("it is of VLAN {id}"))),
                0 => Err(R::of("vlan_is_not", params, format_args!("it is untagged, not of VLAN {id}"))),
                vlan => {
                    Err(R::of("vlan_is_not", params, format_args!("it is of VLAN {vlan}, not of VLAN {id}")))
                }
            }
        }
        Source::Subnet(net) => within("source", net, sight.source),
        Source::Device(id) => {
            let name = DeviceName(input, *id);
            let params = || [("device", json!(name.to_string()))];
            match sight.device {
                Some(device) if device.meta.id == *id => {
                    Ok(R::of("device_is", params, format_args!("it comes from the device {name}")))
                }
                _ => {
                    let words = format_args!("it does not come from the device {name}");
                    Err(R::of("device_is_not", params, words))
                }
            }
        }
        Source::DeviceGroup(id) => {
            let Some(group) = input.state.device_groups.get(*id) else {
                let params = || [("group", json!(id))];
                let words = format_args!("the device group {id} does not exist");
                return Err(R::of("group_missing", params, words));
            };
            match sight.device {
                Some(device) if group.members.contains(&device.meta.id) => Ok(R::of(
                    "group_has",
                    || [("device", json!(device.name)), ("group", json!(group.name))],
                    format_args!("it comes from {}, a member of the group {}", device.name, group.name),
                )),
                _ => Err(R::of(
                    "group_has_not",
                    || [("group", json!(group.name))],
                    format_args!("it comes from no member of the group {}", group.name),
                )),
            }
        }
        Source::Destination { net, port: None } => within("destination", net, sight.destination),
        Source::Destination { net, port: Some(port) } => {
            within::<R>("destination", net, sight.destination)?;
            let have = sight.packet.destination_port;
            let params = || [("port", json!(port)), ("have", json!(have))];
            match sight.packet.has_ports() {
                true if have == *port => Ok(R::of(
                    "destination_is",
                    || [("destination", json!(source.to_string()))],
                    format_args!("the destination is {source}"),
                )),
                true => {
                    let words = format_args!("the destination port is {have}, not {port}");
                    Err(R::of("port_is_not", params, words))
                }
                false => Err(R::of("no_port", params, format_args!("it has no port that could be {port}"))),
            }
        }
        Source::Domain(pattern) => {
            let pattern_text = || ("pattern", json!(source.to_string()));
            match sight.names.iter().find(|name| fqdn_match::matches(pattern, name.as_ref())) {
                Some(name) => Ok(R::of(
                    "name_matches",
                    || [("name", json!(name.to_string())), pattern_text()],
                    format_args!("the destination was asked for as {name}, which {source} matches"),
                )),
                None if sight.names.is_empty() => Err(R::of(
                    "no_name",
                    || [pattern_text()],
                    format_args!("the destination was not asked for by a name that {source} could match"),
                )),
                None => Err(R::of(
                    "name_matches_not",
                    || [pattern_text()],
                    format_args!("the destination was asked for by no name that {source} matches"),
                )),
            }
        }
    }
}

fn within<R: Reason>(what: &str, net: &IpNet, address: IpAddr) -> Result<R, R> {
    let params = || [("address", json!(address)), ("network", json!(net))];
    let (is, is_not) = match what {
        "source" => ("source_within", "source_not_within"),
        _ => ("destination_within", "destination_not_within"),
    };
    match net.contains(&address) {
        true => Ok(R::of(is, params, format_args!("the {what} {address} is in {net}"))),
        false => Err(R::of(is_not, params, format_args!("the {what} {address} is not in {net}"))),
    }
}
