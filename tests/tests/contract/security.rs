//! Secrets at rest, the dead-man switch and wiping through the API.

use serde_json::{Value, json};

use crate::contract::client::Client;
use crate::contract::examples;

#[tokio::test]
async fn the_inventory_names_secrets_and_never_shows_them() {
    let client = Client::new();
    let tunnel = client.create("/tunnels", examples::tunnel(1)).await;
    let listed = client.get("/secrets").await;
    let secrets = listed.data();
    let secrets = secrets.as_array().expect("a list");
    assert_eq!(listed.header("x-total-count"), secrets.len().to_string());
    let key = secrets.iter().find(|secret| secret["field"] == "private_key").expect("the key of the tunnel");
    let id = tunnel["id"].as_str().expect("an id");
    assert_eq!(key["ref"], format!("tunnel/{id}/private_key"));
    assert_eq!((&key["encrypted"], &key["updated_at"]), (&json!(true), &tunnel["updated_at"]));
    let given = examples::tunnel(1)["private_key"].as_str().expect("a key").to_owned();
    assert!(!listed.text.contains(&given) && !listed.text.contains("enc:"));
    let status = client.get("/secrets/encryption-status").await.data();
    assert_eq!(status["total_secrets"], secrets.len());
    assert_eq!(status["encrypted_count"], secrets.len());
    assert_eq!((&status["encrypted"], &status["passphrase"]), (&json!(true), &json!("generated")));
}

#[tokio::test]
async fn a_passphrase_is_set_and_taken_away() {
    let client = Client::new();
    client.create("/tunnels", examples::tunnel(1)).await;
    let short = client.post("/secrets/set-passphrase", json!({"passphrase": "short"})).await;
    assert_eq!(
        (short.status, &short.json()["error"]["details"]["fields"][0]["path"]),
        (422, &json!("passphrase"))
    );
    let set = client.post("/secrets/set-passphrase", json!({"passphrase": "correct horse battery"})).await;
    assert_eq!((set.status, &set.data()["passphrase"]), (200, &json!("own")), "{}", set.text);
    assert!(!client.get("/audit").await.text.contains("correct horse"));
    let cleared = client.send("POST", "/secrets/clear-passphrase", None, &[]).await;
    assert_eq!((cleared.status, &cleared.data()["encrypted"]), (200, &json!(false)), "{}", cleared.text);
    assert_eq!(cleared.data()["encrypted_count"], 0);
    let observed = client.get("/observer").await.data();
    let secrets = observed.as_array().expect("a list").iter().find(|row| row["subsystem"] == "secrets");
    assert_eq!(secrets.expect("secrets are observed")["state"], "ok");
}

#[tokio::test]
async fn the_dead_man_switch_is_set_and_shown_and_comes_back_unmodified() {
    let client = Client::new();
    let off = client.get("/system/deadman").await.data();
    assert_eq!(
        (&off["enabled"], &off["level"], &off["deadline"]),
        (&json!(false), &json!("medium"), &Value::Null)
    );
    let set = client.put("/system/deadman", json!({"enabled": true, "hours": 10, "level": "soft"})).await;
    assert_eq!(set.status, 200, "{}", set.text);
    let shown = client.get("/system/deadman").await.data();
    assert_eq!(shown["warn_hours"], json!([5.0, 8.0, 9.5]));
    assert!(shown["deadline"].is_string() && shown["last_checkin"].is_string(), "{shown}");
    let again = client.put("/system/deadman", shown.clone()).await;
    assert_eq!((again.status, &again.json()["warnings"]), (200, &Value::Null), "{}", again.text);
    for wrong in
        [json!({"hours": 0}), json!({"hours": 8761}), json!({"level": "total"}), json!({"enabled": 1})]
    {
        assert_eq!(client.put("/system/deadman", wrong.clone()).await.status, 422, "{wrong}");
    }
}

#[tokio::test]
async fn a_wipe_says_how_much_and_leaves_a_gateway_that_blocks() {
    let client = Client::new();
    client.create("/devices", examples::device(1)).await;
    let unsaid = client.post("/system/wipe", json!({})).await;
    assert_eq!(
        (unsaid.status, &unsaid.json()["error"]["details"]["fields"][0]["path"]),
        (422, &json!("level"))
    );
    assert_eq!(client.post("/system/wipe", json!({"level": "soft"})).await.status, 200);
    assert_eq!(client.get("/audit").await.data().as_array().map(Vec::len), Some(1));
    assert_eq!(client.get("/devices").await.data().as_array().map(Vec::len), Some(1));
    let wiped = client.post("/system/wipe", json!({"level": "medium"})).await;
    assert_eq!((wiped.status, &wiped.data()["ending"]), (200, &json!(false)), "{}", wiped.text);
    assert_eq!(client.get("/devices").await.data(), json!([]));
    let policies = client.get("/routing/policies").await.data();
    assert_eq!(
        (policies.as_array().map(Vec::len), &policies[0]["hops"]),
        (Some(1), &json!([])),
        "{policies}"
    );
    let verdict = client
        .post("/policy/evaluate", json!({"source_ip": "192.168.1.50", "destination": "192.0.2.1"}))
        .await;
    assert!(verdict.status < 500, "{}", verdict.text);
    let hard = client.post("/system/wipe", json!({"level": "hard"})).await;
    assert_eq!((hard.status, &hard.data()["ending"]), (200, &json!(true)), "{}", hard.text);
}
