//! Tests of the discard of pending policies.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::EditError;
use crate::kinds::Device;
use crate::registry::kind;

fn create(state: &mut State, noun: &str, body: Value) -> Id {
    kind(noun).unwrap().create(state, body).unwrap_or_else(|error| panic!("{error}")).id
}

fn edit(state: &mut State, noun: &str, id: Id, change: Value) {
    try_edit(state, noun, id, change).unwrap();
}

fn try_edit(state: &mut State, noun: &str, id: Id, change: Value) -> Result<(), EditError> {
    let (mut form, _) = kind(noun).unwrap().get(state, &id.to_string()).unwrap();
    form.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    kind(noun).unwrap().replace(state, &id.to_string(), None, form).map(drop)
}

/// Edits an object, unless the edit would give two policies on the same traffic the same priority and other ways.
fn edit_unless_refused(state: &mut State, noun: &str, id: Id, change: Value) {
    let before = state.clone();
    match try_edit(state, noun, id, change) {
        Ok(()) => {}
        Err(EditError::PolicyConflict { .. }) => *state = before,
        Err(error) => panic!("{error}"),
    }
}

fn next(state: &State) -> State {
    state.begin(state.now() + jiff::SignedDuration::from_secs(1))
}

fn hop(target: &str) -> Value {
    json!({"type": "vpn", "target": target})
}

struct Fixture {
    state: State,
    chain: Id,
    profile: Id,
    plain: Id,
    fed: Id,
    gone: Id,
}

/// A chain, a profile that uses it, and policies, all applied.
fn fixture() -> Fixture {
    let mut state = next(&State::new("2026-11-21T12:00:00Z".parse().unwrap()));
    let chain = create(&mut state, "chain", json!({"name": "c", "hops": [hop("a"), hop("b")]}));
    let profile =
        create(&mut state, "profile", json!({"name": "p", "chain": "c", "fail_policy": "fail-open"}));
    let policy = |state: &mut State, name: &str, more: Value| {
        let mut body = json!({"name": name, "source_type": "all"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        create(state, "routing_policy", body)
    };
    let plain = policy(&mut state, "plain", json!({"hops": [hop("a")], "priority": 10}));
    let fed = policy(&mut state, "fed", json!({"profile": "p", "priority": 20}));
    let gone = policy(&mut state, "gone", json!({"chain": "c", "priority": 30}));
    state.freeze_applied();
    Fixture { state: next(&state), chain, profile, plain, fed, gone }
}

/// All objects without their metadata, and what is applied.
fn image(state: &State) -> Value {
    let of = |noun: &str| {
        let mut rows = kind(noun).unwrap().list(state, &crate::filter::Filter::default());
        for row in &mut rows {
            let id = row["id"].clone();
            *row = crate::state::planned::content(row.take());
            row["id"] = id;
        }
        rows.sort_by_key(|row| row["id"].to_string());
        json!(rows)
    };
    let applied: Vec<_> = state.applied.policies.iter().collect();
    json!([of("routing_policy"), of("profile"), of("chain"), of("privacy_class"), applied])
}

fn discarded(state: &State) -> (State, Discarded) {
    let mut draft = next(state);
    let discarded = discard(&mut draft);
    (draft, discarded)
}

#[test]
fn new_changed_and_deleted_policies_go_back() {
    let Fixture { mut state, plain, gone, .. } = fixture();
    let before = image(&state);
    create(&mut state, "routing_policy", json!({"name": "new", "source_type": "all"}));
    edit(&mut state, "routing_policy", plain, json!({"priority": 7, "hops": [], "enabled": false}));
    kind("routing_policy").unwrap().delete(&mut state, &gone.to_string(), None, false).unwrap();
    assert_eq!(state.pending_policies(), 3);
    let pending = pending_changes(&state);
    let ops: Vec<_> = pending.iter().map(|change| (change.name.as_str(), change.op)).collect();
    assert_eq!(ops, [("plain", Op::Update), ("new", Op::Create), ("gone", Op::Delete)]);
    let priority = &pending[0].diff["priority"];
    assert_eq!((&priority.from, &priority.to), (&Some(json!(10)), &Some(json!(7))));
    let (state, Discarded { changes, remaining }) = discarded(&state);
    assert_eq!((image(&state), remaining, changes.len()), (before, Vec::new(), 3), "{changes:?}");
    assert_eq!(state.applied.revision, state.revision);
    let (_, again) = discarded(&state);
    assert!(again.changes.is_empty());
}

#[test]
fn profiles_and_chains_that_serve_policies_only_go_back_in_their_frozen_fields() {
    let Fixture { mut state, chain, profile, .. } = fixture();
    let before = image(&state);
    edit(&mut state, "profile", profile, json!({"chain": null, "hops": [hop("x")], "description": "stays"}));
    edit(&mut state, "chain", chain, json!({"enabled": false}));
    assert_eq!(state.pending_policies(), 2);
    let (mut state, Discarded { remaining, .. }) = discarded(&state);
    assert_eq!((remaining, state.pending_policies()), (Vec::new(), 0));
    assert_eq!(state.profiles.get(profile).unwrap().description, "stays");
    edit(&mut state, "profile", profile, json!({"description": ""}));
    assert_eq!(image(&state), before);
}

#[test]
fn a_deleted_chain_comes_back_with_the_profile_that_names_it() {
    let Fixture { mut state, chain, profile, gone, .. } = fixture();
    kind("routing_policy").unwrap().delete(&mut state, &gone.to_string(), None, false).unwrap();
    state.freeze_applied();
    let mut state = next(&state);
    let before = image(&state);
    edit(&mut state, "profile", profile, json!({"chain": null, "hops": [hop("x")]}));
    kind("chain").unwrap().delete(&mut state, &chain.to_string(), None, false).unwrap();
    let (state, Discarded { remaining, .. }) = discarded(&state);
    assert_eq!((remaining, image(&state)), (Vec::new(), before));
}

#[test]
fn what_has_taken_effect_elsewhere_stays_and_is_reported() {
    let Fixture { mut state, profile, plain, fed, .. } = fixture();
    state.create(Device { name: "tv".into(), profile: Some("p".into()), ..Device::default() }).unwrap();
    edit(&mut state, "profile", profile, json!({"fail_policy": "fail-closed"}));
    edit(&mut state, "routing_policy", plain, json!({"priority": 7}));
    let (state, Discarded { remaining, .. }) = discarded(&state);
    assert_eq!(state.routing_policies.get(plain).unwrap().priority, 10);
    assert_eq!(state.profiles.get(profile).unwrap().fail_policy.to_string(), "fail-closed");
    let [left] = &remaining[..] else { panic!("{remaining:?}") };
    assert!(left.id == fed && left.reason.contains("profile \"p\""), "{left:?}");
    assert_ne!(state.applied.revision, state.revision);
}

#[test]
fn a_profile_that_was_applied_in_two_forms_stays() {
    let Fixture { mut state, profile, fed, .. } = fixture();
    let other =
        create(&mut state, "routing_policy", json!({"name": "other", "source_type": "all", "profile": "p"}));
    edit(&mut state, "profile", profile, json!({"fail_policy": "fail-closed"}));
    state.freeze_policy(other);
    let (state, Discarded { remaining, changes }) = discarded(&next(&state));
    assert!(state.is_applied(other) && changes.is_empty(), "{changes:?}");
    assert_eq!(remaining.iter().map(|left| left.id).collect::<Vec<_>>(), [fed]);
}

#[test]
fn applied_policies_survive_the_stored_form_with_what_they_were_merged_from() {
    let Fixture { mut state, fed, plain, .. } = fixture();
    let mut read = crate::state::Applied::default();
    for policy in state.applied.policies.iter() {
        read.load(&state.applied.stored_json(policy)).unwrap();
    }
    assert_eq!(read.merged_from(fed), state.applied.merged_from(fed));
    assert!(read.merged_from(fed).is_some() && read.merged_from(plain).is_none());
    assert!(read.unmerged(fed).unwrap().fail_policy.is_none(), "the profile sets it");
    // A store of a former version has merged forms only.
    let mut old = crate::state::Applied::default();
    for policy in state.applied.policies.iter() {
        old.load(&crate::registry::stored_json(policy)).unwrap();
    }
    assert!(old.unmerged(fed).is_none() && old.unmerged(plain).is_some());
    state.applied = old;
    edit(&mut state, "routing_policy", fed, json!({"priority": 7}));
    let (state, Discarded { remaining, .. }) = discarded(&state);
    assert_eq!((remaining.len(), state.routing_policies.get(fed).unwrap().priority), (1, 7));
}

#[derive(Clone, Debug)]
enum Act {
    Edit(usize, i64),
    Delete(usize),
    Create,
    Profile(bool),
    Chain(bool),
    ApplyOne(usize),
    Apply,
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..6usize, 1..50i64).prop_map(|(at, priority)| Act::Edit(at, priority)),
        (0..6usize).prop_map(Act::Delete),
        Just(Act::Create),
        any::<bool>().prop_map(Act::Profile),
        any::<bool>().prop_map(Act::Chain),
        (0..6usize).prop_map(Act::ApplyOne),
        Just(Act::Apply),
    ]
}

proptest! {
    /// Whatever was edited and applied: a discard never changes what is applied, and what it leaves pending, it reports.
    #[test]
    fn a_discard_changes_no_traffic_and_reports_what_stays(acts in prop::collection::vec(acts(), 1..20)) {
        let Fixture { mut state, profile, chain, .. } = fixture();
        for act in acts {
            state = next(&state);
            let ids: Vec<Id> = state.routing_policies.iter().map(|policy| policy.meta.id).collect();
            let pick = |at: usize| ids.get(at % ids.len().max(1)).copied();
            match act {
                Act::Edit(at, priority) => {
                    if let Some(id) = pick(at) {
                        edit_unless_refused(&mut state, "routing_policy", id, json!({"priority": priority}));
                    }
                }
                Act::Delete(at) => {
                    if let Some(id) = pick(at) {
                        kind("routing_policy").unwrap().delete(&mut state, &id.to_string(), None, true).unwrap();
                    }
                }
                Act::Create => {
                    let body = json!({"name": "new", "source_type": "interface", "source_value": "eth1", "profile": "p"});
                    create(&mut state, "routing_policy", body);
                }
                Act::Profile(open) => {
                    let fail = if open { "fail-open" } else { "fail-closed" };
                    edit_unless_refused(&mut state, "profile", profile, json!({"fail_policy": fail}));
                }
                Act::Chain(enabled) => edit_unless_refused(&mut state, "chain", chain, json!({"enabled": enabled})),
                Act::ApplyOne(at) => pick(at).into_iter().for_each(|id| state.freeze_policy(id)),
                Act::Apply => state.freeze_applied(),
            }
        }
        let before = serde_json::to_value(state.applied.policies.iter().collect::<Vec<_>>()).unwrap();
        let (state, Discarded { remaining, .. }) = discarded(&state);
        prop_assert_eq!(serde_json::to_value(state.applied.policies.iter().collect::<Vec<_>>()).unwrap(), before);
        let left: Vec<Id> = remaining.iter().map(|left| left.id).collect();
        prop_assert_eq!(state.pending_policy_ids(), left);
    }
}
