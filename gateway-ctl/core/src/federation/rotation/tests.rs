//! Rotations over random histories with a thief who has every key that was given up.

use proptest::prelude::*;

use super::*;
use crate::federation::message::SCHEMA;

fn key(n: u8) -> PublicKey {
    PublicKey([n; 32])
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn succession(old: u8, new: u8, from: i64, overlap: i64) -> Succession {
    Succession { schema: SCHEMA, old: key(old), new: key(new), at: at(from), until: at(from + overlap) }
}

#[test]
fn both_keys_count_for_the_overlap_and_then_the_new_one() {
    let trusted = TrustedKeys { current: key(1), previous: None };
    let declared = succession(1, 2, 0, 100);
    let followed = trusted.follow(&declared, at(10)).unwrap().unwrap();
    assert!(followed.accepts(key(1), at(99)) && followed.accepts(key(2), at(99)));
    assert!(!followed.accepts(key(1), at(100)) && followed.accepts(key(2), at(100)));
    assert_eq!(followed.follow(&declared, at(20)), Ok(None));
    // The old key cannot be replaced a second time.
    assert_eq!(followed.follow(&succession(1, 3, 20, 100), at(30)), Err(SuccessionError::NotCurrent));
    assert_eq!(trusted.follow(&declared, at(100)), Err(SuccessionError::Expired));
    let long = Succession { until: at(MAX_OVERLAP.as_secs() + 1), ..declared.clone() };
    assert_eq!(trusted.follow(&long, at(1)), Err(SuccessionError::Times));
    let future = succession(1, 2, 1000, 100);
    assert_eq!(trusted.follow(&future, at(0)), Err(SuccessionError::Times));
}

#[derive(Clone, Debug)]
enum Step {
    /// The gateway replaces its key, if no overlap is going on.
    Rotate(i64),
    /// A message of the gateway reaches the peer.
    Message,
    /// The thief declares a new key with one of the keys that were given up, and signs a message by it.
    Steal(prop::sample::Index, i64),
    Pass(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (10i64..200).prop_map(Step::Rotate),
        4 => Just(Step::Message),
        3 => (any::<prop::sample::Index>(), -300i64..300).prop_map(|(which, from)| Step::Steal(which, from)),
        3 => (1i64..150).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The peer trusts only keys of the gateway, never returns to an earlier one, and accepts a key that was given up no
    /// longer than its overlap. It follows as long as a message comes within each overlap.
    #[test]
    fn a_peer_follows_the_gateway_and_no_thief(steps in proptest::collection::vec(step(), 1..80)) {
        const THIEF: u8 = 255;
        let (mut now, mut own) = (0i64, 1u8);
        let mut declared: Option<Succession> = None;
        // Keys that were given up, each with the end of its overlap, after the peer has followed.
        let mut given_up: Vec<(u8, i64)> = Vec::new();
        let mut trusted = TrustedKeys { current: key(1), previous: None };
        let mut is_lost = false;
        for step in steps {
            match step {
                Step::Rotate(overlap) => {
                    let is_over = declared.as_ref().is_none_or(|last| at(now) >= last.until);
                    if is_over && own < THIEF - 1 {
                        // A peer that missed the last overlap has lost the gateway: keys have to be exchanged again.
                        is_lost |= trusted.current != key(own);
                        declared = Some(succession(own, own + 1, now, overlap));
                        own += 1;
                    }
                }
                Step::Message => {
                    if let Some(last) = declared.as_ref().filter(|last| at(now) < last.until)
                        && let Ok(Some(followed)) = trusted.follow(last, at(now))
                    {
                        let until = last.until.as_second() - 1_800_000_000;
                        given_up.push((trusted.current.0[0], until));
                        trusted = followed;
                    }
                    let is_current = trusted.current == key(own);
                    prop_assert_eq!(trusted.accepts(key(own), at(now)), is_current);
                    let is_missed = declared.as_ref().is_some_and(|last| at(now) >= last.until);
                    prop_assert!(is_current || is_lost || is_missed);
                }
                Step::Steal(which, from) => {
                    if given_up.is_empty() {
                        continue;
                    }
                    let (stolen, _) = *which.get(&given_up);
                    let forged = succession(stolen, THIEF, now + from, 1000);
                    prop_assert_eq!(trusted.follow(&forged, at(now)), Err(SuccessionError::NotCurrent));
                }
                Step::Pass(seconds) => now += seconds,
            }
            for (stolen, until) in &given_up {
                prop_assert!(!trusted.accepts(key(*stolen), at(now)) || now < *until);
            }
            prop_assert!(trusted.current.0[0] <= own);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}|\\{\"schema\":1,\"old\":\"[A-Za-z0-9+/]{43}=\"\\}") {
        let _ = Succession::parse(&text);
    }
}
