//! Questions, and why one has no answer.

use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use gateway_model::EditError;
use gateway_model::id::{Id, MacAddr};
use gateway_model::problem::{Problems, code};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::probe;
use super::verdict::Subject;
use crate::compile::{Compiled, Input};
use crate::dns::Name;

/// Whose traffic, to where. One of `mac` and `device_id` must be given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Request {
    pub mac: Option<MacAddr>,
    pub device_id: Option<Id>,
    /// Address, with a port or without: `203.0.113.7`, `203.0.113.7:443`, `[2001:db8::7]:443`. Or a name, as if the
    /// device had just been told its addresses: `www.example.com:443`. Without it, a public address that no policy for
    /// destinations names.
    pub destination: Option<String>,
    /// Names by which the device has been told the destination: what the resolver knows, not who asks.
    #[serde(skip)]
    pub known_as: Vec<Name>,
    /// Destination port, if `destination` has none; 443 by default.
    pub port: Option<u16>,
    pub protocol: Option<Protocol>,
    /// LAN interface by which the packet enters; by default the one whose network the device is in.
    pub interface: Option<String>,
    /// VLAN of the packet.
    pub vlan: Option<u16>,
    /// By default both, or that of the destination.
    pub family: Option<Family>,
    /// Address of the sender; by default one that the device was seen with.
    pub source: Option<IpAddr>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
    Icmp,
}

impl Protocol {
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Icmp => "icmp",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Ipv4,
    Ipv6,
}

impl Request {
    /// The destination, if it is given by its name.
    pub fn name(&self) -> Option<Name> {
        probe::name(self).map(|(name, _)| name)
    }
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("the question is not valid: {0}")]
    Invalid(Problems),
    #[error("there is no {resource_type} {id}")]
    NotFound { resource_type: &'static str, id: String },
}

impl From<Refusal> for EditError {
    fn from(refusal: Refusal) -> EditError {
        match refusal {
            Refusal::Invalid(problems) => EditError::Invalid(problems),
            Refusal::NotFound { resource_type, id } => EditError::NotFound { resource_type, id },
        }
    }
}

/// The packets the question is about: one per family.
pub fn packets(
    input: &Input<'_>,
    compiled: &Compiled,
    request: &Request,
    subject: &Subject<'_>,
    trace: &mut Vec<String>,
) -> Result<Vec<IpPacket>, Refusal> {
    let mut problems = Problems::new();
    let destination = probe::destination(request, &mut problems);
    let given = destination.map(|(address, _)| address).or(request.source);
    let ipv6 = |family| family == Family::Ipv6;
    if let (Some((address, _)), Some(source)) = (destination, request.source)
        && address.is_ipv6() != source.is_ipv6()
    {
        problems.add(code::CONFLICT, "source", "The source and the destination are of different families.");
    }
    if let (Some(address), Some(family)) = (given, request.family)
        && address.is_ipv6() != ipv6(family)
    {
        problems.add(code::CONFLICT, "family", format!("{address} is of the other family."));
    }
    let named = probe::name(request);
    let of_destination = destination.and_then(|(_, port)| port).or(named.and_then(|(_, port)| port));
    if request.protocol == Some(Protocol::Icmp) && (of_destination.is_some() || request.port.is_some()) {
        let path = if request.port.is_some() { "port" } else { "destination" };
        problems.add(code::CONFLICT, path, "ICMP has no ports.");
    }
    if request.port == Some(0) {
        problems.add(code::RANGE, "port", "Must be from 1 to 65535.");
    }
    if let (Some(one), Some(other)) = (of_destination, request.port)
        && one != other
    {
        problems.add(code::CONFLICT, "port", format!("The destination says port {one}."));
    }
    let known = subject.addresses(input);
    let near: Vec<IpAddr> = request.source.map_or_else(|| known.clone(), |source| vec![source]);
    let entry = probe::entry(input, request, &near, &mut problems, trace);
    if !problems.is_empty() {
        return Err(Refusal::Invalid(problems));
    }
    let port = probe::port(request, of_destination, trace);
    let families = match (given, request.family) {
        (Some(address), _) => vec![address.is_ipv6()],
        (None, Some(family)) => vec![ipv6(family)],
        (None, None) => vec![false, true],
    };
    let protocol = request.protocol.unwrap_or_default();
    Ok(families
        .into_iter()
        .map(|ipv6| {
            let to = match destination {
                Some((address, _)) => address,
                None => probe::public_address(compiled, ipv6, port, trace),
            };
            let from = probe::source(input, request, &known, &entry, ipv6, trace);
            probe::packet(subject.mac, &entry, from, to, protocol, port)
        })
        .collect())
}
