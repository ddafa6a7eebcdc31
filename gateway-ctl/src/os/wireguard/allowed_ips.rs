//! Longest-prefix lookup from an inner address to its peer.
//!
//! There is one sorted table for each prefix length in use. A tunnel has few lengths, so a lookup takes a few
//! searches and allocates nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

/// Networks with their values. Of two entries for one network, the later one wins.
#[derive(Debug)]
pub(super) struct AllowedIps<T> {
    v4: Vec<Level<T>>,
    v6: Vec<Level<T>>,
}

/// All networks of one prefix length, by their leading bits.
#[derive(Debug)]
struct Level<T> {
    prefix_len: u8,
    networks: BTreeMap<u128, T>,
}

impl<T> AllowedIps<T> {
    pub(super) fn new(entries: impl IntoIterator<Item = (IpNet, T)>) -> Self {
        let mut table = Self { v4: Vec::new(), v6: Vec::new() };
        for (net, value) in entries {
            let (levels, bits) = match net.network() {
                IpAddr::V4(address) => (&mut table.v4, left_aligned_v4(address.to_bits())),
                IpAddr::V6(address) => (&mut table.v6, address.to_bits()),
            };
            let prefix_len = net.prefix_len();
            // Longest first, so that the first match is the result.
            let at = match levels.binary_search_by(|level| prefix_len.cmp(&level.prefix_len)) {
                Ok(at) => at,
                Err(at) => {
                    levels.insert(at, Level { prefix_len, networks: BTreeMap::new() });
                    at
                }
            };
            levels[at].networks.insert(bits & mask(prefix_len), value);
        }
        table
    }

    pub(super) fn find(&self, address: IpAddr) -> Option<&T> {
        let (levels, bits) = match address {
            IpAddr::V4(address) => (&self.v4, left_aligned_v4(address.to_bits())),
            IpAddr::V6(address) => (&self.v6, address.to_bits()),
        };
        levels.iter().find_map(|level| level.networks.get(&(bits & mask(level.prefix_len))))
    }
}

fn left_aligned_v4(bits: u32) -> u128 {
    u128::from(bits) << 96
}

fn mask(prefix_len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(prefix_len)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(nets: &[&str]) -> AllowedIps<usize> {
        AllowedIps::new(nets.iter().enumerate().map(|(i, net)| (net.parse().expect("a network"), i)))
    }

    fn find(table: &AllowedIps<usize>, address: &str) -> Option<usize> {
        table.find(address.parse().expect("an address")).copied()
    }

    #[test]
    fn the_longest_prefix_wins_in_both_families() {
        let table =
            table(&["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0", "fd00::/8", "fd00::5/128"]);
        assert_eq!(find(&table, "10.1.2.3"), Some(2));
        assert_eq!(find(&table, "10.1.2.4"), Some(1));
        assert_eq!(find(&table, "10.2.0.1"), Some(0));
        assert_eq!(find(&table, "192.0.2.1"), Some(3));
        assert_eq!(find(&table, "fd00::5"), Some(5));
        assert_eq!(find(&table, "fd00::6"), Some(4));
        assert_eq!(find(&table, "2001:db8::1"), None);
    }

    #[test]
    fn families_do_not_mix_and_an_empty_table_finds_nothing() {
        assert_eq!(find(&table(&["::/0"]), "10.0.0.1"), None);
        assert_eq!(find(&table(&["0.0.0.0/0"]), "::1"), None);
        assert_eq!(find(&table(&[]), "10.0.0.1"), None);
    }

    #[test]
    fn host_bits_are_ignored_and_the_later_claim_stays() {
        let table = table(&["10.1.2.3/8", "10.0.0.0/8"]);
        assert_eq!(find(&table, "10.9.9.9"), Some(1));
    }

    fn net() -> impl Strategy<Value = IpNet> {
        // Few distinct leading bytes, so that networks overlap.
        prop_oneof![
            (proptest::array::uniform4(0..3u8), 0..=32u8)
                .prop_map(|(a, len)| IpNet::new(a.into(), len).expect("length fits")),
            (proptest::array::uniform16(0..2u8), 0..=128u8)
                .prop_map(|(a, len)| IpNet::new(a.into(), len).expect("length fits")),
        ]
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_linear_search(nets in proptest::collection::vec(net(), 0..20), probe in net()) {
            let address = probe.addr();
            let table = AllowedIps::new(nets.iter().map(|net| (*net, net.trunc())));
            let expected = nets.iter().filter(|net| net.contains(&address)).max_by_key(|net| net.prefix_len());
            prop_assert_eq!(table.find(address).copied(), expected.map(IpNet::trunc));
        }
    }
}
