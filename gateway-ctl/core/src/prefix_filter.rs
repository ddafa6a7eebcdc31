//! The filter before the prefix tries of a plan; see `gateway_common::wire::PrefixTable`.
//!
//! A missing bit would hide a policy, so the loader writes the bits before the plan is active and compares them like
//! every map. Lengths beyond four are rounded down: to the shortest, or to the three most frequent ones. With 100 000
//! policies, new flows cost 2.2 times as much as with ten, and 2.7 without the filter. Rejected: hash tables by prefix
//! length, which cost a cold bucket for each length.

use std::collections::BTreeMap;

use gateway_common::wire::{
    Address, FILTER_PAGES, FilterBit, FilterLevel, FilterLevels, FilterPage, LEVELS, PrefixTable,
    filter_bit4, filter_bit6,
};
use ipnet::IpNet;

use crate::plan::Dataplane;

/// Filter of one plan.
#[derive(Debug)]
pub struct PrefixFilter {
    pub levels: FilterLevels,
    pub pages: Vec<FilterPage>,
}

/// Prefixes of a table with their scopes.
type Scoped = Vec<(u32, IpNet)>;

impl PrefixFilter {
    pub fn new(plan: &Dataplane) -> PrefixFilter {
        let mut filter = PrefixFilter {
            levels: FilterLevels::default(),
            pages: vec![FilterPage::default(); FILTER_PAGES as usize],
        };
        let scoped = |list: u16, port: u16| gateway_common::wire::filter_scope(u32::from(list) << 2, port);
        let sources = plan.sources.keys().map(|net| (scoped(0, 0), *net)).collect();
        filter.add(PrefixTable::Sources4, PrefixTable::Sources6, sources);
        let own = plan.destinations.keys().map(|net| (scoped(0, 0), *net));
        let listed = plan.list_destinations.keys().map(|(list, net)| (scoped(*list, 0), *net));
        filter.add(PrefixTable::Destinations4, PrefixTable::Destinations6, own.chain(listed).collect());
        let own = plan.destination_ports.keys().map(|(port, net)| (scoped(0, *port), *net));
        let listed = plan.list_ports.keys().map(|(list, port, net)| (scoped(*list, *port), *net));
        let ports = own.chain(listed).collect();
        filter.add(PrefixTable::DestinationPorts4, PrefixTable::DestinationPorts6, ports);
        filter
    }

    fn add(&mut self, four: PrefixTable, six: PrefixTable, prefixes: Scoped) {
        let (v4, v6): (Scoped, Scoped) =
            prefixes.into_iter().partition(|(_, net)| matches!(net, IpNet::V4(_)));
        for (table, prefixes) in [(four, v4), (six, v6)] {
            let lengths = levels(prefixes.iter().map(|(_, net)| net.prefix_len()));
            let levels =
                lengths.map(|length| length.map_or_else(FilterLevel::default, |length| level(table, length)));
            self.levels.0[table as usize] = levels;
            for (scope, net) in prefixes {
                // The first level is the shortest length of all.
                let at = lengths
                    .iter()
                    .rposition(|length| length.is_some_and(|length| length <= net.prefix_len()));
                let Some(at) = at else { continue };
                self.set(bit(table, at, &levels[at].mask, scope, net));
            }
        }
    }

    fn set(&mut self, bit: FilterBit) {
        self.pages[bit.page as usize].0[bit.word] |= bit.mask;
    }
}

fn bit(table: PrefixTable, level: usize, mask: &Address, scope: u32, net: IpNet) -> FilterBit {
    match net.network() {
        std::net::IpAddr::V4(address) => {
            filter_bit4(table as u32, level, mask, scope, u32::from_ne_bytes(address.octets()))
        }
        std::net::IpAddr::V6(address) => {
            filter_bit6(table as u32, level, mask, scope, &Address::v6(address.octets()))
        }
    }
}

/// Returns the levels of a table, ascending: its shortest length, and the others that most prefixes have.
fn levels(lengths: impl Iterator<Item = u8>) -> [Option<u8>; LEVELS] {
    let mut counts = BTreeMap::<u8, usize>::new();
    for length in lengths {
        *counts.entry(length).or_default() += 1;
    }
    let shortest = counts.pop_first().map(|(length, _)| length);
    let mut others: Vec<(usize, u8)> = counts.into_iter().map(|(length, count)| (count, length)).collect();
    others.sort_unstable_by(|a, b| b.cmp(a));
    others.truncate(LEVELS - 1);
    let mut chosen: Vec<u8> = others.into_iter().map(|(_, length)| length).chain(shortest).collect();
    chosen.sort_unstable();
    std::array::from_fn(|at| chosen.get(at).copied())
}

fn level(table: PrefixTable, length: u8) -> FilterLevel {
    let mask = match table {
        PrefixTable::Sources4 | PrefixTable::Destinations4 | PrefixTable::DestinationPorts4 => {
            let bits = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            Address([0, 0, 0, u32::from_ne_bytes(bits.to_be_bytes())])
        }
        PrefixTable::Sources6 | PrefixTable::Destinations6 | PrefixTable::DestinationPorts6 => {
            let bits = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            Address::v6(bits.to_be_bytes())
        }
    };
    FilterLevel { mask, used: 1 }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use gateway_common::wire::filter_scope;
    use proptest::prelude::*;

    use super::*;
    use crate::plan_maps::longest_of;

    /// Evaluates the filter as the kernel program does.
    fn may_have(
        filter: &PrefixFilter,
        tables: (PrefixTable, PrefixTable),
        scope: u32,
        address: IpAddr,
    ) -> bool {
        let table = if address.is_ipv4() { tables.0 } else { tables.1 };
        let levels = &filter.levels.0[table as usize];
        levels.iter().take_while(|level| level.used != 0).enumerate().any(|(at, level)| {
            let bit = bit(table, at, &level.mask, scope, address.into());
            filter.pages[bit.page as usize].0[bit.word] & bit.mask != 0
        })
    }

    /// Addresses that share many leading bits.
    fn address() -> impl Strategy<Value = IpAddr> {
        let four = (0..4u32, any::<u32>(), 0..=32u32).prop_map(|(base, other, shift)| {
            IpAddr::from((base << 30 ^ other.checked_shr(shift).unwrap_or(0)).to_be_bytes())
        });
        let six = (0..4u128, any::<u128>(), 0..=128u32).prop_map(|(base, other, shift)| {
            IpAddr::from((base << 126 ^ other.checked_shr(shift).unwrap_or(0)).to_be_bytes())
        });
        prop_oneof![four, six]
    }

    fn net() -> impl Strategy<Value = IpNet> {
        (address(), any::<u8>()).prop_map(|(address, length)| {
            let most = if address.is_ipv4() { 32 } else { 128 };
            IpNet::new(address, length % (most + 1)).expect("a length of the family").trunc()
        })
    }

    proptest! {
        #[test]
        fn filter_passes_whatever_a_trie_has(
            nets in prop::collection::btree_map((0..3u16, net()), any::<u32>(), 0..40),
            addresses in prop::collection::vec(address(), 20),
        ) {
            let plan = Dataplane {
                destination_ports: nets.clone(),
                list_destinations: nets.clone(),
                ..Dataplane::default()
            };
            let filter = PrefixFilter::new(&plan);
            let ports = (PrefixTable::DestinationPorts4, PrefixTable::DestinationPorts6);
            let destinations = (PrefixTable::Destinations4, PrefixTable::Destinations6);
            let networks = nets.keys().map(|(_, net)| net.addr());
            for (address, of) in addresses.into_iter().chain(networks).flat_map(|a| [(a, 0), (a, 1), (a, 2)]) {
                if longest_of(&nets, of, address).is_some() {
                    prop_assert!(may_have(&filter, ports, filter_scope(0, of), address), "{address} {of}");
                    let scope = filter_scope(u32::from(of) << 2, 0);
                    prop_assert!(may_have(&filter, destinations, scope, address), "{address} {of}");
                }
            }
        }
    }

    #[test]
    fn an_address_without_an_entry_is_refused() {
        let nets = |networks: &[&str]| {
            networks.iter().map(|net| (net.parse().expect("a network"), 1)).collect::<BTreeMap<IpNet, u32>>()
        };
        let plan = Dataplane {
            sources: nets(&["10.1.0.0/16", "10.2.3.0/24", "2001:db8::/48"]),
            ..Dataplane::default()
        };
        let filter = PrefixFilter::new(&plan);
        let sources = (PrefixTable::Sources4, PrefixTable::Sources6);
        let passes = |address: &str| may_have(&filter, sources, 0, address.parse().expect("an address"));
        assert!(passes("10.1.9.9") && passes("10.2.3.4") && passes("2001:db8::1"));
        assert!(!passes("10.2.4.4") && !passes("192.0.2.1") && !passes("2001:db9::1"));
        let refused =
            (0..10_000u32).filter(|n| !passes(&std::net::Ipv4Addr::from(172 << 24 | n << 8).to_string()));
        assert!(refused.count() > 9_900);
    }

    #[test]
    fn levels_are_the_shortest_length_and_the_most_frequent_others() {
        let lengths = [8, 20, 20, 24, 24, 24, 28, 32, 32];
        assert_eq!(levels(lengths.into_iter()), [Some(8), Some(20), Some(24), Some(32)]);
        assert_eq!(levels([0, 32].into_iter()), [Some(0), Some(32), None, None]);
        assert_eq!(levels(std::iter::empty()), [None; LEVELS]);
    }
}
