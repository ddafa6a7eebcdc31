//! Every change writes exactly one audit entry, and so does every failed attempt.

use std::collections::BTreeSet;

use gateway_api::gateway::Gateway;
use gateway_api::table::{Endpoint, Versions};
use gateway_core::state_machines::hosts::{Evidence, Observation};
use gateway_ctl::services::hosts::HostInventory;
use gateway_model::MacAddr;
use gateway_model::kinds::alert_rule::AlertKind;
use serde_json::{Value, json};

use crate::contract::client::{Answer, Client};
use crate::contract::examples::{self, COLLECTIONS};

fn name(endpoint: &Endpoint) -> String {
    format!("{} {}", endpoint.method.as_str(), endpoint.path)
}

/// Captures need interfaces. `e2e::captures` looks at their entries.
fn needs_kernel(endpoint: &Endpoint) -> bool {
    endpoint.path.starts_with("/diagnostics/capture")
}

/// Returns the body for a collection whose objects need other objects, which it creates first.
async fn dependent(client: &Client, path: &str) -> Option<(&'static str, Value)> {
    if path.starts_with("/exceptions") {
        let device = client.create("/devices", examples::device(9)).await;
        return Some(("/exceptions", json!({"type": "quarantine", "device_id": device["id"]})));
    }
    if path.starts_with("/splitting/endpoints") {
        client.create("/tunnels", examples::tunnel(9)).await;
        return Some(("/splitting/endpoints", json!({"tunnel": "exit-9"})));
    }
    let records = &examples::dns::RECORDS;
    if path.starts_with(records.path) {
        client.create("/dns/zones", json!({"name": examples::dns::ZONE})).await;
        return Some((records.path, (records.body)(1)));
    }
    None
}

/// Makes the gateway observe a host, and returns its id.
fn observed_host(client: &Client) -> String {
    let Gateway::Open(open) = &client.api.gateway else { panic!("the store is open") };
    let inventory = &open.handles.get::<HostInventory>();
    let observation = Observation {
        interface: "lan0",
        mac: MacAddr([2, 0, 0, 0, 0, 7]),
        vlan: None,
        at: open.now(),
        evidence: Evidence::Traffic { address: [192, 168, 1, 7].into() },
    };
    inventory.observe([observation].into_iter(), &BTreeSet::new());
    inventory.list().hosts[0].id().to_string()
}

/// Raises an alert, and returns its id.
fn raised_alert(client: &Client) -> String {
    let Gateway::Open(open) = &client.api.gateway else { panic!("the store is open") };
    let before: BTreeSet<u64> = open.alerts.open_alerts().iter().map(|alert| alert.id).collect();
    let subject = format!("wan{}", before.len());
    open.active_alerts.raise(AlertKind::WanFailover, &subject, "it is offline".into());
    open.alerts.process();
    let alerts = open.alerts.open_alerts();
    alerts.iter().find(|alert| !before.contains(&alert.id)).expect("an alert").id.to_string()
}

/// Calls an endpoint so that it succeeds unless the headers prevent it, and creates its prerequisites first. Returns
/// `None` if it has no recipe for the endpoint.
async fn succeed(client: &Client, endpoint: &Endpoint, headers: &[(&str, &str)]) -> Option<(usize, Answer)> {
    // An alias behaves like the other path.
    let of = endpoint.path.replace("/gateway-nodes", "/nodes");
    let collection = COLLECTIONS.iter().find(|example| of.starts_with(example.path));
    let dependent = dependent(client, endpoint.path).await;
    let made = match (collection, &dependent) {
        (_, Some((path, body))) if endpoint.path.contains("{id}") => client.create(path, body.clone()).await,
        (Some(example), None) if endpoint.path.contains('{') => {
            client.create(example.path, (example.body)(200)).await
        }
        // Rules are built in: one of each, none can be created.
        (None, None) if of.starts_with("/alerts/rules") => {
            client.get("/alerts/rules").await.data()[0].clone()
        }
        _ => Value::Null,
    };
    let host = endpoint.path.starts_with("/hosts/").then(|| observed_host(client));
    let alert = endpoint.path.starts_with("/alerts/{id}/").then(|| raised_alert(client));
    let id = match endpoint.path {
        path if path.contains("{key}") => "log.level",
        _ if host.is_some() || alert.is_some() => host.as_deref().or(alert.as_deref()).unwrap_or_default(),
        path if path.starts_with("/interfaces/") => "eth7",
        _ => made["id"].as_str().unwrap_or_default(),
    };
    let path = ["{id}", "{key}", "{domain}", "{mac}", "{name}"]
        .iter()
        .fold(endpoint.path.to_owned(), |path, name| path.replace(name, id));
    let body = match (endpoint.method.as_str(), endpoint.path) {
        (_, "/apply") => Some(json!({"resources": {"devices": [{"name": "new"}]}})),
        (_, "/apply/confirm" | "/apply/revert") => {
            let plan = json!({"resources": {"devices": [{"name": "new"}]}, "confirm_timeout_sec": 600});
            client.post("/apply", plan).await.data();
            None
        }
        (_, "/rollback") => {
            let plan = json!({"resources": {"devices": [{"name": "new"}]}});
            Some(json!({"snapshot": client.post("/apply", plan).await.data()["snapshot"]}))
        }
        (_, "/config/import") => Some(client.get("/config/export").await.data()),
        (_, "/backup/import") => {
            let passphrase = json!({"passphrase": "correct horse battery"});
            let export = client.post("/backup/export", passphrase.clone()).await.data();
            Some(json!({"passphrase": passphrase["passphrase"], "content": export["content"]}))
        }
        (_, "/backup/run") => {
            let target = json!({"type": "local", "path": client.outside()});
            let config = json!({"target": target, "passphrase": "correct horse battery"});
            client.put("/backup/config", config).await.data();
            None
        }
        // No receiver listens there, which the response reports.
        (_, "/alerts/webhook/test") => {
            let webhook = json!({"url": "http://127.0.0.1:1/", "allow_private": true});
            client.put("/alerts/webhook", webhook).await.data();
            None
        }
        (_, "/alerts/email/test") => {
            let mail =
                json!({"host": "127.0.0.1", "port": 1, "from": "gw@example.net", "to": ["anna@example.net"]});
            client.put("/alerts/email", mail).await.data();
            None
        }
        (_, "/alerts/mqtt/test") => {
            client.put("/alerts/mqtt", json!({"host": "127.0.0.1", "port": 1})).await.data();
            None
        }
        (_, "/config/export-encrypted" | "/backup/export-encrypted" | "/backup/export") => {
            Some(json!({"passphrase": "correct horse battery"}))
        }
        ("PUT", "/interfaces/{name}/config") => Some(json!({"method": "none"})),
        (_, "/interfaces/{name}/dhcp/stop" | "/interfaces/{name}/dhcp/renew") => {
            client.put("/interfaces/eth7/config", json!({"method": "dhcp"})).await.data();
            None
        }
        (_, "/interfaces/{name}/dhcp/start") => None,
        ("POST", "/snapshots") => None,
        (_, "/splitting/activate") => {
            let mut policy = examples::policy(9);
            policy["hops"] = json!([{"type": "vpn", "target": "one"}, {"type": "vpn", "target": "two"}]);
            let policy = client.create("/routing/policies", policy).await;
            client.post("/routing/policies/apply", json!({})).await.data();
            Some(json!({"policy_id": policy["id"]}))
        }
        (_, "/hosts/{id}/adopt") => Some(json!({})),
        (_, "/presets/{id}/apply") => Some(json!({"name": "made of it"})),
        (_, "/tunnels/import-wireguard") => {
            Some(json!({"name": "imported", "config": examples::WIREGUARD_CONF}))
        }
        (_, "/tunnels/upload-ovpn") => Some(json!({"name": "uploaded", "config": examples::OVPN})),
        (
            _,
            "/routing/policies/apply"
            | "/routing/policies/discard"
            | "/enforce/reconcile"
            | "/diagnostics/bundle",
        ) => None,
        (_, "/federation/sync") => Some(json!({})),
        (_, "/mesh/create-key") => {
            client.put("/settings/mesh.coordinator.host", json!({"value": "gw.example.net"})).await.data();
            client.put("/settings/mesh.coordinator.enabled", json!({"value": true})).await.data();
            // The first use of the coordinator makes its identity, which is an entry of the system.
            client.post("/mesh/create-key", json!({})).await.data();
            Some(json!({}))
        }
        (_, "/alerts/{id}/mute") => Some(json!({"duration_sec": 60})),
        (_, "/alerts/{id}/unmute") => {
            client.post(&path.replace("unmute", "mute"), json!({"duration_sec": 60})).await.data();
            None
        }
        ("POST", path) if path.contains("{id}") => None,
        ("POST", _) if dependent.is_some() => dependent.map(|(_, body)| body),
        ("PUT", "/alerts/rules/{id}" | "/dns/records/{id}") => Some(made.clone()),
        ("DELETE", "/dns/allowlist" | "/dns/blocklist") => Some(json!({"domains": ["site.example"]})),
        (_, "/secrets/set-passphrase") => Some(json!({"passphrase": "correct horse battery"})),
        (_, "/secrets/clear-passphrase") => None,
        ("POST", path) if path.starts_with("/privacy/") => Some(json!({"enabled": true})),
        (_, "/system/deadman") => Some(json!({"enabled": true, "hours": 24})),
        (_, "/dns/extfilter/enable") => {
            // No server listens there, which the response reports; the setting is stored regardless.
            client.put("/dns/extfilter/config", json!({"url": "http://127.0.0.1:1"})).await.data();
            None
        }
        (_, "/dns/extfilter/disable") => None,
        ("POST", "/dns/cache/flush") => Some(json!({})),
        (_, "/system/wipe") => Some(json!({"level": "medium"})),
        ("POST", _) => Some((collection?.body)(201)),
        ("PUT", "/pq-crypto") => Some(json!({"mode": "preferred"})),
        ("PUT", "/settings/{key}") => Some(json!({"value": "debug"})),
        // Singletons: the output of a GET is a valid PUT.
        ("PUT", path) if collection.is_none() && !path.contains('{') => Some(client.get(path).await.data()),
        ("PUT", _) => Some((collection?.body)(202)),
        ("DELETE", "/settings/{key}") => {
            client.put("/settings/log.level", json!({"value": "debug"})).await;
            None
        }
        ("DELETE", _) => None,
        _ => return None,
    };
    let before = client.audit_count().await;
    Some((before, client.send(endpoint.method.as_str(), &path, body, headers).await))
}

#[tokio::test]
async fn every_change_that_is_built_leaves_exactly_one_entry() {
    let endpoints = gateway_api::endpoints::table();
    // Accounts have actors of their own; the suite authz looks at their entries.
    let changes = endpoints.endpoints().iter().filter(|endpoint| {
        endpoint.area != "auth"
            && endpoint.needs().is_none()
            && endpoint.effect.audit().is_some()
            && !needs_kernel(endpoint)
            && !needs_another_gateway(endpoint)
            && !needs_language_model(endpoint)
            && !needs_adapter(endpoint)
            && !needs_peer(endpoint)
            && !needs_device_mapper(endpoint)
    });
    let mut tried = BTreeSet::new();
    for endpoint in changes {
        let client = Client::new();
        let Some((before, answer)) = succeed(&client, endpoint, &[]).await else {
            panic!("{}: this test does not know how to use it", name(endpoint));
        };
        assert!(answer.status < 300, "{}: {}", name(endpoint), answer.text);
        // A wipe removes the audit log too and is the first entry of the next one.
        let expected = if endpoint.path == "/system/wipe" { 1 } else { before + 1 };
        assert_eq!(client.audit_count().await, expected, "{}", name(endpoint));
        let entry = client.last_audit().await;
        let audit = endpoint.effect.audit().expect("a change");
        assert_eq!(entry["action"], audit.action, "{}: {entry}", name(endpoint));
        assert_eq!(entry["resource_type"], audit.resource_type, "{}", name(endpoint));
        assert_eq!(entry["result"], "success", "{}", name(endpoint));
        assert_eq!((&entry["actor"], &entry["auth"]), (&json!("admin"), &json!("open")), "{entry}");
        assert_eq!(entry["request_id"], answer.header("x-request-id"), "{}", name(endpoint));
        for field in ["timestamp", "resource_id", "details", "id", "prev_hash", "hash"] {
            assert!(entry.get(field).is_some(), "no {field}: {entry}");
        }
        tried.insert(name(endpoint));
    }
    assert!(tried.len() >= 15, "{tried:?}");
}

/// Reports whether an endpoint succeeds only with a second gateway: e2e federation.
fn needs_another_gateway(endpoint: &Endpoint) -> bool {
    matches!(endpoint.path, "/nodes/exchange" | "/federation/exchange" | "/federation/rotate-key")
}

/// Reports whether an endpoint succeeds only with a server of language models: `contract::assistant` looks at their entries.
fn needs_language_model(endpoint: &Endpoint) -> bool {
    endpoint.path.starts_with("/ai/models/") || endpoint.path == "/ai/service"
}

/// Reports whether an endpoint succeeds only with a Bluetooth adapter: `e2e::bluetooth` uses them.
fn needs_adapter(endpoint: &Endpoint) -> bool {
    let is_settings = endpoint.path.ends_with("/settings") || endpoint.path.ends_with("/failover");
    endpoint.path.starts_with("/bluetooth/") && !is_settings
}

/// Reports whether an endpoint succeeds only with a client in the mesh, or with a coordinator of one: `e2e::mesh` and
/// `contract::mesh_member` look at their entries.
fn needs_peer(endpoint: &Endpoint) -> bool {
    let of_members = ["/mesh/register", "/mesh/up", "/mesh/down"];
    endpoint.path.starts_with("/mesh/peers/") || of_members.contains(&endpoint.path)
}

/// Reports whether an endpoint succeeds only with device-mapper: the suite vm uses them.
fn needs_device_mapper(endpoint: &Endpoint) -> bool {
    endpoint.path.starts_with("/storage/encrypted/")
}

/// Needs no knowledge of any endpoint: the test records the result of an empty body and of unknown objects.
#[tokio::test]
async fn every_change_that_is_tried_with_nothing_leaves_exactly_one_entry_that_says_what_came_of_it() {
    let table = gateway_api::endpoints::table();
    let missing = "0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11";
    let changes = table.endpoints().iter().filter(|endpoint| {
        endpoint.area != "auth" && endpoint.needs().is_none() && endpoint.effect.audit().is_some()
    });
    let (mut failed, mut succeeded) = (0, 0);
    for endpoint in changes {
        let client = Client::new();
        let path: Vec<&str> =
            endpoint.path.split('/').map(|step| if step.starts_with('{') { missing } else { step }).collect();
        let body = endpoint.input.schema().is_some().then(|| json!({}));
        let before = client.audit_count().await;
        let answer = client.send(endpoint.method.as_str(), &path.join("/"), body, &[]).await;
        let is_missing = needs_adapter(endpoint) || needs_device_mapper(endpoint);
        let is_answered = answer.status < 500 || is_missing && answer.status == 501;
        assert!(is_answered, "{}: {}", name(endpoint), answer.text);
        assert_eq!(client.audit_count().await, before + 1, "{}: {}", name(endpoint), answer.text);
        let entry = client.last_audit().await;
        let audit = endpoint.effect.audit().expect("a change");
        assert_eq!(
            (&entry["action"], &entry["resource_type"]),
            (&json!(audit.action), &json!(audit.resource_type))
        );
        if answer.status < 300 {
            succeeded += 1;
            assert_eq!(entry["result"], "success", "{}", name(endpoint));
        } else {
            failed += 1;
            assert_eq!(entry["result"], "failed", "{}: {entry}", name(endpoint));
            assert_eq!(entry["details"]["error"], answer.json()["error"]["code"], "{}", name(endpoint));
        }
    }
    assert!(failed >= 10 && succeeded >= 2, "{failed} failed, {succeeded} succeeded");
}

/// For every endpoint with a precondition: a stale one.
#[tokio::test]
async fn every_change_on_a_stale_condition_leaves_exactly_one_entry() {
    let table = gateway_api::endpoints::table();
    let endpoints = table.endpoints().iter().filter(|endpoint| {
        endpoint.versions == Versions::Tagged
            && endpoint.area != "auth"
            && endpoint.needs().is_none()
            && endpoint.effect.audit().is_some()
    });
    let mut refused = 0;
    for endpoint in endpoints.filter(|endpoint| endpoint.status != 201) {
        let client = Client::new();
        let Some((before, answer)) = succeed(&client, endpoint, &[("if-match", "\"999999\"")]).await else {
            panic!("{}: this test does not know how to use it", name(endpoint));
        };
        answer.error(412, "precondition_failed");
        assert_eq!(client.audit_count().await, before + 1, "{}", name(endpoint));
        let entry = client.last_audit().await;
        let audit = endpoint.effect.audit().expect("a change");
        assert_eq!((&entry["action"], &entry["result"]), (&json!(audit.action), &json!("failed")), "{entry}");
        assert_eq!(entry["details"]["error"], "precondition_failed", "{}", name(endpoint));
        if endpoint.path.contains('{') {
            assert!(entry["resource_id"].is_string(), "{}: {entry}", name(endpoint));
        }
        refused += 1;
    }
    assert!(refused >= 40, "{refused}");
}

/// For every collection with unique fields: the same object twice.
#[tokio::test]
async fn every_duplicate_leaves_exactly_one_entry() {
    let mut refused = 0;
    for example in COLLECTIONS {
        let client = Client::new();
        client.create(example.path, (example.body)(1)).await;
        let before = client.audit_count().await;
        let answer = client.post(example.path, (example.body)(1)).await;
        assert_eq!(client.audit_count().await, before + 1, "{}", example.path);
        let result = &client.last_audit().await["result"];
        match answer.status {
            201 => assert_eq!(result, "success", "{}", example.path),
            409 | 422 => {
                refused += 1;
                assert_eq!(result, "failed", "{}", example.path);
            }
            other => panic!("{}: {other} {}", example.path, answer.text),
        }
    }
    assert!(refused >= 15, "{refused}");
}

#[tokio::test]
async fn the_entry_of_a_setting_names_its_key() {
    let client = Client::new();
    let key = "/settings/log.level";
    for (method, body, result) in [
        ("PUT", Some(json!({"value": "debug"})), "success"),
        ("PUT", Some(json!({"value": "debug"})), "success"),
        ("PUT", Some(json!({"value": "loud"})), "failed"),
        ("DELETE", None, "success"),
    ] {
        client.send(method, key, body, &[]).await;
        let entry = client.last_audit().await;
        assert_eq!(
            (&entry["resource_type"], &entry["resource_id"]),
            (&json!("setting"), &json!("log.level"))
        );
        assert_eq!(entry["result"], result, "{entry}");
    }
}

/// Returns the differences of the only change of the last entry.
async fn last_diff(client: &Client) -> Value {
    let entry = client.last_audit().await;
    assert_eq!(entry["details"]["changes"].as_array().map(Vec::len), Some(1), "{entry}");
    entry["details"]["changes"][0]["diff"].clone()
}

#[tokio::test]
async fn an_entry_has_the_old_and_the_new_value_of_each_changed_field() {
    let client = Client::new();
    let mut policy = client.create("/routing/policies", examples::policy(1)).await;
    let created = last_diff(&client).await;
    assert_eq!(created["name"], json!({"to": policy["name"]}), "{created}");
    let path = format!("/routing/policies/{}", policy["id"].as_str().expect("an id"));
    let priority = policy["priority"].clone();
    policy["priority"] = json!(7);
    client.put(&path, policy.clone()).await.data();
    assert_eq!(last_diff(&client).await, json!({"priority": {"from": priority, "to": 7}}));
    client.post(&format!("{path}/toggle"), json!({})).await.data();
    assert_eq!(last_diff(&client).await, json!({"enabled": {"from": true, "to": false}}));
    client.delete(&path).await.data();
    assert_eq!(last_diff(&client).await["priority"], json!({"from": 7}));
    client.post("/dns/blocklist", json!({"domain": "ads.example"})).await.data();
    assert_eq!(last_diff(&client).await["domain"], json!({"to": "ads.example"}));
    client.put("/settings/log.level", json!({"value": "debug"})).await.data();
    assert_eq!(last_diff(&client).await, json!({"value": {"to": "debug"}}));
    let mut dhcp = client.get("/dhcp").await.data();
    dhcp["lease_sec"] = json!(600);
    client.put("/dhcp", dhcp.clone()).await.data();
    dhcp["lease_sec"] = json!(1200);
    client.put("/dhcp", dhcp).await.data();
    assert_eq!(last_diff(&client).await, json!({"lease_sec": {"from": 600, "to": 1200}}));
}

#[tokio::test]
async fn an_entry_names_changed_secrets_without_their_values() {
    let client = Client::new();
    let mut tunnel = client.create("/tunnels", examples::tunnel(1)).await;
    assert_eq!(last_diff(&client).await["private_key"], json!({"secret": "set"}));
    let path = format!("/tunnels/{}", tunnel["id"].as_str().expect("an id"));
    let key = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAHE=";
    tunnel["private_key"] = json!(key);
    client.put(&path, tunnel).await.data();
    let diff = last_diff(&client).await;
    assert_eq!(diff["private_key"], json!({"secret": "changed"}), "{diff}");
    client
        .put("/alerts/webhook", json!({"url": "https://hook.example/", "secret": "whsec_c2VjcmV0"}))
        .await
        .data();
    let trail = client.get("/audit").await.text;
    assert!(!trail.contains(key) && !trail.contains("whsec_c2VjcmV0"), "a secret is in the trail");
}

#[tokio::test]
async fn every_failed_change_leaves_exactly_one_entry_that_says_so() {
    let client = Client::new();
    let missing = "0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11";
    for (method, path, body) in [
        ("POST", "/devices".to_owned(), Some(json!({"name": ""}))),
        ("PUT", format!("/devices/{missing}"), Some(examples::device(1))),
        ("DELETE", format!("/tunnels/{missing}"), None),
        ("POST", format!("/tunnels/{missing}/up"), None),
        ("POST", format!("/routing/policies/{missing}/toggle"), None),
    ] {
        let before = client.audit_count().await;
        let answer = client.send(method, &path, body, &[]).await;
        assert!(answer.status >= 400, "{method} {path}");
        assert_eq!(client.audit_count().await, before + 1, "{method} {path}");
        let entry = client.last_audit().await;
        assert_eq!(entry["result"], "failed", "{entry}");
        assert_eq!(entry["details"]["error"], answer.json()["error"]["code"], "{entry}");
        if path.contains(missing) {
            assert_eq!(entry["resource_id"], missing, "{entry}");
        }
    }
}

#[tokio::test]
async fn reading_leaves_no_entry_except_where_secrets_were_read() {
    let client = Client::new();
    let tunnel = client.create("/tunnels", examples::tunnel(1)).await;
    let config = format!("/tunnels/{}/config", tunnel["id"].as_str().expect("an id"));
    let before = client.audit_count().await;
    for path in ["/devices", "/status", "/policy/leak-matrix", "/render", &config] {
        assert_eq!(client.get(path).await.status, 200, "{path}");
    }
    client.post("/policy/conflicts", json!({})).await;
    client.send("POST", "/tunnels/generate-keys", None, &[]).await;
    assert_eq!(client.audit_count().await, before);
    assert_eq!(client.get(&format!("{config}?reveal=true")).await.status, 200);
    assert_eq!(client.audit_count().await, before + 1);
    let entry = client.last_audit().await;
    assert_eq!((&entry["action"], &entry["resource_id"]), (&json!("reveal_tunnel_config"), &tunnel["id"]));
}

#[tokio::test]
async fn the_log_is_newest_first_and_paged_by_entry_or_time() {
    let client = Client::new();
    for n in 1..=5 {
        client.create("/devices", examples::device(n)).await;
    }
    let all = client.get("/audit").await;
    let entries = all.data();
    let entries = entries.as_array().expect("a list");
    assert_eq!(all.header("x-total-count"), entries.len().to_string());
    let times: Vec<_> = entries.iter().map(|entry| entry["timestamp"].as_str().expect("a time")).collect();
    assert!(times.windows(2).all(|pair| pair[0] >= pair[1]), "{times:?}");
    let mut paged = Vec::new();
    let mut query = "/audit?limit=2".to_owned();
    loop {
        let page = client.get(&query).await.data();
        let page = page.as_array().expect("a list").clone();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        query = format!("/audit?limit=2&before={}", last["id"].to_string().trim_matches('"'));
        paged.extend(page);
    }
    assert_eq!(&paged, entries);
    let before_time = client.get(&format!("/audit?before={}", times[2].replace('+', "%2B"))).await.data();
    assert!(before_time.as_array().is_some_and(|list| list.len() < entries.len()));
    assert_eq!(client.get("/audit?limit=100000").await.status, 200);
}

#[tokio::test]
async fn each_entry_names_the_hash_of_the_one_before() {
    let client = Client::new();
    for n in 1..=3 {
        client.create("/devices", examples::device(n)).await;
    }
    let entries = client.get("/audit").await.data();
    let entries = entries.as_array().expect("a list");
    for pair in entries.windows(2) {
        assert_eq!(pair[0]["prev_hash"], pair[1]["hash"]);
    }
}
