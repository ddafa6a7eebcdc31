//! Fair shares of a bounded resource.
//!
//! A host makes up what it writes: ports, addresses, MAC addresses. It cannot make up the interface or the port of a bridge
//! that it is attached to. A holder is therefore named by a path, from what is hardest to make up to what is easiest. Each
//! level divides what it was given among its groups (max-min fairness): a group that holds little keeps all of it, and the
//! largest ones get the same. Names that a host makes up divide its own share and no other.
//!
//! Decision 0132 says why.

use std::collections::BTreeMap;

/// Returns how many each holder may keep, so that together they keep `capacity` at most.
pub fn shares<K: Ord + Copy, const N: usize>(
    held: &BTreeMap<[K; N], usize>,
    capacity: usize,
) -> BTreeMap<[K; N], usize> {
    let holders: Vec<([K; N], usize)> = held.iter().map(|(path, count)| (*path, *count)).collect();
    let mut shares = BTreeMap::new();
    divide(&holders, 0, capacity, &mut shares);
    shares
}

/// Divides among holders whose paths are the same before `level`.
fn divide<K: Ord + Copy, const N: usize>(
    holders: &[([K; N], usize)],
    level: usize,
    capacity: usize,
    shares: &mut BTreeMap<[K; N], usize>,
) {
    if level == N {
        shares.extend(holders.iter().map(|(path, count)| (*path, capacity.min(*count))));
        return;
    }
    let groups: Vec<&[([K; N], usize)]> = groups(holders, level).collect();
    let counts: Vec<usize> = groups.iter().map(|group| total(group)).collect();
    for (group, share) in groups.into_iter().zip(level_off(&counts, capacity)) {
        divide(group, level + 1, share, shares);
    }
}

/// Returns the holder that gives one up next: of the group that holds most, at each level.
pub fn largest<K: Ord + Copy, const N: usize>(held: &BTreeMap<[K; N], usize>) -> Option<[K; N]> {
    let holders: Vec<([K; N], usize)> = held.iter().map(|(path, count)| (*path, *count)).collect();
    let mut rest = &holders[..];
    for level in 0..N {
        rest = groups(rest, level).max_by_key(|group| total(group))?;
    }
    rest.first().map(|(path, _)| *path)
}

/// The holders are in the order of their paths, so those of a group are neighbours.
fn groups<K: Ord + Copy, const N: usize>(
    holders: &[([K; N], usize)],
    level: usize,
) -> impl Iterator<Item = &[([K; N], usize)]> {
    holders.chunk_by(move |(one, _), (two, _)| one[level] == two[level])
}

fn total<K, const N: usize>(group: &[([K; N], usize)]) -> usize {
    group.iter().map(|(_, count)| count).sum()
}

/// Cuts the largest counts to one level, so that their sum is `capacity` at most.
fn level_off(counts: &[usize], capacity: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|index| counts[*index]);
    let (mut left, mut shares) = (capacity, vec![0; counts.len()]);
    for (done, index) in order.into_iter().enumerate() {
        let share = counts[index].min(left / (counts.len() - done));
        shares[index] = share;
        left -= share;
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn held<const N: usize>(holders: &[([u8; N], usize)]) -> BTreeMap<[u8; N], usize> {
        holders.iter().copied().collect()
    }

    #[test]
    fn largest_holders_get_the_same_and_small_ones_keep_all() {
        let held = held(&[([1], 900), ([2], 10), ([3], 700)]);
        assert_eq!(shares(&held, 410).into_values().collect::<Vec<_>>(), [200, 10, 200]);
        assert_eq!(shares(&held, 5000), held, "all keep theirs while there is enough");
    }

    #[test]
    fn names_that_a_host_makes_up_divide_its_own_share() {
        // Port 1 has one host. At port 2 a host makes up 200 names.
        let mut all = held(&[([1, 7], 300)]);
        all.extend((0..200).map(|name| ([2, name], 50)));
        let shares = shares(&all, 1000);
        assert_eq!(shares[&[1, 7]], 300);
        assert_eq!(shares.values().sum::<usize>(), 1000);
        assert_eq!(largest(&all).map(|[port, _]| port), Some(2));
    }

    proptest! {
        #[test]
        fn a_share_is_never_more_than_is_held_or_there(
            holders in proptest::collection::btree_map(prop::array::uniform3(0u8..5), 0usize..50, 0..40),
            capacity in 0usize..800,
        ) {
            let shares = shares(&holders, capacity);
            let sum: usize = shares.values().sum();
            let wanted: usize = holders.values().sum();
            prop_assert_eq!(shares.len(), holders.len());
            prop_assert!(shares.iter().all(|(path, share)| *share <= holders[path]));
            prop_assert!(sum <= capacity.min(wanted));
            if wanted <= capacity {
                prop_assert_eq!(&shares, &holders);
            }
        }

        /// Whatever one group invents, a holder of another one keeps what an even division among the groups gives it.
        #[test]
        fn a_group_cannot_take_the_share_of_another(
            mine in 0usize..100,
            forged in proptest::collection::btree_map(0u16.., 1usize..20, 0..300),
            capacity in 2usize..1000,
        ) {
            let mut holders: BTreeMap<[u16; 2], usize> =
                forged.iter().map(|(name, count)| ([2, *name], *count)).collect();
            holders.insert([1, 0], mine);
            prop_assert!(shares(&holders, capacity)[&[1, 0]] >= mine.min(capacity / 2));
        }

        #[test]
        fn giving_up_one_by_one_ends_at_the_shares_of_groups(
            holders in proptest::collection::btree_map(prop::array::uniform2(0u8..4), 1usize..20, 1..16),
            capacity in 0usize..200,
        ) {
            let mut left = holders.clone();
            while left.values().sum::<usize>() > capacity {
                let path = largest(&left).expect("one holds something");
                *left.get_mut(&path).expect("a holder") -= 1;
            }
            let by_group = |held: &BTreeMap<[u8; 2], usize>, group| -> usize {
                held.iter().filter(|(path, _)| path[0] == group).map(|(_, count)| count).sum()
            };
            let divided = shares(&holders, capacity);
            for group in 0..4 {
                let (one, two) = (by_group(&left, group), by_group(&divided, group));
                prop_assert!(one.abs_diff(two) <= 4, "group {}: {} and {}", group, one, two);
            }
        }
    }
}
