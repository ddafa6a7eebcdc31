//! Link, network and tunnel headers of a packet, from the outside to the inside.

use std::net::IpAddr;

use etherparse::{
    EtherType, IpNumber, Ipv4ExtensionsSlice, LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket, LinkSlice,
    ether_type, ip_number,
};

use crate::connections::Dissector;
use crate::{LinkType, Protocol, Summary, arp, icmp, text, transport};

/// Maximum number of packets inside of each other that are read.
const MAX_NESTING: u8 = 4;
/// UDP port of VXLAN (RFC 7348, section 5), and length of its header.
const VXLAN: (u16, usize) = (4789, 8);
/// UDP port of Teredo (RFC 4380, section 2.7).
const TEREDO: u16 = 3544;

impl Dissector {
    /// Returns the summary of a packet. `bytes` may be cut off behind the snap length.
    pub fn summarize(&mut self, link: LinkType, bytes: &[u8]) -> Summary {
        let mut summary = Summary::of(Protocol::Ethernet);
        match link {
            LinkType::Ethernet => self.ethernet(bytes, &mut summary, 0),
            LinkType::Raw => self.ip(bytes, &mut summary, 0),
            LinkType::LinuxSll => {
                let protocol = bytes.get(14..16).map(|two| u16::from_be_bytes([two[0], two[1]]));
                let payload = bytes.get(16..).unwrap_or_default();
                self.ether_type(protocol.unwrap_or_default(), payload, &mut summary, 0);
            }
            LinkType::Ppp => {
                let offset = if bytes.starts_with(&[0xff, 3]) { 4 } else { 2 };
                self.ip(bytes.get(offset..).unwrap_or_default(), &mut summary, 0);
            }
            LinkType::Null => self.ip(bytes.get(4..).unwrap_or_default(), &mut summary, 0),
        }
        summary.info = text::clean(&summary.info);
        summary
    }

    fn ethernet(&mut self, bytes: &[u8], summary: &mut Summary, depth: u8) {
        let Ok(packet) = LaxSlicedPacket::from_ethernet(bytes) else {
            "cut off in the header of the link".clone_into(&mut summary.info);
            return;
        };
        if let Some(LinkSlice::Ethernet2(ethernet)) = &packet.link {
            summary.source = text::mac(&ethernet.source());
            summary.destination = text::mac(&ethernet.destination());
            summary.info = frame_type(ethernet.ether_type());
        }
        self.packet(&packet, summary, depth);
    }

    fn ether_type(&mut self, ether_type: u16, payload: &[u8], summary: &mut Summary, depth: u8) {
        summary.info = frame_type(EtherType(ether_type));
        self.packet(&LaxSlicedPacket::from_ether_type(EtherType(ether_type), payload), summary, depth);
    }

    fn ip(&mut self, bytes: &[u8], summary: &mut Summary, depth: u8) {
        let protocol = match bytes.first().map(|first| first >> 4) {
            Some(4) => ether_type::IPV4,
            Some(6) => ether_type::IPV6,
            _ => {
                "no IP packet".clone_into(&mut summary.info);
                return;
            }
        };
        self.packet(&LaxSlicedPacket::from_ether_type(protocol, bytes), summary, depth);
    }

    fn packet(&mut self, packet: &LaxSlicedPacket<'_>, summary: &mut Summary, depth: u8) {
        for extension in &packet.link_exts {
            if let LaxLinkExtSlice::Vlan(tag) = extension {
                summary.vlan.get_or_insert(tag.vlan_identifier().value());
                summary.info =
                    format!("VLAN {}, {}", tag.vlan_identifier().value(), frame_type(tag.ether_type()));
            }
        }
        let named = packet.ether_payload().and_then(|payload| named_protocol(payload.ether_type));
        match &packet.net {
            Some(LaxNetSlice::Arp(slice)) => arp::read(slice, summary),
            Some(LaxNetSlice::Ipv4(slice)) => {
                let header = slice.header();
                let addresses = (header.source_addr().into(), header.destination_addr().into());
                let later = header.fragments_offset().value() != 0;
                let Ipv4ExtensionsSlice { .. } = slice.extensions();
                let payload = slice.payload();
                let next = Inner { number: payload.ip_number.0, bytes: payload.payload, later };
                self.network(Protocol::Ipv4, addresses, &next, summary, depth);
            }
            Some(LaxNetSlice::Ipv6(slice)) => {
                let header = slice.header();
                let addresses = (header.source_addr().into(), header.destination_addr().into());
                let extensions = slice.extensions();
                let later = is_later_fragment(extensions.first_header(), extensions.slice());
                let payload = slice.payload();
                let next = Inner { number: payload.ip_number.0, bytes: payload.payload, later };
                self.network(Protocol::Ipv6, addresses, &next, summary, depth);
            }
            None => {
                if packet.stop_err.is_some() {
                    summary.info.push_str(", malformed");
                    summary.protocol = named.unwrap_or(summary.protocol);
                }
            }
        }
    }

    fn network(
        &mut self,
        protocol: Protocol,
        (source, destination): (IpAddr, IpAddr),
        inner: &Inner<'_>,
        summary: &mut Summary,
        depth: u8,
    ) {
        summary.protocol = protocol;
        summary.source = source.to_string();
        summary.destination = destination.to_string();
        (summary.source_port, summary.destination_port) = (None, None);
        if inner.later {
            summary.info = format!("fragment, protocol {}", inner.number);
            return;
        }
        summary.info = format!("protocol {}, {} bytes", inner.number, inner.bytes.len());
        match etherparse::IpNumber(inner.number) {
            ip_number::ICMP => icmp::read_v4(inner.bytes, summary),
            ip_number::IPV6_ICMP => icmp::read_v6(inner.bytes, summary),
            ip_number::IGMP => {
                summary.protocol = Protocol::Igmp;
                summary.info = format!("type {:#04x}", inner.bytes.first().copied().unwrap_or_default());
            }
            ip_number::TCP => transport::read_tcp(self, (source, destination), inner.bytes, summary),
            ip_number::UDP => self.udp((source, destination), inner.bytes, summary, depth),
            ip_number::IPV4 | ip_number::IPV6 if depth < MAX_NESTING => {
                self.ip(inner.bytes, summary, depth + 1)
            }
            ip_number::GRE if depth < MAX_NESTING => self.gre(inner.bytes, summary, depth + 1),
            _ => {}
        }
    }

    fn udp(&mut self, addresses: (IpAddr, IpAddr), bytes: &[u8], summary: &mut Summary, depth: u8) {
        let Some((endpoints, payload)) = transport::read_udp(addresses, bytes, summary) else { return };
        if endpoints.destination.1 == VXLAN.0 && depth < MAX_NESTING {
            if let Some(frame) = payload.get(VXLAN.1..).filter(|_| payload[0] & 0x08 != 0) {
                *summary = Summary { vlan: summary.vlan, ..Summary::of(Protocol::Ethernet) };
                return self.ethernet(frame, summary, depth + 1);
            }
        } else if endpoints.has_port(TEREDO)
            && depth < MAX_NESTING
            && let Some(packet) = teredo(payload)
        {
            return self.ip(packet, summary, depth + 1);
        }
        transport::read_datagram(self, &endpoints, payload, summary);
    }

    /// Reads the payload of GRE (RFC 2784, RFC 2890) if it is IP.
    fn gre(&mut self, bytes: &[u8], summary: &mut Summary, depth: u8) {
        let Some(&[flags, version, high, low]) = bytes.first_chunk::<4>() else { return };
        if version & 7 != 0 {
            return;
        }
        let optional = [0x80, 0x20, 0x10].iter().filter(|bit| flags & **bit != 0).count();
        let Some(payload) = bytes.get(4 + 4 * optional..) else { return };
        let kind = u16::from_be_bytes([high, low]);
        if matches!(EtherType(kind), ether_type::IPV4 | ether_type::IPV6) {
            self.ip(payload, summary, depth);
        }
    }
}

/// Payload of an IP packet.
struct Inner<'a> {
    number: u8,
    bytes: &'a [u8],
    /// It is a fragment that does not begin with a header.
    later: bool,
}

/// Returns the IPv6 packet in a datagram of Teredo, behind the indications of authentication and origin (RFC 4380,
/// section 5.1.1).
fn teredo(payload: &[u8]) -> Option<&[u8]> {
    let mut rest = payload;
    if let [0, 1, client, authentication, ..] = rest {
        rest = rest.get(13 + usize::from(*client) + usize::from(*authentication)..)?;
    }
    if rest.starts_with(&[0, 0]) {
        rest = rest.get(8..)?;
    }
    (rest.len() >= 40 && rest[0] >> 4 == 6).then_some(rest)
}

/// Reports whether IPv6 extension headers (RFC 8200, section 4) make a packet a fragment after the first. The iterator of
/// etherparse reads behind the end of headers that are cut off.
fn is_later_fragment(first: Option<IpNumber>, headers: &[u8]) -> bool {
    let (mut next, mut rest) = (first, headers);
    while let (Some(kind), [following, length, ..]) = (next, rest) {
        let size = match kind {
            IpNumber::IPV6_FRAGMENTATION_HEADER => {
                return rest
                    .get(2..4)
                    .is_some_and(|offset| u16::from_be_bytes([offset[0], offset[1]]) >> 3 != 0);
            }
            IpNumber::AUTHENTICATION_HEADER => (usize::from(*length) + 2) * 4,
            _ => (usize::from(*length) + 1) * 8,
        };
        (next, rest) = (Some(IpNumber(*following)), rest.get(size..).unwrap_or_default());
    }
    false
}

/// Returns the protocol of the next header by its EtherType, which a malformed header has as well.
fn named_protocol(kind: EtherType) -> Option<Protocol> {
    match kind {
        EtherType::IPV4 => Some(Protocol::Ipv4),
        EtherType::IPV6 => Some(Protocol::Ipv6),
        EtherType::ARP => Some(Protocol::Arp),
        _ => None,
    }
}

fn frame_type(kind: EtherType) -> String {
    match kind.0 {
        length @ 0..=1500 => format!("IEEE 802.3, {length} bytes"),
        0x0800 => "IPv4".to_owned(),
        0x86dd => "IPv6".to_owned(),
        0x0806 => "ARP".to_owned(),
        0x88cc => "LLDP".to_owned(),
        0x888e => "EAPOL".to_owned(),
        0x8863 => "PPPoE discovery".to_owned(),
        0x8864 => "PPPoE session".to_owned(),
        other => format!("EtherType {other:#06x}"),
    }
}

#[cfg(test)]
mod tests;
