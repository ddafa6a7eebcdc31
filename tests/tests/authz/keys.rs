//! API keys through the API.

use gateway_ctl::store::AuditAuth;
use gateway_model::Role;
use serde_json::json;

use crate::authz::site::{Caller, OUTSIDE, Site};

#[tokio::test]
async fn a_key_is_shown_once_works_and_is_revoked_at_once() {
    let site = Site::new();
    let admin = site.session(site.user("anna", Role::Admin));
    let body = json!({"name": "backup", "role": "diagnostics", "cidrs": ["203.0.113.0/24"],
        "expires_at": "2026-11-20T13:00:00Z"});
    let made = site.send(&admin, "POST", "/auth/keys", Some(body.clone())).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let data = made.data().clone();
    let (id, key) = (data["id"].as_str().expect("an id"), data["key"].as_str().expect("a key"));
    assert!(key.starts_with(&format!("gw_{}_", data["prefix"].as_str().expect("a prefix"))), "{key}");
    assert_eq!(data["created_by"], "anna");
    site.send(&admin, "POST", "/auth/keys", Some(body)).await.is(409, "conflict");
    for path in ["/auth/keys".to_owned(), format!("/auth/keys/{id}")] {
        let shown = site.send(&admin, "GET", &path, None).await;
        let text = shown.data().to_string();
        assert!(text.contains("backup") && !text.contains(&key[12..]) && !text.contains("hash"), "{text}");
    }
    let (_, entry) = site.audit();
    assert!(!serde_json::to_string(&entry).expect("json").contains(&key[12..]));
    let script = Caller::from(OUTSIDE).with("authorization", &format!("Bearer {key}"));
    let status = site.send(&script, "GET", "/auth/status", None).await;
    assert_eq!((&status.data()["user"], &status.data()["role"]), (&json!("backup"), &json!("diagnostics")));
    assert_eq!(status.data()["auth"], "key");
    site.send(&script, "POST", "/devices", Some(json!({}))).await.is(403, "forbidden");
    let entry = site.last_audit();
    assert_eq!((entry.actor.as_str(), entry.auth), ("backup", AuditAuth::Key));
    let elsewhere = Caller { from: "198.51.100.1".into(), ..script.clone() };
    site.send(&elsewhere, "GET", "/devices", None).await.is(401, "invalid_credentials");
    site.advance(60 * 60);
    let expired = site.send(&script, "GET", "/devices", None).await;
    expired.is(401, "invalid_credentials");
    let admin = site.session(site.user("emil", Role::Admin));
    assert_eq!(site.send(&admin, "DELETE", &format!("/auth/keys/{id}"), None).await.status, 200);
    site.send(&admin, "DELETE", &format!("/auth/keys/{id}"), None).await.is(404, "not_found");
}

#[tokio::test]
async fn a_revoked_key_is_nobody() {
    let site = Site::new();
    let key = site.key(Role::Operator);
    assert_eq!(site.send(&key, "GET", "/devices", None).await.status, 200);
    let admin = site.session(site.user("anna", Role::Admin));
    let list = site.send(&admin, "GET", "/auth/keys", None).await;
    let id = list.data()[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(site.send(&admin, "DELETE", &format!("/auth/keys/{id}"), None).await.status, 200);
    site.send(&key, "GET", "/devices", None).await.is(401, "invalid_credentials");
    assert_eq!(site.send(&key, "GET", "/health", None).await.status, 200, "open to all stays open");
}

#[tokio::test]
async fn everything_wrong_with_a_key_is_said_at_once() {
    let site = Site::new();
    let admin = site.session(site.user("anna", Role::Admin));
    let body = json!({"expires_at": "2026-11-20T11:00:00Z", "cidrs": ["10.0.0.0/8", "10.0.0.0/8"]});
    let answer = site.send(&admin, "POST", "/auth/keys", Some(body)).await;
    answer.is(422, "validation_failed");
    let fields = answer.body["error"]["details"]["fields"].as_array().expect("fields").clone();
    let mut paths: Vec<_> = fields.iter().map(|field| field["path"].as_str().unwrap_or_default()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["cidrs[1]", "expires_at", "name", "role"]);
}
