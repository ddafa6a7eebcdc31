//! Tests of undoing one change among later ones.

use serde_json::{Value, json};

use super::*;
use crate::bulk_edit::{Mode, Order, change};
use crate::kinds::{Device, Tunnel};
use crate::resource::Stored;

const KEY: &str = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=";

fn planned(state: &State, mode: Mode, resources: Value) -> State {
    let Value::Object(resources) = resources else { panic!("an object") };
    let mut draft = state.begin(state.now());
    let order = Order { mode, resources, freeze: true, force: true, ..Order::default() };
    change(&mut draft, &order).unwrap_or_else(|problems| panic!("{problems}"));
    draft
}

/// A state, the state after a plan, and the changes of the plan.
fn applied(base: &State, mode: Mode, resources: Value) -> (State, ChangeSet) {
    let after = planned(base, mode, resources);
    let set = ChangeSet::of(base, &after, |_| true);
    (after, set)
}

fn undone(state: &State, base: &State, set: &ChangeSet) -> (State, Vec<(String, OverlapOutcome)>) {
    let mut draft = state.begin(state.now());
    let overlaps = undo(&mut draft, base, set);
    (draft, overlaps.into_iter().map(|overlap| (overlap.name, overlap.outcome)).collect())
}

fn base() -> State {
    let tunnel = |name: &str, n: u8| json!({"name": name, "type": "wireguard", "private_key": KEY, "addresses": [format!("10.0.{n}.2/32")]});
    let resources = json!({
        "devices": [{"name": "a", "mac": "02:00:00:00:00:01"}, {"name": "b", "mac": "02:00:00:00:00:02"}],
        "tunnels": [tunnel("one", 1), tunnel("two", 2)],
        "policies": [{"name": "p", "source_type": "all", "priority": 20, "hops": [{"type": "vpn", "target": "one"}]},
                     {"name": "q", "source_type": "device", "source_value": "a", "priority": 10, "hops": []}],
    });
    planned(&State::new("2026-11-21T12:00:00Z".parse().unwrap()), Mode::Merge, resources)
}

fn device(state: &State, name: &str) -> Device {
    state.devices.iter().find(|device| device.name == name).expect(name).clone()
}

fn hop(state: &State) -> String {
    let policy = state.applied.policies.iter().find(|policy| policy.name == "p");
    policy.expect("a policy").hops[0].target.clone()
}

#[test]
fn undo_of_the_last_change_restores_everything() {
    let base = base();
    let resources = json!({
        "devices": [{"id": device(&base, "a").meta.id, "mac": "02:00:00:00:00:02"},
                    {"id": device(&base, "b").meta.id, "mac": "02:00:00:00:00:01"}, {"name": "c"}],
        "policies": [{"name": "p", "hops": [{"type": "vpn", "target": "two"}]}],
    });
    let (after, set) = applied(&base, Mode::Merge, resources);
    assert_eq!(hop(&after), "two");
    let (state, overlaps) = undone(&after, &base, &set);
    assert!(overlaps.is_empty(), "{overlaps:?}");
    assert_eq!(crate::bulk_edit::export(&state, true), crate::bulk_edit::export(&base, true));
    assert_eq!((hop(&state).as_str(), state.pending_policies()), ("one", 0));
}

#[test]
fn a_value_that_was_given_away_since_stays_there() {
    let base = base();
    let resources = json!({"devices": [{"name": "a", "mac": "02:00:00:00:00:01"}]});
    let (after, set) = applied(&base, Mode::Replace, resources);
    let taken = json!({"devices": [{"name": "new", "mac": "02:00:00:00:00:02"}]});
    let later = planned(&after, Mode::Merge, taken);
    let (state, overlaps) = undone(&later, &base, &set);
    assert_eq!(overlaps, [("b".to_owned(), OverlapOutcome::Kept)]);
    let names: BTreeSet<&str> = state.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["a", "new"]));
}

#[test]
fn a_policy_whose_device_was_deleted_since_stays_as_it_is() {
    let base = base();
    let to_b = json!({"policies": [{"name": "q", "source_type": "device", "source_value": "b"}]});
    let (after, set) = applied(&base, Mode::Merge, to_b);
    let mut later = after.begin(after.now());
    later.remove::<Device>(device(&base, "a").meta.id, None, false).unwrap();
    let (state, overlaps) = undone(&later, &base, &set);
    assert_eq!(overlaps, [("q".to_owned(), OverlapOutcome::Kept)]);
    let source = device(&base, "b").meta.id.to_string();
    for policies in [&state.routing_policies, &state.applied.policies] {
        let policy = policies.iter().find(|policy| policy.name == "q").expect("a policy");
        assert_eq!(policy.source_value, source);
    }
    assert_eq!(state.pending_policies(), 0);
}

/// A hop without its tunnel is unavailable, so the failure policy applies.
#[test]
fn a_policy_goes_back_to_a_tunnel_that_was_deleted_since() {
    let base = base();
    let to_two = json!({"policies": [{"name": "p", "hops": [{"type": "vpn", "target": "two"}]}]});
    let (after, set) = applied(&base, Mode::Merge, to_two);
    let mut later = after.begin(after.now());
    let one = later.tunnel_by_name("one").unwrap().meta.id;
    later.remove::<Tunnel>(one, None, false).unwrap();
    let (state, overlaps) = undone(&later, &base, &set);
    assert!(overlaps.is_empty(), "{overlaps:?}");
    assert_eq!((hop(&state).as_str(), state.pending_policies()), ("one", 0));
}

#[test]
fn a_number_that_was_given_out_again_is_not_taken_back() {
    let base = base();
    let (after, set) =
        applied(&base, Mode::Replace, json!({"devices": [{"name": "a", "mac": "02:00:00:00:00:01"}]}));
    let slot = device(&base, "b").meta.slot;
    let mut later = after.begin(after.now());
    later.devices.resume(1, later.revision);
    let mut taker = Device { name: "taker".into(), ..Device::default() };
    taker.meta.slot = slot;
    (taker.meta.id, taker.meta.revision) = (later.mint(), later.revision);
    Device::table_mut(&mut later).put(taker).unwrap();
    let (state, overlaps) = undone(&later, &base, &set);
    assert!(overlaps.is_empty(), "{overlaps:?}");
    assert_eq!(device(&state, "taker").meta.slot, slot);
    assert_ne!(device(&state, "b").meta.slot, slot);
}

#[test]
fn settings_go_back_unless_they_were_set_since() {
    let mut base = base();
    base.set("kept", json!(1));
    let mut after = base.begin(base.now());
    for key in ["kept", "again", "new"] {
        after.set(key, json!(2));
    }
    let set = ChangeSet::of(&base, &after, |key| key != "again");
    let mut later = after.begin(after.now());
    later.set("new", json!(3));
    let (state, overlaps) = undone(&later, &base, &set);
    assert_eq!(overlaps, [("new".to_owned(), OverlapOutcome::Kept)]);
    let values = ["kept", "again", "new"].map(|key| state.settings.get(key).cloned());
    assert_eq!(values, [Some(json!(1)), Some(json!(2)), Some(json!(3))]);
}
