//! Settings at run time: source of each value, permissions, and rejection of invalid values.

use serde_json::{Value, json};

use crate::contract::client::Client;

#[tokio::test]
async fn a_value_is_shown_with_its_source_set_and_taken_back() {
    let client = Client::new();
    let path = "/settings/reconcile.interval_sec";
    let shown = client.get(path).await.data();
    assert_eq!(
        shown,
        json!({"key": "reconcile.interval_sec", "value": 60, "source": "default", "apply": "live", "pending_restart": false})
    );
    let set = client.put(path, json!({"value": 15})).await;
    assert_eq!(set.status, 200, "{}", set.text);
    assert_eq!(set.data()["value"], 15);
    assert_eq!(set.data()["source"], "runtime");
    assert_eq!(client.get(path).await.data(), set.data());
    // The output of a GET is a valid PUT.
    assert_eq!(client.put(path, set.data()).await.status, 200);
    assert_eq!(client.delete(path).await.status, 200);
    assert_eq!(client.get(path).await.data(), shown);
    client.delete(path).await.error(404, "not_found");
}

#[tokio::test]
async fn a_wrong_value_is_refused_under_its_key_and_nothing_is_stored() {
    let client = Client::new();
    for (key, value) in [
        ("reconcile.interval_sec", json!(4)),
        ("reconcile.interval_sec", json!("often")),
        ("log.level", json!("loud")),
        ("network.lan_iface", json!("eth0")),
        ("tls.enabled", Value::Null),
        ("alerts.webhook", json!({"enabled": true})),
    ] {
        let answer = client.put(&format!("/settings/{key}"), json!({"value": value})).await;
        assert_eq!(answer.status, 422, "{key} = {value}: {}", answer.text);
        let fields = answer.json()["error"]["details"]["fields"].clone();
        assert!(
            fields[0]["path"].as_str().expect("a path").starts_with(key.split('.').next().expect("a part")),
            "{fields}"
        );
        assert_eq!(client.get(&format!("/settings/{key}")).await.data()["source"], "default", "{key}");
    }
    client.put("/settings/reconcile.interval_sec", json!({})).await.error(422, "validation_failed");
    client.put("/settings/no.such.key", json!({"value": 1})).await.error(404, "not_found");
    client.get("/settings/no.such.key").await.error(404, "not_found");
}

#[tokio::test]
async fn internal_keys_are_shown_and_cannot_be_set() {
    let client = Client::new();
    for key in ["node_id", "secrets_passphrase", "pq_crypto_mode", "ai_default_model", "ai_llm_url"] {
        let path = format!("/settings/{key}");
        assert_eq!(client.get(&path).await.status, 200, "{key}");
        client.put(&path, json!({"value": "mine"})).await.error(403, "forbidden");
        client.delete(&path).await.error(403, "forbidden");
    }
    client.put("/settings/state_dir", json!({"value": "/elsewhere"})).await.error(409, "invalid_state");
}

#[tokio::test]
async fn a_value_that_waits_for_a_restart_says_so() {
    let client = Client::new();
    let answer = client.put("/settings/listen.api_addr", json!({"value": "127.0.0.1:9090"})).await;
    assert_eq!(answer.data()["pending_restart"], true, "{}", answer.text);
    assert_eq!(answer.data()["apply"], "restart");
    let answer = client.put("/settings/log.level", json!({"value": "warn"})).await;
    assert_eq!(answer.data()["pending_restart"], false, "{}", answer.text);
}

#[tokio::test]
async fn the_tree_comes_back_unmodified_without_a_change_and_takes_many_values_at_once() {
    let client = Client::new();
    let tree = client.get("/settings").await;
    assert_eq!(tree.data()["reconcile"]["interval_sec"]["value"], 60);
    let before = tree.header("etag");
    let answer = client.put("/settings", tree.data()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json().get("warnings"), None, "{}", answer.text);
    assert_eq!(client.get("/settings").await.header("etag"), before, "nothing was changed");
    let many = json!({"reconcile": {"interval_sec": 20, "enabled": {"value": false}}, "recncile": {"interval_sec": 9}});
    let answer = client.put("/settings", many).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.data()["reconcile"]["interval_sec"]["value"], 20);
    assert_eq!(answer.data()["reconcile"]["enabled"]["value"], false);
    assert_eq!(answer.json()["warnings"][0]["path"], "recncile");
    // The update is atomic, and the error lists all invalid values at once.
    let bad = json!({"reconcile": {"interval_sec": 1}, "log": {"level": "loud"}, "dns": {"rotation": {"mode": "none"}}});
    let answer = client.put("/settings", bad).await;
    assert_eq!(answer.status, 422, "{}", answer.text);
    let fields = answer.json()["error"]["details"]["fields"].to_string();
    for path in ["reconcile.interval_sec", "log.level", "dns.rotation.mode"] {
        assert!(fields.contains(path), "{path}: {fields}");
    }
    assert_eq!(client.get("/settings/reconcile.interval_sec").await.data()["value"], 20);
}

#[tokio::test]
async fn groups_are_replaced_as_a_whole_and_keep_their_secrets() {
    let client = Client::new();
    let shown = client.get("/alerts/webhook").await.data();
    assert_eq!(shown["enabled"], false);
    assert_eq!(shown["has_secret"], false);
    let body =
        json!({"enabled": true, "url": "https://alerts.example/hook", "secret": "correct horse battery"});
    let answer = client.put("/alerts/webhook", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(!answer.text.contains("battery"));
    assert_eq!(answer.data()["has_secret"], true);
    assert_eq!(answer.json().get("warnings"), None, "{}", answer.text);
    let kept = client.put("/alerts/webhook", answer.data()).await;
    assert_eq!(kept.data()["has_secret"], true, "{}", kept.text);
    for path in ["/settings", "/settings/alerts.webhook", "/audit"] {
        assert!(!client.get(path).await.text.contains("battery"), "{path}");
    }
    client
        .send("PUT", "/alerts/webhook", Some(json!({"enabled": false})), &[("if-match", "\"0\"")])
        .await
        .error(412, "precondition_failed");
    for path in [
        "/dhcp",
        "/dns/rotation",
        "/privacy/dns-mode",
        "/ai/config",
        "/bluetooth/settings",
        "/bluetooth/failover",
    ] {
        let shown = client.get(path).await;
        assert_eq!(shown.status, 200, "{path}");
        let back = client.put(path, shown.data()).await;
        assert_eq!((back.status, back.data()), (200, shown.data()), "{path}: {}", back.text);
    }
}
