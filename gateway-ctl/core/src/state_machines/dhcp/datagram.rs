//! UDP datagrams in IPv4 packets, for clients that have no address yet.

use std::net::Ipv4Addr;

use gateway_common::checksum::{fold, sum};

const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const UDP: u8 = 17;
const HOP_LIMIT: u8 = 64;

/// Datagram with its endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub source_port: u16,
    pub destination_port: u16,
    pub payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Reads a packet, from the IPv4 header on. `None` for other packets and for fragments.
    pub fn parse(packet: &'a [u8]) -> Option<Datagram<'a>> {
        let header = packet.first_chunk::<IP_HEADER>()?;
        let length = usize::from(header[0] & 15) * 4;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
        if header[0] >> 4 != 4 || length < IP_HEADER || header[9] != UDP || is_fragment {
            return None;
        }
        let datagram = packet.get(length..total)?;
        let udp = datagram.first_chunk::<UDP_HEADER>()?;
        let udp_length = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
        Some(Datagram {
            source: Ipv4Addr::from(*header[12..].first_chunk::<4>()?),
            destination: Ipv4Addr::from(*header[16..].first_chunk::<4>()?),
            source_port: u16::from_be_bytes([udp[0], udp[1]]),
            destination_port: u16::from_be_bytes([udp[2], udp[3]]),
            payload: datagram.get(UDP_HEADER..udp_length)?,
        })
    }
}

/// Returns the packet of a datagram.
pub fn datagram(datagram: &Datagram<'_>) -> Vec<u8> {
    let length = |bytes: usize| u16::try_from(bytes).expect("messages are short").to_be_bytes();
    let udp_length = UDP_HEADER + datagram.payload.len();
    let mut packet = vec![0; IP_HEADER];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&length(IP_HEADER + udp_length));
    packet[8..10].copy_from_slice(&[HOP_LIMIT, UDP]);
    packet[12..16].copy_from_slice(&datagram.source.octets());
    packet[16..20].copy_from_slice(&datagram.destination.octets());
    let checksum = !fold(sum(&packet));
    packet[10..12].copy_from_slice(&checksum.to_ne_bytes());
    packet.extend(datagram.source_port.to_be_bytes());
    packet.extend(datagram.destination_port.to_be_bytes());
    packet.extend(length(udp_length));
    packet.extend([0, 0]);
    packet.extend(datagram.payload);
    let pseudo = [&packet[12..20], &[0, UDP], &length(udp_length)].concat();
    let checksum = match !fold(u32::from(fold(sum(&pseudo))) + u32::from(fold(sum(&packet[IP_HEADER..])))) {
        // Zero means that there is none (RFC 768).
        0 => 0xffff,
        checksum => checksum,
    };
    packet[IP_HEADER + 6..][..2].copy_from_slice(&checksum.to_ne_bytes());
    packet
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_datagram_is_read_as_it_was_written(payload in prop::collection::vec(any::<u8>(), 0..300), ports in any::<(u16, u16)>()) {
            let written = Datagram {
                source: Ipv4Addr::new(192, 0, 2, 1),
                destination: Ipv4Addr::BROADCAST,
                source_port: ports.0,
                destination_port: ports.1,
                payload: &payload,
            };
            let mut packet = datagram(&written);
            prop_assert_eq!(fold(sum(&packet[..IP_HEADER])), 0xffff);
            // Frames of Ethernet have a minimum length.
            packet.extend([0; 18]);
            prop_assert_eq!(Datagram::parse(&packet), Some(written));
        }

        #[test]
        fn any_packet_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut packet = vec![0x45, 0, 0, 60];
            packet.extend(bytes);
            let _ = Datagram::parse(&packet);
        }
    }
}
