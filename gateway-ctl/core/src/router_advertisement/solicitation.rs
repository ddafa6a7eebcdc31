//! Router solicitations: hosts that ask for an advertisement at once (RFC 4861, section 4.1).

use std::net::Ipv6Addr;

use super::packet;

/// ICMPv6 type.
pub const TYPE: u8 = 133;
const FIXED: usize = 8;
const SOURCE_MAC: u8 = 1;

/// Reads a solicitation, from the IPv6 header on, and returns its source. `None` for other packets, and for those that
/// routers ignore (RFC 4861, section 6.1.1).
pub fn parse(packet: &[u8]) -> Option<Ipv6Addr> {
    let (source, message) = packet::open(packet, TYPE)?;
    let options = packet::options(message.get(FIXED..)?)?;
    // A host without an address has none that could be kept with its MAC address.
    let claims_mac = options.iter().any(|option| option[0] == SOURCE_MAC);
    let is_invalid = source.is_multicast() || source.is_unspecified() && claims_mac;
    (!is_invalid).then_some(source)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
    const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x10);

    fn solicitation(source: Ipv6Addr, options: &[u8]) -> Vec<u8> {
        let mut message = vec![TYPE, 0, 0, 0, 0, 0, 0, 0];
        message.extend(options);
        packet::seal(source, ALL_ROUTERS, message)
    }

    #[test]
    fn hosts_with_and_without_an_address_ask() {
        let mac = [SOURCE_MAC, 1, 2, 0, 0, 0, 0, 1];
        assert_eq!(parse(&solicitation(HOST, &mac)), Some(HOST));
        assert_eq!(parse(&solicitation(HOST, &[])), Some(HOST));
        assert_eq!(parse(&solicitation(Ipv6Addr::UNSPECIFIED, &[])), Some(Ipv6Addr::UNSPECIFIED));
        assert_eq!(parse(&solicitation(Ipv6Addr::UNSPECIFIED, &mac)), None);
        assert_eq!(
            parse(&solicitation(HOST, &[14, 0, 0, 0, 0, 0, 0, 0])),
            None,
            "an option without a length"
        );
        assert_eq!(parse(&solicitation(HOST, &[14, 2, 0, 0, 0, 0, 0, 0])), None, "an option beyond the end");
    }

    #[test]
    fn forwarded_and_damaged_packets_are_ignored() {
        let valid = solicitation(HOST, &[]);
        for at in [0, 6, 7, 40, 41, 42] {
            let mut other = valid.clone();
            other[at] ^= 0x10;
            assert_eq!(parse(&other), None, "byte {at}");
        }
        assert_eq!(parse(&valid[..valid.len() - 1]), None, "cut off");
    }

    proptest! {
        #[test]
        fn any_options_are_read_without_a_panic(options in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&solicitation(HOST, &options));
            let _ = parse(&options);
        }
    }
}
