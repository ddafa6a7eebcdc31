//! The mesh that the gateway coordinates, without its listeners.

use serde_json::{Value, json};

use crate::contract::client::Client;

/// A client of a gateway whose coordinator is on.
async fn coordinator() -> Client {
    let client = Client::new();
    for (key, value) in [("host", json!("gw.example.net")), ("enabled", json!(true))] {
        let path = format!("/settings/mesh.coordinator.{key}");
        let set = client.put(&path, json!({ "value": value })).await;
        assert_eq!(set.status, 200, "{}", set.text);
    }
    client
}

#[tokio::test]
async fn a_coordinator_that_is_off_shows_so_and_makes_no_keys() {
    let client = Client::new();
    let status = client.get("/mesh/status").await.data();
    assert_eq!((&status["state"], &status["node"]), (&json!("down"), &Value::Null), "{status}");
    assert_eq!(status["peers"], json!({"total": 0, "online": 0, "direct": null, "relay": null}));
    let details = client.post("/mesh/create-key", json!({})).await.error(409, "invalid_state");
    assert_eq!(details["setting"], "mesh.coordinator.enabled");
    assert_eq!(client.get("/mesh/derp-mode").await.data()["mode"], "off");
    assert_eq!(client.get("/mesh/peers").await.data(), json!([]));
}

#[tokio::test]
async fn a_coordinator_needs_a_host() {
    let client = Client::new();
    let refused = client.put("/settings/mesh.coordinator.enabled", json!({"value": true})).await;
    refused.error(422, "validation_failed");
    assert_eq!(client.get("/mesh/status").await.data()["state"], "down");
}

#[tokio::test]
async fn a_key_is_shown_once_and_the_audit_trail_names_who_made_it() {
    let client = coordinator().await;
    let terms = json!({"reusable": true, "usage_limit": 3, "expires_in": 600, "tags": ["tag:b", "tag:a"]});
    let answer = client.post("/mesh/create-key", terms).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let key = answer.data();
    let text = key["key"].as_str().expect("a key");
    assert_eq!(key["login_server"], "https://gw.example.net:8443");
    let command = format!("tailscale up --login-server https://gw.example.net:8443 --auth-key {text}");
    assert_eq!(key["command"], command);
    assert_eq!((&key["tags"], &key["usage_limit"]), (&json!(["tag:a", "tag:b"]), &json!(3)));
    assert!(key["qr_svg"].as_str().is_some_and(|image| image.contains("<svg")), "{key}");
    let entry = client.last_audit().await;
    assert_eq!(
        (&entry["action"], &entry["result"]),
        (&json!("create_mesh_key"), &json!("success")),
        "{entry}"
    );
    assert_ne!(entry["actor"], "system", "{entry}");
    assert_eq!(entry["details"]["key_id"], key["id"]);
    for path in ["/audit", "/mesh/status", "/settings", "/config/export", "/secrets"] {
        let shown = client.get(path).await.text;
        assert!(!shown.contains(text), "{path} has the key");
        assert!(!shown.contains("last_id"), "{path} has the roster");
    }
}

#[tokio::test]
async fn terms_of_a_key_are_refused_by_field() {
    let client = coordinator().await;
    let before = client.get("/settings").await.header("etag").to_owned();
    let terms = json!({"expires_in": 0, "usage_limit": 2, "tags": ["server"]});
    let details = client.post("/mesh/create-key", terms).await.error(422, "validation_failed");
    let fields = details["fields"].as_array().expect("fields").iter();
    let paths: Vec<_> = fields.map(|field| field["path"].as_str().expect("a path")).collect();
    assert_eq!(paths, ["expires_in", "usage_limit", "tags[0]"]);
    assert_eq!(client.get("/settings").await.header("etag"), before, "nothing is stored");
}

#[tokio::test]
async fn unknown_peers_are_not_found() {
    let client = coordinator().await;
    for id in ["1", "none", "18446744073709551616"] {
        let path = format!("/mesh/peers/{id}");
        client.get(&path).await.error(404, "not_found");
        client.delete(&path).await.error(404, "not_found");
        let approved = client.post(&format!("{path}/routes"), json!({"routes": ["192.168.50.0/24"]})).await;
        approved.error(404, "not_found");
    }
    let entry = client.last_audit().await;
    assert_eq!((&entry["action"], &entry["result"]), (&json!("approve_mesh_routes"), &json!("failed")));
}

#[tokio::test]
async fn a_rollback_leaves_keys_of_the_mesh_and_a_medium_wipe_does_not() {
    let client = coordinator().await;
    let created = client.post("/snapshots", json!({"name": "before"})).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let key = client.post("/mesh/create-key", json!({})).await.data();
    let holds = || {
        let gateway_api::gateway::Gateway::Open(open) = &client.api.gateway else { panic!("open") };
        let state = open.store.current();
        let roster = state.settings.get(gateway_model::settings::keys::MESH_ROSTER).cloned();
        roster.is_some_and(|roster| roster["keys"].get(key["id"].as_str().expect("an id")).is_some())
    };
    assert!(holds());
    let rolled = client.post("/rollback", json!({"snapshot": created.data()["name"]})).await;
    assert_eq!(rolled.status, 200, "{}", rolled.text);
    assert!(holds(), "a rollback returns and removes no access");
    let wiped = client.post("/system/wipe", json!({"level": "medium"})).await;
    assert!(wiped.status < 300, "{}", wiped.text);
    assert!(!holds());
}
