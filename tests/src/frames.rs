//! Handcrafted frames with arbitrary source addresses, sent unmodified on a link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context, Result};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::netns::Namespace;
use crate::packet_socket::link_address;
use crate::tap::MARK;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const SYN: u8 = 0x02;

/// Payload behind the IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// An echo request.
    Ping,
    Udp {
        from: u16,
        to: u16,
        payload: Vec<u8>,
    },
    /// The opening segment of a connection.
    Syn {
        from: u16,
        to: u16,
    },
    Other {
        protocol: u8,
        bytes: Vec<u8>,
    },
}

/// An IP packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forged {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub hop_limit: u8,
    pub body: Body,
}

impl Forged {
    pub fn new(source: IpAddr, destination: IpAddr, body: Body) -> Forged {
        Forged { source, destination, hop_limit: 64, body }
    }

    /// Creates a datagram with the payload that every tap of the tests recognises.
    pub fn datagram(source: IpAddr, destination: IpAddr, to: u16) -> Forged {
        let payload = [MARK, &[0x55; 200]].concat();
        Forged::new(source, destination, Body::Udp { from: 40_000, to, payload })
    }

    /// Returns the packet as a frame.
    pub fn frame(&self, from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
        let (ethertype, packet) = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => (ETHERTYPE_IPV4, self.v4(source, destination)),
            (source, destination) => (ETHERTYPE_IPV6, self.v6(long(source), long(destination))),
        };
        [&to[..], &from, &ethertype.to_be_bytes(), &packet].concat()
    }

    fn v4(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
        let pseudo = [source.octets(), destination.octets()].concat();
        let (protocol, body) = self.transport(&pseudo, false);
        let length = u16::try_from(20 + body.len()).unwrap_or(u16::MAX).to_be_bytes();
        let mut header = [0x45, 0, length[0], length[1], 0, 7, 0, 0, self.hop_limit, protocol, 0, 0].to_vec();
        header.extend(pseudo);
        let sum = checksum(&header).to_be_bytes();
        header[10..12].copy_from_slice(&sum);
        header.extend(body);
        header
    }

    fn v6(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
        let pseudo = [source.octets(), destination.octets()].concat();
        let (protocol, body) = self.transport(&pseudo, true);
        let length = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
        let mut header = vec![0x60, 0, 0, 0, length[0], length[1], protocol, self.hop_limit];
        header.extend(pseudo);
        header.extend(body);
        header
    }

    /// Returns protocol and bytes, with the checksum over the addresses.
    fn transport(&self, addresses: &[u8], ipv6: bool) -> (u8, Vec<u8>) {
        let (protocol, mut bytes, at) = match &self.body {
            Body::Ping if ipv6 => (ICMPV6, [&[128, 0, 0, 0, 0x12, 0x34, 0, 1], MARK].concat(), Some(2)),
            Body::Ping => (ICMP, [&[8, 0, 0, 0, 0x12, 0x34, 0, 1], MARK].concat(), Some(2)),
            Body::Udp { from, to, payload } => {
                let length = u16::try_from(8 + payload.len()).unwrap_or(u16::MAX);
                let words = [*from, *to, length, 0].map(u16::to_be_bytes).concat();
                (UDP, [&words[..], payload].concat(), Some(6))
            }
            Body::Syn { from, to } => {
                let ports = [*from, *to].map(u16::to_be_bytes).concat();
                let rest = [0, 0, 0, 1, 0, 0, 0, 0, 0x50, SYN, 0xff, 0xff, 0, 0, 0, 0];
                (TCP, [&ports[..], &rest].concat(), Some(16))
            }
            Body::Other { protocol, bytes } => (*protocol, bytes.clone(), None),
        };
        if let Some(at) = at {
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes();
            let pseudo = [addresses, &length, &[0, 0, 0, protocol]].concat();
            let covered = if protocol == ICMP { bytes.clone() } else { [&pseudo[..], &bytes].concat() };
            let sum = checksum(&covered).to_be_bytes();
            bytes[at..at + 2].copy_from_slice(&sum);
        }
        (protocol, bytes)
    }
}

fn long(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(four) => four.to_ipv6_mapped(),
        IpAddr::V6(six) => six,
    }
}

/// Computes the Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(u16::try_from(sum).unwrap_or(u16::MAX))
}

/// Parses a MAC address into its six bytes.
pub fn mac(text: &str) -> [u8; 6] {
    let mut bytes = text.split(':').map(|part| u8::from_str_radix(part, 16).unwrap_or(0));
    std::array::from_fn(|_| bytes.next().unwrap_or(0))
}

/// Sender of frames on one link of a namespace.
#[derive(Debug)]
pub struct FrameSender {
    socket: Socket,
    address: SockAddr,
}

impl FrameSender {
    pub fn open(namespace: &Namespace, interface: &str) -> Result<FrameSender> {
        namespace.within(|| Self::here(interface)).with_context(|| format!("a packet socket on {interface}"))
    }

    fn here(interface: &str) -> Result<FrameSender> {
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))?;
        let address = link_address(interface, 0)?;
        Ok(FrameSender { socket, address })
    }

    pub fn send(&self, frame: &[u8]) -> Result<()> {
        self.socket.send_to(frame, &self.address).map(drop).context("send a frame")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_transports_sum_up_to_nothing() {
        let body = || Body::Udp { from: 1, to: 2, payload: vec![1, 2, 3] };
        let four = Forged::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), body());
        let frame = four.frame([2; 6], [4; 6]);
        assert_eq!((&frame[..6], &frame[12..14]), (&[4u8; 6][..], &[8u8, 0][..]));
        assert_eq!(checksum(&frame[14..34]), 0);
        let pseudo = [&frame[26..34], &[0, 17, 0, 11]].concat();
        assert_eq!(checksum(&[&pseudo[..], &frame[34..]].concat()), 0);
        let six = |last| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
        let frame = Forged::new(six(1), six(2), Body::Ping).frame([2; 6], [4; 6]);
        let icmp = &frame[54..];
        let length = u32::try_from(icmp.len()).unwrap().to_be_bytes();
        let pseudo = [&frame[22..54], &length, &[0, 0, 0, 58]].concat();
        assert_eq!(checksum(&[&pseudo[..], icmp].concat()), 0);
    }

    #[test]
    fn a_mac_address_is_read() {
        assert_eq!(mac("02:00:00:10:00:0a"), [2, 0, 0, 0x10, 0, 10]);
    }
}
