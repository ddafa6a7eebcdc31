//! Addresses of nodes: one of 100.64.0.0/10 and one of a unique local prefix, the prefixes that clients of the protocol
//! take for a mesh. No I/O.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net};

const FIRST: u32 = u32::from_be_bytes([100, 64, 0, 0]);
const COUNT: u32 = 1 << 22;
/// Prefixes of 100.64.0.0/10 with another use: the resolver of clients, and virtual machines of ChromeOS.
const RESERVED: [Ipv4Net; 3] = [
    Ipv4Net::new_assert(Ipv4Addr::new(100, 100, 0, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(100, 100, 100, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(100, 115, 92, 0), 23),
];
const ULA: u128 = 0xfd7a_115c_a1e0 << 80;

/// Both addresses of a node.
pub(crate) type Addresses = [IpAddr; 2];

/// Returns the addresses at a position, if it has any.
fn at(position: u32) -> Option<Addresses> {
    let v4 = Ipv4Addr::from(FIRST + position);
    let ends = matches!(v4.octets()[3], 0 | 255);
    if ends || RESERVED.iter().any(|prefix| prefix.contains(&v4)) {
        return None;
    }
    Some([v4.into(), Ipv6Addr::from(ULA | u128::from(position)).into()])
}

/// Finds free addresses for a node, beginning at a position that grows with its number, so that the addresses of a removed
/// node are not given to the next one.
pub(crate) fn free(number: u64, is_used: impl Fn(IpAddr) -> bool) -> Option<Addresses> {
    let start = u32::try_from(number % u64::from(COUNT)).ok()?;
    (0..COUNT)
        .map(|step| (start + step) % COUNT)
        .filter_map(at)
        .find(|[v4, v6]| !is_used(*v4) && !is_used(*v6))
}

/// The prefix of one address.
pub(crate) fn host_prefix(address: IpAddr) -> IpNet {
    IpNet::from(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn first_node_has_the_first_address() {
        let expected: Addresses = ["100.64.0.1".parse().unwrap(), "fd7a:115c:a1e0::1".parse().unwrap()];
        assert_eq!(free(1, |_| false), Some(expected));
    }

    #[test]
    fn reserved_addresses_are_left_out() {
        let resolver = u32::from_be_bytes([100, 100, 100, 100]) - FIRST;
        let [v4, _] = free(u64::from(resolver), |_| false).unwrap();
        assert_eq!(v4, IpAddr::from([100, 100, 101, 1]));
        let last = u64::from(COUNT) - 1;
        assert_eq!(free(last, |_| false).unwrap()[0], IpAddr::from([100, 64, 0, 1]));
    }

    #[test]
    fn used_addresses_are_left_out() {
        let mut used = BTreeSet::new();
        for _ in 0..600 {
            let addresses = free(1, |address| used.contains(&address)).unwrap();
            assert!(addresses.into_iter().all(|address| used.insert(address)));
        }
    }
}
