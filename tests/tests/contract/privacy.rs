//! Switches of the privacy blocks, and the status that counts them.

use serde_json::json;

use crate::contract::client::Client;
use crate::contract::examples;

#[tokio::test]
async fn a_switch_toggles_or_sets_for_its_scope() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    let group = json!({"name": "kids", "members": [device["id"]]});
    client.create("/device-groups", group).await;

    let toggled = client.post("/privacy/block-doh", json!({})).await.data();
    assert_eq!((&toggled["enabled"], &toggled["scope"]), (&json!(true), &json!({"global": true})));
    assert_eq!(client.last_audit().await["action"], "switch_block_doh");
    let status = client.get("/privacy/status").await.data();
    assert_eq!((&status["block_doh"], &status["block_dot"]), (&json!(true), &json!(true)), "{status}");
    assert_eq!(client.post("/privacy/block-doh", json!({})).await.data()["enabled"], false);
    assert_eq!(client.get("/privacy/status").await.data()["block_doh"], false);

    for scope in [
        json!({"device_id": device["id"]}),
        json!({"device_id": client.create("/devices", examples::device(2)).await["name"]}),
        json!({"group": "kids"}),
        json!({"privacy_class": "open"}),
    ] {
        let body = json!({"enabled": true, "scope": scope});
        let answer = client.post("/privacy/block-ipv6", body.clone()).await.data();
        assert_eq!((&answer["enabled"], &answer["scope"]), (&json!(true), &scope));
        assert_eq!(client.post("/privacy/block-ipv6", body).await.data()["enabled"], true, "set twice");
        assert_eq!(client.get("/privacy/status").await.data()["block_ipv6"], false, "for nobody else");
    }
    assert_eq!(client.get("/privacy-classes/open").await.data()["block_ipv6"], true);

    let webrtc = |body| client.post("/privacy/block-webrtc", body);
    assert_eq!(webrtc(json!({"mode": "tunnel"})).await.data()["blocks"]["webrtc"], "tunnel");
    assert_eq!(webrtc(json!({})).await.data()["blocks"]["webrtc"], "off");
    assert_eq!(webrtc(json!({})).await.data()["blocks"]["webrtc"], "block");
    let details = webrtc(json!({"enabled": false, "mode": "block"})).await.error(422, "validation_failed");
    assert_eq!(details["fields"][0]["path"], "mode");
}

#[tokio::test]
async fn a_wrong_scope_changes_nothing() {
    let client = Client::new();
    let before = client.audit_count().await;
    for (scope, path, error) in [
        (json!({}), "scope", "validation_failed"),
        (json!({"global": true, "privacy_class": "open"}), "scope", "validation_failed"),
        (json!({"global": false}), "scope.global", "validation_failed"),
        (json!({"group": "nobody"}), "scope.group", "unknown_reference"),
        (json!({"device_id": "nothing"}), "scope.device_id", "unknown_reference"),
    ] {
        let body = json!({"enabled": true, "scope": scope});
        let details = client.post("/privacy/force-dns", body).await.error(422, error);
        assert_eq!(details["fields"][0]["path"], path, "{details}");
    }
    assert_eq!(client.audit_count().await - before, 5, "each refusal stands in the audit trail");
    assert_eq!(client.get("/privacy/status").await.data()["force_dns"], false);
}

#[tokio::test]
async fn the_status_counts_devices_by_their_blocks() {
    let client = Client::new();
    for (number, class) in [(1, "open"), (2, "strict"), (3, "isolated")] {
        let mut device = examples::device(number);
        device["privacy_class"] = json!(class);
        client.create("/devices", device).await;
    }
    let status = client.get("/privacy/status").await.data();
    assert_eq!(status["coverage"], json!({"devices_total": 3, "protected": 2, "exempt": 1}));
    assert_eq!((&status["risk"], &status["dns_mode"]), (&json!("high"), &json!("device")));
    assert!(status["lists"]["doh_ips"].as_u64() > Some(50), "{status}");
    client.post("/privacy/block-doh", json!({"enabled": true})).await.data();
    assert_eq!(client.get("/privacy/status").await.data()["risk"], "medium");
    client.post("/privacy/force-dns", json!({"enabled": true})).await.data();
    assert_eq!(client.get("/privacy/status").await.data()["risk"], "low");
}

/// Without a kernel nothing can be observed, and nothing is claimed.
#[tokio::test]
async fn a_leak_check_without_a_kernel_is_inconclusive() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    let report = client.post("/privacy/leak-check", json!({"device_id": device["id"]})).await.data();
    assert_eq!((&report["verdict"], &report["device_id"]), (&json!("inconclusive"), &device["id"]));
    let results = report["results"].as_array().expect("results");
    assert_eq!(results.len(), 7, "{report}");
    assert!(
        results.iter().all(|result| result["pass"] == false && result["packets"] == json!([])),
        "{report}"
    );
    assert_eq!(client.last_audit().await["action"], "run_leak_check");
    let named = client.post("/privacy/leak-check", json!({"device_id": device["name"]})).await.data();
    assert_eq!(named["device_id"], device["id"], "{named}");
    let mut double = examples::device(2);
    double["name"] = json!("double");
    client.create("/devices", double.clone()).await;
    double["mac"] = json!("02:00:00:00:01:99");
    client.create("/devices", double).await;
    for (body, path) in [
        (json!({"device_id": "nothing"}), "device_id"),
        (json!({"device_id": "double"}), "device_id"),
        (json!({"privacy_class": "nothing"}), "privacy_class"),
        (json!({"privacy_class": "isolated"}), "privacy_class"),
        (json!({"device_id": device["id"], "privacy_class": "open"}), "privacy_class"),
        (json!({"checks": []}), "checks"),
    ] {
        let answer = client.post("/privacy/leak-check", body).await;
        assert_eq!(answer.status, 422, "{path}");
        let details = &answer.json()["error"]["details"];
        assert_eq!(details["fields"][0]["path"], path, "{details}");
    }
}

#[tokio::test]
async fn servers_of_leak_checks_are_set_by_their_key_and_wrong_ones_are_refused_under_it() {
    let client = Client::new();
    let key = "/settings/privacy.leak_check";
    let shown = client.get(key).await.data();
    assert_eq!((&shown["apply"], &shown["value"]), (&json!("live"), &json!({"stun_servers": []})), "{shown}");
    let value = json!({"stun_servers": ["stun.example.net:3478", "[2001:db8::1]:3478"]});
    let set = client.put(key, json!({"value": value})).await;
    assert_eq!((set.status, &set.data()["value"]), (200, &value), "{}", set.text);
    let wrong = json!({"stun_servers": ["192.0.2.1:3478", "192.0.2.1"]});
    let refused = client.put(key, json!({"value": wrong})).await.error(422, "validation_failed");
    assert_eq!(refused["fields"][0]["path"], "privacy.leak_check.stun_servers[1]", "{refused}");
    assert_eq!(client.get(key).await.data()["value"], value);
}

#[tokio::test]
async fn the_verdict_without_a_kernel_is_unknown() {
    let status = Client::new().get("/status").await.data();
    assert_eq!(status["verdict"]["word"], "UNKNOWN", "{status}");
    assert_eq!(status["verdict"]["checked_at"], json!(null));
}
