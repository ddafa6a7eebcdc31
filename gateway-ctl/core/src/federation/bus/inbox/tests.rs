//! Kinds that arrive in any order are taken only as a state that the node had.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::federation::message::SCHEMA;

const KINDS: [SyncKind; 2] = [SyncKind::Devices, SyncKind::Routing];

/// State of a node: the revision of each kind, which is its content as well.
type State = [u64; 2];

fn publication(state: State, index: usize, has_objects: bool) -> Publication {
    let kind = KINDS[index];
    let revision = state[index];
    let objects: Option<Map<String, serde_json::Value>> =
        has_objects.then(|| json!({kind.as_str(): []}).as_object().unwrap().clone());
    Publication {
        schema: SCHEMA,
        node_id: "node".into(),
        version: "1".into(),
        kind,
        heads: KINDS.into_iter().zip(state).collect(),
        offer: KindOffer { revision, hash: revision.to_string(), objects },
    }
}

fn held(state: State) -> Vec<ReceivedKind> {
    let of = |(kind, revision): (SyncKind, u64)| ReceivedKind {
        kind,
        revision,
        hash: revision.to_string(),
        version: "1".into(),
        received_at: Timestamp::UNIX_EPOCH,
        tombstones: BTreeMap::new(),
    };
    KINDS.into_iter().zip(state).map(of).collect()
}

#[test]
fn a_kind_waits_for_the_others_of_the_same_state() {
    let mut inbox = Inbox::default();
    inbox.take(publication([2, 2], 1, true));
    assert_eq!(inbox.arrival(&KINDS, &held([1, 1])), Arrival::Incomplete);
    // A gateway that follows one kind needs no other.
    assert!(matches!(inbox.arrival(&KINDS[1..], &held([1, 1])), Arrival::Complete { .. }));
    inbox.take(publication([2, 2], 0, true));
    let Arrival::Complete { kinds, version } = inbox.arrival(&KINDS, &held([1, 1])) else {
        panic!("not complete")
    };
    assert_eq!((kinds.len(), version.as_str()), (2, "1"));
    assert_eq!(inbox.arrival(&KINDS, &held([2, 2])), Arrival::Nothing);
    // A late message is no change, and one without objects has to be pulled.
    inbox.take(publication([1, 1], 0, true));
    assert_eq!(inbox.arrival(&KINDS, &held([2, 2])), Arrival::Nothing);
    inbox.take(publication([3, 2], 0, false));
    assert_eq!(inbox.arrival(&KINDS, &held([2, 2])), Arrival::Incomplete);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Messages arrive late, again and in any order. What is taken is always one state of the node, and never an older one.
    #[test]
    fn states_are_never_mixed(
        edits in proptest::collection::vec(any::<[bool; 2]>(), 1..20),
        arrivals in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..40),
    ) {
        let mut states: Vec<State> = vec![[1, 1]];
        let mut sent = Vec::new();
        for (revision, changes) in (2..).zip(edits) {
            let mut state = *states.last().unwrap();
            for index in 0..2 {
                if changes[index] {
                    state[index] = revision;
                }
            }
            let changed = (0..2).filter(|index| changes[*index]);
            sent.extend(changed.map(|index| publication(state, index, true)));
            states.push(state);
        }
        let (mut inbox, mut taken) = (Inbox::default(), [1, 1]);
        for (which, is_asked) in arrivals {
            if sent.is_empty() {
                break;
            }
            inbox.take(which.get(&sent).clone());
            if !is_asked {
                continue;
            }
            if let Arrival::Complete { kinds, .. } = inbox.arrival(&KINDS, &held(taken)) {
                let before = taken;
                for (kind, offer) in kinds {
                    taken[KINDS.iter().position(|known| *known == kind).unwrap()] = offer.revision;
                }
                prop_assert!(states.contains(&taken), "{taken:?} of {states:?}");
                prop_assert!(taken > before);
            }
        }
        // Once the last message of each kind has arrived, the state is the last one.
        sent.iter().for_each(|publication| inbox.take(publication.clone()));
        if let Arrival::Complete { kinds, .. } = inbox.arrival(&KINDS, &held(taken)) {
            for (kind, offer) in kinds {
                taken[KINDS.iter().position(|known| *known == kind).unwrap()] = offer.revision;
            }
        }
        prop_assert_eq!(taken, *states.last().unwrap());
    }
}
