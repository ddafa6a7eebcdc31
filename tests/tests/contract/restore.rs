//! A backup restores the gateway: a state with everything set, exported, imported on a fresh gateway, and compared field
//! by field. Kinds and settings come from their registries, so that a new one is a part of it.

use std::collections::BTreeMap;

use gateway_model::registry::KINDS;
use gateway_model::settings::group::{GROUPS, GroupKind};
use gateway_model::settings::keys::{self, Apply};
use gateway_tests::examples::{self, COLLECTIONS};
use serde_json::{Value, json};

use crate::contract::client::Client;

/// Kinds that an export has and that no import makes on another gateway.
const NOT_RESTORED: &[&str] = &["exceptions"];

/// Values of settings whose type does not say what they may be.
fn sample(key: &str) -> Option<Value> {
    Some(match key {
        "listen.api_addr" => json!("127.0.0.1:9443"),
        "dns.listen_addr" => json!("127.0.0.1:5353"),
        "dns.upstream_tls_names" => json!({"192.0.2.53": "dns.example"}),
        "anomalies.disabled_kinds" => json!(["new_port"]),
        "countries.database" => json!("/srv/countries.mmdb"),
        "auth.local_net" => json!("10.9.0.0/16"),
        "listen.wan_access.uplinks" => json!(["fibre"]),
        "network.wan_iface" => json!("wan9"),
        "network.lan_iface" => json!(["lan8", "lan9"]),
        // The uplink of the default, so that its index in the kernel does not depend on what was set before.
        "network.wans" => json!([{"interface": "eth0", "name": "fibre", "priority": 7}]),
        "network.ap" => {
            json!({"interface": "lan9", "subnet": "192.168.77.0/24", "ip": "192.168.77.1", "enabled": true,
            "ssid": "home", "passphrase": "s3cret-of-radio", "country": "DE"})
        }
        "network.bridges" => json!([{"name": "br9", "ports": ["eth8"]}]),
        "network.vlans" => json!([{"name": "eth9.30", "parent": "eth9", "id": 30}]),
        "dataplane.xdp_interfaces" => json!([{"interface": "wan9", "mode": "native"}]),
        "ai" => json!({"enabled": true, "endpoint": "http://127.0.0.1:9", "api_key": "s3cret-of-models"}),
        "alerts.email" => {
            json!({"enabled": true, "host": "smtp.example", "username": "gw", "password": "s3cret-of-mail",
            "from": "gw@example.net", "to": ["anna@example.net"]})
        }
        "alerts.mqtt" => {
            json!({"enabled": true, "host": "mqtt.example", "tls": true, "username": "gw", "password": "s3cret-of-mqtt"})
        }
        "alerts.webhook" => {
            json!({"enabled": true, "url": "https://alerts.example/", "secret": "s3cret-s3cret-s3cret"})
        }
        "backup.config" => {
            json!({"enabled": true, "schedule": "30 4 * * *", "passphrase": "correct horse battery",
            "target": {"type": "webdav", "url": "https://dav.example/", "username": "gw", "secret": "s3cret-of-dav"}})
        }
        "captive" => {
            json!({"targets": [{"url": "http://probe.example/generate_204", "address": "192.0.2.80"}]})
        }
        "dns.extfilter" => json!({"url": "http://192.0.2.9:8080", "password": "s3cret-of-pihole"}),
        "federation.bus" => {
            json!({"enabled": true, "url": "tls://hub.example", "credentials": "gw:s3cret-of-the-hub"})
        }
        "flows.export" => {
            json!({"syslog": {"enabled": true, "host": "logs.example"},
            "otlp": {"enabled": true, "url": "https://otlp.example:4318", "bearer": "s3cret-of-otlp"}})
        }
        "privacy.leak_check" => json!({"stun_servers": ["192.0.2.34:3478"]}),
        "interfaces" => json!({"eth9": {"method": "static", "address": "198.51.100.7", "prefix": 24}}),
        _ => return None,
    })
}

/// Values to try in place of one whose type does not say what it may be.
fn candidates(value: &Value) -> Vec<Value> {
    let texts = [
        "gw.example",
        "192.0.2.53",
        "2001:db8::53",
        "fd00:1::/48",
        "2030-01-01T00:00:00Z",
        "eth9",
        "127.0.0.1:853",
    ];
    match value {
        Value::Bool(value) => vec![json!(!value)],
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            vec![json!(number + 1), json!(number - 1)]
        }
        Value::Null => [vec![json!(1500), json!(true)], texts.map(Value::from).to_vec()].concat(),
        Value::String(_) => texts.map(Value::from).to_vec(),
        Value::Array(_) => texts.map(|text| json!([text])).to_vec(),
        Value::Object(_) => Vec::new(),
    }
}

/// JSON pointers of the leaves of a value.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, value)| leaves(value, &format!("{path}/{key}"), found));
        }
        _ => found.push(path.to_owned()),
    }
}

async fn shown(client: &Client, key: &str) -> Value {
    let value = client.get(&format!("/settings/{key}")).await.data()["value"].clone();
    assert!(!value.is_null() || GroupKind::find(key).is_none(), "{key}");
    value
}

async fn put(client: &Client, key: &str, value: &Value) -> Result<(), Value> {
    let answer = client.put(&format!("/settings/{key}"), json!({"value": value})).await;
    if answer.status == 200 { Ok(()) } else { Err(answer.json()) }
}

/// Changes a setting at each leaf that takes another value. Returns false if none does.
async fn change(client: &Client, key: &str) -> bool {
    if let Some(value) = sample(key) {
        return put(client, key, &value).await.is_ok();
    }
    let mut paths = Vec::new();
    leaves(&shown(client, key).await, "", &mut paths);
    let mut changed = false;
    for path in paths.iter().filter(|path| !path.contains("has_")) {
        let whole = shown(client, key).await;
        let leaf = whole.pointer(path).expect("a leaf");
        let mut tried = candidates(leaf);
        // One value that is none of an enumeration: the answer has those that are.
        if leaf.is_string() {
            let with = |value: Value| replaced(&whole, path, value);
            if let Err(error) = put(client, key, &with(json!("none of them"))).await {
                let fields = error["error"]["details"]["fields"].as_array().cloned().unwrap_or_default();
                let allowed = fields.iter().filter_map(|field| field["allowed"].as_array()).flatten();
                tried.extend(allowed.filter(|other| *other != leaf).cloned());
            }
        }
        for value in tried {
            if put(client, key, &replaced(&whole, path, value)).await.is_ok() {
                changed |= shown(client, key).await != whole;
                break;
            }
        }
    }
    changed
}

fn replaced(whole: &Value, path: &str, value: Value) -> Value {
    let mut whole = whole.clone();
    *whole.pointer_mut(path).expect("a leaf") = value;
    whole
}

/// A gateway on which every kind has an object and every setting another value than by default.
async fn with_everything_set() -> Client {
    let client = Client::new();
    for example in COLLECTIONS {
        client.create(example.path, (example.body)(1)).await;
    }
    client.create("/dns/zones", json!({"name": examples::dns::ZONE})).await;
    client.create("/dns/records", examples::dns::record(1)).await;
    client.create("/splitting/endpoints", json!({"tunnel": "exit-1"})).await;
    client.post("/routing/policies/apply", json!({})).await;
    // One policy is pending.
    client.create("/routing/policies", examples::policy(2)).await;
    let rule = client.get("/alerts/rules").await.data()[0].clone();
    let mut changed = rule.clone();
    changed["cooldown_sec"] = json!(77);
    let answer = client.put(&format!("/alerts/rules/{}", rule["id"].as_str().expect("an id")), changed).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(client.put("/pq-crypto", json!({"mode": "required"})).await.status, 200);
    let tls = json!({"tls": {"cert": {"value": "/etc/tls/cert.pem"}, "key": {"value": "/etc/tls/key.pem"}}});
    let answer = client.put("/settings", tls).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(change(&client, "network.wans").await, "before network.wan_iface, so that the uplink stays");
    // Some values are valid only beside others.
    let mut waiting: Vec<&str> =
        settings().filter(|key| !["tls.cert", "tls.key", keys::PQ_CRYPTO_MODE].contains(key)).collect();
    for _ in 0..2 {
        let mut left = Vec::new();
        for key in waiting {
            if !change(&client, key).await {
                left.push(key);
            }
        }
        waiting = left;
    }
    assert_eq!(waiting, [""; 0], "give a value in `sample`");
    client
}

/// Every setting that a person can change at run time.
fn settings() -> impl Iterator<Item = &'static str> {
    let of_file = keys::keys().filter(|key| keys::apply_of(key) != Some(Apply::File));
    of_file.chain(GROUPS.iter().map(|group| group.key)).chain([keys::PQ_CRYPTO_MODE])
}

/// Removes what belongs to one installation or changes with time.
fn stable(mut value: Value) -> Value {
    const VOLATILE: &[&str] = &[
        "created_at",
        "updated_at",
        "revision",
        "compiled_at",
        "generation",
        "at",
        "since",
        "last_change",
        "serial",
        "hash",
    ];
    match &mut value {
        Value::Object(map) => {
            VOLATILE.iter().for_each(|key| drop(map.shift_remove(*key)));
            map.values_mut().for_each(|inner| *inner = stable(inner.take()));
        }
        Value::Array(list) => list.iter_mut().for_each(|inner| *inner = stable(inner.take())),
        _ => {}
    }
    value
}

/// Everything that can be compared, by the path that shows it.
async fn everything_in(client: &Client) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let paths = COLLECTIONS.iter().map(|example| example.path);
    let others = ["/dns/records", "/splitting/endpoints", "/alerts/rules", "/render", "/routing/pending"];
    for path in paths.chain(others) {
        all.insert(path.to_owned(), stable(client.get(path).await.data()));
    }
    for key in settings() {
        all.insert(key.to_owned(), client.get(&format!("/settings/{key}")).await.data());
    }
    let export = client.get("/config/export").await.data();
    for part in ["resources", "settings", "pending", "file"] {
        all.insert(format!("export {part}"), export[part].clone());
    }
    all
}

#[tokio::test]
async fn a_backup_with_everything_set_restores_a_fresh_gateway_field_by_field() {
    let client = with_everything_set().await;
    let before = everything_in(&client).await;
    for kind in KINDS.iter().filter(|kind| kind.exported && !NOT_RESTORED.contains(&kind.collection)) {
        let made = before["export resources"][kind.collection].as_array().map_or(0, Vec::len);
        assert!(made > 0, "{}: this test makes none", kind.collection);
    }
    for key in settings() {
        assert_eq!(before[key]["source"], "runtime", "{key}");
        assert!(before["export settings"].get(key).is_some(), "{key} is not exported");
    }
    assert_eq!(before["export pending"].as_array().map(Vec::len), Some(1));
    let export = client.post("/backup/export", json!({"passphrase": "correct horse battery"})).await.data();
    let body = json!({"passphrase": "correct horse battery", "content": export["content"]});
    let fresh = Client::new();
    let answer = fresh.post("/backup/import", body.clone()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let after = everything_in(&fresh).await;
    for (path, value) in &before {
        assert_eq!(after.get(path), Some(value), "{path}");
    }
    // What was set since the backup goes back as well.
    assert_eq!(client.put("/settings/reconcile.interval_sec", json!({"value": 33})).await.status, 200);
    assert_eq!(client.put("/pq-crypto", json!({"mode": "default"})).await.status, 200);
    let answer = client.post("/backup/import", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(client.get("/pq-crypto").await.data()["mode"], "required", "in force with the answer");
    let again = everything_in(&client).await;
    for (path, value) in &before {
        assert_eq!(again.get(path), Some(value), "{path}");
    }
}

#[tokio::test]
async fn a_failing_gating_test_stops_an_import_unless_it_is_forced_and_recorded() {
    let client = Client::new();
    let mut test = examples::test_definition(1);
    test["gate"] = json!(true);
    client.create("/test-definitions", test).await;
    let export = client.get("/config/export").await.data();
    let fresh = Client::new();
    fresh.post("/config/import", export.clone()).await.error(409, "policy_conflict");
    assert_eq!(fresh.get("/test-definitions").await.data(), json!([]));
    let dry = fresh.post("/config/import?force=true&dry_run=true", export.clone()).await.data();
    assert_eq!(dry["valid"], true, "{dry}");
    let answer = fresh.post("/config/import?force=true", export).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let warnings = answer.data()["warnings"].clone();
    let warned =
        warnings.as_array().is_some_and(|list| list.iter().any(|warning| warning["path"] == "force"));
    assert!(warned, "{warnings}");
    let entry = fresh.last_audit().await;
    assert_eq!((&entry["action"], &entry["details"]["force"]), (&json!("import_config"), &json!(true)));
    assert_eq!(entry["details"]["failing_tests"], json!(["test 1"]));
}
