//! Snapshots and rollback through the API.

use serde_json::json;

use crate::contract::client::Client;
use crate::contract::examples;

async fn apply(client: &Client, name: &str) -> String {
    let body = json!({"resources": {"devices": [{"name": name}]}});
    let done = client.post("/apply", body).await;
    assert_eq!(done.status, 200, "{}", done.text);
    done.data()["snapshot"].as_str().expect("a snapshot").to_owned()
}

#[tokio::test]
async fn a_rollback_brings_objects_back_and_takes_a_snapshot_itself() {
    let client = Client::new();
    assert_eq!(client.get("/snapshots").await.data(), json!([]));
    assert!(client.get("/status").await.data()["snapshot_age_sec"].is_null());
    client.create("/tunnels", examples::tunnel(1)).await;
    let first = apply(&client, "one").await;
    apply(&client, "two").await;
    let list = client.get("/snapshots").await;
    assert_eq!(list.header("x-total-count"), "2");
    let oldest = list.data()[1].clone();
    assert_eq!((&oldest["name"], &oldest["reason"]), (&json!(first), &json!("pre_apply")));
    for field in ["created_at", "author", "size", "version", "revision", "summary"] {
        assert!(!oldest[field].is_null(), "{field}: {oldest}");
    }
    let result = client.post("/rollback", json!({"snapshot": first})).await;
    assert_eq!(result.status, 200, "{}", result.text);
    let result = result.data();
    assert_eq!((&result["counts"]["delete"], &result["applied"]), (&json!(2), &json!(true)), "{result}");
    assert_eq!(client.get("/devices").await.data(), json!([]));
    assert_eq!(client.get("/tunnels").await.data()[0]["has_private_key"], true);
    assert_eq!(client.get("/snapshots").await.data()[0]["reason"], "pre_rollback");
    assert_eq!(client.last_audit().await["action"], "rollback_snapshot");
    // And forward again.
    let back = result["snapshot"].as_str().expect("a name");
    assert_eq!(client.post("/rollback", json!({"snapshot": back})).await.data()["counts"]["create"], 2);
}

#[tokio::test]
async fn a_dry_run_of_a_rollback_has_its_differences_and_changes_nothing() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    client.create("/tunnels", examples::tunnel(1)).await;
    client.create("/snapshots", json!({"name": "before"})).await;
    let path = format!("/devices/{}", device["id"].as_str().expect("an id"));
    let mut edited = device.clone();
    edited["notes"] = json!("later");
    client.put(&path, edited).await.data();
    client.create("/devices", examples::device(2)).await;
    client.put("/settings/log.level", json!({"value": "debug"})).await.data();
    let state = async || {
        let mut all = vec![json!(client.audit_count().await)];
        for path in ["/devices", "/settings", "/snapshots"] {
            all.push(client.get(path).await.data());
        }
        all
    };
    let before = state().await;
    let answer = client.post("/rollback?dry_run=true", json!({"snapshot": "before"})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let preview = answer.data();
    assert_eq!((&preview["dry_run"], &preview["applied"]), (&json!(true), &json!(false)), "{preview}");
    assert_eq!(
        (&preview["counts"]["update"], &preview["counts"]["delete"]),
        (&json!(1), &json!(1)),
        "{preview}"
    );
    let updated =
        preview["changes"].as_array().expect("a list").iter().find(|change| change["op"] == "update");
    let diff = &updated.expect("an update")["diff"];
    assert_eq!(diff["notes"], json!({"from": "later", "to": device["notes"]}), "{diff}");
    let level = json!([{"key": "log.level", "diff": {"value": {"from": "debug"}}}]);
    assert_eq!(preview["settings"], level, "{preview}");
    assert_eq!(state().await, before);
    let done = client.post("/rollback", json!({"snapshot": "before"})).await.data();
    for field in ["changes", "settings", "counts", "plan"] {
        assert_eq!(done[field], preview[field], "{field}");
    }
}

#[tokio::test]
async fn a_dry_run_of_a_rollback_is_refused_like_the_rollback() {
    let client = Client::new();
    let first = apply(&client, "one").await;
    for (body, status, code) in [
        (json!({"snapshot": "../x"}), 422, "validation_failed"),
        (json!({"snapshot": "nothing"}), 404, "not_found"),
        (json!({"snapshot": first, "confirm_timeout_sec": 100_000}), 422, "validation_failed"),
    ] {
        client.post("/rollback?dry_run=true", body.clone()).await.error(status, code);
        client.post("/rollback", body).await.error(status, code);
    }
    let stale = [("if-match", "\"999999\"")];
    for path in ["/rollback?dry_run=true", "/rollback"] {
        let body = Some(json!({"snapshot": first}));
        client.send("POST", path, body, &stale).await.error(412, "precondition_failed");
    }
    let plan = json!({"resources": {"devices": [{"name": "two"}]}, "confirm_timeout_sec": 60});
    client.post("/apply", plan).await.data();
    for path in ["/rollback?dry_run=true", "/rollback"] {
        client.post(path, json!({"snapshot": first})).await.error(409, "apply_in_progress");
    }
}

#[tokio::test]
async fn a_rollback_can_wait_for_a_confirmation() {
    let client = Client::new();
    let first = apply(&client, "one").await;
    let result = client.post("/rollback", json!({"snapshot": first, "confirm_timeout_sec": 60})).await.data();
    assert!(result["pending_confirm_until"].is_string());
    assert_eq!(client.get("/devices").await.data(), json!([]));
    client.post("/apply/revert", json!({})).await.data();
    assert_eq!(client.get("/devices").await.data().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn unknown_snapshots_are_refused() {
    let client = Client::new();
    apply(&client, "one").await;
    client.post("/rollback", json!({})).await.error(422, "validation_failed");
    for bad in ["../../etc/passwd", "a b", "x/y", ""] {
        client.post("/rollback", json!({"snapshot": bad})).await.error(422, "validation_failed");
    }
    client.post("/rollback", json!({"snapshot": "nothing"})).await.error(404, "not_found");
    assert_eq!(client.get("/devices").await.data().as_array().map(Vec::len), Some(1));
}

/// Creates a gateway with an active exception, a snapshot and an export of it. Returns the gateway, the path of the
/// exception, and the export.
async fn with_exception() -> (Client, String, serde_json::Value) {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    let body = json!({"type": "emergency-bypass", "device_id": device["id"], "allow_direct": true});
    let exception = client.create("/exceptions", body).await;
    assert_eq!(exception["status"], "active");
    client.create("/snapshots", json!({"name": "before"})).await;
    let document = client.get("/config/export").await.data();
    let path = format!("/exceptions/{}", exception["id"].as_str().expect("an id"));
    (client, path, document)
}

async fn assert_none_is_active(client: &Client, case: &str) {
    let list = client.get("/exceptions").await.data();
    let list = list.as_array().expect("a list");
    assert!(list.iter().all(|exception| exception["status"] != "active"), "{case}: {list:?}");
}

#[tokio::test]
async fn neither_rollback_nor_import_revives_a_revoked_exception() {
    // After two deletions no data remains.
    for deletions in [1, 2] {
        let (client, path, document) = with_exception().await;
        for _ in 0..deletions {
            assert_eq!(client.delete(&path).await.status, 200);
        }
        for mode in ["merge", "replace"] {
            let import = format!("/config/import?mode={mode}");
            let result = client.post(&import, document.clone()).await;
            assert_eq!(result.status, 200, "{}", result.text);
            assert_none_is_active(&client, &import).await;
        }
        let result = client.post("/rollback", json!({"snapshot": "before"})).await;
        assert_eq!(result.status, 200, "{}", result.text);
        assert_eq!(client.get(&path).await.status, 200, "it is back on record");
        assert_none_is_active(&client, "rollback").await;
    }
    let (client, path, document) = with_exception().await;
    for (path, body) in [("/config/import", document), ("/rollback", json!({"snapshot": "before"}))] {
        assert_eq!(client.post(path, body).await.status, 200);
    }
    assert_eq!(client.get(&path).await.data()["status"], "active", "one that is active stays so");
}

#[tokio::test]
async fn timed_revert_revives_no_exception_that_was_revoked_meanwhile() {
    let (client, path, _) = with_exception().await;
    let plan = json!({"confirm_timeout_sec": 600, "resources": {"devices": [{"name": "new"}]}});
    assert_eq!(client.post("/apply", plan).await.status, 200);
    assert_eq!(client.delete(&path).await.status, 200);
    assert_eq!(client.post("/apply/revert", json!({})).await.data()["reverted"], true);
    assert_eq!(client.get(&path).await.data()["status"], "revoked");
}
