//! Tests for every collection of stored objects.

use serde_json::{Value, json};

use crate::contract::client::Client;
use crate::contract::examples::{self, COLLECTIONS};

fn id(object: &Value) -> &str {
    object["id"].as_str().expect("an id")
}

#[tokio::test]
async fn objects_are_made_read_listed_and_deleted() {
    let client = Client::new();
    for example in COLLECTIONS {
        let path = example.path;
        let before = client.get(path).await.data().as_array().expect("a list").len();
        let answer = client.post(path, (example.body)(1)).await;
        assert_eq!(answer.status, 201, "{path}: {}", answer.text);
        let made = answer.data();
        let item = format!("{path}/{}", id(&made));
        assert_eq!(answer.header("location"), format!("/api/v1{item}"));
        for field in ["created_at", "updated_at", "revision"] {
            assert!(!made[field].is_null(), "{path}: no {field} in {made}");
        }
        assert_eq!(client.get(&item).await.data(), made, "{path}");
        let list = client.get(path).await;
        assert_eq!(list.data().as_array().expect("a list").len(), before + 1);
        assert_eq!(list.header("x-total-count"), (before + 1).to_string());
        let gone = client.delete(&item).await;
        assert_eq!((gone.status, gone.data()), (200, json!({"id": id(&made), "deleted": true})), "{path}");
        client.get(&item).await.error(404, "not_found");
        client.delete(&item).await.error(404, "not_found");
        client.put(&item, (example.body)(1)).await.error(404, "not_found");
    }
}

#[tokio::test]
async fn put_accepts_the_reply_of_get_without_a_new_warning() {
    let client = Client::new();
    for example in COLLECTIONS {
        let created = client.post(example.path, (example.body)(1)).await;
        let item = format!("{}/{}", example.path, id(&created.data()));
        let read = client.get(&item).await.data();
        let answer = client.put(&item, read.clone()).await;
        assert_eq!(answer.status, 200, "{item}: {}", answer.text);
        // The warnings of the first response still apply; no others appear.
        assert_eq!(answer.json().get("warnings"), created.json().get("warnings"), "{item}");
        assert_eq!(answer.data(), read, "{item}");
        assert_eq!(client.get(&item).await.data(), read, "{item}");
    }
}

#[tokio::test]
async fn an_unmodified_put_keeps_revision_time_and_etag() {
    let client = Client::new();
    for example in COLLECTIONS {
        let item = format!("{}/{}", example.path, id(&client.create(example.path, (example.body)(1)).await));
        let (one, list) = (client.get(&item).await, client.get(example.path).await);
        let revision = client.get("/status").await.data()["revision"].clone();
        let tag = one.header("etag").to_owned();
        let put = client.send("PUT", &item, Some(one.data()), &[("if-match", &tag)]).await;
        assert_eq!((put.status, put.data(), put.header("etag")), (200, one.data(), tag.as_str()), "{item}");
        let (again, listed) = (client.get(&item).await, client.get(example.path).await);
        assert_eq!((again.header("etag"), again.data()), (tag.as_str(), one.data()), "{item}");
        assert_eq!(listed.header("etag"), list.header("etag"), "{item}");
        assert_eq!(client.get("/status").await.data()["revision"], revision, "{item}");
    }
    let set = client.put("/settings/reconcile.interval_sec", json!({"value": 45})).await;
    assert_eq!(set.status, 200, "{}", set.text);
    let revision = client.get("/status").await.data()["revision"].clone();
    client.put("/settings/reconcile.interval_sec", json!({"value": 45})).await.data();
    assert_eq!(client.get("/status").await.data()["revision"], revision);
}

#[tokio::test]
async fn secrets_are_never_shown_and_stay_when_omitted() {
    let client = Client::new();
    let made = client.create("/tunnels", examples::tunnel(1)).await;
    let item = format!("/tunnels/{}", id(&made));
    assert_eq!(made["has_private_key"], true);
    assert_eq!(made["peers"][0]["has_preshared_key"], true);
    let body = examples::tunnel(1);
    let secrets =
        [&body["private_key"], &body["peers"][0]["preshared_key"]].map(|key| key.as_str().expect("a key"));
    let revealed = |text: &str| secrets.iter().all(|secret| text.contains(secret));
    let mut edited = client.get(&item).await.data();
    edited["notes"] = json!("edited");
    assert_eq!(client.put(&item, edited).await.data()["public_key"], made["public_key"]);
    assert!(revealed(&client.get(&format!("{item}/config?reveal=true")).await.text), "the keys were lost");
    for path in ["/tunnels", &item, &format!("{item}/config"), "/audit", "/render", "/enforce"] {
        let text = client.get(path).await.text;
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "{path} shows a secret");
    }
}

/// Without the observed fields in the description, generated clients do not know them.
#[tokio::test]
async fn every_field_of_a_tunnel_and_its_peers_is_described() {
    let client = Client::new();
    let made = client.create("/tunnels", examples::tunnel(1)).await;
    let shown = client.get(&format!("/tunnels/{}", id(&made))).await.data();
    let document = client.get("/openapi.json").await.json();
    let schemas = &document["components"]["schemas"];
    let items = &schemas["Tunnel"]["properties"]["peers"]["items"];
    let name = items["$ref"].as_str().and_then(|path| path.rsplit('/').next()).expect("a reference");
    for (schema, object) in [(&schemas["Tunnel"], &shown), (&schemas[name], &shown["peers"][0])] {
        for field in object.as_object().expect("an object").keys() {
            assert!(!schema["properties"][field].is_null(), "{field} is not described: {schema}");
        }
    }
    for field in ["last_handshake", "rx", "tx"] {
        assert!(shown["peers"][0].get(field).is_some(), "{field} is not in {shown}");
    }
}

#[tokio::test]
async fn unknown_keys_are_ignored_and_reported() {
    let client = Client::new();
    for example in COLLECTIONS {
        let mut body = (example.body)(1);
        body["fail_polcy"] = json!("fail-open");
        let answer = client.post(example.path, body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let warnings = answer.json()["warnings"].clone();
        let paths: Vec<_> =
            warnings.as_array().into_iter().flatten().map(|warning| &warning["path"]).collect();
        assert!(paths.contains(&&json!("fail_polcy")), "{}: {warnings}", example.path);
        assert!(answer.data().get("fail_polcy").is_none());
    }
}

#[tokio::test]
async fn every_wrong_field_is_reported_at_once_with_its_path() {
    let client = Client::new();
    let mut body = examples::policy(1);
    body["hops"] = json!([{"type": "vpn", "target": "exit-1"}, {"type": "pigeon", "target": "x"}]);
    body["fail_policy"] = json!("fail-sometimes");
    body["priority"] = json!("first");
    let details = client.post("/routing/policies", body).await.error(422, "validation_failed");
    let fields = details["fields"].as_array().expect("fields");
    let of = |path: &str| {
        fields.iter().find(|field| field["path"] == path).unwrap_or_else(|| panic!("{path} in {details}"))
    };
    assert_eq!(of("hops[1].type")["pointer"], "/hops/1/type");
    assert!(of("hops[1].type")["allowed"].as_array().is_some_and(|allowed| allowed.contains(&json!("vpn"))));
    assert!(of("fail_policy")["allowed"].is_array());
    assert_eq!(of("priority")["rule"], "type");
    client.post("/devices", json!({})).await.error(422, "validation_failed");
}

#[tokio::test]
async fn preconditions_protect_concurrent_changes() {
    let client = Client::new();
    for example in COLLECTIONS {
        let made = client.create(example.path, (example.body)(1)).await;
        let item = format!("{}/{}", example.path, id(&made));
        let first = client.get(&item).await;
        let tag = first.header("etag").to_owned();
        let unchanged = client.send("GET", &item, None, &[("if-none-match", &tag)]).await;
        assert_eq!((unchanged.status, unchanged.text.as_str()), (304, ""), "{item}");
        assert_eq!(unchanged.header("etag"), tag);
        let put = |tag: String| {
            let body = (example.body)(2);
            let (client, item) = (&client, item.clone());
            async move { client.send("PUT", &item, Some(body), &[("if-match", tag.as_str())]).await }
        };
        assert_eq!(put(tag.clone()).await.status, 200, "{item}");
        let stale = put(tag.clone()).await;
        let current = client.get(&item).await.data()["revision"].clone();
        assert_eq!(stale.error(412, "precondition_failed")["current_etag"], format!("\"{current}\""));
        assert_eq!(client.send("GET", &item, None, &[("if-none-match", &tag)]).await.status, 200);
        client.send("DELETE", &item, None, &[("if-match", &tag)]).await.error(412, "precondition_failed");
        assert_eq!(put("*".into()).await.status, 200, "a body that changes nothing");
        let revision = client.get(&item).await.data()["revision"].clone();
        let by_revision = format!("\"{revision}\"");
        assert_eq!(
            client.send("DELETE", &item, None, &[("if-match", &by_revision)]).await.status,
            200,
            "{item}"
        );
    }
}

#[tokio::test]
async fn lists_are_filtered_by_fields_and_all_conditions_hold() {
    let client = Client::new();
    for n in 1..=3 {
        client.create("/devices", examples::device(n)).await;
    }
    let names = |query: &'static str| {
        let client = &client;
        async move {
            let list = client.get(&format!("/devices?{query}")).await.data();
            let names = list.as_array().expect("a list").iter().map(|device| device["name"].to_string());
            names.collect::<Vec<_>>()
        }
    };
    assert_eq!(names("name=laptop+2").await, ["\"laptop 2\""]);
    assert_eq!(names("tags=work&hostname=laptop").await.len(), 3);
    assert_eq!(names("name=laptop+2&tags=play").await.len(), 0);
    let limited = client.get("/devices?limit=2").await;
    assert_eq!((limited.data().as_array().map(Vec::len), limited.header("x-total-count")), (Some(2), "3"));
}

#[tokio::test]
async fn duplicates_and_references_are_conflicts_that_name_the_other_side() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    let details = client.post("/devices", examples::device(1)).await.error(409, "conflict");
    assert_eq!((&details["field"], &details["existing_id"]), (&json!("mac"), &device["id"]));
    let mut policy = examples::policy(1);
    policy["source_type"] = json!("device");
    policy["source_value"] = device["id"].clone();
    client.create("/routing/policies", policy.clone()).await;
    let details = client.delete(&format!("/devices/{}", id(&device))).await.error(409, "in_use");
    assert_eq!(details["references"]["total"], 1, "{details}");
    policy["hops"] = json!([{"type": "interface", "target": "eth0"}]);
    let details = client.post("/routing/policies", policy).await.error(409, "policy_conflict");
    assert_eq!(details["policies"].as_array().map(Vec::len), Some(1));
    let mut policy = examples::policy(2);
    policy["source_type"] = json!("device");
    policy["source_value"] = json!("0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11");
    client.post("/routing/policies", policy).await.error(422, "unknown_reference");
}

#[tokio::test]
async fn references_count_users() {
    let client = Client::new();
    let tunnel = client.create("/tunnels", examples::tunnel(1)).await;
    let mut policy = examples::policy(1);
    policy["hops"] = json!([{"type": "vpn", "target": "exit-1"}]);
    client.create("/routing/policies", policy).await;
    client.create("/devices", examples::device(1)).await;
    let answer = client.get(&format!("/references/tunnel/{}", id(&tunnel))).await.data();
    assert_eq!(answer["type"], "tunnel");
    assert_eq!((&answer["referenced_by"]["routing_policies"], &answer["total"]), (&json!(1), &json!(1)));
    for kind in ["trust_class", "trust-class"] {
        let answer = client.get(&format!("/references/{kind}/standard")).await.data();
        assert_eq!(answer["referenced_by"]["devices"], 1, "{answer}");
    }
    client.get("/references/tunnel/nothing").await.error(404, "not_found");
    client.get("/references/colour/red").await.error(400, "invalid_parameter");
    client.get("/references/proxy/any").await.error(404, "not_found");
}

#[tokio::test]
async fn tunnel_that_receivers_of_alerts_use_is_deleted_by_force_only() {
    let client = Client::new();
    let tunnel = client.create("/tunnels", examples::tunnel(1)).await;
    let item = format!("/tunnels/{}", id(&tunnel));
    let (name, force) = (&tunnel["name"], format!("{item}?force=true"));
    for (receiver, address) in [("webhook", "url"), ("email", "host"), ("mqtt", "host")] {
        let path = format!("/alerts/{receiver}");
        let at = if address == "url" { "https://alerts.example/hook" } else { "alerts.example" };
        let settings = json!({ address: at, "egress": name });
        assert_eq!(client.put(&path, settings).await.status, 200);
        let details = client.delete(&item).await.error(409, "in_use");
        let references = &details["references"];
        let key = format!("alerts.{receiver}");
        assert_eq!((&references["referenced_by"][&key], &references["total"]), (&json!(1), &json!(1)));
        let object = &references["objects"][0];
        assert_eq!((&object["id"], &object["name"]), (&Value::Null, &json!(key)), "{object}");
        assert_eq!(object["when_deleted"], "unavailable", "{object}");
        assert_eq!(client.put(&path, json!({ address: at, "egress": "auto" })).await.status, 200);
    }
    let settings = json!({"url": "https://alerts.example/hook", "egress": name});
    client.put("/alerts/webhook", settings).await;
    assert_eq!(client.delete(&force).await.status, 200);
    assert_eq!(client.get("/alerts/webhook").await.data()["egress"], *name, "nothing is sent by another");
}

#[tokio::test]
async fn a_tunnel_is_brought_down_and_up_and_says_so() {
    let client = Client::new();
    let tunnel = client.create("/tunnels", examples::tunnel(1)).await;
    let item = format!("/tunnels/{}", id(&tunnel));
    for (action, state) in [("down", "down"), ("up", "up"), ("disconnect", "down"), ("connect", "up")] {
        let answer = client.send("POST", &format!("{item}/{action}"), None, &[]).await;
        assert_eq!((answer.status, &answer.data()["admin_state"]), (200, &json!(state)), "{}", answer.text);
        assert_eq!(client.get(&item).await.data()["admin_state"], state);
    }
    // Nothing is installed in a kernel here, and the response must not claim so.
    assert_ne!(client.get(&item).await.data()["status"], "up");
    let mut disabled = client.get(&item).await.data();
    disabled["enabled"] = json!(false);
    client.put(&item, disabled).await;
    client.send("POST", &format!("{item}/up"), None, &[]).await.error(409, "invalid_state");
    client.send("POST", "/tunnels/nothing/up", None, &[]).await.error(404, "not_found");
}

#[tokio::test]
async fn a_conf_file_becomes_a_tunnel_and_a_tunnel_a_conf_file() {
    let client = Client::new();
    let body = json!({"name": "imported", "config": examples::WIREGUARD_CONF});
    let answer = client.post("/tunnels/import-wireguard", body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let tunnel = answer.data();
    assert_eq!((&tunnel["name"], &tunnel["addresses"]), (&json!("imported"), &json!(["10.8.0.2/32"])));
    assert!(answer.json()["warnings"].to_string().contains("PostUp"), "{}", answer.text);
    let config = client.get(&format!("/tunnels/{}/config", id(&tunnel))).await.data();
    assert!(config["config"].as_str().is_some_and(|text| text.contains("PrivateKey = ***")), "{config}");
    assert!(!config.to_string().contains("PostUp"));

    let request = http::Request::post("/api/v1/tunnels/import-wireguard?name=as-text")
        .header("host", "localhost")
        .header("content-type", "text/plain")
        .body(axum::body::Body::from(examples::WIREGUARD_CONF))
        .expect("request");
    assert_eq!(client.raw(request).await.data()["name"], "as-text");
    // A password in an address would stand in the logs of proxies.
    for secret in ["username=u", "password=p"] {
        let path = format!("/tunnels/upload-ovpn?name=by-text&{secret}");
        client.post(&path, json!({})).await.error(400, "invalid_parameter");
    }

    let broken = json!({"name": "broken", "config": "[Interface]\nPrivateKey = x\n"});
    let details = client.post("/tunnels/import-wireguard", broken).await.error(422, "validation_failed");
    assert_eq!(details["fields"][0]["path"], "config");
    assert!(
        details["fields"][0]["message"].as_str().is_some_and(|text| text.contains("line 2")),
        "{details}"
    );
}

#[tokio::test]
async fn a_dry_run_of_an_import_shows_the_tunnel_and_stores_nothing() {
    let client = Client::new();
    let revision = client.get("/status").await.data()["revision"].clone();
    let body = json!({"name": "preview", "config": examples::WIREGUARD_CONF});
    let answer = client.post("/tunnels/import-wireguard?dry_run=true", body.clone()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let tunnel = answer.data();
    assert_eq!((&tunnel["name"], &tunnel["has_private_key"]), (&json!("preview"), &json!(true)), "{tunnel}");
    assert!(tunnel["private_key"].is_null() && tunnel["public_key"].is_string(), "{tunnel}");
    assert!(answer.json()["warnings"].to_string().contains("PostUp"), "{}", answer.text);
    let ovpn = json!({"name": "preview", "config": examples::OVPN});
    let answer = client.post("/tunnels/upload-ovpn?dry_run=true", ovpn).await;
    assert_eq!((answer.status, &answer.data()["type"]), (200, &json!("openvpn")), "{}", answer.text);
    assert!(!answer.text.contains("SECRETKEYOFTHECLIENT"), "{}", answer.text);
    let request = http::Request::post("/api/v1/tunnels/import-wireguard?name=as-text&dry_run=true")
        .header("host", "localhost")
        .header("content-type", "text/plain")
        .body(axum::body::Body::from(examples::WIREGUARD_CONF))
        .expect("request");
    let answer = client.raw(request).await;
    assert_eq!((answer.status, &answer.data()["name"]), (200, &json!("as-text")), "{}", answer.text);
    assert!(!answer.json()["warnings"].to_string().contains("dry_run"), "{}", answer.text);
    assert_eq!(client.get("/tunnels").await.data(), json!([]));
    assert_eq!(client.get("/status").await.data()["revision"], revision);

    // Faults are found as they would be.
    assert_eq!(client.post("/tunnels/import-wireguard", body.clone()).await.status, 201);
    client.post("/tunnels/import-wireguard?dry_run=true", body).await.error(409, "conflict");
    let broken = json!({"name": "broken", "config": "[Interface]\nPrivateKey = x\n"});
    client.post("/tunnels/import-wireguard?dry_run=true", broken).await.error(422, "validation_failed");
}

#[tokio::test]
async fn an_ovpn_file_becomes_a_tunnel_and_a_tunnel_an_ovpn_file() {
    let client = Client::new();
    let answer = client.post("/tunnels/upload-ovpn", json!({"name": "up", "config": examples::OVPN})).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let warnings = answer.json()["warnings"].to_string();
    assert!(warnings.contains("Line 6: up was left out"), "{warnings}");
    assert!(warnings.contains("redirect-gateway"), "{warnings}");
    let tunnel = answer.data();
    assert_eq!((&tunnel["type"], &tunnel["has_config"]), (&json!("openvpn"), &json!(true)));
    assert_eq!(tunnel["remotes"], json!(["vpn.example.net:1194/udp", "198.51.100.7:443/tcp"]));
    assert_eq!(tunnel["cipher"], "AES-256-GCM");
    let secrets = ["SECRETKEYOFTHECLIENT", "wonderland"];
    let hidden = |text: &str| secrets.iter().all(|secret| !text.contains(secret));
    assert!(hidden(&answer.text) && tunnel["config"].is_null(), "{tunnel}");

    // The effective file: without the command, and without keys unless they are revealed.
    let path = format!("/tunnels/{}/config", id(&tunnel));
    let config = client.get(&path).await.data().to_string();
    assert!(hidden(&config) && config.contains("<key>\\n***\\n</key>"), "{config}");
    assert!(!config.contains("/bin/touch"), "{config}");
    let revealed = client.get(&format!("{path}?reveal=true")).await.data().to_string();
    assert!(secrets.iter().all(|secret| revealed.contains(secret)), "{revealed}");
    // Output without keys is no valid file.
    let shown = client.get(&path).await.data()["config"].clone();
    let item = format!("/tunnels/{}", id(&tunnel));
    let mut changed = client.get(&item).await.data();
    changed["config"] = shown;
    let details = client.put(&item, changed).await.error(422, "validation_failed");
    assert!(details.to_string().contains("hidden"), "{details}");

    // An omitted file is kept, with all of its parts.
    let kept = client.put(&item, client.get(&item).await.data()).await.data();
    assert_eq!((&kept["has_config"], &kept["remotes"]), (&json!(true), &tunnel["remotes"]));
    // A separate password is also a secret.
    let mut changed = client.get(&item).await.data();
    (changed["username"], changed["password"]) = (json!("alice"), json!("looking-glass"));
    let answer = client.put(&item, changed).await;
    assert!(answer.data()["has_password"] == true && !answer.text.contains("looking-glass"));
}

#[tokio::test]
async fn an_ovpn_file_may_come_as_text_or_as_a_form() {
    let client = Client::new();
    let request = |query: &str, media: &str, body: String| {
        http::Request::post(format!("/api/v1/tunnels/upload-ovpn{query}"))
            .header("host", "localhost")
            .header("content-type", media)
            .body(axum::body::Body::from(body))
            .expect("request")
    };
    let text = request("?name=as-text", "text/plain", examples::OVPN.to_owned());
    assert_eq!(client.raw(text).await.data()["name"], "as-text");
    let form = format!(
        "--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nas-form\r\n--b\r\n\
         Content-Disposition: form-data; name=\"file\"; filename=\"x.ovpn\"\r\n\r\n{}\r\n--b--\r\n",
        examples::OVPN
    );
    let form = client.raw(request("", "multipart/form-data; boundary=b", form)).await;
    assert_eq!((form.status, &form.data()["name"]), (201, &json!("as-form")), "{}", form.text);
    let broken = request("", "multipart/form-data; boundary=b", "--b\r\nno end".to_owned());
    client.raw(broken).await.error(400, "bad_request");
}

#[tokio::test]
async fn an_ovpn_file_that_needs_other_files_is_refused_line_by_line() {
    let client = Client::new();
    let config = "client\nremote vpn.example.net\nca /etc/ca.crt\nauth-user-pass /etc/secret\nhttp-proxy 10.0.0.1 80\n";
    let body = json!({"name": "broken", "config": config});
    let details = client.post("/tunnels/upload-ovpn", body).await.error(422, "validation_failed");
    let fields = details["fields"].as_array().expect("fields");
    assert!(fields.iter().all(|field| field["path"] == "config"), "{details}");
    for line in ["Line 3: ca: Files cannot be followed", "Line 4: auth-user-pass", "Line 5: http-proxy"] {
        assert!(details.to_string().contains(line), "{line} in {details}");
    }
    client.post("/tunnels/upload-ovpn", json!({"name": "x"})).await.error(422, "validation_failed");
    assert_eq!(client.get("/tunnels").await.data(), json!([]));
}

#[tokio::test]
async fn generated_keys_are_keys_and_never_the_same() {
    let client = Client::new();
    let first = client.send("POST", "/tunnels/generate-keys", None, &[]).await.data();
    let second = client.send("POST", "/tunnels/generate-keys", None, &[]).await.data();
    for field in ["private_key", "public_key", "preshared_key"] {
        assert_eq!(first[field].as_str().map(str::len), Some(44), "{first}");
        assert_ne!(first[field], second[field]);
    }
}

#[tokio::test]
async fn a_policy_is_toggled_and_stored_is_not_applied() {
    let client = Client::new();
    let policy = client.create("/routing/policies", examples::policy(1)).await;
    let status = client.get("/status").await.data();
    assert!(status["stored_revision"].as_u64() > status["applied_revision"].as_u64(), "{status}");
    assert_eq!(client.get(&format!("/routing/policies/{}", id(&policy))).await.data()["status"], "pending");
    let toggled = client.send("POST", &format!("/routing/policies/{}/toggle", id(&policy)), None, &[]).await;
    assert_eq!((toggled.status, &toggled.data()["enabled"]), (200, &json!(false)));
    let toggled = client.send("POST", &format!("/routing/policies/{}/toggle", id(&policy)), None, &[]).await;
    assert_eq!(toggled.data()["enabled"], true);
    client.send("POST", "/routing/policies/nothing/toggle", None, &[]).await.error(404, "not_found");
}
