//! Pseudonyms of addresses. Private ones keep their block and their prefixes: two addresses that share a prefix share one
//! of the same length as pseudonyms. Public ones are no addresses any more, but show which share a network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::key::PseudonymKey;

/// Length of a digest of a network or of a host, in hexadecimal digits.
const DIGITS: usize = 6;
/// Prefixes of public networks that a site gets, in bits: of IPv4, and a site and a network of IPv6.
const NETWORK_V4: usize = 24;
const SITE_V6: usize = 48;
const NETWORK_V6: usize = 64;

/// Treatment of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Identifies no host: loopback, groups, the unspecified address.
    Kept,
    /// The first bits are those of its block.
    Private {
        block_bits: usize,
    },
    Public,
}

/// Returns the pseudonym of an address. Host bits that are zero behind a prefix stay zero.
pub(super) fn pseudonym(key: &PseudonymKey, address: IpAddr, prefix_bits: Option<u8>) -> String {
    match address {
        IpAddr::V4(address) => {
            let bytes = address.octets();
            match scope_v4(address) {
                Scope::Kept => address.to_string(),
                Scope::Private { block_bits } => {
                    let mapped = map_bits(key, &bytes, block_bits, mapped_bits(&bytes, prefix_bits));
                    Ipv4Addr::from(<[u8; 4]>::try_from(mapped).unwrap_or(bytes)).to_string()
                }
                Scope::Public => {
                    format!("public-{}-{}", prefix(key, &bytes, NETWORK_V4), prefix(key, &bytes, 32))
                }
            }
        }
        IpAddr::V6(address) => {
            if let Some(inner) = address.to_ipv4_mapped() {
                return format!("::ffff:{}", pseudonym(key, inner.into(), None));
            }
            let bytes = address.octets();
            match scope_v6(address) {
                Scope::Kept => address.to_string(),
                Scope::Private { block_bits } => {
                    let mapped = map_bits(key, &bytes, block_bits, mapped_bits(&bytes, prefix_bits));
                    Ipv6Addr::from(<[u8; 16]>::try_from(mapped).unwrap_or(bytes)).to_string()
                }
                Scope::Public => format!(
                    "public6-{}-{}-{}",
                    prefix(key, &bytes, SITE_V6),
                    prefix(key, &bytes, NETWORK_V6),
                    prefix(key, &bytes, 128)
                ),
            }
        }
    }
}

fn scope_v4(address: Ipv4Addr) -> Scope {
    let [first, second, ..] = address.octets();
    match (first, second) {
        (0 | 127 | 224..=239, _) => Scope::Kept,
        _ if address.is_broadcast() => Scope::Kept,
        (10, _) => Scope::Private { block_bits: 8 },
        (100, 64..=127) => Scope::Private { block_bits: 10 },
        (172, 16..=31) => Scope::Private { block_bits: 12 },
        (192, 168) | (169, 254) => Scope::Private { block_bits: 16 },
        _ => Scope::Public,
    }
}

fn scope_v6(address: Ipv6Addr) -> Scope {
    let first = address.segments()[0];
    match first {
        _ if address.is_unspecified() || address.is_loopback() || address.is_multicast() => Scope::Kept,
        0xfc00..=0xfdff => Scope::Private { block_bits: 8 },
        0xfe80..=0xfebf => Scope::Private { block_bits: 64 },
        _ => Scope::Public,
    }
}

/// Returns the number of bits to map: all, or those of the prefix if all others are zero.
fn mapped_bits(bytes: &[u8], prefix_bits: Option<u8>) -> usize {
    let all = bytes.len() * 8;
    let Some(prefix) = prefix_bits.map(usize::from).filter(|prefix| *prefix < all) else { return all };
    let is_set = |bit: &usize| bytes[bit / 8] & (0x80 >> (bit % 8)) != 0;
    if (prefix..all).any(|bit| is_set(&bit)) { all } else { prefix }
}

/// Maps the bits from `first` to `end`. Whether a bit is turned depends on the bits before it, so prefixes stay prefixes
/// (the construction of Crypto-PAn, with one digest for the eight bits of a byte).
fn map_bits(key: &PseudonymKey, bytes: &[u8], first: usize, end: usize) -> Vec<u8> {
    let mut mapped = bytes.to_vec();
    for (index, byte) in bytes.iter().enumerate().skip(first / 8) {
        let digest = key.digest("prefix", &bytes[..index]);
        for bit in 0..8 {
            let position = index * 8 + bit;
            if position < first || position >= end {
                continue;
            }
            // Node of a binary tree: the bits of this byte before this one.
            let node = (1 << bit) - 1 + usize::from(byte.checked_shr(8 - bit as u32).unwrap_or(0));
            let turn = digest[node / 8] >> (node % 8) & 1;
            mapped[index] ^= turn << (7 - bit);
        }
    }
    mapped
}

/// Returns the digest of the first bits.
fn prefix(key: &PseudonymKey, bytes: &[u8], bits: usize) -> String {
    key.digits(if bytes.len() == 4 { "public" } else { "public6" }, &bytes[..bits / 8], DIGITS)
}

#[cfg(test)]
mod tests {
    use ipnet::IpNet;
    use proptest::prelude::*;

    use super::*;

    fn key() -> PseudonymKey {
        PseudonymKey::new(&[7; 32])
    }

    fn of(address: IpAddr) -> String {
        pseudonym(&key(), address, None)
    }

    fn shared_bits(one: &[u8], other: &[u8]) -> u32 {
        let mut bits = 0;
        for (one, other) in one.iter().zip(other) {
            let same = (one ^ other).leading_zeros();
            bits += same;
            if same < 8 {
                break;
            }
        }
        bits
    }

    #[test]
    fn public_addresses_become_no_address_and_show_their_network() {
        let of = |text: &str| of(text.parse().unwrap());
        let (one, two, far) = (of("203.0.113.5"), of("203.0.113.6"), of("203.0.114.5"));
        assert!(one.parse::<IpAddr>().is_err() && one != two);
        assert_eq!(one[..13], two[..13]);
        assert_ne!(one[..13], far[..13]);
        let (one, two) = (of("2001:db8:1:2::5"), of("2001:db8:1:2::6"));
        assert_eq!(one[..21], two[..21]);
        assert_ne!(one, two);
    }

    #[test]
    fn addresses_of_no_host_stay() {
        for text in ["127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.251", "::", "::1", "ff02::fb"] {
            assert_eq!(of(text.parse().unwrap()), text);
        }
    }

    #[test]
    fn network_of_zeros_stays_a_network() {
        let net: IpNet = "10.1.16.0/20".parse().unwrap();
        let mapped: IpNet = format!("{}/20", pseudonym(&key(), net.addr(), Some(20))).parse().unwrap();
        assert_eq!((mapped.prefix_len(), mapped.network()), (20, mapped.addr()));
        let host: IpAddr = of("10.1.21.7".parse().unwrap()).parse().unwrap();
        assert!(mapped.contains(&host) && mapped.addr() != net.addr());
        let outside: IpAddr = of("10.1.32.7".parse().unwrap()).parse().unwrap();
        assert!(!mapped.contains(&outside));
    }

    proptest! {
        #[test]
        fn private_addresses_keep_the_length_of_their_common_prefix(one: [u8; 3], other: [u8; 3]) {
            let address = |rest: [u8; 3]| IpAddr::from([10, rest[0], rest[1], rest[2]]);
            let mapped = |rest| match of(address(rest)).parse() {
                Ok(IpAddr::V4(mapped)) => mapped.octets(),
                other => panic!("{other:?}"),
            };
            let (from, to) = ([10, one[0], one[1], one[2]], [10, other[0], other[1], other[2]]);
            prop_assert_eq!(shared_bits(&from, &to), shared_bits(&mapped(one), &mapped(other)));
        }

        #[test]
        fn unique_local_addresses_keep_the_length_of_their_common_prefix(one: [u8; 15], other: [u8; 15]) {
            let address = |rest: [u8; 15]| {
                let mut bytes = [0xfd; 16];
                bytes[1..].copy_from_slice(&rest);
                bytes
            };
            let mapped = |rest| match of(IpAddr::from(address(rest))).parse() {
                Ok(IpAddr::V6(mapped)) => mapped.octets(),
                other => panic!("{other:?}"),
            };
            let bits = shared_bits(&address(one), &address(other));
            prop_assert_eq!(bits, shared_bits(&mapped(one), &mapped(other)));
        }
    }
}
