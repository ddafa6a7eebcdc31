//! Times at which the network of a phone is joined and left.

use std::time::Duration;

use proptest::prelude::*;

use crate::bluetooth::failover::{PanChange, PanFailover, PanInput, RELEASE_DELAY};

const START: Duration = Duration::from_secs(30);

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn input(others_work: Option<bool>, joined: bool, active: bool) -> PanInput {
    PanInput { enabled: true, others_work, joined, active, start_after: START }
}

#[test]
fn network_is_joined_after_the_time_without_another_uplink_and_left_when_traffic_has_gone_back() {
    let mut failover = PanFailover::default();
    assert_eq!(failover.evaluate(input(None, false, false), at(100)), None, "nothing is known");
    assert_eq!(failover.evaluate(input(Some(true), false, false), at(101)), None);
    assert_eq!(failover.evaluate(input(Some(false), false, false), at(200)), None);
    assert_eq!(failover.next(START), Some(at(230)));
    assert_eq!(failover.evaluate(input(Some(false), false, false), at(229)), None);
    assert_eq!(failover.evaluate(input(Some(false), false, false), at(230)), Some(PanChange::Join));
    assert_eq!(failover.evaluate(input(Some(false), true, true), at(231)), None);
    // The manager takes its time to go back, so the network stays as long.
    assert_eq!(failover.evaluate(input(Some(true), true, true), at(300)), None);
    assert_eq!(failover.evaluate(input(Some(true), true, true), at(500)), None);
    assert_eq!(failover.evaluate(input(Some(true), true, false), at(501)), Some(PanChange::Leave));
}

#[test]
fn outage_that_ends_in_time_joins_nothing() {
    let mut failover = PanFailover::default();
    assert_eq!(failover.evaluate(input(Some(false), false, false), at(0)), None);
    assert_eq!(failover.evaluate(input(Some(true), false, false), at(29)), None);
    assert_eq!(failover.evaluate(input(Some(false), false, false), at(40)), None);
    assert_eq!(failover.evaluate(input(Some(false), false, false), at(69)), None);
    assert_eq!(failover.evaluate(input(Some(false), false, false), at(70)), Some(PanChange::Join));
}

#[test]
fn attempts_come_at_growing_intervals() {
    let mut failover = PanFailover::default();
    failover.evaluate(input(Some(false), false, false), at(0));
    let mut now = 30;
    for pause in [15, 30, 60, 120, 240, 300, 300] {
        assert_eq!(failover.evaluate(input(Some(false), false, false), at(now)), Some(PanChange::Join));
        failover.note_failure(at(now));
        assert_eq!(failover.evaluate(input(Some(false), false, false), at(now + pause - 1)), None);
        now += pause;
    }
}

#[test]
fn choice_of_a_user_comes_first_and_one_to_leave_lasts_for_an_outage() {
    let mut failover = PanFailover::default();
    failover.evaluate(input(Some(true), false, false), at(0));
    failover.choose(true);
    assert_eq!(failover.evaluate(input(Some(true), false, false), at(1)), Some(PanChange::Join));
    assert_eq!(failover.evaluate(input(Some(true), true, false), at(1000)), None, "it stays");
    failover.choose(false);
    assert_eq!(failover.evaluate(input(Some(false), true, true), at(1001)), Some(PanChange::Leave));
    assert_eq!(failover.evaluate(input(Some(false), false, false), at(2000)), None, "the user has left it");
    assert_eq!(failover.evaluate(input(Some(true), false, false), at(2001)), None);
    assert_eq!(failover.evaluate(input(Some(false), false, false), at(3000)), None);
    assert_eq!(failover.evaluate(input(Some(false), false, false), at(3030)), Some(PanChange::Join));
}

#[test]
fn disabled_failover_leaves_the_network() {
    let mut failover = PanFailover::default();
    failover.choose(true);
    let disabled = PanInput { enabled: false, ..input(Some(false), true, true) };
    assert_eq!(failover.evaluate(disabled, at(5)), Some(PanChange::Leave));
    assert_eq!(failover.evaluate(PanInput { joined: false, ..disabled }, at(500)), None);
}

proptest! {
    /// Without a choice of a user: joined only after the whole time without another uplink, left only behind one that works.
    #[test]
    fn joins_and_leaves_have_their_reasons(
        history in prop::collection::vec((prop::option::of(any::<bool>()), any::<bool>(), 1u64..100), 1..200),
    ) {
        let mut failover = PanFailover::default();
        let (mut now, mut joined) = (0, false);
        let mut since: Option<(bool, u64)> = None;
        for (others, active, pause) in history {
            now += pause;
            if since.map(|(work, _)| work) != others {
                since = others.map(|work| (work, now));
            }
            match failover.evaluate(input(others, joined, active && joined), at(now)) {
                Some(PanChange::Join) => {
                    prop_assert!(!joined);
                    prop_assert!(since.is_some_and(|(work, from)| !work && at(now - from) >= START));
                    joined = true;
                }
                Some(PanChange::Leave) => {
                    prop_assert!(joined && !active);
                    prop_assert!(since.is_some_and(|(work, from)| work && at(now - from) >= RELEASE_DELAY));
                    joined = false;
                }
                None => {}
            }
        }
    }
}
