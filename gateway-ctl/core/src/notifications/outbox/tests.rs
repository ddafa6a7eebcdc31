//! Generated histories of the outbox.

use gateway_model::kinds::alert_rule::AlertKind;
use proptest::prelude::*;

use super::*;
use crate::notifications::{AlertSnapshot, test_alert};

const RULE: Receiver = Receiver::RuleWebhook(AlertKind::WanDown);
const BOTH: &[Receiver] = &[Receiver::Webhook, RULE];

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn notification(sequence: u64, transition: Transition, fingerprint: &str) -> Notification {
    let alert = AlertSnapshot { fingerprint: fingerprint.into(), ..test_alert(at(0)) };
    Notification { sequence, transition, is_consequence: false, alert }
}

fn firing(sequence: u64, fingerprint: &str) -> Notification {
    notification(sequence, Transition::Firing, fingerprint)
}

fn resolved(sequence: u64, fingerprint: &str) -> Notification {
    notification(sequence, Transition::Resolved, fingerprint)
}

fn failed(retry_after: Option<i64>) -> Outcome {
    let retry_after = retry_after.map(SignedDuration::from_secs);
    Outcome::Failed { error: "no reply".into(), retry_after }
}

/// Numbers of the deliveries that are due.
fn due(outbox: &Outbox, now: Timestamp) -> Vec<u64> {
    outbox.due(now, &BTreeSet::new()).iter().map(|delivery| delivery.number).collect()
}

/// Content of a store after these changes.
#[derive(Clone, Default)]
struct Stored {
    cursor: u64,
    deliveries: BTreeMap<u64, Delivery>,
    open: BTreeSet<OpenAlert>,
}

impl Stored {
    fn write(&mut self, changes: Changes) {
        for number in &changes.removed {
            self.deliveries.remove(number);
        }
        for delivery in changes.put {
            self.deliveries.insert(delivery.number, delivery);
        }
        changes.closed.iter().for_each(|open| assert!(self.open.remove(open)));
        self.open.extend(changes.opened);
        self.cursor = changes.cursor.unwrap_or(self.cursor);
    }

    fn restore(&self) -> Outbox {
        let json = serde_json::to_string(&self.deliveries.values().collect::<Vec<_>>()).unwrap();
        let deliveries: Vec<Delivery> = serde_json::from_str(&json).unwrap();
        Outbox::restore(self.cursor, deliveries, self.open.clone())
    }
}

#[test]
fn each_transition_goes_to_each_receiver_once_and_in_order() {
    let mut outbox = Outbox::default();
    outbox.take_in(&firing(1, "a"), BOTH, at(0));
    assert!(outbox.take_in(&firing(1, "a"), BOTH, at(0)).is_empty(), "taken in before");
    // Receivers of the end are those of the beginning.
    outbox.take_in(&resolved(2, "a"), &[], at(1));
    assert_eq!((outbox.len(), due(&outbox, at(1))), (4, vec![1, 2]));
    let busy = BTreeSet::from([RULE]);
    assert_eq!(outbox.due(at(1), &busy).len(), 1);
    outbox.settle(1, &Outcome::Accepted, 5, at(1), 0.5);
    assert_eq!(due(&outbox, at(1)), [3, 2], "by receiver");
    assert!(outbox.settle(1, &Outcome::Accepted, 5, at(1), 0.5).is_none());
    let ids: BTreeSet<&str> =
        outbox.deliveries.values().map(|delivery| delivery.message_id.as_str()).collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn a_failed_delivery_holds_up_its_fingerprint_and_no_other() {
    let mut outbox = Outbox::default();
    let one = &[Receiver::Webhook];
    outbox.take_in(&firing(1, "a"), one, at(0));
    outbox.take_in(&resolved(2, "a"), one, at(0));
    outbox.take_in(&firing(3, "b"), one, at(0));
    outbox.settle(1, &failed(None), 5, at(0), 0.5);
    assert_eq!(due(&outbox, at(0)), [3]);
    outbox.settle(3, &Outcome::Accepted, 5, at(0), 0.5);
    assert_eq!(
        (due(&outbox, at(4)), outbox.until_due(at(4), &BTreeSet::new())),
        (vec![], Some(SignedDuration::from_secs(1)))
    );
    assert_eq!(due(&outbox, at(5)), [1]);
    // A clock that was set back does not delay the next attempt.
    assert_eq!(due(&outbox, at(-100_000)), [1]);
    outbox.settle(1, &Outcome::Accepted, 5, at(5), 0.5);
    assert_eq!(due(&outbox, at(5)), [2]);
}

#[test]
fn receiver_is_left_alone_as_long_as_it_asks_also_after_a_restart() {
    let (mut outbox, mut stored) = (Outbox::default(), Stored::default());
    let one = &[Receiver::Webhook];
    stored.write(outbox.take_in(&firing(1, "a"), one, at(0)));
    stored.write(outbox.take_in(&firing(2, "b"), one, at(0)));
    let (settled, changes) = outbox.settle(1, &failed(Some(300)), 5, at(0), 0.5).unwrap();
    assert_eq!(settled, Settled::Retries { at: at(300) });
    stored.write(changes);
    for outbox in [&outbox, &stored.restore()] {
        assert_eq!((due(outbox, at(299)), due(outbox, at(300))), (vec![], vec![1]));
        assert_eq!(due(outbox, at(-1_000_000)), [1], "the clock was set back");
    }
}

#[test]
fn attempts_are_counted_and_a_refusal_is_final() {
    let mut outbox = Outbox::default();
    outbox.take_in(&firing(1, "a"), &[Receiver::Webhook], at(0));
    outbox.take_in(&firing(2, "b"), &[Receiver::Webhook], at(0));
    for _ in 0..2 {
        let (settled, _) = outbox.settle(1, &failed(None), 2, at(0), 0.5).unwrap();
        assert!(matches!(settled, Settled::Retries { .. }));
    }
    let (settled, changes) = outbox.settle(1, &failed(None), 2, at(0), 0.5).unwrap();
    assert_eq!((settled, changes.removed), (Settled::GivenUp, vec![1]));
    let (settled, _) = outbox.settle(2, &Outcome::Refused { error: "400".into() }, 2, at(0), 0.5).unwrap();
    assert_eq!((settled, outbox.len()), (Settled::GivenUp, 0));
}

#[test]
fn a_receiver_that_is_gone_or_off_loses_its_deliveries_and_no_other_does() {
    let (mut outbox, mut stored) = (Outbox::default(), Stored::default());
    stored.write(outbox.take_in(&firing(1, "a"), BOTH, at(0)));
    stored.write(outbox.take_in(&firing(2, "b"), BOTH, at(0)));
    let (settled, changes) = outbox.settle(1, &Outcome::Gone, 5, at(0), 0.5).unwrap();
    stored.write(changes);
    assert_eq!((settled, due(&outbox, at(0))), (Settled::Gone, vec![2]));
    assert!(outbox.deliveries.values().all(|delivery| delivery.receiver == RULE));
    assert_eq!(stored.restore().deliveries, outbox.deliveries);
    stored.write(outbox.take_in(&resolved(3, "a"), &[], at(1)));
    assert_eq!(outbox.len(), 3, "the end goes only where the beginning went");
    stored.write(outbox.retain(|_| false));
    assert!(outbox.is_empty() && stored.deliveries.is_empty() && stored.open.is_empty());
}

#[test]
fn consequences_are_not_sent() {
    let mut outbox = Outbox::default();
    let consequence = Notification { is_consequence: true, ..firing(1, "a") };
    outbox.take_in(&consequence, BOTH, at(0));
    outbox.take_in(&resolved(2, "a"), BOTH, at(0));
    assert_eq!((outbox.len(), outbox.cursor()), (0, 2));
}

#[test]
fn beginnings_of_muted_alerts_are_withdrawn_and_their_ends_with_them() {
    let (mut outbox, mut stored) = (Outbox::default(), Stored::default());
    let muted = BTreeSet::from(["a".to_owned()]);
    for (sequence, fingerprint) in [(1, "a"), (2, "b")] {
        stored.write(outbox.take_in(&firing(sequence, fingerprint), BOTH, at(0)));
    }
    // One receiver has got it, and an attempt at the other one is in progress.
    let (_, changes) = outbox.settle(1, &Outcome::Accepted, 5, at(0), 0.5).expect("it is due");
    stored.write(changes);
    stored.write(outbox.withdraw(&muted, &BTreeSet::from([RULE])));
    assert_eq!(outbox.len(), 3);
    stored.write(outbox.withdraw(&muted, &BTreeSet::new()));
    assert_eq!((outbox.len(), stored.deliveries.len()), (2, 2), "those of b");
    // A repetition is withdrawn alone.
    stored.write(outbox.take_in(&firing(3, "a"), &[Receiver::Webhook], at(1)));
    stored.write(outbox.withdraw(&muted, &BTreeSet::new()));
    stored.write(outbox.take_in(&resolved(4, "a"), &[], at(2)));
    stored.write(outbox.withdraw(&muted, &BTreeSet::new()));
    let left = outbox.deliveries.values().filter(|delivery| delivery.notification.alert.fingerprint == "a");
    let left: Vec<_> = left.map(|delivery| (delivery.receiver, delivery.notification.transition)).collect();
    assert_eq!(left, [(Receiver::Webhook, Transition::Resolved)]);
    assert_eq!((stored.restore().deliveries, stored.open.len()), (outbox.deliveries.clone(), 2));
}

#[test]
fn the_oldest_gives_way_when_the_outbox_is_full() {
    let (mut outbox, mut stored) = (Outbox::default(), Stored::default());
    for sequence in 1..=MAX_DELIVERIES as u64 + 7 {
        stored.write(outbox.take_in(&firing(sequence, &sequence.to_string()), &[Receiver::Webhook], at(0)));
    }
    assert_eq!((outbox.len(), outbox.dropped(), due(&outbox, at(0))), (MAX_DELIVERIES, 7, vec![8]));
    assert_eq!(stored.deliveries.len(), MAX_DELIVERIES);
    stored.write(outbox.reset(0));
    assert!(stored.deliveries.is_empty() && stored.open.is_empty() && outbox.cursor() == 0);
}

/// Event of the property test.
#[derive(Clone, Debug)]
enum Event {
    Transition { fingerprint: u8, is_consequence: bool },
    Attempt(Outcome),
    Restart,
    Clock(i64),
}

fn event() -> impl Strategy<Value = Event> {
    let outcome = prop_oneof![
        6 => Just(Outcome::Accepted),
        3 => (prop::option::of(0..200_000i64)).prop_map(failed),
        1 => Just(Outcome::Refused { error: "400".into() }),
    ];
    prop_oneof![
        4 => (0..4u8, prop::bool::weighted(0.2))
            .prop_map(|(fingerprint, is_consequence)| Event::Transition { fingerprint, is_consequence }),
        6 => outcome.prop_map(Event::Attempt),
        1 => Just(Event::Restart),
        2 => (-100_000..100_000i64).prop_map(Event::Clock),
    ]
}

proptest! {
    /// Over restarts and clock jumps: no transition is accepted twice, those of a fingerprint arrive in order, and
    /// everything that is not given up arrives in the end.
    #[test]
    fn transitions_arrive_once_and_in_order(events in prop::collection::vec(event(), 1..200)) {
        let (mut outbox, mut stored) = (Outbox::default(), Stored::default());
        let (mut sequence, mut now) = (0, at(0));
        let mut firing_now = BTreeSet::new();
        let mut accepted: BTreeMap<(Receiver, String), Vec<u64>> = BTreeMap::new();
        let mut attempt = |outbox: &mut Outbox, stored: &mut Stored, now: Timestamp, outcome: &Outcome| {
            let Some(delivery) = outbox.due(now, &BTreeSet::new()).first().map(|first| (*first).clone()) else { return false };
            if *outcome == Outcome::Accepted {
                let key = (delivery.receiver, delivery.notification.alert.fingerprint.clone());
                accepted.entry(key).or_default().push(delivery.notification.sequence);
            }
            let (_, changes) = outbox.settle(delivery.number, outcome, 3, now, 0.3).expect("it is due");
            stored.write(changes);
            true
        };
        for event in events {
            match event {
                Event::Transition { fingerprint, is_consequence } => {
                    sequence += 1;
                    let begins = firing_now.insert(fingerprint) || { firing_now.remove(&fingerprint); false };
                    let transition = if begins { Transition::Firing } else { Transition::Resolved };
                    let notification = Notification { is_consequence, ..notification(sequence, transition, &fingerprint.to_string()) };
                    stored.write(outbox.take_in(&notification, BOTH, now));
                }
                Event::Attempt(outcome) => drop(attempt(&mut outbox, &mut stored, now, &outcome)),
                Event::Restart => outbox = stored.restore(),
                Event::Clock(seconds) => now = now.saturating_add(SignedDuration::from_secs(seconds)).unwrap(),
            }
            prop_assert_eq!(&stored.deliveries, &outbox.deliveries);
            prop_assert_eq!(&stored.open, &outbox.open);
        }
        while !outbox.is_empty() {
            if !attempt(&mut outbox, &mut stored, now, &Outcome::Accepted) {
                let wait = outbox.until_due(now, &BTreeSet::new()).expect("some wait");
                prop_assert!(wait > SignedDuration::ZERO && wait <= MAX_RETRY_AFTER);
                now = now.saturating_add(wait).unwrap();
            }
        }
        for (key, sequences) in accepted {
            prop_assert!(sequences.is_sorted_by(|a, b| a < b), "{key:?}: {sequences:?}");
        }
    }
}
