//! Minimal parser of Ethernet, IPv4 and IPv6 that identifies the origin of a packet.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IGMP: u8 = 2;
const ICMPV6: u8 = 58;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    Ip(Packet<'a>),
    Arp,
    /// Another protocol, or a packet shorter than its headers declare.
    Other(u16),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// Transport protocol after the IPv6 extension headers.
    pub protocol: u8,
    pub ports: Option<(u16, u16)>,
    /// Fragment that does not start with the transport header.
    pub later_fragment: bool,
    /// All bytes after the IP headers.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Self {
        let Some((mut protocol, mut rest)) = bytes.get(12..).and_then(take_u16) else {
            return Self::Other(0);
        };
        while matches!(protocol, 0x8100 | 0x88a8) {
            match rest.get(2..).and_then(take_u16) {
                Some((inner, behind)) => (protocol, rest) = (inner, behind),
                None => return Self::Other(protocol),
            }
        }
        match protocol {
            0x0806 => Self::Arp,
            0x0800 => Packet::read_v4(rest).map_or(Self::Other(protocol), Self::Ip),
            0x86dd => Packet::read_v6(rest).map_or(Self::Other(protocol), Self::Ip),
            _ => Self::Other(protocol),
        }
    }

    pub(super) fn is_dns(&self) -> bool {
        match self {
            Self::Ip(packet) => {
                matches!(packet.protocol, TCP | UDP) && packet.ports.is_some_and(|(_, to)| to == 53)
            }
            Self::Arp | Self::Other(_) => false,
        }
    }
}

impl<'a> Packet<'a> {
    fn read_v4(bytes: &'a [u8]) -> Option<Self> {
        let header = usize::from(bytes.first()? & 0x0f) * 4;
        let source: [u8; 4] = bytes.get(12..16)?.try_into().ok()?;
        let destination: [u8; 4] = bytes.get(16..20)?.try_into().ok()?;
        let (fragment, _) = take_u16(bytes.get(6..)?)?;
        let payload = bytes.get(header..)?;
        Some(Self::new(
            Ipv4Addr::from(source).into(),
            Ipv4Addr::from(destination).into(),
            *bytes.get(9)?,
            fragment & 0x1fff != 0,
            payload,
        ))
    }

    fn read_v6(bytes: &'a [u8]) -> Option<Self> {
        let source: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
        let destination: [u8; 16] = bytes.get(24..40)?.try_into().ok()?;
        let mut next = *bytes.get(6)?;
        let mut rest = bytes.get(40..)?;
        let mut later_fragment = false;
        loop {
            let length = match next {
                0 | 43 | 60 => usize::from(*rest.get(1)?) * 8 + 8,
                44 => {
                    later_fragment |= take_u16(rest.get(2..)?)?.0 & 0xfff8 != 0;
                    8
                }
                51 => usize::from(*rest.get(1)?) * 4 + 8,
                _ => break,
            };
            next = *rest.first()?;
            rest = rest.get(length..)?;
            if later_fragment {
                break;
            }
        }
        let (source, destination) = (Ipv6Addr::from(source).into(), Ipv6Addr::from(destination).into());
        Some(Self::new(source, destination, next, later_fragment, rest))
    }

    fn new(
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        later_fragment: bool,
        payload: &'a [u8],
    ) -> Self {
        let ports = if later_fragment || !matches!(protocol, TCP | UDP) {
            None
        } else {
            take_u16(payload).and_then(|(from, rest)| Some((from, take_u16(rest)?.0)))
        };
        Self { source, destination, protocol, ports, later_fragment, payload }
    }

    pub(super) fn is_tcp(&self) -> bool {
        self.protocol == TCP
    }

    pub(super) fn is_udp(&self) -> bool {
        self.protocol == UDP
    }

    /// Returns the packet that an ICMP error quotes.
    pub(super) fn quoted(&self) -> Option<Packet<'a>> {
        let (kind, quoted) = (self.payload.first()?, self.payload.get(8..)?);
        match (self.protocol, kind) {
            (ICMP, 3 | 11 | 12) => Packet::read_v4(quoted),
            (ICMPV6, 1..=4) => Packet::read_v6(quoted),
            _ => None,
        }
    }

    /// Reports whether the packet is neighbour discovery or group membership, the housekeeping of a link.
    pub(super) fn keeps_house(&self) -> bool {
        match self.protocol {
            IGMP => true,
            ICMPV6 => matches!(self.payload.first(), Some(130..=137 | 143)),
            _ => false,
        }
    }
}

impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arp => write!(f, "ARP"),
            Self::Other(protocol) => write!(f, "Ethernet protocol 0x{protocol:04x}"),
            Self::Ip(packet) => packet.fmt(f),
        }
    }
}

impl fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}, protocol {}", self.source, self.destination, self.protocol)?;
        if let Some((from, to)) = self.ports {
            write!(f, ", ports {from} -> {to}")?;
        }
        if self.protocol == TCP {
            write!(f, ", flags 0x{:02x}", self.payload.get(13).copied().unwrap_or(0))?;
        }
        if self.later_fragment {
            write!(f, ", later fragment")?;
        }
        write!(f, ", {} bytes", self.payload.len())
    }
}

fn take_u16(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    Some((u16::from_be_bytes(*head), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp_v4() -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes.extend([0x08, 0x00, 0x45, 0, 0, 32, 0, 0, 0, 0, 64, UDP, 0, 0]);
        bytes.extend([192, 168, 10, 10, 198, 18, 0, 1]);
        bytes.extend([0x30, 0x39, 0, 53, 0, 12, 0, 0, b'h', b'o', b'l', b'a']);
        bytes
    }

    fn udp_v6(extension: &[u8], first: u8) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, first, 64]);
        bytes.extend(Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 0x10).octets());
        bytes.extend(Ipv6Addr::new(0x2001, 0xdb8, 0x18, 0, 0, 0, 0, 1).octets());
        bytes.extend(extension);
        bytes.extend([0x30, 0x39, 0, 53, 0, 12, 0, 0]);
        bytes
    }

    fn packet<'a>(frame: &'a Frame<'a>) -> &'a Packet<'a> {
        match frame {
            Frame::Ip(packet) => packet,
            other => panic!("not IP: {other:?}"),
        }
    }

    #[test]
    fn a_packet_is_read_with_and_without_vlan_tags() {
        let plain = udp_v4();
        let mut tagged = plain.clone();
        tagged.splice(12..12, [0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 7]);
        for bytes in [plain, tagged] {
            let frame = Frame::read(&bytes);
            assert!(frame.is_dns());
            assert_eq!(packet(&frame).source, IpAddr::from([192, 168, 10, 10]));
            assert_eq!(packet(&frame).ports, Some((12345, 53)));
        }
    }

    #[test]
    fn extension_headers_do_not_hide_the_transport() {
        let bytes = udp_v6(&[60, 0, 0, 0, 0, 0, 0, 0, UDP, 0, 0, 0, 0, 0, 0, 0], 0);
        assert_eq!(packet(&Frame::read(&bytes)).ports, Some((12345, 53)));
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let v6 = udp_v6(&[UDP, 0, 0, 0x08, 0, 0, 0, 1], 44);
        assert!(packet(&Frame::read(&v6)).later_fragment);
        assert_eq!(packet(&Frame::read(&v6)).ports, None);
        let mut v4 = udp_v4();
        v4[14 + 7] = 1;
        assert!(packet(&Frame::read(&v4)).later_fragment);
    }

    #[test]
    fn an_error_quotes_the_packet_it_is_about() {
        let inner = udp_v4();
        let mut bytes = vec![0; 12];
        bytes.extend([0x08, 0x00, 0x45, 0, 0, 60, 0, 0, 0, 0, 64, ICMP, 0, 0]);
        bytes.extend([198, 18, 0, 1, 192, 168, 10, 10]);
        bytes.extend([3, 3, 0, 0, 0, 0, 0, 0]);
        bytes.extend(&inner[14..]);
        let frame = Frame::read(&bytes);
        let quoted = packet(&frame).quoted().expect("quoted");
        assert_eq!((quoted.source, quoted.ports), (IpAddr::from([192, 168, 10, 10]), Some((12345, 53))));
        assert_eq!(packet(&Frame::read(&inner)).quoted(), None);
    }

    #[test]
    fn no_cut_of_a_packet_panics() {
        for bytes in [udp_v4(), udp_v6(&[UDP, 0, 0, 0x08, 0, 0, 0, 1], 44)] {
            for end in 0..bytes.len() {
                let _ = Frame::read(&bytes[..end]).to_string();
            }
        }
    }
}
