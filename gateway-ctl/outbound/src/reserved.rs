//! Addresses that no internet host has: this host, its links and private networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns whether an address is loopback, unspecified, private (RFC 1918, RFC 4193), shared (RFC 6598), link-local,
/// multicast or broadcast. IPv6 addresses with an embedded IPv4 address are classified by the latter.
pub fn is_reserved(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_reserved_v4(address),
        IpAddr::V6(address) => is_reserved_v6(address),
    }
}

/// Returns the relay address for the datagrams of a SOCKS5 association (RFC 1928, section 6), from the address in the
/// reply. Many proxies return an unspecified address, which means their own. Another address must be an internet
/// address: a proxy must not choose hosts of this network, or this host.
pub fn relay_address(proxy: SocketAddr, named: SocketAddr) -> Option<SocketAddr> {
    let (proxy, ip) = (proxy.ip().to_canonical(), named.ip().to_canonical());
    let ip = if ip.is_unspecified() { proxy } else { ip };
    let allowed = named.port() != 0 && (ip == proxy || !is_reserved(ip));
    allowed.then(|| SocketAddr::new(ip, named.port()))
}

fn is_reserved_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let shared = first == 100 && second & 0xc0 == 64;
    first == 0
        || shared
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
}

fn is_reserved_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // NAT64 (RFC 6052) and IPv4-compatible addresses contain an IPv4 address.
    let embedded = match segments {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0, 0, high, low] if (high, low) != (0, 1) => {
            Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
        }
        _ => None,
    };
    let site_local = segments[0] & 0xffc0 == 0xfec0;
    site_local
        || address.is_loopback()
        || address.is_unspecified()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || address.is_multicast()
        || embedded.is_some_and(is_reserved_v4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_reserved_in_all_their_forms_and_public_ones_are_not() {
        for text in [
            "127.0.0.1",
            "127.71.0.16",
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.10.1",
            "100.64.0.1",
            "169.254.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fec0::1",
            "fd00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::127.0.0.1",
            "::10.0.0.1",
        ] {
            assert!(is_reserved(text.parse().expect("an address")), "{text}");
        }
        for text in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "198.18.0.1",
            "2001:db8::1",
            "64:ff9b::1.1.1.1",
            "2606:4700::1111",
        ] {
            assert!(!is_reserved(text.parse().expect("an address")), "{text}");
        }
    }

    #[test]
    fn a_proxy_leads_datagrams_to_itself_or_into_the_internet_alone() {
        let relay = |proxy: &str, named: &str| {
            let [proxy, named] = [proxy, named].map(|text| text.parse().expect("an address"));
            relay_address(proxy, named).map(|at| at.to_string())
        };
        for (proxy, named, expected) in [
            ("198.18.0.1:1080", "0.0.0.0:4000", Some("198.18.0.1:4000")),
            ("198.18.0.1:1080", "198.18.0.9:4000", Some("198.18.0.9:4000")),
            ("198.18.0.1:1080", "[::ffff:198.18.0.1]:4000", Some("198.18.0.1:4000")),
            // A proxy in the LAN, inside a tunnel or on this host returns its own address.
            ("192.168.10.20:1080", "192.168.10.20:4000", Some("192.168.10.20:4000")),
            ("127.0.0.1:1080", "127.0.0.1:4000", Some("127.0.0.1:4000")),
            ("[2001:db8::1]:1080", "[::]:4000", Some("[2001:db8::1]:4000")),
            ("198.18.0.1:1080", "127.0.0.1:4702", None),
            ("198.18.0.1:1080", "[::ffff:127.0.0.1]:4702", None),
            ("198.18.0.1:1080", "192.168.10.20:53", None),
            ("192.168.10.20:1080", "192.168.10.30:53", None),
            ("198.18.0.1:1080", "[fe80::1]:53", None),
            ("198.18.0.1:1080", "224.0.0.251:5353", None),
            ("198.18.0.1:1080", "0.0.0.0:0", None),
        ] {
            assert_eq!(relay(proxy, named).as_deref(), expected, "{proxy} names {named}");
        }
    }
}
