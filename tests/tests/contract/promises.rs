//! Regression tests of API promises: names, texts, states and defaults.

use serde_json::{Value, json};

use crate::contract::client::Client;
use crate::contract::examples;

fn id(object: &Value) -> &str {
    object["id"].as_str().expect("an id")
}

fn messages(answer: &Value) -> Vec<&str> {
    let list = answer["warnings"].as_array().map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(|warning| warning["message"].as_str()).collect()
}

#[tokio::test]
async fn a_node_is_changed_by_its_sync_fields_alone() {
    let client = Client::new();
    let node = client.create("/nodes", examples::dns::node(1)).await;
    let item = format!("/nodes/{}", id(&node));
    let sync = json!({"sync_policy": "push", "sync_resources": "routing,dns,devices", "allowed_receive_resources": ""});
    let put = client.put(&item, sync).await;
    assert_eq!(put.status, 200, "{}", put.text);
    let changed = put.data();
    assert_eq!((&changed["name"], &changed["url"]), (&node["name"], &node["url"]));
    assert_eq!(
        (&changed["sync_policy"], &changed["sync_resources"]),
        (&json!("push"), &json!("routing,dns,devices"))
    );
}

#[tokio::test]
async fn the_installation_has_one_stable_id() {
    let client = Client::new();
    let status = client.get("/status").await.data();
    let node = status["node_id"].as_str().expect("an id").to_owned();
    assert!(node.parse::<gateway_model::Id>().is_ok(), "{node}");
    assert_eq!(client.get("/settings/node_id").await.data()["value"], json!(node));
    client.create("/devices", examples::device(1)).await;
    assert_eq!(client.get("/status").await.data()["node_id"], json!(node));
    client.put("/settings/node_id", json!({"value": "x"})).await.error(403, "forbidden");
}

#[tokio::test]
async fn an_expression_that_cannot_match_is_refused() {
    let client = Client::new();
    for expression in ["~[", "~a{2,1}", "~(?=a)"] {
        let body = json!({"name": "p", "source_type": "domain", "source_value": expression, "hops": []});
        let details = client.post("/routing/policies", body).await.error(422, "validation_failed");
        assert_eq!(details["fields"][0]["path"], "source_value", "{details}");
    }
}

#[tokio::test]
async fn encrypted_upstreams_without_a_certificate_name_are_warned_of() {
    let client = Client::new();
    client.put("/settings/dns.upstream_servers", json!({"value": ["192.0.2.53", "9.9.9.9"]})).await.data();
    let set = client.put("/settings/dns.upstream_mode", json!({"value": "dot"})).await;
    assert_eq!(set.status, 200, "{}", set.text);
    let set = set.json();
    assert_eq!(set["warnings"].as_array().map(Vec::len), Some(1), "{set}");
    assert!(messages(&set)[0].starts_with("192.0.2.53 is not used"), "{set}");
    let names = json!({"value": {"192.0.2.53": "dns.example.net"}});
    let set = client.put("/settings/dns.upstream_tls_names", names).await;
    assert_eq!(set.status, 200, "{}", set.text);
    assert!(messages(&set.json()).is_empty(), "{}", set.text);
}

#[tokio::test]
async fn a_pause_or_a_policy_that_is_over_is_warned_of() {
    let client = Client::new();
    let past =
        client.put("/settings/dns.blocking_paused_until", json!({"value": "2020-01-01T00:00:00Z"})).await;
    assert_eq!(messages(&past.json()), ["This time has passed, so blocking is not paused."], "{}", past.text);
    let future =
        client.put("/settings/dns.blocking_paused_until", json!({"value": "2100-01-01T00:00:00Z"})).await;
    assert!(messages(&future.json()).is_empty(), "{}", future.text);
    let body = json!({"name": "p", "source_type": "all", "hops": [], "expires_at": "2020-01-01T00:00:00Z"});
    let policy = client.post("/routing/policies", body).await;
    assert_eq!(policy.status, 201, "{}", policy.text);
    assert!(messages(&policy.json()).iter().any(|text| text.contains("has passed")), "{}", policy.text);
}

#[tokio::test]
async fn the_dead_man_switch_is_never_disarmed_by_a_field_that_is_missing() {
    let client = Client::new();
    let armed = json!({"enabled": true, "hours": 24});
    assert_eq!(client.put("/system/deadman", armed).await.data()["enabled"], true);
    for body in [json!({"hours": 48}), json!({"enabeld": true, "hours": 48}), json!({"enabled": null})] {
        let details = client.put("/system/deadman", body).await.error(422, "validation_failed");
        assert_eq!(details["fields"][0]["path"], "enabled", "{details}");
        let switch = client.get("/system/deadman").await.data();
        assert_eq!((&switch["enabled"], &switch["hours"]), (&json!(true), &json!(24)));
    }
}

#[tokio::test]
async fn all_wrong_fields_of_a_user_are_reported_at_once() {
    let client = Client::new();
    let body = json!({"username": "a b", "password": "short", "role": "king"});
    let details = client.post("/auth/users", body).await.error(422, "validation_failed");
    let paths: Vec<&Value> =
        details["fields"].as_array().expect("fields").iter().map(|field| &field["path"]).collect();
    assert_eq!(paths, ["username", "password", "role"], "{details}");
}

#[tokio::test]
async fn names_and_ids_are_alike_on_all_paths_of_an_object() {
    let client = Client::new();
    let tunnel = client.create("/tunnels", examples::tunnel(1)).await;
    assert_eq!(client.get("/tunnels/exit-1/config").await.data()["id"], tunnel["id"]);
    for verb in ["down", "up", "disconnect", "connect"] {
        let answer = client.send("POST", &format!("/tunnels/exit-1/{verb}"), None, &[]).await;
        assert_eq!((answer.status, &answer.data()["id"]), (200, &tunnel["id"]), "{verb}");
    }
    let bridge = client.create("/bridges", examples::bridge(1)).await;
    let toggled = client.send("POST", "/bridges/bridge-1/toggle", None, &[]).await;
    assert_eq!((toggled.status, &toggled.data()["id"]), (200, &bridge["id"]), "{}", toggled.text);
    client.send("POST", "/tunnels/nothing/up", None, &[]).await.error(404, "not_found");
}

#[tokio::test]
async fn bodies_take_names_where_ids_are_stored() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    let group = client.create("/device-groups", json!({"name": "g", "members": ["laptop 1"]})).await;
    assert_eq!(group["members"], json!([device["id"]]));
    let exception = json!({"type": "quarantine", "device_id": "laptop 1", "duration_min": 5});
    assert_eq!(client.create("/exceptions", exception).await["device_id"], device["id"]);
    let policy = json!({"name": "p", "source_type": "device", "source_value": "laptop 1", "hops": []});
    let policy = client.create("/routing/policies", policy).await;
    assert_eq!(policy["source_value"], device["id"]);
    let mut copy = examples::device(2);
    copy["name"] = device["name"].clone();
    client.create("/devices", copy).await;
    let unclear = json!({"type": "quarantine", "device_id": "laptop 1"});
    client.post("/exceptions", unclear).await.error(422, "validation_failed");
}

#[tokio::test]
async fn splitting_says_in_what_state_a_policy_is() {
    let client = Client::new();
    client.create("/tunnels", examples::tunnel(1)).await;
    let mut body = examples::policy(1);
    body["hops"] = json!([{"type": "vpn", "target": "exit-1"}]);
    let policy = client.create("/routing/policies", body).await;
    let activate = json!({"policy_id": policy["id"], "enabled": true});
    let details = client.post("/splitting/activate", activate.clone()).await.error(409, "invalid_state");
    assert_eq!(details["state"], "pending");
    client.send("POST", "/routing/policies/apply", None, &[]).await.data();
    let details = client.post("/splitting/activate", activate).await.error(409, "invalid_state");
    assert_eq!(details["state"], "too_few_hops");
}

#[tokio::test]
async fn spellings_of_paths_are_alike() {
    let client = Client::new();
    let group = client.create("/device_groups", examples::device_group(1)).await;
    for path in ["/device-groups", "/device_groups", "/device-groups/", "/trust_classes", "/trust-classes/"] {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    assert_eq!(client.get(&format!("/device_groups/{}/", id(&group))).await.data(), group);
    client.get("/device-groups//").await.error(404, "route_not_found");
}

#[tokio::test]
async fn names_with_invisible_characters_are_refused() {
    let client = Client::new();
    for name in ["lap\u{202e}top", "laptop\u{200b}", "\u{feff}laptop", "lap\u{2066}top"] {
        let mut body = examples::device(1);
        body["name"] = json!(name);
        let details = client.post("/devices", body).await.error(422, "validation_failed");
        assert_eq!(details["fields"][0]["path"], "name", "{details}");
    }
}

#[tokio::test]
async fn host_bits_of_networks_are_cleared_with_a_warning() {
    let client = Client::new();
    let body = json!({"name": "p", "source_type": "subnet", "source_value": "10.1.2.3/24", "hops": []});
    let policy = client.post("/routing/policies", body).await;
    assert_eq!(policy.data()["source_value"], "10.1.2.0/24");
    assert!(messages(&policy.json()).iter().any(|text| text.contains("10.1.2.0/24")), "{}", policy.text);
    let mut segment = examples::segment(1);
    segment["cidr"] = json!("192.168.7.9/24");
    let segment = client.post("/segments", segment).await;
    assert_eq!(segment.data()["cidr"], "192.168.7.0/24");
    assert!(messages(&segment.json()).iter().any(|text| text.contains("192.168.7.0/24")), "{}", segment.text);
}

#[tokio::test]
async fn addresses_of_network_cards_are_taken_in_any_notation() {
    let client = Client::new();
    for (n, mac) in ["0200.0000.0A01", "02000000 0a02", "02-00-00-00-0A-03"].into_iter().enumerate() {
        let mut body = examples::device(1);
        (body["name"], body["mac"]) = (json!(format!("d{n}")), json!(mac.replace(' ', "")));
        let device = client.create("/devices", body).await;
        assert_eq!(device["mac"], format!("02:00:00:00:0a:0{}", n + 1));
    }
}

#[tokio::test]
async fn an_exception_longer_than_a_day_is_capped_with_a_warning() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    let body = json!({"type": "temporary-direct", "device_id": device["id"], "duration_min": 9999, "allow_direct": true});
    let exception = client.post("/exceptions", body).await;
    assert_eq!(
        (exception.status, &exception.data()["duration_min"]),
        (201, &json!(1440)),
        "{}",
        exception.text
    );
    assert_eq!(exception.json()["warnings"][0]["path"], "duration_min", "{}", exception.text);
    client.post("/exceptions", json!({"type": "temporary-direct"})).await.error(422, "validation_failed");
}

#[tokio::test]
async fn an_exception_begins_and_ends_when_it_was_asked_to() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    let now = jiff::Timestamp::now();
    let at = |seconds: i64| (now + jiff::SignedDuration::from_secs(seconds)).to_string();
    let ask = |kind: &str, times: Value| {
        let mut body = json!({"type": kind, "device_id": device["id"], "allow_direct": true});
        for (key, value) in times.as_object().expect("fields") {
            body[key] = value.clone();
        }
        client.post("/exceptions", body)
    };
    for kind in ["temporary-direct", "quarantine"] {
        let planned = ask(kind, json!({"starts_at": at(3600), "duration_min": 10})).await;
        assert_eq!(planned.status, 201, "{}", planned.text);
        let planned = planned.data();
        assert_eq!(
            (&planned["status"], &planned["remaining_sec"]),
            (&json!("planned"), &json!(0)),
            "{planned}"
        );
        assert_eq!(planned["starts_at"], at(3600), "{planned}");
        assert_eq!(planned["expires_at"], at(3600 + 600), "{planned}");
        assert_eq!(client.get("/exceptions/active").await.data(), json!([]));
        assert_eq!(client.get("/enforce").await.data()["valid_until"], planned["starts_at"], "{planned}");
        let item = format!("/exceptions/{}", planned["id"].as_str().expect("an id"));
        assert_eq!(client.delete(&item).await.status, 200);
        assert_eq!(client.get(&item).await.data()["status"], "revoked");
    }
    let short = ask("temporary-direct", json!({"expires_at": at(90)})).await.data();
    assert_eq!((&short["status"], &short["expires_at"]), (&json!("active"), &json!(at(90))), "{short}");
    let both = ask("temporary-direct", json!({"expires_at": at(1790), "duration_min": 30})).await.data();
    assert_eq!(both["expires_at"], at(1790), "the earlier end counts: {both}");
    for times in [
        json!({"expires_at": at(600), "duration_min": 60}),
        json!({"expires_at": at(-1)}),
        json!({"starts_at": at(600), "expires_at": at(300)}),
        json!({"starts_at": at(-120)}),
        json!({"starts_at": "tomorrow"}),
    ] {
        ask("temporary-direct", times).await.error(422, "validation_failed");
    }
}

#[tokio::test]
async fn a_snapshot_is_taken_by_hand() {
    let client = Client::new();
    client.create("/devices", examples::device(1)).await;
    let taken = client.post("/snapshots", json!({"name": "before-the-move"})).await;
    assert_eq!((taken.status, &taken.data()["reason"]), (201, &json!("manual")), "{}", taken.text);
    assert_eq!(client.last_audit().await["action"], "create_snapshot");
    client.post("/snapshots", json!({"name": "before-the-move"})).await.error(409, "conflict");
    client.post("/snapshots", json!({"name": "../etc"})).await.error(422, "validation_failed");
    let unnamed = client.send("POST", "/snapshots", None, &[]).await.data();
    assert!(unnamed["name"].as_str().is_some_and(|name| name.ends_with("-manual")), "{unnamed}");
    client.create("/devices", examples::device(2)).await;
    client.post("/rollback", json!({"snapshot": "before-the-move"})).await.data();
    assert_eq!(client.get("/devices").await.data().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn an_armored_export_comes_back_as_it_was_answered() {
    let client = Client::new();
    client.create("/devices", examples::device(1)).await;
    let passphrase = "correct horse battery";
    let exported = client.post("/backup/export", json!({"passphrase": passphrase})).await;
    let devices = client.get("/devices").await.data();
    client.delete(&format!("/devices/{}", id(&devices[0]))).await.data();
    let header = [("x-passphrase", passphrase)];
    for body in [exported.data(), exported.json()] {
        let answer = client.send("POST", "/backup/import?dry_run=true", Some(body), &header).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.data()["counts"]["create"], 1, "{}", answer.text);
        assert!(messages(&answer.json()).is_empty(), "{}", answer.text);
    }
    let mut whole = exported.data();
    whole["passphrase"] = json!(passphrase);
    assert_eq!(client.post("/backup/import", whole).await.status, 200);
    assert_eq!(client.get("/devices").await.data().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn weights_go_up_to_256() {
    let client = Client::new();
    for (weight, status) in [(256, 201), (0, 422), (257, 422)] {
        let mut body = examples::tunnel(1);
        body["weight"] = json!(weight);
        assert_eq!(client.post("/tunnels", body).await.status, status, "{weight}");
    }
}
