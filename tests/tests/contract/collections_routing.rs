//! Profiles, chains, classes, exceptions and network tests: their effect on policies, and their protection against
//! deletion.

use serde_json::{Value, json};

use crate::contract::client::Client;
use crate::contract::examples;

fn id(object: &Value) -> String {
    object["id"].as_str().expect("an id").to_owned()
}

async fn apply(client: &Client) -> Value {
    let answer = client.send("POST", "/routing/policies/apply", None, &[]).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.data()
}

async fn evaluate(client: &Client, device: &Value) -> Value {
    client.post("/policy/evaluate", json!({"device_id": device["id"]})).await.data()
}

fn policy_for(device: &Value, more: Value) -> Value {
    let mut policy = json!({"name": "p", "source_type": "device", "source_value": device["id"]});
    policy.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    policy
}

#[tokio::test]
async fn a_policy_uses_the_hops_of_its_profile_as_of_the_apply() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    client.create("/tunnels", examples::tunnel(1)).await;
    client.create("/tunnels", examples::tunnel(2)).await;
    let body = json!({"name": "exit", "hops": [{"type": "vpn", "target": "exit-1"}], "fail_policy": "fail-degraded", "sticky": "source"});
    let profile = client.create("/profiles", body).await;
    let policy = client.create("/routing/policies", policy_for(&device, json!({"profile": "exit"}))).await;
    assert_eq!((&policy["hops"], &policy["fail_policy"]), (&json!([]), &Value::Null), "{policy}");
    let effective = &policy["effective"];
    assert_eq!(effective["hops"][0]["target"], "exit-1", "{policy}");
    assert_eq!(
        (&effective["fail_policy"], &effective["sticky"]),
        (&json!("fail-degraded"), &json!("source"))
    );
    apply(&client).await;
    assert_eq!(client.get("/status").await.data()["pending_changes"], false);
    assert_eq!(evaluate(&client, &device).await["hops"][0]["target"], "exit-1");

    let mut edited = client.get(&format!("/profiles/{}", id(&profile))).await.data();
    edited["hops"] = json!([{"type": "vpn", "target": "exit-2"}]);
    assert_eq!(client.put(&format!("/profiles/{}", id(&profile)), edited).await.status, 200);
    assert_eq!(client.get("/status").await.data()["pending_changes"], true);
    let before = evaluate(&client, &device).await;
    assert_eq!((&before["hops"][0]["target"], &before["pending_changes"]), (&json!("exit-1"), &json!(1)));
    apply(&client).await;
    assert_eq!(evaluate(&client, &device).await["hops"][0]["target"], "exit-2");
}

#[tokio::test]
async fn a_chain_replaces_hops_and_has_their_worst_status() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    client.create("/tunnels", examples::tunnel(1)).await;
    let hops = json!([{"type": "interface", "target": "eth0"}, {"type": "vpn", "target": "exit-1"}]);
    let chain = client.create("/chains", json!({"name": "two", "hops": hops})).await;
    assert_eq!((&chain["status"], &chain["latency_ms"]), (&json!("down"), &Value::Null), "{chain}");
    let policy = client.create("/routing/policies", policy_for(&device, json!({"chain": chain["id"]}))).await;
    assert_eq!(policy["effective"]["hops"], hops);
    client.post("/chains", json!({"name": "one", "hops": [hops[0]]})).await.error(422, "validation_failed");
    let both = policy_for(&device, json!({"chain": "two", "hops": hops}));
    client.post("/routing/policies", both).await.error(422, "validation_failed");
    // A tunnel has one underlay at a time, for all users.
    client.create("/tunnels", examples::tunnel(2)).await;
    let other = json!({"name": "q", "source_type": "vlan", "source_value": "7", "hops": [{"type": "vpn", "target": "exit-2"}, {"type": "vpn", "target": "exit-1"}]});
    let details = client.post("/routing/policies", other).await.error(409, "policy_conflict");
    assert_eq!(details["policies"], json!([policy["id"]]));
}

#[tokio::test]
async fn a_privacy_class_makes_policies_fail_more_strictly_and_never_less() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    for (class, own, want) in [
        ("isolated", "fail-open", "fail-closed"),
        ("strict", "fail-open", "fail-degraded"),
        ("strict", "fail-closed", "fail-closed"),
        ("open", "fail-open", "fail-open"),
    ] {
        let body = policy_for(&device, json!({"privacy_class": class, "fail_policy": own, "enabled": false}));
        let policy = client.create("/routing/policies", body).await;
        assert_eq!(policy["effective"]["fail_policy"], want, "{class} {own}");
    }
}

#[tokio::test]
async fn referenced_objects_stay_and_are_counted_in_every_spelling() {
    let client = Client::new();
    let class = client.create("/privacy-classes", json!({"name": "ours"})).await;
    let profile = client.create("/profiles", json!({"name": "exit", "privacy_class": "ours"})).await;
    let mut body = examples::device(1);
    body["profile"] = profile["id"].clone();
    body["privacy_class"] = json!("ours");
    let answer = client.post("/devices", body).await;
    assert!(answer.json().get("warnings").is_none(), "{}", answer.text);
    let device = answer.data();
    client.create("/routing/policies", policy_for(&device, json!({"profile": "exit"}))).await;
    for path in [format!("/references/profile/{}", id(&profile)), "/references/profile/exit".to_owned()] {
        let found = client.get(&path).await.data();
        assert_eq!(
            (
                &found["referenced_by"]["devices"],
                &found["referenced_by"]["routing_policies"],
                &found["total"]
            ),
            (&json!(1), &json!(1), &json!(2)),
            "{found}"
        );
    }
    for kind in ["privacy_class", "privacy-class"] {
        let found = client.get(&format!("/references/{kind}/ours")).await.data();
        assert_eq!((&found["referenced_by"]["devices"], &found["total"]), (&json!(1), &json!(2)), "{found}");
    }
    for path in [format!("/profiles/{}", id(&profile)), format!("/privacy-classes/{}", id(&class))] {
        let details = client.delete(&path).await.error(409, "in_use");
        assert_eq!(details["references"]["total"], 2, "{details}");
        let mut renamed = client.get(&path).await.data();
        renamed["name"] = json!("another");
        client.put(&path, renamed).await.error(409, "in_use");
    }
    let mut body = examples::device(2);
    body["profile"] = json!("nothing");
    client.post("/devices", body).await.error(422, "unknown_reference");
    client.get("/references/proxy/nothing").await.error(404, "not_found");
}

#[tokio::test]
async fn an_exception_lets_a_device_out_at_once_until_it_is_revoked() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    client.create("/routing/policies", policy_for(&device, json!({"hops": []}))).await;
    apply(&client).await;
    assert_eq!(evaluate(&client, &device).await["decision"], "block");
    let body = json!({"type": "temporary-direct", "device_id": device["id"], "allow_direct": true, "reason": "portal"});
    let exception = client.create("/exceptions", body).await;
    assert_eq!((&exception["status"], &exception["duration_min"]), (&json!("active"), &json!(60)));
    assert!((3590..=3600).contains(&exception["remaining_sec"].as_i64().expect("seconds")), "{exception}");
    assert_eq!(exception["created_by"], "admin", "{exception}");
    let answer = evaluate(&client, &device).await;
    assert_eq!(answer["decision"], "direct", "{answer}");
    assert_eq!(answer["effective"]["exceptions"][0]["id"], exception["id"]);
    assert_eq!(answer["matched_policies"][0]["id"], exception["id"], "{answer}");
    let shown = client.get("/policy/leak-matrix").await.data();
    assert_eq!(shown["rows"][0]["policy_id"], exception["id"], "{shown}");
    assert_eq!(client.get("/policy/fail-matrix").await.data().as_array().map(Vec::len), Some(2));
    assert_eq!(client.get("/exceptions/active").await.data()[0]["id"], exception["id"]);
    assert_eq!(client.get("/enforce").await.data()["valid_until"], exception["expires_at"]);

    let item = format!("/exceptions/{}", id(&exception));
    assert_eq!(client.delete(&item).await.status, 200);
    assert_eq!(evaluate(&client, &device).await["decision"], "block");
    let revoked = client.get(&item).await.data();
    assert_eq!((&revoked["status"], &revoked["remaining_sec"]), (&json!("revoked"), &json!(0)));
    assert_eq!(client.get("/exceptions/active").await.data(), json!([]));
    assert_eq!(client.get("/exceptions?status=revoked").await.data().as_array().map(Vec::len), Some(1));
    // The record of an ended exception can be deleted.
    assert_eq!(client.delete(&item).await.status, 200);
    client.get(&item).await.error(404, "not_found");
}

#[tokio::test]
async fn quarantine_blocks_whatever_the_policies_say() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    client.create("/routing/policies", policy_for(&device, json!({"fail_policy": "fail-open"}))).await;
    apply(&client).await;
    assert_eq!(evaluate(&client, &device).await["decision"], "direct");
    for kind in ["emergency-bypass", "quarantine"] {
        let body = json!({"type": kind, "device_id": device["id"], "allow_direct": true});
        client.create("/exceptions", body).await;
    }
    let answer = evaluate(&client, &device).await;
    assert_eq!(answer["decision"], "block", "{answer}");
    assert!(answer["sentence"].as_str().is_some_and(|text| text.contains("quarantine")), "{answer}");
    // Exceptions are deleted with their device.
    client.create("/devices", examples::device(2)).await;
    let policy = client.get("/routing/policies").await.data()[0].clone();
    client.delete(&format!("/routing/policies/{}", id(&policy))).await;
    apply(&client).await;
    assert_eq!(client.delete(&format!("/devices/{}", id(&device))).await.status, 200);
    assert_eq!(client.get("/exceptions").await.data(), json!([]));
}

#[tokio::test]
async fn exceptions_that_cannot_be_are_refused_and_idle_ones_say_so() {
    let client = Client::new();
    let mut body = examples::device(1);
    body["privacy_class"] = json!("isolated");
    let isolated = client.create("/devices", body).await;
    let device = client.create("/devices", examples::device(2)).await;
    let refused = |body: Value| {
        let client = &client;
        async move { client.post("/exceptions", body).await.error(422, "validation_failed")["fields"].clone() }
    };
    for minutes in [0, -5] {
        let body = json!({"type": "quarantine", "device_id": device["id"], "duration_min": minutes});
        assert_eq!(refused(body).await[0]["path"], "duration_min", "{minutes}");
    }
    let allow =
        |targets: Value| json!({"type": "service-allowlist", "device_id": device["id"], "targets": targets});
    for (body, path, rule) in [
        (allow(json!([])), "targets", "required"),
        (allow(json!(["203.0.113.0/24", "example.com:443"])), "targets[1]", "not_supported"),
        (allow(json!(["example.com", "~.*"])), "targets[1]", "format"),
        (allow(json!([":99999"])), "targets[0]", "format"),
    ] {
        let fields = refused(body).await;
        assert_eq!((&fields[0]["path"], &fields[0]["rule"]), (&json!(path), &json!(rule)), "{fields}");
    }
    assert_eq!(refused(json!({"type": "holiday", "device_id": device["id"]})).await[0]["rule"], "enum");
    assert_eq!(refused(json!({"type": "quarantine"})).await[0]["path"], "device_id");
    let body = json!({"type": "emergency-bypass", "device_id": isolated["id"], "allow_direct": true});
    assert_eq!(refused(body).await[0]["rule"], "conflict");
    let unknown = json!({"type": "quarantine", "device_id": "0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11"});
    client.post("/exceptions", unknown).await.error(422, "unknown_reference");
    client
        .create("/exceptions", allow(json!(["203.0.113.0/24", "example.com", "=example.org", ":443"])))
        .await;
    client.create("/exceptions", json!({"type": "captive-portal", "device_id": device["id"]})).await;
    let idle =
        client.post("/exceptions", json!({"type": "diagnostic-bypass", "device_id": device["id"]})).await;
    assert_eq!(idle.json()["warnings"][0]["path"], "allow_direct", "{}", idle.text);
    assert_eq!(evaluate(&client, &device).await["effective"]["exceptions"][0]["effective"], false);
}

#[tokio::test]
async fn a_gating_test_that_fails_blocks_the_apply() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    let test = client
        .create(
            "/test-definitions",
            json!({"name": "no mail", "source": {"device": device["id"]}, "deny": ["203.0.113.7:25"]}),
        )
        .await;
    let details =
        client.send("POST", "/routing/policies/apply", None, &[]).await.error(409, "policy_conflict");
    assert_eq!(details["failures"][0]["id"], test["id"], "{details}");
    assert_eq!((&details["stage"], &details["kept_previous"]), (&json!("test_definitions"), &json!(true)));
    assert_eq!(client.get("/status").await.data()["applied_revision"], 0);
    assert_eq!(client.last_audit().await["result"], "failed");
    let report = client.post("/test-definitions/run", json!({})).await.data();
    assert_eq!((&report["pass"], &report["results"][0]["pass"]), (&json!(false), &json!(false)), "{report}");

    let body =
        json!({"name": "mail", "source_type": "destination", "source_value": "0.0.0.0/0:25", "hops": []});
    client.create("/routing/policies", body).await;
    let report = client.post("/test-definitions/run", json!({})).await.data();
    assert_eq!(report["pass"], true, "{report}");
    let applied = client.post("/test-definitions/run", json!({"policies": "applied"})).await.data();
    assert_eq!(applied["pass"], false, "{applied}");
    apply(&client).await;
}

#[tokio::test]
async fn tests_expect_egresses_and_live_tests_without_a_kernel_are_unknown() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    client.create("/tunnels", examples::tunnel(1)).await;
    let hops = json!([{"type": "vpn", "target": "exit-1"}]);
    client.create("/routing/policies", policy_for(&device, json!({"hops": hops}))).await;
    let make = |name: &'static str, more: Value| {
        let mut body =
            json!({"name": name, "source": {"device": device["id"]}, "accept": ["203.0.113.7:443"]});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    let right = client.create("/test-definitions", make("right", json!({"expect_egress": "exit-1"}))).await;
    let wrong = client.create("/test-definitions", make("wrong", json!({"expect_egress": "direct"}))).await;
    let live = client.create("/test-definitions", make("live", json!({"mode": "live"}))).await;
    let run = |ids: Value| client.post("/test-definitions/run", json!({"ids": ids}));
    let report = run(json!([right["id"]])).await.data();
    assert_eq!(report["results"][0]["pass"], true, "{report}");
    let report = run(json!([wrong["id"]])).await.data();
    assert_eq!(report["results"][0]["pass"], false, "{report}");
    let report = run(json!([live["id"]])).await.data();
    assert_eq!(report["results"][0]["pass"], Value::Null, "{report}");
    assert!(report["results"][0]["note"].is_string(), "{report}");
    let all = client.post("/test-definitions/run", json!({})).await.data();
    let of_live = all["results"].as_array().expect("results").iter().find(|result| result["name"] == "live");
    assert_eq!(of_live.expect("it is listed")["pass"], Value::Null);
    for source in [json!({}), json!({"device": device["id"], "cidr": "10.0.0.0/8"})] {
        client
            .post("/test-definitions", json!({"name": "x", "source": source}))
            .await
            .error(422, "validation_failed");
    }
}

#[tokio::test]
async fn presets_vlans_services_and_the_self_test_tell_what_is() {
    let client = Client::new();
    let presets = client.get("/presets").await.data();
    assert_eq!(presets.as_array().map(Vec::len), Some(5));
    assert!(presets.as_array().expect("a list").iter().all(|preset| preset["builtin"] == true));
    assert_eq!(client.get("/vlans").await.data(), json!([]));
    client
        .create(
            "/segments",
            json!({"name": "guests", "interface": "eth1", "vlan_id": 20, "cidr": "192.168.20.0/24"}),
        )
        .await;
    let vlan = client.get("/vlans").await.data()[0].clone();
    assert_eq!(
        (&vlan["vlan_id"], &vlan["segment"], &vlan["interface"]),
        (&json!(20), &json!("guests"), &Value::Null)
    );
    let services = client.get("/services").await.data();
    let daemon = services.as_array().expect("a list").iter().find(|service| service["name"] == "gatewayd");
    let daemon = daemon.expect("the daemon itself");
    assert_eq!((&daemon["installed"], &daemon["running"]), (&json!(true), &json!(true)), "{daemon}");
    let names: Vec<&str> =
        services.as_array().expect("a list").iter().filter_map(|service| service["name"].as_str()).collect();
    assert_eq!(names, ["gatewayd", "gatewayd-guard", "nft", "wireguard (kernel)", "openvpn", "hostapd"]);
    let verified = client.get("/verify").await.data();
    assert_eq!((&verified["ok"], &verified["hash"]), (&json!(false), &Value::Null), "{verified}");
    assert_eq!(verified["expected_hash"], client.get("/render").await.data()["hash"]);
}

#[tokio::test]
async fn a_preset_makes_the_policy_or_the_profile_that_it_is_the_beginning_of() {
    let client = Client::new();
    let group = client.create("/device-groups", json!({"name": "screens"})).await;
    let blank = client.post("/presets/streaming/apply", json!({})).await;
    let fields = blank.error(422, "validation_failed")["fields"].clone();
    assert_eq!(fields[0]["path"], "source_value", "{fields}");
    let wanted = json!({"name": "films", "source_value": group["id"]});
    let answer = client.post("/presets/streaming/apply", wanted).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let made = &answer.data()["created"][0];
    assert_eq!((&made["type"], &made["name"]), (&json!("routing_policy"), &json!("films")), "{made}");
    assert_eq!(
        (&made["object"]["fail_policy"], &made["object"]["priority"]),
        (&json!("fail-open"), &json!(400))
    );
    let path = answer.header("location").trim_start_matches("/api/v1").to_owned();
    assert_eq!(client.get(&path).await.data()["name"], "films");
    let entry = client.last_audit().await;
    assert_eq!((&entry["action"], &entry["resource_id"]), (&json!("apply_preset"), &json!("streaming")));

    // A profile from a preset, by the preset's id. Without hops it blocks, and the response says so.
    let presets = client.get("/presets?name=privacy").await.data();
    let answer = client.post(&format!("/presets/{}/apply", id(&presets[0])), json!({})).await;
    assert_eq!(answer.data()["created"][0]["type"], "profile", "{}", answer.text);
    assert_eq!(answer.json()["warnings"][0]["path"], "hops", "{}", answer.text);
    client.post("/presets/nothing/apply", json!({})).await.error(404, "not_found");

    let own = json!({"name": "ours", "template": {"profile": {"name": "from ours", "hops": []}}});
    let own = client.create("/presets", own).await;
    assert_eq!(own["builtin"], false);
    assert_eq!(client.delete(&format!("/presets/{}", id(&own))).await.status, 200);
    client.delete(&format!("/presets/{}", id(&presets[0]))).await.error(409, "invalid_state");
}

#[tokio::test]
async fn the_profile_of_a_device_handles_unmatched_traffic() {
    let client = Client::new();
    client.create("/profiles", json!({"name": "closed", "hops": []})).await;
    let body = json!({"name": "tv", "mac": "02:00:00:00:00:0b", "profile": "closed"});
    let answer = client.post("/devices", body).await;
    assert!(answer.json().get("warnings").is_none(), "{}", answer.text);
    let question = json!({"device_id": answer.data()["id"]});
    let evaluated = client.post("/policy/evaluate", question).await.data();
    assert_eq!(evaluated["decision"], "block", "{evaluated}");
    assert_eq!(evaluated["effective"]["policy"]["name"], "profile closed", "{evaluated}");
    client.delete("/profiles/closed").await.error(409, "in_use");
}

#[tokio::test]
async fn a_transport_is_tested_and_toggled_and_is_down_where_nothing_runs() {
    let client = Client::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let body = json!({"name": "b", "kind": "transport", "transport": {"type": "udp2tcp", "address": "127.0.0.1", "port": port}});
    let bridge = client.create("/bridges", body).await;
    assert_eq!((&bridge["status"], &bridge["healthy"]), (&json!("down"), &json!(false)));
    assert_eq!(bridge["last_test"], Value::Null);
    let item = format!("/bridges/{}", id(&bridge));
    let tested = client.send("POST", &format!("{item}/test"), None, &[]).await.data();
    assert_eq!((&tested["ok"], &tested["steps"][0]["name"]), (&json!(true), &json!("connect")), "{tested}");
    assert!(tested["latency_ms"].is_f64(), "{tested}");
    assert_eq!(client.get(&item).await.data()["last_test"]["ok"], true);
    drop(listener);
    let tested = client.send("POST", &format!("{item}/test"), None, &[]).await.data();
    assert_eq!((&tested["ok"], &tested["latency_ms"]), (&json!(false), &Value::Null), "{tested}");
    assert!(tested["steps"][0]["error"].is_string(), "{tested}");
    let status = client.get("/bridges/status").await.data();
    assert_eq!((&status[0]["name"], &status[0]["status"]), (&json!("b"), &json!("down")), "{status}");
    assert_eq!(
        (&status[0]["last_test"]["ok"], &status[0]["tunnels"]),
        (&json!(false), &json!([])),
        "{status}"
    );
    let toggled = client.send("POST", &format!("{item}/toggle"), None, &[]).await.data();
    assert_eq!((&toggled["enabled"], &toggled["status"]), (&json!(false), &json!("disabled")));
    client.send("POST", "/bridges/b-does-not-exist/test", None, &[]).await.error(404, "not_found");
}

#[tokio::test]
async fn a_tunnel_names_a_transport_and_keeps_it() {
    let client = Client::new();
    let bridge = client.create("/bridges", examples::bridge(1)).await;
    let item = format!("/bridges/{}", id(&bridge));
    let mut tunnel = examples::tunnel(1);
    tunnel["bridge"] = json!("nowhere");
    let answer = client.post("/tunnels", tunnel.clone()).await;
    answer.error(422, "unknown_reference");
    assert!(answer.text.contains("There is no bridge"), "{}", answer.text);
    let segment = json!({
        "name": "s", "kind": "segment", "source": {"type": "vlan", "value": "7"},
        "target": {"type": "interface", "target": "eth0"},
    });
    client.create("/bridges", segment.clone()).await;
    tunnel["bridge"] = json!("s");
    let answer = client.post("/tunnels", tunnel.clone()).await;
    answer.error(422, "validation_failed");
    assert!(answer.text.contains("carries no tunnel"), "{}", answer.text);
    tunnel["bridge"] = json!("bridge-1");
    let mut two = tunnel.clone();
    let mut other = two["peers"][0].clone();
    other["public_key"] = json!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=");
    other["allowed_ips"] = json!(["10.0.0.0/8"]);
    two["peers"].as_array_mut().expect("a list").push(other);
    client.post("/tunnels", two).await.error(422, "validation_failed");
    let made = client.create("/tunnels", tunnel).await;
    client.delete(&item).await.error(409, "in_use");
    client.delete(&format!("{item}?force=true")).await.error(409, "in_use");
    let mut renamed = client.get(&item).await.data();
    renamed["name"] = json!("other");
    client.put(&item, renamed).await.error(409, "in_use");
    client.delete(&format!("/tunnels/{}", id(&made))).await;
    assert_eq!(client.delete(&item).await.status, 200);

    for (field, value) in [("nat", json!(false)), ("source", json!({"type": "tunnel", "value": "exit-1"}))] {
        let mut wrong = segment.clone();
        (wrong["name"], wrong[field]) = (json!("wrong"), value);
        client.post("/bridges", wrong).await.error(422, "validation_failed");
    }
}

#[tokio::test]
async fn a_segment_decides_where_no_policy_does() {
    let client = Client::new();
    let device = client.create("/devices", json!({"name": "tv", "mac": "02:00:00:00:00:0b"})).await;
    let segment = json!({
        "name": "s", "kind": "segment", "source": {"type": "subnet", "value": "192.168.1.0/24"},
        "target": {"type": "mesh_peer", "target": "far"},
    });
    let bridge = client.create("/bridges", segment).await;
    let question = json!({"device_id": device["id"], "source": "192.168.1.20"});
    let evaluated = client.post("/policy/evaluate", question).await.data();
    assert_eq!(evaluated["decision"], "block", "{evaluated}");
    assert_eq!(evaluated["effective"]["policy"]["name"], "bridge s", "{evaluated}");
    let tested = client.send("POST", &format!("/bridges/{}/test", id(&bridge)), None, &[]).await.data();
    assert_eq!((&tested["ok"], &tested["steps"][1]["name"]), (&json!(false), &json!("target")), "{tested}");
}

#[tokio::test]
async fn the_password_of_a_proxy_is_stored_and_never_shown() {
    let client = Client::new();
    let proxy = client.create("/proxies", examples::proxy(1)).await;
    assert_eq!((&proxy["has_password"], &proxy["status"]), (&json!(true), &json!("unknown")));
    let item = format!("/proxies/{}", id(&proxy));
    let mut edited = client.get(&item).await.data();
    edited["enabled"] = json!(false);
    assert_eq!(client.put(&item, edited.clone()).await.data()["has_password"], true);
    edited["port"] = json!(1081);
    let moved = client.put(&item, edited).await;
    assert_eq!(moved.data()["has_password"], false, "a password is for one destination");
    assert!(moved.text.contains("\"warnings\""), "{}", moved.text);
    for path in ["/proxies", &item, "/audit"] {
        assert!(!client.get(path).await.text.contains("hunter2"), "{path} shows the password");
    }
}

#[tokio::test]
async fn a_name_in_use_cannot_change_and_only_a_deletion_takes_force() {
    let client = Client::new();
    let proxy = client.create("/proxies", examples::proxy(1)).await;
    let mut policy = examples::policy(1);
    policy["hops"] = json!([{"type": "proxy", "target": "proxy-1"}]);
    client.create("/routing/policies", policy).await;
    let item = format!("/proxies/{}", id(&proxy));
    let deleted = client.delete(&item).await;
    deleted.error(409, "in_use");
    assert!(deleted.text.contains("force=true"), "{}", deleted.text);
    let mut renamed = client.get(&item).await.data();
    renamed["name"] = json!("other");
    let refused = client.put(&item, renamed).await;
    refused.error(409, "in_use");
    assert!(refused.text.contains("by its name") && !refused.text.contains("force"), "{}", refused.text);
}
