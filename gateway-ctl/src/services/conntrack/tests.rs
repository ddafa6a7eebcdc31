//! Tables that a host fills, and the entries that are cut.

use std::net::{IpAddr, Ipv4Addr};

use gateway_core::Input;
use gateway_core::facts::Facts;
use gateway_core::network::Network;
use gateway_core::plan::Dataplane;
use gateway_model::State;
use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

const QUIET: [u8; 4] = [10, 0, 0, 2];

/// Two LANs: 10.0.0.0/16 with a host that answers, and 10.1.0.0/16.
fn paths() -> HostPaths {
    let addresses = [("lan0", "10.0.0.1/16"), ("lan1", "10.1.0.1/16")]
        .map(|(name, net)| (name.to_owned(), [net.parse().expect("a network")].into()));
    let neighbours = [([2, 0, 0, 0, 0, 2], [IpAddr::from(QUIET)].into())];
    let facts = Facts { addresses: addresses.into(), neighbours: neighbours.into(), ..Facts::default() };
    let network = Network { lan: vec!["lan0".into(), "lan1".into()], ..Network::default() };
    let state = State::default();
    let input = Input { state: &state, network: &network, facts: &facts, now: Timestamp::UNIX_EPOCH };
    HostPaths::new(&input, &Dataplane::default(), BTreeMap::new())
}

fn entries(source: [u8; 4], count: u32) -> impl Iterator<Item = HeldEntry> {
    (1..=count).map(move |seconds| HeldEntry::of(source.into(), seconds))
}

#[test]
fn the_largest_holder_loses_what_would_end_first() {
    let all = entries([10, 0, 0, 9], 900).chain(entries(QUIET, 100)).collect();
    let (excess, message) = excess(&paths(), all, 600);
    assert_eq!(excess.len(), 400);
    assert!(excess.iter().all(|entry| entry.source == IpAddr::from([10, 0, 0, 9])));
    assert_eq!(excess.iter().map(|entry| entry.seconds_left).max(), Some(400));
    assert_eq!(message, "10.0.0.9 on lan0 held 900 conntrack entries, and lost 400.");
}

#[test]
fn entries_of_this_host_and_of_uplinks_stay() {
    let all = entries([10, 0, 0, 1], 900).chain(entries([203, 0, 113, 5], 900)).collect();
    assert_eq!(excess(&paths(), all, 100).0, []);
}

proptest! {
    /// One host with as many addresses as it likes, against one that answers and one at another interface.
    #[test]
    fn made_up_addresses_take_nothing_from_others(
        forged in proptest::collection::btree_map(any::<u16>(), 1u32..40, 1..200),
        mine in 1u32..200,
        capacity in 800usize..2000,
    ) {
        let attack = forged.iter().map(|(low, count)| {
            let [c, d] = low.to_be_bytes();
            ([10, 0, c, d], *count)
        });
        let attack = attack.filter(|(source, _)| ![QUIET, [10, 0, 0, 1]].contains(source));
        let all: Vec<HeldEntry> = attack
            .flat_map(|(source, count)| entries(source, count).collect::<Vec<_>>())
            .chain(entries(QUIET, mine))
            .chain(entries([10, 1, 0, 5], mine))
            .collect();
        let held = all.len();
        let (excess, _) = excess(&paths(), all, capacity);
        let others = [IpAddr::from(QUIET), IpAddr::from(Ipv4Addr::new(10, 1, 0, 5))];
        prop_assert!(excess.iter().all(|entry| !others.contains(&entry.source)));
        prop_assert!(held - excess.len() <= capacity);
    }
}
