//! Prefix inheritance: a trie answers with the longest match, but the first policy in the list must
//! win, so each prefix takes the best rank of itself and of all prefixes around it.

use std::collections::BTreeMap;

use ipnet::IpNet;

/// Returns the lowest rank on the path from each prefix to the root.
pub(super) fn inherit<R: Copy + Ord>(own: &BTreeMap<IpNet, R>) -> BTreeMap<IpNet, R> {
    // In the map's order a prefix follows those that contain it, so a stack holds its ancestors.
    let mut around: Vec<(IpNet, R)> = Vec::new();
    let mut inherited = BTreeMap::new();
    for (net, rank) in own {
        while around.last().is_some_and(|(outer, _)| !outer.contains(net)) {
            around.pop();
        }
        let best = around.last().map_or(*rank, |(_, outer)| (*rank).min(*outer));
        around.push((*net, best));
        inherited.insert(*net, best);
    }
    inherited
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn net(address: u32, length: u8) -> IpNet {
        // A small space, so that prefixes meet.
        let address = std::net::Ipv4Addr::from(0x0a00_0000 | (address & 0xff) << 8);
        IpNet::new(address.into(), 16 + length % 17).expect("at most 32").trunc()
    }

    proptest! {
        #[test]
        fn the_longest_match_has_the_best_rank_of_all_matches(
            own in prop::collection::btree_map((any::<u32>(), any::<u8>()).prop_map(|(a, l)| net(a, l)), 0u32..50, 0..40),
            probe in any::<u32>(),
        ) {
            let probe = net(probe, 16);
            let inherited = inherit(&own);
            let best = own.iter().filter(|(n, _)| n.contains(&probe)).map(|(_, rank)| *rank).min();
            let longest = inherited.iter().filter(|(n, _)| n.contains(&probe)).max_by_key(|(n, _)| n.prefix_len());
            prop_assert_eq!(longest.map(|(_, rank)| *rank), best);
        }
    }
}
