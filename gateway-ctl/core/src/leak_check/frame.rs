//! Ethernet frames of probes (RFC 894, RFC 2464; IEEE 802.1Q).

use std::net::{IpAddr, SocketAddr};

use gateway_common::checksum::{fold, sum};
use gateway_common::classify::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN, ICMP, ICMPV6, TCP, UDP};

/// Hop limit of probes. The gateway decrements it, and the next router discards the packet.
pub const HOPS: u8 = 2;

const SYN: u8 = 0x02;

/// Link-layer header of a probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub source: [u8; 6],
    pub destination: [u8; 6],
    /// VLAN tag, 0 without one.
    pub vlan: u16,
}

/// Transport header and payload of a probe.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    /// Opens a TCP connection, with this sequence number.
    Syn(u32),
    Udp(Vec<u8>),
    /// Echo request with this identifier.
    Echo(u16, Vec<u8>),
}

/// Returns the frame of a packet. Both addresses must be of the same family.
pub(crate) fn frame(
    link: Link,
    source: SocketAddr,
    destination: SocketAddr,
    transport: &Transport,
) -> Vec<u8> {
    let (from, to) = (octets(source.ip()), octets(destination.ip()));
    let ipv6 = source.is_ipv6();
    let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
    let (protocol, mut segment, at) = match transport {
        Transport::Syn(sequence) => {
            // Twenty bytes of header, and a window.
            let rest =
                [&sequence.to_be_bytes()[..], &[0, 0, 0, 0, 0x50, SYN, 0xfa, 0xf0, 0, 0, 0, 0]].concat();
            (TCP, [ports, rest].concat(), 16)
        }
        Transport::Udp(payload) => {
            let length = length(8 + payload.len()).to_be_bytes();
            (UDP, [&ports[..], &length, &[0, 0], payload].concat(), 6)
        }
        Transport::Echo(id, payload) => {
            let (protocol, kind) = if ipv6 { (ICMPV6, 128) } else { (ICMP, 8) };
            (protocol, [&[kind, 0, 0, 0][..], &id.to_be_bytes(), &[0, 1], payload].concat(), 2)
        }
    };
    let size = length(segment.len());
    let pseudo = [&from[..], &to, &[0, protocol], &size.to_be_bytes()].concat();
    let covered = if protocol == ICMP { 0 } else { sum(&pseudo) };
    // Zero means that a datagram has no checksum (RFC 768).
    let check = match !fold(covered + sum(&segment)) {
        0 if protocol == UDP => 0xffff,
        check => check,
    };
    segment[at..at + 2].copy_from_slice(&check.to_ne_bytes());
    let mut frame = [link.destination, link.source].concat();
    if link.vlan != 0 {
        frame.extend([ETHERTYPE_VLAN.to_be_bytes(), link.vlan.to_be_bytes()].concat());
    }
    if ipv6 {
        frame.extend(ETHERTYPE_IPV6.to_be_bytes());
        frame.extend([0x60, 0, 0, 0]);
        frame.extend(size.to_be_bytes());
        frame.extend([protocol, HOPS]);
        frame.extend([from, to].concat());
    } else {
        frame.extend(ETHERTYPE_IPV4.to_be_bytes());
        let total = (20 + size).to_be_bytes();
        // Not to be fragmented.
        let mut header = vec![0x45, 0, total[0], total[1], 0, 0, 0x40, 0, HOPS, protocol, 0, 0];
        header.extend([from, to].concat());
        let check = !fold(sum(&header));
        header[10..12].copy_from_slice(&check.to_ne_bytes());
        frame.extend(header);
    }
    frame.extend(segment);
    frame
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Length of a part of a probe, which is short.
fn length(bytes: usize) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use gateway_common::classify::{Classified, classify};

    use super::*;

    const LINK: Link = Link { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2], vlan: 0 };

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address and a port")
    }

    #[test]
    fn checksums_cover_header_and_payload() {
        let transports = [
            (TCP, Transport::Syn(77)),
            (UDP, Transport::Udp(b"odd".to_vec())),
            (ICMPV6, Transport::Echo(5, b"echo".to_vec())),
        ];
        for (protocol, transport) in &transports {
            let v6 = frame(LINK, at("[fd00::7]:40000"), at("[2001:db8::1]:443"), transport);
            let size = length(v6.len() - 54).to_be_bytes();
            let total = sum(&[&v6[22..54], &[0, *protocol], &size, &v6[54..]].concat());
            assert_eq!(fold(total), 0xffff, "{transport:?}");
            let v4 = frame(LINK, at("192.0.2.7:40000"), at("198.51.100.1:443"), transport);
            assert_eq!(fold(sum(&v4[14..34])), 0xffff, "{transport:?}");
            let size = length(v4.len() - 34).to_be_bytes();
            let pseudo =
                if *protocol == ICMPV6 { Vec::new() } else { [&v4[26..34], &[0, *protocol], &size].concat() };
            assert_eq!(fold(sum(&[&pseudo, &v4[34..]].concat())), 0xffff, "{transport:?}");
        }
    }

    #[test]
    fn the_parser_of_the_kernel_reads_what_was_put_in() {
        let link = Link { vlan: 7, ..LINK };
        let frame = frame(link, at("192.0.2.7:40000"), at("198.51.100.1:443"), &Transport::Syn(77));
        let Ok(Classified::Ip(packet)) = classify(&frame[..], 3) else { panic!("no IP packet") };
        assert_eq!((packet.vlan, packet.protocol, packet.opening), (7, TCP, true));
        assert_eq!((packet.source_port, packet.destination_port), (40_000, 443));
        assert_eq!(packet.mac.octets(), LINK.source);
    }
}
