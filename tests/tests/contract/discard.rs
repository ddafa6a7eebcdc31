//! Discard of policies that wait for an apply.

use serde_json::{Value, json};

use crate::contract::client::Client;
use crate::contract::examples;

const DISCARD: &str = "/routing/policies/discard";

fn path(object: &Value) -> String {
    format!("/routing/policies/{}", object["id"].as_str().expect("an id"))
}

/// Removes what every write changes.
fn content(mut list: Value) -> Value {
    for object in list.as_array_mut().expect("a list") {
        let object = object.as_object_mut().expect("an object");
        for field in ["revision", "updated_at", "slot"] {
            object.remove(field);
        }
    }
    list
}

/// Creates applied policies and pending changes of each sort. Returns the stored policies before the changes.
async fn pending(client: &Client) -> Value {
    let first = client.create("/routing/policies", examples::policy(1)).await;
    let second = client.create("/routing/policies", examples::policy(2)).await;
    client.send("POST", "/routing/policies/apply", None, &[]).await.data();
    let before = content(client.get("/routing/policies").await.data());
    let mut edited = first.clone();
    edited["priority"] = json!(777);
    edited["description"] = json!("edited");
    client.put(&path(&first), edited).await.data();
    client.delete(&path(&second)).await.data();
    client.create("/routing/policies", examples::policy(3)).await;
    before
}

#[tokio::test]
async fn a_discard_puts_policies_back_with_a_snapshot_and_an_audit_entry() {
    let client = Client::new();
    let before = pending(&client).await;
    let rendered = client.get("/render").await.data()["rules"].clone();
    assert_eq!(client.get("/status").await.data()["pending_policies"], 3);
    let done = client.post(DISCARD, json!({})).await.data();
    assert_eq!((&done["dry_run"], &done["remaining"]), (&json!(false), &json!([])), "{done}");
    assert_eq!(done["changes"].as_array().map(Vec::len), Some(3), "{done}");
    assert_eq!(content(client.get("/routing/policies").await.data()), before);
    let status = client.get("/status").await.data();
    assert_eq!((&status["pending_policies"], &status["pending_changes"]), (&json!(0), &json!(false)));
    assert_eq!(status["stored_revision"], status["applied_revision"]);
    assert_eq!(client.get("/render").await.data()["rules"], rendered);
    let snapshot = client.get("/snapshots").await.data()[0].clone();
    assert_eq!((&snapshot["name"], &snapshot["reason"]), (&done["snapshot"], &json!("pre_discard")));
    let entry = client.last_audit().await;
    assert_eq!(entry["action"], "discard_routing_policies");
    let changes = entry["details"]["changes"].as_array().expect("a list").clone();
    let replaced = changes.iter().find(|change| change["op"] == "replace").expect("a replaced policy");
    assert_eq!(replaced["diff"]["priority"]["from"], 777, "{entry}");
    // The snapshot has the discarded changes.
    client.post("/rollback", json!({"snapshot": done["snapshot"]})).await.data();
    assert_eq!(client.get("/status").await.data()["pending_policies"], 3);
}

#[tokio::test]
async fn a_discard_without_pending_changes_changes_nothing() {
    let client = Client::new();
    client.create("/routing/policies", examples::policy(1)).await;
    client.send("POST", "/routing/policies/apply", None, &[]).await.data();
    let before = client.get("/routing/policies").await.data();
    let done = client.post(DISCARD, json!({})).await.data();
    assert_eq!((&done["changes"], &done["snapshot"]), (&json!([]), &Value::Null), "{done}");
    assert_eq!(client.get("/routing/policies").await.data(), before);
}

#[tokio::test]
async fn the_preview_and_the_pending_changes_are_what_a_discard_and_an_apply_do() {
    let client = Client::new();
    pending(&client).await;
    let list = client.get("/routing/pending").await;
    assert_eq!(list.header("x-total-count"), "3");
    let list = list.data();
    let list = list.as_array().expect("a list");
    let op =
        |op: &str| list.iter().find(|change| change["op"] == op).unwrap_or_else(|| panic!("{op}: {list:?}"));
    assert_eq!(op("update")["diff"]["priority"]["to"], 777);
    assert_eq!(op("update")["diff"].as_object().map(serde_json::Map::len), Some(2));
    assert!(op("create")["diff"].as_object().is_some_and(serde_json::Map::is_empty));
    assert_eq!(op("delete")["name"], examples::policy(2)["name"]);
    let (stored, entries) = (client.get("/routing/policies").await.data(), client.audit_count().await);
    let preview = client.post(&format!("{DISCARD}?dry_run=true"), json!({})).await.data();
    assert_eq!((&preview["dry_run"], &preview["snapshot"]), (&json!(true), &Value::Null), "{preview}");
    assert_eq!(client.get("/routing/policies").await.data(), stored);
    assert_eq!(client.audit_count().await, entries);
    let done = client.post(DISCARD, json!({})).await.data();
    assert_eq!((&done["changes"], &done["remaining"]), (&preview["changes"], &preview["remaining"]));
    assert_eq!(client.get("/routing/pending").await.data(), json!([]));
}

#[tokio::test]
async fn a_profile_that_a_device_uses_stays_and_its_policies_stay_pending() {
    let client = Client::new();
    let profile = client.create("/profiles", json!({"name": "exit", "fail_policy": "fail-open"})).await;
    let mut body = examples::policy(1);
    body["profile"] = json!("exit");
    body["hops"] = json!([]);
    body.as_object_mut().expect("an object").remove("fail_policy");
    let policy = client.create("/routing/policies", body).await;
    client.send("POST", "/routing/policies/apply", None, &[]).await.data();
    let profile_path = format!("/profiles/{}", profile["id"].as_str().expect("an id"));
    let mut strict = profile.clone();
    strict["fail_policy"] = json!("fail-closed");
    client.put(&profile_path, strict.clone()).await.data();
    assert_eq!(client.post(DISCARD, json!({})).await.data()["remaining"], json!([]));
    assert_eq!(client.get(&profile_path).await.data()["fail_policy"], "fail-open");
    let mut device = examples::device(1);
    device["profile"] = json!("exit");
    client.create("/devices", device).await;
    client.put(&profile_path, strict).await.data();
    let done = client.post(DISCARD, json!({})).await.data();
    assert_eq!((&done["remaining"][0]["id"], &done["changes"]), (&policy["id"], &json!([])), "{done}");
    assert!(done["remaining"][0]["reason"].as_str().is_some_and(|reason| reason.contains("exit")), "{done}");
    assert_eq!(client.get(&profile_path).await.data()["fail_policy"], "fail-closed");
}

#[tokio::test]
async fn a_discard_waits_for_a_change_that_is_to_be_confirmed() {
    let client = Client::new();
    pending(&client).await;
    let plan = json!({"resources": {"devices": [{"name": "two"}]}, "confirm_timeout_sec": 60});
    client.post("/apply", plan).await.data();
    for path in [DISCARD.to_owned(), format!("{DISCARD}?dry_run=true")] {
        client.post(&path, json!({})).await.error(409, "apply_in_progress");
    }
}
