//! Pseudonyms in texts, metrics and JSON: what must not be in the output, and what must stay.

use std::io::Cursor;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Words of the API of the tests.
fn vocabulary() -> Vocabulary {
    let mut vocabulary = Vocabulary::default();
    vocabulary.add_schema(&json!({"properties": {
        "name": {}, "status": {"enum": ["up", "down"]}, "message": {}, "list": {}, "mode": {"default": "auto"}
    }}));
    vocabulary
}

fn pseudonymizer(names: &[&str], secrets: &[&str]) -> Pseudonymizer {
    let mut terms = PrivateTerms::default();
    names.iter().for_each(|name| terms.add_name(name));
    secrets.iter().for_each(|secret| terms.add_secret(secret));
    Pseudonymizer::new(PseudonymKey::new(&[3; 32]), vocabulary(), terms)
}

fn copied(pseudonymizer: &Pseudonymizer, value: &Value) -> (String, Value) {
    let mut out = Vec::new();
    pseudonymizer.copy_json(Cursor::new(value.to_string()), &mut out).expect("JSON");
    let text = String::from_utf8(out).expect("text");
    let value = serde_json::from_str(&text).expect("JSON");
    (text, value)
}

#[test]
fn same_value_has_the_same_pseudonym_in_configuration_log_and_metrics() {
    let pseudonyms = pseudonymizer(&["Kim Laptop", "wohnzimmer"], &[]);
    let (_, value) = copied(&pseudonyms, &json!({"name": "wohnzimmer", "list": [{"name": "Kim Laptop"}]}));
    let (room, laptop) = (value["name"].as_str().unwrap(), value["list"][0]["name"].as_str().unwrap());
    let line = pseudonyms.text("host wohnzimmer of 'Kim Laptop' is down");
    assert_eq!(line, format!("host {room} of '{laptop}' is down"));
    let metrics = pseudonyms.metrics_line("gateway_up{name=\"wohnzimmer\",status=\"up\"} 1");
    assert_eq!(metrics, format!("gateway_up{{name=\"{room}\",status=\"up\"}} 1"));
    let other = Pseudonymizer::new(PseudonymKey::new(&[4; 32]), vocabulary(), PrivateTerms::default());
    assert_ne!(other.value(Some("name"), "wohnzimmer"), room);
}

#[test]
fn words_of_the_api_stay_and_names_of_fields_too() {
    let pseudonyms = pseudonymizer(&["status", "up"], &[]);
    let value = json!({"status": "up", "mode": "auto", "name": "up", "list": [1, -2, 0.5, null, true, {}]});
    assert_eq!(copied(&pseudonyms, &value).1, value);
}

#[test]
fn unknown_name_is_replaced_by_its_field() {
    let (text, _) = copied(&pseudonymizer(&[], &[]), &json!({"hostname": "kims-phone", "ssid": "Haus 7"}));
    assert!(!text.contains("kims") && !text.contains("Haus"), "{text}");
}

#[test]
fn secret_is_found_in_each_form() {
    let secret = "pa\"ss w?rd.de";
    let pseudonyms = pseudonymizer(&[], &[secret]);
    for text in [
        format!("the key xx{secret}xx"),
        format!("{:?}", secret),
        "at https://host.example/?key=pa%22ss%20w%3Frd.de".to_owned(),
    ] {
        let text = pseudonyms.text(&text);
        assert!(!text.contains("w?rd") && !text.contains("w%3Frd"), "{text}");
    }
    let (text, value) = copied(&pseudonyms, &json!({"message": secret, "list": {secret: 1}}));
    assert!(!text.contains("w?rd"), "{text}");
    assert!(value["message"].as_str().unwrap().starts_with("secret-"), "{text}");
}

#[test]
fn longer_name_that_does_not_fit_hides_no_shorter_one() {
    let pseudonyms = pseudonymizer(&["ab", "ab-cd", "zimmer zwei"], &[]);
    assert!(!pseudonyms.text("x ab-cdx y").contains("ab-"), "{}", pseudonyms.text("x ab-cdx y"));
    assert_eq!(pseudonyms.text("xab abx"), "xab abx");
    assert_eq!(pseudonyms.text("zimmer zweiundzwanzig"), "zimmer zweiundzwanzig");
}

#[test]
fn damaged_json_is_an_error() {
    let pseudonyms = pseudonymizer(&[], &[]);
    for text in ["", "{", "[1,]", "{} {}", "nul"] {
        assert!(pseudonyms.copy_json(Cursor::new(text), &mut Vec::new()).is_err(), "{text}");
    }
}

#[test]
fn label_with_quotes_stays_one_label() {
    let pseudonyms = pseudonymizer(&["a \"b\", c"], &[]);
    let line = pseudonyms.metrics_line(r#"gateway_x{name="a \"b\", c",id="1"} 5 # {a="b"} 1"#);
    assert!(line.starts_with("gateway_x{name=\"name-"), "{line}");
    assert!(line.ends_with(r#"",id="1"} 5 # {a="b"} 1"#), "{line}");
}

/// A name or a secret: with a letter that no digest has, so that it cannot occur in a pseudonym by chance.
fn private() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9äß_ .:@/'\"%-]{0,12}[g-z]{3}[ü#$&*+=?!g-z0-9]{1,8}"
}

/// A text around a value.
fn around() -> impl Strategy<Value = (String, String)> {
    ("([A-Za-z0-9:. ]{0,20}[ ,;(\\[\"'=])?", "([ ,;)\\]\"'][A-Za-z0-9:. ]{0,20})?")
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Structure of a value: its lists, objects and numbers.
fn shape(value: &Value) -> Value {
    match value {
        Value::String(_) => json!("text"),
        Value::Array(list) => list.iter().map(shape).collect(),
        Value::Object(fields) => fields.values().map(shape).collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn no_secret_and_no_name_is_in_the_output(
        name in private(), secret in private(), (before, behind) in around(), field in "[a-z_]{1,10}",
    ) {
        let pseudonyms = pseudonymizer(&[&name], &[&secret]);
        let (name, secret) = (name.trim(), secret.trim());
        for private in [name, secret] {
            let line = format!("{before}{private}{behind}");
            let text = pseudonyms.text(&line);
            prop_assert!(!text.contains(private), "{line:?} became {text:?}");
            let (_, value) = copied(&pseudonyms, &json!({field.as_str(): [private, line], private: 1}));
            let all = format!("{value:?} {value}");
            prop_assert!(!all.contains(private), "{all}");
        }
    }

    #[test]
    fn addresses_macs_and_domains_are_replaced_in_any_text(
        v4: [u8; 4], v6: [u8; 16], mac: [u8; 6], (before, behind) in around(), label in "[g-z]{6,12}",
    ) {
        let pseudonyms = pseudonymizer(&[], &[]);
        let public4 = std::net::Ipv4Addr::new(v4[0] % 9 + 11, v4[1], v4[2], v4[3]).to_string();
        let mut v6 = v6;
        v6[0] = 0x20 | v6[0] & 0x1f;
        let public6 = std::net::Ipv6Addr::from(v6).to_string();
        let mac = gateway_model::MacAddr([mac[0] & 0xfe | 2, mac[1], mac[2], mac[3], mac[4], mac[5]]).to_string();
        for private in [public4, public6, mac, format!("{label}.example.com"), format!("{label}@mail.example")] {
            let text = pseudonyms.text(&format!("{before}{private}{behind}"));
            prop_assert!(!text.contains(private.trim_end_matches(".example.com")), "{before}{private}{behind}: {text}");
        }
    }

    #[test]
    fn structure_of_json_stays(value in json_value()) {
        let pseudonyms = pseudonymizer(&["abc"], &["secret"]);
        let mut out = Vec::new();
        pseudonyms.copy_json(Cursor::new(value.to_string()), &mut out).expect("JSON");
        let back: Value = serde_json::from_slice(&out).expect("JSON");
        prop_assert_eq!(shape(&back), shape(&value));
    }
}
