//! Tests of field differences.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::kinds::{Device, Tunnel};
use crate::secret::Secret;

fn draft() -> State {
    State::new("2026-11-20T12:00:00Z".parse().unwrap()).begin("2026-11-20T12:00:01Z".parse().unwrap())
}

fn shown(fields: &BTreeMap<String, FieldDiff>) -> Value {
    serde_json::to_value(fields).unwrap()
}

#[test]
fn a_changed_row_has_its_fields_with_both_values() {
    let mut before = draft();
    let (device, _) = before.create(Device { name: "tv".into(), ..Device::default() }).unwrap();
    let id = device.meta.id;
    let mut after = before.clone();
    after.update::<Device>(id, None, |device| device.name = "radio".into()).unwrap();
    let expected = json!({"name": {"from": "tv", "to": "radio"}});
    assert_eq!(shown(&row::<Device>(&before, &after, id)), expected);
    let created = shown(&row::<Device>(&draft(), &before, id));
    assert_eq!(created["name"], json!({"to": "tv"}));
    assert!(created.get("notes").is_none() && created.get("revision").is_none(), "{created}");
    assert_eq!(shown(&row::<Device>(&before, &draft(), id))["name"], json!({"from": "tv"}));
}

#[test]
fn secrets_are_set_changed_or_cleared_and_never_shown() {
    let tunnel = |key: &str, password: &str| {
        let mut state = draft();
        let tunnel = Tunnel {
            name: "home".into(),
            private_key: Secret::new(key),
            password: Secret::new(password),
            ..Tunnel::default()
        };
        crate::Stored::table_mut(&mut state).put(tunnel).unwrap();
        state
    };
    let (one, other) = (tunnel("hunter2", ""), tunnel("hunter3", "hunter4"));
    let id = Tunnel::default().meta.id;
    for (before, after, expected) in [
        (&one, &other, json!({"password": {"secret": "set"}, "private_key": {"secret": "changed"}})),
        (&other, &one, json!({"password": {"secret": "cleared"}, "private_key": {"secret": "changed"}})),
    ] {
        assert_eq!(shown(&row::<Tunnel>(before, after, id)), expected);
    }
    let created = shown(&row::<Tunnel>(&draft(), &other, id));
    assert_eq!((&created["password"], &created["name"]), (&json!({"secret": "set"}), &json!({"to": "home"})));
    assert!(created.get("has_password").is_none() && !created.to_string().contains("hunter"), "{created}");
}

#[test]
fn settings_are_compared_by_field_and_hidden_keys_have_no_values() {
    let mut before = draft();
    before.set("log.level", json!("info"));
    before.set("internal.thing", json!(1));
    before.set_secret("alerts.webhook.secret", Secret::new("hunter2"));
    let mut after = before.clone();
    after.set("log.level", json!("debug"));
    after.set("internal.thing", json!(2));
    after.set_secret("alerts.webhook.secret", Secret::new("hunter3"));
    after.set("dns.rotation", json!({"mode": "random", "sticky_per_device": false, "note": ""}));
    let of = |key: &str| shown(&setting(&before, &after, key));
    assert_eq!(of("log.level"), json!({"value": {"from": "info", "to": "debug"}}));
    assert_eq!(of("internal.thing"), json!({}));
    assert_eq!(of("alerts.webhook.secret"), json!({"value": {"secret": "changed"}}));
    assert_eq!(of("dns.rotation"), json!({"mode": {"to": "random"}, "sticky_per_device": {"to": false}}));
    after.unset("log.level");
    assert_eq!(shown(&setting(&before, &after, "log.level")), json!({"value": {"from": "info"}}));
}

fn compared(from: &Value, to: &Value) -> BTreeMap<String, FieldDiff> {
    let mut fields = BTreeMap::new();
    compare("", Some(from), Some(to), &mut fields);
    fields
}

#[test]
fn lists_of_the_same_length_are_compared_by_element() {
    let from = json!({"peers": [{"endpoint": "a", "port": 1}, {"endpoint": "b"}], "tags": ["x"]});
    let to = json!({"peers": [{"endpoint": "a", "port": 2}, {"endpoint": "b"}], "tags": ["y"]});
    let expected = json!({"peers[0].port": {"from": 1, "to": 2}, "tags": {"from": ["x"], "to": ["y"]}});
    assert_eq!(shown(&compared(&from, &to)), expected);
}

#[test]
fn long_values_are_cut_around_their_first_difference() {
    let (from, to) = ("ä".repeat(5000) + "old", "ä".repeat(5000) + "new");
    let fields = compared(&json!({"text": from}), &json!({"text": to}));
    let cut = &fields["text"];
    let text = |value: &Option<Value>| value.as_ref().unwrap().as_str().unwrap().to_owned();
    assert!(cut.truncated && text(&cut.from).ends_with("äold") && text(&cut.to).ends_with("änew"), "{cut:?}");
    assert!(text(&cut.from).len() <= MAX_VALUE_BYTES);
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[aä€]{0,700}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Equal values have no differences, others have some, and none is longer than the limit.
    #[test]
    fn every_difference_is_found_and_bounded(from in values(), to in values()) {
        prop_assert!(compared(&from, &from).is_empty());
        let fields = compared(&from, &to);
        prop_assert_eq!(fields.is_empty(), from == to);
        for diff in fields.values() {
            prop_assert!(diff.from != diff.to, "{:?}", diff);
            for value in [&diff.from, &diff.to].into_iter().flatten() {
                prop_assert!(text_of(value).len() <= MAX_VALUE_BYTES);
            }
        }
    }
}
