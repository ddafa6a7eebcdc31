//! Headers of an IP packet, as far as the filter reads them. No I/O.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMP6: u8 = 58;

const MORE_FRAGMENTS_OR_OFFSET: u16 = 0x3fff;
const FRAGMENT_OFFSET: u16 = 0x1fff;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Addresses and protocol of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) protocol: u8,
    pub(super) kind: Kind,
}

/// Place of a packet in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A fragment that has no ports.
    LaterFragment,
    /// TCP that begins no connection.
    TcpWithin,
    /// ICMP that answers: an echo reply, or an error.
    IcmpReply,
    /// It may begin a flow.
    Begins { source_port: u16, port: u16 },
    /// It has no ports.
    Other,
}

impl Header {
    /// Reads a packet. Cut ones are none.
    pub(super) fn parse(packet: &[u8]) -> Option<Header> {
        match packet.first()? >> 4 {
            4 => Header::parse_ipv4(packet),
            6 => Header::parse_ipv6(packet),
            _ => None,
        }
    }

    fn parse_ipv4(packet: &[u8]) -> Option<Header> {
        let header = packet.first_chunk::<20>()?;
        let length = usize::from(header[0] & 0x0f) * 4;
        let content = packet.get(length.max(20)..).filter(|_| length >= 20)?;
        let fragment = u16::from_be_bytes([header[6], header[7]]);
        let protocol = header[9];
        let kind = if fragment & FRAGMENT_OFFSET != 0 {
            Kind::LaterFragment
        } else {
            kind(protocol, content, fragment & MORE_FRAGMENTS_OR_OFFSET != 0)?
        };
        let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
        Some(Header { source: address(12).into(), destination: address(16).into(), protocol, kind })
    }

    /// Packets with extension headers have the protocol of the first of them.
    fn parse_ipv6(packet: &[u8]) -> Option<Header> {
        let (header, content) = packet.split_first_chunk::<40>()?;
        let address =
            |at: usize| header.get(at..)?.first_chunk::<16>().map(|bytes| Ipv6Addr::from(*bytes).into());
        let protocol = header[6];
        Some(Header {
            source: address(8)?,
            destination: address(24)?,
            protocol,
            kind: kind(protocol, content, false)?,
        })
    }
}

/// Returns the kind of an unfragmented packet, or of a first fragment, which must have the whole header of its protocol.
fn kind(protocol: u8, content: &[u8], is_fragment: bool) -> Option<Kind> {
    let ports = || -> Option<Kind> {
        let &[a, b, c, d] = content.first_chunk()?;
        Some(Kind::Begins { source_port: u16::from_be_bytes([a, b]), port: u16::from_be_bytes([c, d]) })
    };
    Some(match protocol {
        TCP => {
            let flags = content.first_chunk::<20>()?[13];
            if flags & (SYN | ACK) == SYN { ports()? } else { Kind::TcpWithin }
        }
        UDP => {
            content.first_chunk::<8>()?;
            ports()?
        }
        // Destination unreachable, time exceeded, parameter problem, echo reply.
        ICMP if !is_fragment => match content.first_chunk::<8>()?[0] {
            0 | 3 | 11 | 12 => Kind::IcmpReply,
            _ => Kind::Other,
        },
        // Errors, echo reply.
        ICMP6 => match content.first_chunk::<8>()?[0] {
            1..=4 | 129 => Kind::IcmpReply,
            _ => Kind::Other,
        },
        _ => Kind::Other,
    })
}
