//! Packets and options of neighbour discovery (RFC 4861, section 4).

use std::net::Ipv6Addr;

use gateway_common::checksum::{fold, sum};

const ICMPV6: u8 = 58;
const IPV6_HEADER: usize = 40;
/// Hop limit of a packet that no router has forwarded.
const HOP_LIMIT: u8 = 255;
/// Length of options is in units of eight bytes.
pub(super) const OPTION_UNIT: usize = 8;

/// Returns the source and the message of a packet of this type. `None` for other packets, and for those that receivers
/// must ignore.
pub(super) fn open(packet: &[u8], kind: u8) -> Option<(Ipv6Addr, &[u8])> {
    let (header, _) = packet.split_first_chunk::<IPV6_HEADER>()?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let message = packet.get(IPV6_HEADER..IPV6_HEADER + length)?;
    let is_valid = header[0] >> 4 == 6
        && header[6] == ICMPV6
        && header[7] == HOP_LIMIT
        && matches!(message, [first, 0, ..] if *first == kind)
        && checksum(header, message) == 0xffff;
    let source = Ipv6Addr::from(*header[8..].first_chunk::<16>()?);
    is_valid.then_some((source, message))
}

/// Returns the options, each with its type and length. `None` if one has no length or is cut off: the whole message is
/// invalid then.
pub(super) fn options(mut left: &[u8]) -> Option<Vec<&[u8]>> {
    let mut options = Vec::new();
    while let [_, units, ..] = *left {
        let length = Some(usize::from(units) * OPTION_UNIT).filter(|length| *length > 0)?;
        let (option, rest) = left.split_at_checked(length)?;
        options.push(option);
        left = rest;
    }
    left.is_empty().then_some(options)
}

/// Returns the packet of a message, from the IPv6 header on. The checksum of the message is filled in.
pub(super) fn seal(source: Ipv6Addr, destination: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
    let length = u16::try_from(message.len()).expect("a message has few options");
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([ICMPV6, HOP_LIMIT]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    let header = packet.first_chunk().expect("a header");
    message[2..4].copy_from_slice(&[0, 0]);
    let checksum = !checksum(header, &message);
    message[2..4].copy_from_slice(&checksum.to_ne_bytes());
    packet.extend(message);
    packet
}

/// Returns the sum over the message and its pseudo-header (RFC 8200, section 8.1).
fn checksum(header: &[u8; IPV6_HEADER], message: &[u8]) -> u16 {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let pseudo = [&header[8..], &length.to_be_bytes(), &[0, 0, 0, ICMPV6]].concat();
    fold(u32::from(fold(sum(&pseudo))) + u32::from(fold(sum(message))))
}
