//! Tests of changes of many objects.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::diff::SecretChange;
use super::*;
use crate::Secret;
use crate::kinds::{Device, DeviceGroup, RoutingPolicy, Tunnel};

const KEY: &str = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=";

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn order(mode: Mode, resources: Value) -> Order {
    let Value::Object(resources) = resources else { panic!("an object") };
    Order { mode, resources, freeze: true, ..Order::default() }
}

fn run(state: &State, order: &Order) -> Result<(State, Outcome), Problems> {
    let mut draft = state.begin(now());
    change(&mut draft, order).map(|outcome| (draft, outcome))
}

fn applied(state: &State, mode: Mode, resources: Value) -> (State, Outcome) {
    run(state, &order(mode, resources)).unwrap_or_else(|problems| panic!("{problems}"))
}

fn refused(state: &State, mode: Mode, resources: Value) -> Vec<(String, &'static str)> {
    let problems = run(state, &order(mode, resources)).expect_err("refused");
    problems.iter().map(|problem| (problem.path.clone(), problem.code)).collect()
}

fn ops(outcome: &Outcome) -> Vec<(&'static str, &str, Op)> {
    outcome.changes.iter().map(|change| (change.kind, change.name.as_str(), change.op)).collect()
}

fn whole() -> Value {
    json!({
        "policies": [{"name": "work", "priority": 10, "source_type": "device", "source_value": "laptop, tv",
                      "hops": [{"type": "vpn", "target": "home"}]},
                     {"name": "rest", "priority": 20, "source_type": "device_group", "source_value": "family",
                      "hops": [{"type": "vpn", "target": "home"}]}],
        "device-groups": [{"name": "family", "members": ["laptop", "tv"], "trust_class": "mine"}],
        "devices": [{"name": "laptop", "mac": "02:00:00:00:00:01", "trust_class": "mine"}, {"name": "tv"}],
        "tunnels": [{"name": "home", "type": "wireguard", "private_key": KEY, "addresses": ["10.0.0.2/32"]}],
        "trust_classes": [{"name": "mine", "level": 60}],
    })
}

#[test]
fn a_plan_names_objects_of_its_own_in_any_order_and_is_idempotent() {
    let empty = State::new(now());
    let (state, outcome) = applied(&empty, Mode::Merge, whole());
    assert!(outcome.changes.iter().all(|change| change.op == Op::Create), "{:?}", ops(&outcome));
    let laptop = state.devices.iter().find(|device| device.name == "laptop").unwrap();
    let tv = state.devices.iter().find(|device| device.name == "tv").unwrap();
    let group = state.device_groups.iter().next().unwrap();
    assert_eq!(group.members, [laptop.meta.id, tv.meta.id]);
    let policy = state.routing_policies.iter().find(|policy| policy.name == "work").unwrap();
    assert_eq!(policy.source_value, format!("{},{}", laptop.meta.id, tv.meta.id));
    assert_eq!(state.applied.policies.len(), 2);
    for mode in [Mode::Merge, Mode::Replace] {
        let (again, outcome) = applied(&state, mode, whole());
        assert!(
            outcome.changes.iter().all(|change| change.op == Op::Unchanged),
            "{mode:?} {:?}",
            outcome.changes
        );
        assert!(
            KINDS
                .iter()
                .all(|kind| !kind.is_changed(&again) && kind.revision(&again) == kind.revision(&state))
        );
    }
}

#[test]
fn an_exported_state_applies_to_itself_without_change_and_to_an_empty_one_as_a_whole() {
    let (state, _) = applied(&State::new(now()), Mode::Merge, whole());
    for secrets in [false, true] {
        let (_, outcome) = applied(&state, Mode::Replace, export(&state, secrets).into());
        assert!(outcome.changes.iter().all(|change| change.op == Op::Unchanged), "{:?}", outcome.changes);
    }
    let (copy, _) = applied(&State::new(now()), Mode::Replace, export(&state, true).into());
    assert_eq!(export(&copy, true), export(&state, true));
}

#[test]
fn merging_keeps_what_is_not_named_and_replacing_does_not() {
    let (state, _) = applied(&State::new(now()), Mode::Merge, whole());
    let named = json!({"tunnels": [{"name": "home", "notes": "n", "health_check": {"interval_sec": 77}}]});
    let (merged, outcome) = applied(&state, Mode::Merge, named);
    assert_eq!(ops(&outcome), [("tunnel", "home", Op::Update)]);
    let diff: Vec<&str> = outcome.changes[0].diff.keys().map(String::as_str).collect();
    assert_eq!(diff, ["health_check", "notes"]);
    let tunnel = merged.tunnel_by_name("home").unwrap();
    assert_eq!((tunnel.addresses.len(), tunnel.private_key.expose()), (1, KEY));
    let (replaced, outcome) = applied(
        &merged,
        Mode::Replace,
        json!({"devices": [{"name": "tv"}], "policies": [],
        "device_groups": [], "tunnels": [{"name": "home", "type": "wireguard"}]}),
    );
    let tunnel = replaced.tunnel_by_name("home").unwrap();
    assert_eq!((tunnel.addresses.len(), tunnel.private_key.expose(), tunnel.notes.as_str()), (0, KEY, ""));
    assert_eq!(replaced.devices.len(), 1);
    assert_eq!((replaced.routing_policies.len(), replaced.device_groups.len()), (0, 0));
    assert_eq!(replaced.trust_classes.len(), merged.trust_classes.len(), "not listed, so not touched");
    assert!(ops(&outcome).contains(&("device", "laptop", Op::Delete)), "{:?}", ops(&outcome));
}

#[test]
fn objects_exchange_names_and_priorities_in_one_change() {
    let (state, _) = applied(
        &State::new(now()),
        Mode::Merge,
        json!({
        "tunnels": [{"name": "a", "type": "wireguard", "private_key": KEY}, {"name": "b", "type": "wireguard", "private_key": KEY}],
        "policies": [{"name": "one", "priority": 1, "source_type": "all", "hops": [{"type": "vpn", "target": "a"}]},
                     {"name": "two", "priority": 2, "source_type": "all", "hops": [{"type": "vpn", "target": "b"}]}]}),
    );
    let id = |name: &str| state.tunnel_by_name(name).unwrap().meta.id.to_string();
    let (swapped, outcome) = applied(
        &state,
        Mode::Merge,
        json!({
        "tunnels": [{"id": id("a"), "name": "b"}, {"id": id("b"), "name": "a"}],
        "policies": [{"name": "one", "priority": 2}, {"name": "two", "priority": 1}]}),
    );
    assert!(outcome.changes.iter().all(|change| change.op == Op::Update), "{:?}", ops(&outcome));
    assert_eq!(swapped.tunnel_by_name("b").unwrap().meta.id.to_string(), id("a"));
    let slots = |state: &State| {
        state.tunnels.iter().map(|tunnel| (tunnel.meta.id, tunnel.meta.slot)).collect::<Vec<_>>()
    };
    assert_eq!(slots(&swapped), slots(&state));
}

#[test]
fn every_mistake_is_reported_with_its_path() {
    let (state, _) = applied(&State::new(now()), Mode::Merge, whole());
    let found = refused(
        &state,
        Mode::Merge,
        json!({
        "devices": [{"name": "x", "mac": "nonsense"}, 7, {"name": "laptop"}, {"name": "other", "mac": "02:00:00:00:00:01"},
                    {"id": "no", "name": "y"}],
        "device_groups": [{"name": "g", "members": ["nobody"]}],
        "devises": [], "users": [], "tunnels": {}}),
    );
    for wanted in [
        ("resources.devices[0].mac", "format"),
        ("resources.devices[1]", "type"),
        ("resources.devices[3]", "duplicate"),
        ("resources.devices[4].id", "format"),
        ("resources.device_groups[0].members[0]", "format"),
        ("resources.devises", "enum"),
        ("resources.users", "enum"),
        ("resources.tunnels", "type"),
    ] {
        assert!(found.contains(&(wanted.0.to_owned(), wanted.1)), "{wanted:?} is not in {found:?}");
    }
    let found = refused(&state, Mode::Replace, json!({"trust_classes": []}));
    assert_eq!(found, [("resources.trust_classes".to_owned(), "conflict")]);
}

#[test]
fn a_name_that_two_objects_have_is_not_guessed() {
    let (state, _) = applied(
        &State::new(now()),
        Mode::Merge,
        json!({"devices": [
        {"name": "tv", "mac": "02:00:00:00:00:01"}]}),
    );
    let mut draft = state.begin(now());
    draft.create(Device { name: "tv".into(), ..Device::default() }).unwrap();
    assert_eq!(refused(&draft, Mode::Merge, json!({"devices": [{"name": "tv"}]}))[0].1, "conflict");
    let (_, outcome) =
        applied(&draft, Mode::Merge, json!({"devices": [{"name": "tv", "mac": "02:00:00:00:00:01"}]}));
    assert_eq!(ops(&outcome), [("device", "tv", Op::Unchanged)]);
}

#[test]
fn secrets_that_an_export_lacks_stay_or_are_reported() {
    let (state, _) = applied(&State::new(now()), Mode::Merge, whole());
    let exported = export(&state, false);
    assert!(!serde_json::to_string(&exported).unwrap().contains(KEY));
    let mut lacking = order(Mode::Replace, exported.into());
    lacking.redacted = true;
    let (same, outcome) = run(&state, &lacking).unwrap();
    assert_eq!(same.tunnel_by_name("home").unwrap().private_key.expose(), KEY);
    let lacking_secrets =
        outcome.warnings.iter().filter(|warning| warning.message.contains("export")).count();
    assert_eq!(lacking_secrets, 0, "{:?}", outcome.warnings);
    let (other, outcome) = run(&State::new(now()), &lacking).unwrap();
    assert!(other.tunnels.is_empty());
    let lacking = outcome.warnings.iter().find(|warning| warning.message.contains("export"));
    assert_eq!(
        lacking.map(|warning| warning.path.as_str()),
        Some("resources.tunnels[0]"),
        "{:?}",
        outcome.warnings
    );
    assert_eq!(other.routing_policies.len(), 2);
}

#[test]
fn a_changed_secret_is_reported_and_not_shown() {
    let (state, _) = applied(&State::new(now()), Mode::Merge, whole());
    let other = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEU=";
    let (_, outcome) =
        applied(&state, Mode::Merge, json!({"tunnels": [{"name": "home", "private_key": other}]}));
    let text = serde_json::to_string(&outcome.changes).unwrap();
    assert!(!text.contains(KEY) && !text.contains(other), "{text}");
    assert_eq!(outcome.changes[0].diff["private_key"].secret, Some(SecretChange::Changed));
    let (_, outcome) =
        applied(&state, Mode::Merge, json!({"tunnels": [{"name": "home", "private_key": KEY}]}));
    assert_eq!(outcome.changes[0].op, Op::Unchanged);
}

#[test]
fn an_unknown_key_is_a_warning_with_its_path() {
    let (_, outcome) =
        applied(&State::new(now()), Mode::Merge, json!({"devices": [{"name": "a", "colour": 1}]}));
    assert_eq!(outcome.warnings[0].path, "resources.devices[0].colour");
    let (state, _) = applied(&State::new(now()), Mode::Merge, whole());
    let (_, outcome) = applied(&state, Mode::Merge, json!({"devices": [{"name": "tv", "notes": "n"}]}));
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
}

#[test]
fn a_state_takes_over_another_one_whole() {
    let (first, _) = applied(&State::new(now()), Mode::Merge, whole());
    let mut second = first.begin(now());
    second.set("a.b", json!(1));
    let tunnel = second.tunnel_by_name("home").unwrap().meta.id;
    second
        .update::<Tunnel>(tunnel, None, |tunnel| {
            tunnel.private_key = Secret::new("QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEU=")
        })
        .unwrap();
    let tv = second.devices.iter().find(|device| device.name == "tv").unwrap().meta.id;
    second.remove::<Device>(tv, None, true).unwrap_err();
    second.create(Device { name: "new".into(), ..Device::default() }).unwrap();
    second.set("internal.x", json!(2));
    let mut third = second.begin(now());
    take_over(&mut third, &first, |key| !key.starts_with("internal.")).unwrap();
    assert_eq!(export(&third, true), export(&first, true));
    assert_eq!((third.settings.get("a.b"), third.settings.get("internal.x")), (None, Some(&json!(2))));
    let changed: Vec<(&str, Op)> =
        diff(&second, &third).iter().map(|change| (change.kind, change.op)).collect();
    assert_eq!(changed, [("tunnel", Op::Update), ("device", Op::Delete)]);
    let slots = |state: &State| state.devices.iter().map(|device| device.meta.slot).collect::<Vec<_>>();
    assert_eq!(slots(&third), slots(&first));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_stored_state_applies_to_itself_without_change(
        devices in prop::collection::vec((0u8..40, any::<bool>(), any::<bool>()), 0..12),
        groups in prop::collection::vec(prop::collection::btree_set(0usize..12, 0..6), 0..4),
        policies in prop::collection::vec((0i64..50, 0usize..12, any::<bool>(), 0usize..3), 0..8),
    ) {
        let mut state = State::new(now());
        let mut ids = Vec::new();
        for tunnel in ["a", "b", "c"] {
            let tunnel = Tunnel { name: tunnel.into(), private_key: Secret::new(KEY), ..Tunnel::default() };
            state.create(tunnel).unwrap();
        }
        for (number, mac, class) in &devices {
            let made = state.create(Device {
                name: format!("d{}", number % 5),
                mac: mac.then(|| crate::MacAddr([2, 0, 0, 0, 0, *number])),
                trust_class: class.then(|| "iot".to_owned()),
                ..Device::default()
            });
            ids.extend(made.ok().map(|(device, _)| device.meta.id));
        }
        for (number, members) in groups.iter().enumerate() {
            let members = members.iter().filter_map(|index| ids.get(*index)).copied().collect();
            state.create(DeviceGroup { name: format!("g{number}"), members, ..DeviceGroup::default() }).unwrap();
        }
        for (priority, device, enabled, tunnel) in &policies {
            let Some(device) = ids.get(*device) else { continue };
            let target = ["a", "b", "c"][*tunnel];
            let input = json!({"priority": priority, "enabled": enabled, "source_type": "device", "source_value": device.to_string(),
                "hops": [{"type": "vpn", "target": target}]});
            // Some of them contradict each other and are not stored.
            let _ = registry::kind(<RoutingPolicy as crate::Resource>::NOUN).unwrap().create(&mut state, input);
        }
        for secrets in [false, true] {
            for mode in [Mode::Merge, Mode::Replace] {
                let (_, outcome) = applied(&state, mode, export(&state, secrets).into());
                for change in &outcome.changes {
                    prop_assert_eq!(change.op, Op::Unchanged, "{:?}", change);
                }
            }
        }
        let (copy, _) = applied(&State::new(now()), Mode::Replace, export(&state, true).into());
        prop_assert_eq!(export(&copy, true), export(&state, true));
    }
}
