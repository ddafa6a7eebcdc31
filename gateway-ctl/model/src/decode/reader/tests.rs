//! The reader against serde_json's own deserializer: the same values, the same messages.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Trace, read};
use crate::decode::path_text;

/// Every shape that a type can have.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Shapes {
    text: String,
    letter: char,
    flag: bool,
    small: u8,
    signed: i64,
    large: u64,
    share: f64,
    nothing: (),
    unit: Unit,
    option: Option<u16>,
    list: Vec<Part>,
    pair: (u8, String),
    names: BTreeMap<Name, Part>,
    by_mode: BTreeMap<Mode, i8>,
    mode: Mode,
    name: Name,
    whole: Option<Box<Whole>>,
    any: Value,
    tagged: Option<Tagged>,
    either: Option<Either>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
struct Unit;

#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Name(String);

#[derive(Debug, PartialEq, Deserialize)]
struct Part {
    n: u8,
    #[serde(default)]
    name: Name,
}

#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Slow,
    Fast,
}

/// An enum with content, tagged by the key around it.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Whole {
    Nothing,
    One(Part),
    Two(u8, Mode),
    Named { n: u8 },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tagged {
    A { n: u8 },
    B(Flat),
}

#[derive(Debug, PartialEq, Deserialize)]
struct Flat {
    #[serde(flatten)]
    part: Part,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Either {
    Number(u8),
    Part(Part),
}

fn assert_same<T: DeserializeOwned + PartialEq + std::fmt::Debug>(value: &Value) {
    let seen = read::<T>(value, &Trace::default()).map_err(|error| error.to_string());
    if matches!(&seen, Err(error) if error.contains("invalid type: sequence, expected struct")) {
        // serde_json reads an array as the fields of a struct in their order.
        return;
    }
    let expected = T::deserialize(value).map_err(|error| error.to_string());
    assert_eq!(seen, expected, "{value}");
}

/// Values that are right or nearly so, and any others.
fn values() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("n"),
        Just("name"),
        Just("type"),
        Just("slow"),
        Just("fast"),
        Just("a"),
        Just("b"),
        Just("nothing"),
        Just("one"),
        Just("two"),
        Just("named"),
        Just("x"),
        Just(""),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-300_i64..300).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-2.0..2.0).prop_map(|number: f64| Value::from(number)),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..4).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

const FIELDS: [&str; 20] = [
    "text", "letter", "flag", "small", "signed", "large", "share", "nothing", "unit", "option", "list",
    "pair", "names", "by_mode", "mode", "name", "whole", "any", "tagged", "either",
];

proptest! {
    #[test]
    fn a_value_is_read_as_serde_json_reads_it(field in 0..FIELDS.len(), value in values()) {
        assert_same::<Shapes>(&json!({ FIELDS[field]: value }));
    }

    #[test]
    fn a_variant_is_read_as_serde_json_reads_it(value in values()) {
        assert_same::<Whole>(&value);
        assert_same::<Tagged>(&value);
        assert_same::<Vec<Part>>(&value);
        assert_same::<[Mode; 2]>(&value);
    }
}

#[test]
fn every_shape_is_read() {
    let value = json!({
        "text": "t", "letter": "l", "flag": true, "small": 255, "signed": -7, "large": u64::MAX, "share": 0.5,
        "nothing": null, "unit": null, "option": 9, "list": [{"n": 1}, {"n": 2, "name": "second"}], "pair": [1, "two"],
        "names": {"first": {"n": 3}}, "by_mode": {"fast": -1}, "mode": "fast", "name": "own",
        "whole": {"two": [4, "slow"]}, "any": {"x": [1]}, "tagged": {"type": "b", "n": 5, "other": 6}, "either": {"n": 7},
    });
    assert_same::<Shapes>(&value);
    let read: Shapes = read(&value, &Trace::default()).unwrap();
    assert_eq!((read.small, read.list.len(), read.mode), (255, 2, Mode::Fast));
    for whole in
        [json!("nothing"), json!({"nothing": null}), json!({"one": {"n": 1}}), json!({"named": {"n": 1}})]
    {
        assert_same::<Whole>(&whole);
        assert!(super::read::<Whole>(&whole, &Trace::default()).is_ok(), "{whole}");
    }
}

#[test]
fn the_first_error_is_noted_with_its_path() {
    for (value, path) in [
        (json!({"list": [{"n": 1}, {"n": "x"}]}), "list[1].n"),
        (json!({"list": [{"n": 1}, {}]}), "list[1]"),
        (json!({"names": {"first": {"n": 1, "name": 2}}}), "names.first.name"),
        (json!({"by_mode": {"medium": 1}}), "by_mode"),
        (json!({"pair": [1, "two", 3]}), "pair"),
        (json!({"whole": {"one": {"n": -1}}}), "whole.n"),
        (json!([1]), ""),
        (json!({"list": [{"n": 1}, [2, "second"]]}), "list[1]"),
        (json!("text"), ""),
    ] {
        let trace = Trace::default();
        read::<Shapes>(&value, &trace).unwrap_err();
        assert_eq!(path_text(&trace.failed_at.into_inner().unwrap_or_default()), path, "{value}");
    }
}
