//! Configuration and status of cover traffic, with a gateway that has no active tunnels.

use serde_json::{Value, json};

use crate::contract::client::Client;
use crate::contract::examples;

#[tokio::test]
async fn cover_is_off_one_sided_and_tells_of_each_tunnel() {
    let client = Client::new();
    client.create("/tunnels", examples::tunnel(1)).await;
    let stats = client.get("/splitting/cover/stats").await.data();
    assert_eq!(stats["enabled"], false, "{stats}");
    for (field, value) in [
        ("engine", json!("maybenot")),
        ("machines", json!(["front", "tail", "idle"])),
        ("direction", json!("upstream")),
        ("one_sided", json!(true)),
        ("budget_pct", json!(10)),
        ("overhead_pct", Value::Null),
    ] {
        assert_eq!(stats[field], value, "{field} in {stats}");
    }
    for field in
        ["padding_packets", "padding_bytes", "normal_packets", "normal_bytes", "throttled", "blocked_ms"]
    {
        assert_eq!(stats[field], 0, "{field} in {stats}");
    }
    let row = &stats["per_tunnel"][0];
    assert_eq!((&row["tunnel"], &row["state"]), (&json!("exit-1"), &json!("off")), "{stats}");
}

#[tokio::test]
async fn cover_is_set_by_its_key_and_wrong_settings_are_refused_under_it() {
    let client = Client::new();
    client.create("/tunnels", examples::tunnel(1)).await;
    let key = "/settings/splitting.cover";
    let shown = client.get(key).await.data();
    assert_eq!((&shown["source"], &shown["apply"]), (&json!("default"), &json!("live")), "{shown}");
    let value = json!({"enabled": true, "budget_pct": 5, "machines": ["tail"]});
    let set = client.put(key, json!({"value": value})).await;
    assert_eq!((set.status, &set.data()["value"]), (200, &value), "{}", set.text);
    let stats = client.get("/splitting/cover/stats").await.data();
    assert_eq!(
        (&stats["enabled"], &stats["budget_pct"], &stats["machines"]),
        (&json!(true), &json!(5), &json!(["tail"])),
        "{stats}"
    );
    let row = &stats["per_tunnel"][0];
    assert_eq!(row["state"], "waiting", "{stats}");
    assert!(row["note"].as_str().is_some_and(|note| !note.is_empty()), "{stats}");
    for (value, path) in [
        (json!({"budget_pct": 90}), "splitting.cover.budget_pct"),
        (json!({"machines": []}), "splitting.cover.machines"),
    ] {
        let refused = client.put(key, json!({"value": value})).await.error(422, "validation_failed");
        assert_eq!(refused["fields"][0]["path"], path, "{refused}");
    }
    assert_eq!(
        client.get(key).await.data()["value"],
        json!({"enabled": true, "budget_pct": 5, "machines": ["tail"]})
    );
}
