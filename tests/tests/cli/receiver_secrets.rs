//! Stored secrets of receivers of alerts, cleared one by one.

use gateway_tests::testbed::Testbed;
use serde_json::{Value, json};

use crate::cli::client::run;

#[test]
fn each_stored_secret_is_cleared_by_itself() {
    let testbed = Testbed::start().expect("a daemon");
    let api = testbed.api();
    let receivers = [
        ("webhook", json!({"url": "https://alerts.example/hook", "secret": "hunter2", "token": "tk_1"})),
        ("email", json!({"host": "smtp.example", "username": "anna", "password": "hunter2"})),
        ("mqtt", json!({"host": "broker.example", "username": "anna", "password": "hunter2"})),
    ];
    for (receiver, settings) in &receivers {
        api.put(&format!("/alerts/{receiver}"), settings).expect("stored");
    }
    let shown = |receiver: &str| api.get(&format!("/alerts/{receiver}")).expect("the settings");
    for (secret, others) in [
        ("webhook.token", &["secret"][..]),
        ("webhook.secret", &[]),
        ("email.password", &[]),
        ("mqtt.password", &[]),
    ] {
        let (receiver, field) = secret.split_once('.').expect("a receiver and a field");
        let before = shown(receiver);
        let ran = run(&testbed, &["alerts", "clear-secret", secret]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let mut expected = before.clone();
        expected[format!("has_{field}")] = json!(false);
        let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!((&answer, &before[format!("has_{field}")]), (&expected, &json!(true)), "{secret}");
        assert_eq!(shown(receiver), expected, "all else stays");
        assert!(others.iter().all(|other| expected[format!("has_{other}")] == true), "{expected}");
    }
}
