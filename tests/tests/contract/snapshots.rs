//! Snapshots and the way back to one, through the API.

use serde_json::json;

use crate::client::Client;
use crate::examples;

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
async fn what_names_no_snapshot_is_refused() {
    let client = Client::new();
    apply(&client, "one").await;
    client.post("/rollback", json!({})).await.error(422, "validation_failed");
    for bad in ["../../etc/passwd", "a b", "x/y", ""] {
        client.post("/rollback", json!({"snapshot": bad})).await.error(422, "validation_failed");
    }
    client.post("/rollback", json!({"snapshot": "nothing"})).await.error(404, "not_found");
    assert_eq!(client.get("/devices").await.data().as_array().map(Vec::len), Some(1));
}
