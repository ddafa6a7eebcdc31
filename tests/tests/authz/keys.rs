//! API keys through the API.

use gateway_ctl::store::AuditAuth;
use gateway_model::Role;
use serde_json::json;

use crate::authz::testbed::{Caller, OUTSIDE, Testbed};

#[tokio::test]
async fn a_key_is_shown_once_works_and_is_revoked_at_once() {
    let testbed = Testbed::new();
    let admin = testbed.session(testbed.user("anna", Role::Admin));
    let body = json!({"name": "backup", "role": "diagnostics", "cidrs": ["203.0.113.0/24"],
        "expires_at": "2026-11-20T13:00:00Z"});
    let made = testbed.send(&admin, "POST", "/auth/keys", Some(body.clone())).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let data = made.data().clone();
    let (id, key) = (data["id"].as_str().expect("an id"), data["key"].as_str().expect("a key"));
    assert!(key.starts_with(&format!("gw_{}_", data["prefix"].as_str().expect("a prefix"))), "{key}");
    assert_eq!(data["created_by"], "anna");
    testbed.send(&admin, "POST", "/auth/keys", Some(body)).await.is(409, "conflict");
    for path in ["/auth/keys".to_owned(), format!("/auth/keys/{id}")] {
        let shown = testbed.send(&admin, "GET", &path, None).await;
        let text = shown.data().to_string();
        assert!(text.contains("backup") && !text.contains(&key[12..]) && !text.contains("hash"), "{text}");
    }
    let (_, entry) = testbed.audit();
    assert!(!serde_json::to_string(&entry).expect("json").contains(&key[12..]));
    let script = Caller::from(OUTSIDE).with("authorization", &format!("Bearer {key}"));
    let status = testbed.send(&script, "GET", "/auth/status", None).await;
    assert_eq!((&status.data()["user"], &status.data()["role"]), (&json!("backup"), &json!("diagnostics")));
    assert_eq!(status.data()["auth"], "key");
    testbed.send(&script, "POST", "/devices", Some(json!({}))).await.is(403, "forbidden");
    let entry = testbed.last_audit();
    assert_eq!((entry.actor.as_str(), entry.auth), ("backup", AuditAuth::Key));
    let elsewhere = Caller { from: "198.51.100.1".into(), ..script.clone() };
    testbed.send(&elsewhere, "GET", "/devices", None).await.is(401, "invalid_credentials");
    testbed.advance(60 * 60);
    let expired = testbed.send(&script, "GET", "/devices", None).await;
    expired.is(401, "invalid_credentials");
    let admin = testbed.session(testbed.user("emil", Role::Admin));
    assert_eq!(testbed.send(&admin, "DELETE", &format!("/auth/keys/{id}"), None).await.status, 200);
    testbed.send(&admin, "DELETE", &format!("/auth/keys/{id}"), None).await.is(404, "not_found");
}

#[tokio::test]
async fn only_administrators_see_values_of_accounts_and_keys_in_the_audit_trail() {
    let testbed = Testbed::new();
    let admin = testbed.session(testbed.user("anna", Role::Admin));
    let viewer = testbed.session(testbed.user("vera", Role::Viewer));
    let body = json!({"name": "backup", "role": "diagnostics", "cidrs": ["198.18.7.0/24"]});
    assert_eq!(testbed.send(&admin, "POST", "/auth/keys", Some(body)).await.status, 201);
    assert_eq!(testbed.send(&admin, "POST", "/devices", Some(json!({"name": "tv"}))).await.status, 201);
    let path = "/audit?limit=2";
    for (caller, sees) in [(&admin, true), (&viewer, false)] {
        let list = testbed.send(caller, "GET", path, None).await;
        let change = |index: usize| list.data()[index]["details"]["changes"][0].clone();
        assert_eq!((&change(0)["type"], &change(1)["type"]), (&json!("device"), &json!("api_key")));
        assert_eq!(change(0)["diff"]["name"], json!({"to": "tv"}));
        assert_eq!(change(1).get("diff").is_some(), sees, "{}", list.body);
        assert_eq!(list.body.to_string().contains("198.18.7"), sees, "{}", list.body);
    }
}

#[tokio::test]
async fn a_revoked_key_is_anonymous() {
    let testbed = Testbed::new();
    let key = testbed.key(Role::Operator);
    assert_eq!(testbed.send(&key, "GET", "/devices", None).await.status, 200);
    let admin = testbed.session(testbed.user("anna", Role::Admin));
    let list = testbed.send(&admin, "GET", "/auth/keys", None).await;
    let id = list.data()[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(testbed.send(&admin, "DELETE", &format!("/auth/keys/{id}"), None).await.status, 200);
    testbed.send(&key, "GET", "/devices", None).await.is(401, "invalid_credentials");
    assert_eq!(testbed.send(&key, "GET", "/health", None).await.status, 200, "open to all stays open");
}

#[tokio::test]
async fn everything_wrong_with_a_key_is_said_at_once() {
    let testbed = Testbed::new();
    let admin = testbed.session(testbed.user("anna", Role::Admin));
    let body = json!({"expires_at": "2026-11-20T11:00:00Z", "cidrs": ["10.0.0.0/8", "10.0.0.0/8"]});
    let answer = testbed.send(&admin, "POST", "/auth/keys", Some(body)).await;
    answer.is(422, "validation_failed");
    let fields = answer.body["error"]["details"]["fields"].as_array().expect("fields").clone();
    let mut paths: Vec<_> = fields.iter().map(|field| field["path"].as_str().unwrap_or_default()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["cidrs[1]", "expires_at", "name", "role"]);
}
