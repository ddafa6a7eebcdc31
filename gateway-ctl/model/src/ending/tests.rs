//! Ended objects stay ended after a clock change, a rollback, an undo and an import.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::bulk_edit::undo::{ChangeSet, undo};
use crate::bulk_edit::{self, Mode};
use crate::export::Document;
use crate::kinds::Device;
use crate::kinds::exception::ExceptionStatus;
use crate::registry::decode_input;
use crate::settings::Bootstrap;

fn at(minutes: i64) -> Timestamp {
    let start: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
    start + SignedDuration::from_mins(minutes)
}

/// A draft with a device that has an exception of an hour.
fn with_exception() -> (State, Id) {
    let mut draft = State::new(at(0)).begin(at(0));
    let (device, _) = draft.create(Device { name: "laptop".into(), ..Device::default() }).unwrap();
    let exception = Exception { device_id: device.meta.id, allow_direct: true, ..Exception::default() };
    let (exception, _) = draft.create(exception).unwrap();
    (draft, exception.meta.id)
}

fn status(state: &State, id: Id) -> Option<ExceptionStatus> {
    state.exceptions.get(id).map(|exception| exception.status(state.now()))
}

type End = fn(&mut State, Id);

/// Reasons for which an exception is over although it has time left.
fn ends() -> [(&'static str, End); 3] {
    [
        ("revoked", |draft, id| drop(draft.remove::<Exception>(id, None, false).unwrap())),
        ("ended", |draft, id| draft.end_exceptions(&[id]).unwrap()),
        ("deleted", |draft, id| {
            draft.end_exceptions(&[id]).unwrap();
            draft.remove::<Exception>(id, None, false).unwrap();
        }),
    ]
}

#[test]
fn rollback_revives_no_exception() {
    for (case, end) in ends() {
        let (snapshot, id) = with_exception();
        let mut present = snapshot.begin(at(10));
        end(&mut present, id);
        let mut draft = present.begin(at(20));
        bulk_edit::take_over(&mut draft, &snapshot, |_| true).unwrap();
        assert!(matches!(status(&draft, id), Some(s) if s != ExceptionStatus::Active), "{case}");
        assert_eq!(
            status(&snapshot.begin(at(20)), id),
            Some(ExceptionStatus::Active),
            "{case}: time is left"
        );
    }
    let (snapshot, id) = with_exception();
    let mut draft = snapshot.begin(at(20));
    bulk_edit::take_over(&mut draft, &snapshot, |_| true).unwrap();
    assert_eq!(status(&draft, id), Some(ExceptionStatus::Active), "what is active stays so");
}

#[test]
fn undo_revives_no_exception() {
    for (case, end) in ends() {
        let (base, id) = with_exception();
        let mut present = base.begin(at(10));
        end(&mut present, id);
        let set = ChangeSet::of(&base, &present, |_| true);
        let mut draft = present.begin(at(20));
        undo(&mut draft, &base, &set);
        assert!(status(&draft, id) != Some(ExceptionStatus::Active), "{case}");
    }
}

#[test]
fn import_revives_no_exception() {
    for (case, end) in ends() {
        for mode in [Mode::Merge, Mode::Replace] {
            let (state, id) = with_exception();
            let document = Document::of(&state, &Bootstrap::default(), true, "1", "gw", at(0));
            let mut present = state.begin(at(10));
            end(&mut present, id);
            let mut draft = present.begin(at(20));
            let outcome = document.clone().import(&mut draft, &Bootstrap::default(), mode).unwrap();
            let active = draft.exceptions.iter().filter(|exception| exception.is_active(at(20)));
            assert_eq!(active.count(), 0, "{case}");
            let warned = outcome.warnings.iter().any(|warning| warning.path == "resources.exceptions[0]");
            assert_eq!(warned, case == "deleted", "{case}: {:?}", outcome.warnings);
        }
    }
}

/// A state with an applied policy that ends after an hour.
fn with_policy() -> (State, Id) {
    let mut draft = State::new(at(0)).begin(at(0));
    let policy = RoutingPolicy { expires_at: Some(at(60)), ..RoutingPolicy::default() };
    let (policy, _) = draft.create(policy).unwrap();
    draft.freeze_applied();
    (draft, policy.meta.id)
}

fn is_in_force(state: &State, id: Id, now: Timestamp) -> (bool, bool) {
    let of = |table: &crate::Table<RoutingPolicy>| table.get(id).is_some_and(|policy| policy.in_force(now));
    (of(&state.routing_policies), of(&state.applied.policies))
}

#[test]
fn policy_that_has_ended_stays_ended_in_both_forms() {
    let (state, id) = with_policy();
    let mut draft = state.begin(at(61));
    let overdue = draft.overdue(at(61), false);
    assert_eq!((overdue.policies.as_slice(), overdue.len()), ([id].as_slice(), 1));
    draft.end_policies(&overdue.policies).unwrap();
    assert_eq!(is_in_force(&draft, id, at(30)), (false, false));
    assert!(draft.is_applied(id) && draft.applied.at == Some(at(0)), "it is no apply");
    assert!(draft.overdue(at(61), false).is_empty());
    // A return to the time before changes nothing of it.
    let ended = draft;
    let mut draft = ended.begin(at(30));
    bulk_edit::take_over(&mut draft, &state, |_| true).unwrap();
    assert_eq!(is_in_force(&draft, id, at(30)), (false, false));
}

#[test]
fn only_another_end_brings_a_policy_back() {
    let (state, id) = with_policy();
    let mut ended = state.begin(at(61));
    ended.end_policies(&[id]).unwrap();
    let before = ended.routing_policies.get(id).unwrap().clone();
    let read = |end: Value| {
        let input = json!({"source_type": "all", "priority": 7, "expires_at": end, "ended_at": null});
        decode_input::<RoutingPolicy>(input, Some(before.as_ref()), &ended).unwrap().0
    };
    assert_eq!(read(json!(at(60))).ended_at, before.ended_at);
    for end in [json!(at(120)), Value::Null] {
        assert!(read(end.clone()).in_force(at(30)), "{end}");
    }
}

#[test]
fn api_key_that_has_expired_stays_expired() {
    let mut draft = State::new(at(0)).begin(at(0));
    let key = ApiKey { name: "backup".into(), expires_at: Some(at(60)), ..ApiKey::default() };
    let (key, _) = draft.create(key).unwrap();
    let mut draft = draft.begin(at(61));
    let overdue = draft.overdue(at(61), false);
    assert_eq!(overdue.api_keys, [key.meta.id]);
    draft.end_api_keys(&overdue.api_keys).unwrap();
    let stored = draft.api_keys.get(key.meta.id).unwrap();
    assert!(stored.is_expired(at(30)));
    assert!(!key.is_expired(at(30)), "the time alone would not say so");
    let input = json!({"name": "backup", "role": "viewer", "expires_at": at(60), "ended_at": null});
    let kept = decode_input::<ApiKey>(input, Some(stored.as_ref()), &draft).unwrap().0;
    assert_eq!(kept.ended_at, stored.ended_at);
}
