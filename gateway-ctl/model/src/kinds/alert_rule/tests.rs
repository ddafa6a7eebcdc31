//! Built-in alert rules.

use serde_json::json;

use crate::kinds::test_objects::*;

#[test]
fn a_rule_of_an_alert_is_edited_by_its_kind_and_keeps_it() {
    let mut state = draft();
    let rule = state.alert_rules.by_key("wan_down").unwrap().meta.id.to_string();
    assert_eq!(of("alert_rule").find(&state, "wan-down").unwrap().to_string(), rule);
    let (mut shown, _) = of("alert_rule").get(&state, &rule).unwrap();
    assert_eq!(shown["id"], "wan_down");
    shown["kind"] = "new_device".into();
    shown["threshold"] = 2.5.into();
    shown["severity"] = "info".into();
    let again = of("alert_rule").replace(&mut state, &rule, None, shown.clone()).unwrap().value;
    assert_eq!(
        (&again["kind"], &again["threshold"], &again["severity"]),
        (&json!("wan_down"), &json!(2.5), &json!("info"))
    );
    for (field, value) in [
        ("threshold", json!(-1)),
        ("window_sec", json!(9_999_999)),
        ("webhook_url", json!("x")),
        ("name", json!("")),
    ] {
        let mut bad = shown.clone();
        bad[field] = value;
        assert_eq!(refusal(of("alert_rule").replace(&mut state, &rule, None, bad)).len(), 1, "{field}");
    }
    assert_eq!(
        refusal(create(&mut state, "alert_rule", json!({"name": "x", "kind": "wan_down"}))),
        ["kind taken"]
    );
}
