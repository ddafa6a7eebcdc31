//! Order of upstreams for a query: all of them, the dead ones last.

use std::time::Duration;

use gateway_model::settings::groups::RotationMode;

/// State of one upstream over the path of the query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Stays the same while its settings do.
    pub key: u64,
    pub dead: bool,
    pub rtt: Option<Duration>,
}

/// Input of the order.
#[derive(Clone, Copy, Debug)]
pub(super) struct OrderInput {
    pub mode: RotationMode,
    /// The client, if devices stay with their server.
    pub client: Option<u64>,
    /// Counter of queries, or of the intervals in which the choice stays.
    pub count: u64,
    /// Random number of each query, or of an interval.
    pub random: u64,
}

/// An upstream that was never measured is given a chance.
const UNMEASURED: Duration = Duration::from_millis(10);
/// One query of so many goes to any upstream, so that a faster one is detected.
const EXPLORE: u64 = 64;

/// Returns all candidates in the order of attempts.
pub(super) fn order(candidates: &[Candidate], turn: OrderInput) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    let mut random = Random(turn.random);
    match turn.mode {
        RotationMode::Sequential | RotationMode::Parallel => {}
        _ if turn.client.is_some() => {
            let client = turn.client.unwrap_or_default();
            // Each client has its own order of upstreams, which added and removed upstreams do not disturb.
            order.sort_by_key(|index| std::cmp::Reverse(scramble(candidates[*index].key ^ scramble(client))));
        }
        RotationMode::RoundRobin => {
            // Among the living: those behind a dead one would get its share.
            let living: Vec<usize> = order.iter().copied().filter(|index| !candidates[*index].dead).collect();
            if !living.is_empty() {
                let start = living[(turn.count % living.len() as u64) as usize];
                order.rotate_left(start);
            }
        }
        RotationMode::Random => shuffle(&mut order, |_| 1.0, &mut random),
        RotationMode::LoadBalance => {
            let speed = |index: usize| {
                let rtt = candidates[index].rtt.unwrap_or(UNMEASURED).as_secs_f64();
                1.0 / rtt.max(0.000_5)
            };
            shuffle(&mut order, speed, &mut random);
        }
        RotationMode::Fastest => {
            order.sort_by_key(|index| candidates[*index].rtt.unwrap_or(Duration::ZERO));
            let living = candidates.iter().filter(|candidate| !candidate.dead).count() as u64;
            if living > 1 && random.next().is_multiple_of(EXPLORE) {
                order.rotate_left((random.next() % candidates.len() as u64) as usize);
            }
        }
    }
    order.sort_by_key(|index| candidates[*index].dead);
    order
}

/// Draws candidates one after the other, with a probability by weight.
fn shuffle(order: &mut [usize], weight: impl Fn(usize) -> f64, random: &mut Random) {
    for at in 0..order.len() {
        let total: f64 = order[at..].iter().map(|index| weight(*index)).sum();
        let mut left = random.fraction() * total;
        let drawn = order[at..].iter().position(|index| {
            left -= weight(*index);
            left < 0.0
        });
        let drawn = drawn.map_or(order.len() - 1, |drawn| at + drawn);
        order[at..=drawn].rotate_right(1);
    }
}

/// The finaliser of SplitMix64.
pub(super) fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    /// From 0 to below 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn candidate(key: u64, dead: bool, rtt: u64) -> Candidate {
        Candidate { key, dead, rtt: (rtt > 0).then(|| Duration::from_millis(rtt)) }
    }

    fn turn(mode: RotationMode) -> OrderInput {
        OrderInput { mode, client: None, count: 0, random: 0 }
    }

    /// Returns how often each upstream is first.
    fn firsts(candidates: &[Candidate], mode: RotationMode, questions: u64) -> BTreeMap<usize, u64> {
        let mut counts = BTreeMap::new();
        for number in 0..questions {
            let turn = OrderInput { count: number, random: scramble(number), ..turn(mode) };
            *counts.entry(order(candidates, turn)[0]).or_default() += 1;
        }
        counts
    }

    #[test]
    fn the_sequence_is_as_given_and_the_dead_are_last() {
        let candidates = [candidate(1, true, 1), candidate(2, false, 90), candidate(3, false, 5)];
        assert_eq!(order(&candidates, turn(RotationMode::Sequential)), [1, 2, 0]);
        assert_eq!(order(&candidates, turn(RotationMode::Parallel)), [1, 2, 0]);
        let all_dead = [candidate(1, true, 1), candidate(2, true, 2)];
        assert_eq!(order(&all_dead, turn(RotationMode::Sequential)), [0, 1]);
    }

    #[test]
    fn turns_are_taken_among_the_living() {
        let candidates =
            [candidate(1, false, 1), candidate(2, true, 1), candidate(3, false, 1), candidate(4, false, 1)];
        let counts = firsts(&candidates, RotationMode::RoundRobin, 300);
        assert_eq!(counts, BTreeMap::from([(0, 100), (2, 100), (3, 100)]));
    }

    #[test]
    fn load_follows_rtt_and_the_fastest_gets_most_queries() {
        let candidates = [candidate(1, false, 10), candidate(2, false, 30), candidate(3, true, 1)];
        let counts = firsts(&candidates, RotationMode::LoadBalance, 10_000);
        assert!((7200..7800).contains(&counts[&0]) && !counts.contains_key(&2), "{counts:?}");
        let counts = firsts(&candidates, RotationMode::Fastest, 10_000);
        assert!(counts[&0] > 9700 && counts[&1] > 20, "{counts:?}");
        let counts = firsts(&candidates, RotationMode::Random, 10_000);
        assert!((4700..5300).contains(&counts[&0]), "{counts:?}");
    }

    #[test]
    fn the_fastest_mode_tries_unmeasured_upstreams() {
        let candidates = [candidate(1, false, 10), candidate(2, false, 0)];
        assert_eq!(order(&candidates, OrderInput { random: 1, ..turn(RotationMode::Fastest) })[0], 1);
    }

    #[test]
    fn devices_stay_with_their_server_while_others_come_and_go() {
        let all: Vec<Candidate> = (1..=4).map(|key| candidate(key, false, key * 10)).collect();
        let first = |candidates: &[Candidate], client: u64, random: u64| {
            let turn = OrderInput { client: Some(client), random, ..turn(RotationMode::LoadBalance) };
            candidates[order(candidates, turn)[0]].key
        };
        let mut used = BTreeMap::<u64, u64>::new();
        for client in 0..400 {
            let server = first(&all, client, 1);
            assert_eq!(first(&all, client, 2), server);
            *used.entry(server).or_default() += 1;
            let mut fewer = all.clone();
            fewer.retain(|candidate| candidate.key != 4);
            if server != 4 {
                assert_eq!(first(&fewer, client, 3), server);
            }
        }
        assert!(used.values().all(|clients| *clients > 60), "{used:?}");
    }

    proptest! {
        #[test]
        fn every_order_has_everybody_once_and_the_dead_last(
            given in proptest::collection::vec((any::<u64>(), any::<bool>(), 0u64..2000), 0..9),
            mode in 0usize..6, client in any::<Option<u64>>(), count in any::<u64>(), random in any::<u64>(),
        ) {
            let candidates: Vec<Candidate> = given.iter().map(|(key, dead, rtt)| candidate(*key, *dead, *rtt)).collect();
            let modes = [
                RotationMode::LoadBalance, RotationMode::Parallel, RotationMode::Fastest, RotationMode::RoundRobin,
                RotationMode::Random, RotationMode::Sequential,
            ];
            let order = order(&candidates, OrderInput { mode: modes[mode], client, count, random });
            let mut sorted = order.clone();
            sorted.sort();
            prop_assert_eq!(sorted, (0..candidates.len()).collect::<Vec<_>>());
            prop_assert!(order.is_sorted_by_key(|index| candidates[*index].dead));
        }
    }
}
