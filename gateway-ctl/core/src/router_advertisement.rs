//! Router advertisements of IPv6 (RFC 4861, section 4.2).

use std::net::Ipv6Addr;

use gateway_common::checksum::{fold, sum};
use ipnet::Ipv6Net;

/// ICMPv6 type.
pub const TYPE: u8 = 134;
const ICMPV6: u8 = 58;
const IPV6_HEADER: usize = 40;
const FIXED: usize = 16;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Maximum number of prefixes in a withdrawal, which fits in the smallest packet (RFC 8200, section 5).
pub const MAX_PREFIXES: usize = 32;
/// Option with a prefix (RFC 4861, section 4.6.2).
const PREFIX: u8 = 3;
/// Length of options is in units of eight bytes.
const OPTION_UNIT: usize = 8;

/// Announcement of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterAdvertisement {
    /// Link-local address of the router.
    pub source: Ipv6Addr,
    /// Seconds for which it is a default router; 0 if it is none.
    pub lifetime: u16,
    /// Prefixes from which hosts make addresses or that are on the link.
    pub prefixes: Vec<Ipv6Net>,
}

/// Reads an advertisement, from the IPv6 header on. `None` for other packets, and for those that hosts ignore (RFC 4861,
/// section 6.1.2).
pub fn parse(packet: &[u8]) -> Option<RouterAdvertisement> {
    let (header, _) = packet.split_first_chunk::<IPV6_HEADER>()?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let message = packet.get(IPV6_HEADER..IPV6_HEADER + length)?;
    let source = Ipv6Addr::from(*header[8..].first_chunk::<16>()?);
    let is_valid =
        header[0] >> 4 == 6 && header[6] == ICMPV6 && header[7] == 255 && source.is_unicast_link_local();
    let fixed = message.first_chunk::<FIXED>()?;
    if !is_valid || fixed[0] != TYPE || fixed[1] != 0 || checksum(header, message) != 0xffff {
        return None;
    }
    let mut prefixes = Vec::new();
    let mut left = &message[FIXED..];
    while let [kind, units, ..] = *left {
        // An option without a length makes the whole message invalid.
        let length = Some(usize::from(units) * OPTION_UNIT).filter(|length| *length > 0)?;
        let option = left.get(..length)?;
        if kind == PREFIX
            && let Some(prefix) = option.get(16..32).and_then(|bytes| bytes.first_chunk::<16>())
            && let Ok(net) = Ipv6Net::new(Ipv6Addr::from(*prefix), option[2])
        {
            prefixes.push(net.trunc());
        }
        left = &left[length..];
    }
    left.is_empty().then(|| RouterAdvertisement {
        source,
        lifetime: u16::from_be_bytes([fixed[6], fixed[7]]),
        prefixes,
    })
}

/// Returns an advertisement, from the IPv6 header on, by which hosts no longer use a router, and make no new connections
/// from addresses in these prefixes (RFC 4861, section 6.3.4; RFC 4862, section 5.5.3).
pub fn withdrawal(router: Ipv6Addr, prefixes: &[Ipv6Net]) -> Vec<u8> {
    let mut message = vec![TYPE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for prefix in prefixes {
        // For addresses; lifetimes of 0.
        message.extend([PREFIX, 4, prefix.prefix_len(), 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        message.extend(prefix.network().octets());
    }
    let length = u16::try_from(message.len()).expect("an interface has few prefixes");
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([ICMPV6, 255]);
    packet.extend(router.octets());
    packet.extend(ALL_NODES.octets());
    let header = packet.first_chunk().expect("a header");
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x66);

    fn packet(options: &[u8]) -> Vec<u8> {
        let mut message = vec![TYPE, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        message.extend(options);
        let length = u16::try_from(message.len()).unwrap();
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([ICMPV6, 255]);
        packet.extend(ROUTER.octets());
        packet.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let pseudo = [&packet[8..], &u32::from(length).to_be_bytes(), &[0, 0, 0, ICMPV6]].concat();
        let sum = !fold(u32::from(fold(sum(&pseudo))) + u32::from(fold(sum(&message))));
        message[2..4].copy_from_slice(&sum.to_ne_bytes());
        packet.extend(message);
        packet
    }

    fn prefix(net: &str) -> Vec<u8> {
        let net: Ipv6Net = net.parse().unwrap();
        [
            &[PREFIX, 4, net.prefix_len(), 0xc0][..],
            &[0, 0, 1, 0],
            &[0, 0, 1, 0],
            &[0; 4],
            &net.addr().octets(),
        ]
        .concat()
    }

    #[test]
    fn an_advertisement_shows_router_lifetime_and_prefixes() {
        let mtu = [5, 1, 0, 0, 0, 0, 5, 220];
        let options = [&mtu[..], &prefix("2001:db8:9::/64"), &prefix("fd00::/48")].concat();
        let expected = RouterAdvertisement {
            source: ROUTER,
            lifetime: 0x0708,
            prefixes: vec!["2001:db8:9::/64".parse().unwrap(), "fd00::/48".parse().unwrap()],
        };
        assert_eq!(parse(&packet(&options)), Some(expected));
    }

    #[test]
    fn what_hosts_ignore_is_ignored() {
        let valid = packet(&prefix("2001:db8:9::/64"));
        assert!(parse(&valid).is_some());
        // Version, next header, hop limit, source, type, code, checksum.
        for at in [0, 6, 7, 8, 40, 41, 42] {
            let mut other = valid.clone();
            other[at] ^= 0x10;
            assert_eq!(parse(&other), None, "byte {at}");
        }
        assert_eq!(parse(&valid[..valid.len() - 1]), None, "cut off");
        assert_eq!(parse(&packet(&[PREFIX, 0, 0, 0, 0, 0, 0, 0])), None, "an option without a length");
        assert_eq!(parse(&packet(&[PREFIX, 4, 0, 0])), None, "an option beyond the end");
    }

    #[test]
    fn a_withdrawal_ends_the_router_and_its_prefixes() {
        let prefixes: Vec<Ipv6Net> =
            vec!["2001:db8:9::/64".parse().unwrap(), "2001:db8:a::/64".parse().unwrap()];
        let packet = withdrawal(ROUTER, &prefixes);
        assert_eq!(parse(&packet), Some(RouterAdvertisement { source: ROUTER, lifetime: 0, prefixes }));
        assert!(withdrawal(ROUTER, &vec![Ipv6Net::default(); MAX_PREFIXES]).len() <= 1280);
    }

    proptest! {
        #[test]
        fn any_options_are_read_without_a_panic(options in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&packet(&options));
            let _ = parse(&options);
        }
    }
}
