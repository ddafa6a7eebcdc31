//! The text of shown objects against their values.

use serde_json::json;

use super::*;
use crate::filter::Filter;
use crate::state::KINDS;

/// Returns the text of all objects, with these fields observed.
fn text(kind: &Kind, state: &State, observed: &Value) -> Value {
    let mut added = kind.added(state, &kind.ids(state, usize::MAX));
    for object in &mut added.objects {
        if let (Value::Object(object), Value::Object(observed)) = (object, observed.clone()) {
            object.extend(observed);
        }
    }
    let mut shown = ShownText::new(b"[".to_vec());
    shown.append(kind, state, &added);
    shown.text.push(b']');
    serde_json::from_slice(&shown.text).unwrap()
}

/// Returns the fields in order, which the comparison of values ignores.
fn fields(objects: &Value) -> Vec<Vec<&String>> {
    let objects = objects.as_array().unwrap().iter();
    objects.map(|object| object.as_object().unwrap().keys().collect()).collect()
}

#[test]
fn the_text_of_built_in_objects_is_that_of_their_values() {
    let state = State::new("2026-11-20T12:00:00Z".parse().unwrap());
    let mut shown = 0;
    for kind in KINDS {
        let values = Value::Array(kind.list(&state, &Filter::default()));
        let text = text(kind, &state, &json!({}));
        assert_eq!(fields(&text), fields(&values), "{}", kind.noun);
        assert_eq!(text, values, "{}", kind.noun);
        shown += fields(&text).len();
    }
    assert!(shown > 20, "{shown} objects");
}

#[test]
fn observed_fields_follow_or_replace_those_of_the_row() {
    let mut state = State::new("2026-11-20T12:00:00Z".parse().unwrap());
    let devices = crate::registry::kind("device").unwrap();
    for name in ["one", "two"] {
        devices.create(&mut state, json!({"name": name, "notes": "\"vendor\": \"x\""})).unwrap();
    }
    for observed in [json!({"vendor": "y", "ips": ["192.0.2.1"]}), json!({"notes": 1, "vendor": 2})] {
        let mut values = Value::Array(devices.list(&state, &Filter::default()));
        for value in values.as_array_mut().unwrap() {
            value.as_object_mut().unwrap().extend(observed.as_object().unwrap().clone());
        }
        let text = text(devices, &state, &observed);
        assert_eq!(fields(&text), fields(&values));
        assert_eq!(text, values);
    }
}

#[test]
fn missing_objects_are_left_out() {
    let state = State::new("2026-11-20T12:00:00Z".parse().unwrap());
    let devices = crate::registry::kind("device").unwrap();
    assert!(devices.added(&state, &[Id::from_u128(1)]).objects.is_empty());
    assert!(devices.added_of(&state, Id::from_u128(1)).is_none());
}
