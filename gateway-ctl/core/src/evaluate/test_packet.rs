//! Test packet of a request. Fields that the request does not set are filled in, and reported.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_common::blocks;
use gateway_common::classify::{ICMP, ICMPV6, IpPacket, TCP, UDP};
use gateway_common::wire::{Mac, ServerNames, flow_flags};
use gateway_model::id::MacAddr;
use gateway_model::problem::{Problems, code};
use ipnet::IpNet;

use super::request::{Family, Protocol, Refusal, Request};
use super::subject::Subject;
use crate::compile::{Compiled, Input, lan_prefixes};
use crate::dns::name::Name;
use crate::doh_servers;
use crate::facts::Facts;
use crate::plan_maps::{longest, longest_of};

/// Port of HTTPS, the most likely destination of a device.
const PORT: u16 = 443;

/// LAN interface as seen by packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// Interface at which the packet is evaluated, and the tag it has there.
    pub index: u32,
    pub vlan: u16,
}

impl Entry {
    /// The entry at a LAN interface; index 0 if the interface does not exist.
    pub fn at(input: &Input<'_>, name: &str) -> Entry {
        Entry::of(input.facts, name)
    }

    pub(super) fn of(facts: &Facts, name: &str) -> Entry {
        Entry { name: name.to_owned(), index: facts.links.get(name).map_or(0, |link| link.index), vlan: 0 }
    }
}

/// Returns the packets of the request: one per address family.
pub(crate) fn packets(
    input: &Input<'_>,
    compiled: &Compiled,
    request: &Request,
    subject: &Subject<'_>,
    trace: &mut Vec<String>,
) -> Result<Vec<IpPacket>, Refusal> {
    let mut problems = Problems::new();
    let destination = destination(request, &mut problems);
    let given = destination.map(|(address, _)| address).or(request.source);
    let ipv6 = |family| family == Family::Ipv6;
    let named = request.name_and_port();
    let of_destination =
        destination.and_then(|(_, port)| port).or(named.as_ref().and_then(|(_, port)| *port));
    check(request, destination, of_destination, &mut problems);
    let known = subject.addresses(input);
    let near: Vec<IpAddr> = request.source.map_or_else(|| known.clone(), |source| vec![source]);
    let entry = entry(input, request, &near, &mut problems, trace);
    if !problems.is_empty() {
        return Err(Refusal::Invalid(problems));
    }
    let port = port(request, of_destination, trace);
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
                None => public_address(compiled, ipv6, port, trace),
            };
            let from = source(input, request, &known, &entry, ipv6, trace);
            let packet = packet(subject.mac, &entry, from, to, protocol, port);
            named.as_ref().map_or(packet, |(name, _)| with_client_hello(packet, name))
        })
        .collect())
}

/// Notes fields of the request that exclude each other. `of_destination` is the port that the destination says.
fn check(
    request: &Request,
    destination: Option<(IpAddr, Option<u16>)>,
    of_destination: Option<u16>,
    problems: &mut Problems,
) {
    let given = destination.map(|(address, _)| address).or(request.source);
    if let (Some((address, _)), Some(source)) = (destination, request.source)
        && address.is_ipv6() != source.is_ipv6()
    {
        problems.add(code::CONFLICT, "source", "The source and the destination are of different families.");
    }
    if let (Some(address), Some(family)) = (given, request.family)
        && address.is_ipv6() != (family == Family::Ipv6)
    {
        problems.add(code::CONFLICT, "family", format!("{address} is of the other family."));
    }
    if request.protocol == Some(Protocol::Icmp) && (of_destination.is_some() || request.port.is_some()) {
        let path = if request.port.is_some() { "port" } else { "destination" };
        problems.add(code::CONFLICT, path, "ICMP has no ports.");
    }
    if let (Some(destination), Some(to)) = (&request.destination, &request.to)
        && destination.trim() != to.trim()
    {
        problems.add(code::CONFLICT, "to", "It is another name of destination, which says something else.");
    }
    if request.port == Some(0) {
        problems.add(code::RANGE, "port", "Must be from 1 to 65535.");
    }
    if let (Some(one), Some(other)) = (of_destination, request.port)
        && one != other
    {
        problems.add(code::CONFLICT, "port", format!("The destination says port {one}."));
    }
}

/// Returns the packet as the one in which a client shows this name: with the ClientHello of TLS, or of QUIC, which the daemon
/// has read. UDP to other ports than those of HTTPS is no QUIC.
fn with_client_hello(packet: IpPacket, name: &Name) -> IpPacket {
    let payload = match packet.protocol {
        TCP => flow_flags::HELLO,
        UDP if blocks::is_https(packet.destination_port) => flow_flags::HELLO | flow_flags::QUIC,
        _ => return packet,
    };
    let names = ServerNames::of(name.to_string().trim_end_matches('.'));
    IpPacket { payload, names, ..packet }
}

/// Returns the destination of a request that names an address.
pub(super) fn destination(request: &Request, problems: &mut Problems) -> Option<(IpAddr, Option<u16>)> {
    let text = request.destination()?;
    if request.name().is_some() {
        return None;
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some((address.to_canonical(), None));
    }
    if let Ok(pair) = text.parse::<std::net::SocketAddr>()
        && pair.port() != 0
    {
        return Some((pair.ip().to_canonical(), Some(pair.port())));
    }
    let message = "Expected an address, with a port or without: 203.0.113.7, 203.0.113.7:443, [2001:db8::7]:443; or a name, with a port or without: www.example.com:443.";
    problems.add(code::FORMAT, "destination", message);
    None
}

/// Returns the ingress LAN interface of the packet.
pub(crate) fn entry(
    input: &Input<'_>,
    request: &Request,
    sources: &[IpAddr],
    problems: &mut Problems,
    trace: &mut Vec<String>,
) -> Entry {
    let lan = &input.network.lan;
    let vlan_of = |name: &str| input.facts.links.get(name).and_then(|link| link.vlan.as_ref()).map(|v| v.1);
    if let Some(vlan) = request.vlan.filter(|vlan| !(1..=4094).contains(vlan)) {
        problems.add(code::RANGE, "vlan", format!("{vlan} is no VLAN id: those go from 1 to 4094."));
    }
    // The parent leaves the packets of a VLAN to the VLAN's own interface, where the tag is gone.
    let parent = request.interface.as_deref();
    let own = request.vlan.and_then(|id| interface_of_vlan(input, parent, id)).map(str::to_owned);
    let vlan = if own.is_some() { None } else { request.vlan };
    let named = match own.as_ref().or(request.interface.as_ref()) {
        Some(name) if !lan.contains(name) => {
            let message = format!("{name} is no LAN interface: what enters there is not judged.");
            problems.add(code::UNKNOWN_REFERENCE, "interface", message).allowed = Some(lan.clone());
            None
        }
        Some(name) => Some(name.clone()),
        None => None,
    };
    let near = |name: &&String| {
        lan_prefixes(input, name).any(|net| sources.iter().any(|source| net.contains(source)))
    };
    let given = parent.is_some() && named.is_some();
    let chosen = named.or_else(|| lan.iter().find(near).or(lan.first()).cloned());
    let Some(name) = chosen else {
        trace.push("no LAN interface is configured: nothing enters, so nothing is judged".to_owned());
        return Entry { name: String::new(), index: 0, vlan: vlan.unwrap_or(0) };
    };
    let mut entry = Entry::at(input, &name);
    if entry.index == 0 {
        trace.push(format!("the interface {name} does not exist at present"));
    }
    match (vlan, vlan_of(&name)) {
        (Some(want), Some(have)) if want != have => {
            problems.add(code::CONFLICT, "vlan", format!("The interface {name} is VLAN {have}, not {want}."));
        }
        (Some(want), None) => entry.vlan = want,
        _ => {}
    }
    let tag = if entry.vlan == 0 { String::new() } else { format!(" with the tag of VLAN {}", entry.vlan) };
    let assumed = if given { "" } else { " (assumed)" };
    trace.push(format!("it enters by {name}{tag}{assumed}"));
    entry
}

/// Returns the interface that packets of a VLAN go to, of this parent or of any: one of the LAN, or an uplink.
pub(crate) fn interface_of_vlan<'a>(input: &'a Input<'_>, parent: Option<&str>, id: u16) -> Option<&'a str> {
    let is_lan = |name: &str| input.network.lan.iter().any(|lan| lan == name);
    let is_uplink = |name: &str| input.network.uplinks.iter().any(|uplink| uplink.interface == name);
    let is_it = |(above, other): &(String, u16)| *other == id && parent.is_none_or(|parent| parent == above);
    let links = input.facts.links.iter();
    let mut vlans = links.filter(|(_, link)| link.vlan.as_ref().is_some_and(is_it)).map(|(name, _)| name);
    vlans.find_map(|name| {
        let of_lan = input.facts.bridge_or_self(name, is_lan);
        of_lan.or_else(|| parent.and_then(|_| input.facts.bridge_or_self(name, is_uplink)))
    })
}

/// Returns the source address: the given one, one observed with the device, or one of its network.
pub(super) fn source(
    input: &Input<'_>,
    request: &Request,
    known: &[IpAddr],
    entry: &Entry,
    ipv6: bool,
    trace: &mut Vec<String>,
) -> IpAddr {
    let fits = |address: &&IpAddr| address.is_ipv6() == ipv6 && !is_link_local(**address);
    if let Some(given) = request.source.filter(|given| given.is_ipv6() == ipv6) {
        return given;
    }
    let nets = || input.facts.addresses.get(&entry.name).into_iter().flatten();
    let near = |address: &&IpAddr| nets().any(|net| net.contains(*address));
    if let Some(seen) = known.iter().filter(fits).find(near).or_else(|| known.iter().find(fits)) {
        return *seen;
    }
    let family = if ipv6 { "IPv6" } else { "IPv4" };
    match host_of(input, entry, ipv6) {
        Some(host) => {
            trace.push(format!("no {family} address of it is known: {host} is assumed"));
            host
        }
        None => {
            trace.push(format!("no {family} address of it is known: policies for subnets see none"));
            if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
        }
    }
}

/// An address that a host of the LAN interface may have; none if the interface has no network of the family.
pub(crate) fn host_of(input: &Input<'_>, entry: &Entry, ipv6: bool) -> Option<IpAddr> {
    let nets = input.facts.addresses.get(&entry.name).into_iter().flatten();
    let mut of_family = nets.filter(|net| net.addr().is_ipv6() == ipv6 && !is_link_local(net.addr()));
    of_family.next().and_then(some_host)
}

/// An address of the network that is not the gateway's own.
fn some_host(net: &IpNet) -> Option<IpAddr> {
    match net {
        IpNet::V4(four) => four.hosts().take(3).find(|host| *host != four.addr()).map(IpAddr::V4),
        IpNet::V6(six) => six.hosts().skip(1).take(3).find(|host| *host != six.addr()).map(IpAddr::V6),
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}

/// A public address for which there is no policy of its own.
pub(crate) fn public_address(compiled: &Compiled, ipv6: bool, port: u16, trace: &mut Vec<String>) -> IpAddr {
    let plan = &compiled.plan.dataplane;
    let covered = |address: &IpAddr| {
        longest(&plan.locals, *address).is_some()
            || longest(&plan.destinations, *address).is_some()
            || doh_servers::networks().any(|network| network.contains(address))
            || longest(&plan.doh_servers, *address).is_some()
            || longest_of(&plan.destination_ports, port, *address).is_some()
    };
    let family = if ipv6 { "IPv6" } else { "IPv4" };
    match candidates(ipv6).find(|address| !covered(address)) {
        Some(address) => {
            trace.push(format!("no destination is given: {address} stands for the internet in {family}"));
            address
        }
        None => {
            let first = candidates(ipv6).next().expect("there are candidates");
            trace.push(format!(
                "no destination is given: {first} stands for the internet in {family}; policies for destinations cover all of it"
            ));
            first
        }
    }
}

/// Public addresses, spread widely.
fn candidates(ipv6: bool) -> Box<dyn Iterator<Item = IpAddr>> {
    if ipv6 {
        return Box::new((0x00..=0xff).map(|n| Ipv6Addr::new(0x2a00 + n % 16, n, 0, 0, 0, 0, 0, 1).into()));
    }
    Box::new((1..=223).filter(|n| !matches!(n, 10 | 127)).map(|n| Ipv4Addr::new(n, 1, 1, 1).into()))
}

/// Puts the packet together.
pub(crate) fn packet(
    mac: Option<MacAddr>,
    entry: &Entry,
    source: IpAddr,
    destination: IpAddr,
    protocol: Protocol,
    port: u16,
) -> IpPacket {
    let ipv6 = destination.is_ipv6();
    // The type of an echo request (RFC 792, RFC 4443) is at the offset of a port.
    let (number, destination_port) = match (protocol, ipv6) {
        (Protocol::Tcp, _) => (TCP, port),
        (Protocol::Udp, _) => (UDP, port),
        (Protocol::Icmp, false) => (ICMP, 8 << 8),
        (Protocol::Icmp, true) => (ICMPV6, 128 << 8),
    };
    IpPacket {
        source: source.into(),
        destination: destination.into(),
        interface: entry.index,
        length: 100,
        source_port: 50_000,
        destination_port,
        mac: Mac::new(mac.map_or([0; 6], MacAddr::octets)),
        vlan: entry.vlan,
        protocol: number,
        ipv6,
        ..IpPacket::default()
    }
}

/// Returns the port of a request: the given one, else that of HTTPS.
pub(super) fn port(request: &Request, of_destination: Option<u16>, trace: &mut Vec<String>) -> u16 {
    if request.protocol.unwrap_or_default() == Protocol::Icmp {
        return 0;
    }
    match (of_destination, request.port) {
        (Some(port), _) | (None, Some(port)) => port,
        (None, None) => {
            let protocol = request.protocol.unwrap_or_default();
            trace.push(format!("no port is given: {} port {PORT} is assumed", protocol.as_str()));
            PORT
        }
    }
}
