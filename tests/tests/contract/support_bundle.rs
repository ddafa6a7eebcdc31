//! Support bundle of a gateway with private values of every kind: none of them is in it, whatever part shows it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use axum::body::Body;
use gateway_model::settings::bootstrap::LogLevel;
use gateway_tests::wait::wait_until;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::contract::client::Client;

const BUILD_TIMEOUT: Duration = Duration::from_secs(60);

/// Secrets, each of another field.
const SECRETS: &[&str] = &[
    "UGUzZkxPUElZVU5XQ0JTQk5WSVdHWEJSS0dCVE5PUVM=",
    "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVowMTIzNDU=",
    "proxy-Hunter \"2\"",
    "mqtt-zZwordworz",
    "mail-zZpassphrasez",
    "webhook-zZtokenz-0123456789",
    "backup-zZpassphrasez",
    "s3-zZsecretz",
    "user-zZpasswordz",
];
/// Names, domains, addresses and MAC addresses that people, hosts or peers chose.
const PRIVATE: &[&str] = &[
    "Kims Schlepptop",
    "kim-schlepptop",
    "schreibtisch",
    "Kinderzimmer-Gruppe",
    "tunnel-nach-oslo",
    "wg.tunnel",
    "regel-fuer-kim",
    "proxy-tokio",
    "bruecke-sieben",
    "gaestenetz",
    "zuhause.kimpark.example",
    "kimpark",
    "vpn.kimpark.example",
    "kim.park@post.example",
    "kimuser",
    "kimkey",
    "mqttuser-kim",
    "topic-kim",
    "proxyuser-kim",
    "bucket-kim",
    "filiale-oslo",
    "203.0.113.77",
    "198.51.100.42",
    "2001:db8:4711:2::77",
    "02:4b:49:4d:00:77",
    "024b494d0077",
    "192.168.77.0",
    "192.168.77.20",
    "10.77.9.2",
    "fd77:1234:5678",
];

/// Stores private values in objects and settings of every kind that has any, and returns nothing of them.
async fn seed(client: &Client) {
    let device = json!({
        "name": "Kims Schlepptop", "mac": "02:4b:49:4d:00:77", "hostname": "kim-schlepptop",
        "notes": "auf dem schreibtisch von Kim", "tags": ["schreibtisch"],
    });
    let device = client.create("/devices", device).await["id"].clone();
    client.create("/device-groups", json!({"name": "Kinderzimmer-Gruppe"})).await;
    let tunnel = json!({
        "name": "tunnel-nach-oslo", "type": "wireguard", "private_key": SECRETS[0],
        "addresses": ["10.77.9.2/32", "fd77:1234:5678::2/128"],
        "peers": [{
            "public_key": "NkFPQVZWR0lLQVlFSk9TUVhIWFBZS0hITkhDQlBTV08=", "preshared_key": SECRETS[1],
            "endpoint": "203.0.113.77:51820", "allowed_ips": ["0.0.0.0/0", "::/0"],
        }],
    });
    client.create("/tunnels", tunnel).await;
    let policy = json!({
        "name": "regel-fuer-kim", "source_type": "device", "source_value": device,
        "hops": [{"type": "vpn", "target": "tunnel-nach-oslo"}],
    });
    client.create("/routing/policies", policy).await;
    let subnet = json!({
        "name": "regel-fuer-kim zwei", "source_type": "subnet", "source_value": "192.168.77.0/24", "hops": [],
        "fail_policy": "fail-closed",
    });
    client.create("/routing/policies", subnet).await;
    let proxy = json!({
        "name": "proxy-tokio", "address": "198.51.100.42", "username": "proxyuser-kim", "password": SECRETS[2],
    });
    client.create("/proxies", proxy).await;
    let bridge = json!({
        "name": "bruecke-sieben", "kind": "transport",
        "transport": {"type": "udp2tcp", "address": "2001:db8:4711:2::77", "port": 443},
    });
    client.create("/bridges", bridge).await;
    let segment =
        json!({"name": "gaestenetz", "interface": "eth1", "vlan_id": 77, "cidr": "192.168.77.0/24"});
    client.create("/segments", segment).await;
    client
        .create("/dns/rewrites", json!({"domain": "zuhause.kimpark.example", "answer": "192.168.77.20"}))
        .await;
    let reservation =
        json!({"mac": "02:4b:49:4d:00:77", "ip": "192.168.77.20", "hostname": "kim-schlepptop"});
    client.create("/dhcp/reservations", reservation).await;
    client.create("/nodes", json!({"name": "filiale-oslo", "url": "https://vpn.kimpark.example/"})).await;
    client
        .create("/auth/users", json!({"username": "kimuser", "password": SECRETS[8], "role": "viewer"}))
        .await;
    client.create("/auth/keys", json!({"name": "kimkey", "role": "viewer"})).await;
    for (path, group) in [
        (
            "/alerts/email",
            json!({
                "enabled": false, "host": "vpn.kimpark.example", "username": "kim.park@post.example",
                "password": SECRETS[4], "from": "kim.park@post.example", "to": ["kim.park@post.example"],
            }),
        ),
        (
            "/alerts/mqtt",
            json!({
                "enabled": false, "host": "vpn.kimpark.example", "username": "mqttuser-kim", "password": SECRETS[3],
                "topic_prefix": "topic-kim",
            }),
        ),
        (
            "/alerts/webhook",
            json!({
                "enabled": false, "url": "https://vpn.kimpark.example/kimpark/hook", "token": SECRETS[5],
            }),
        ),
        (
            "/backup/config",
            json!({
                "enabled": false, "passphrase": SECRETS[6],
                "target": {
                    "type": "s3", "url": "https://vpn.kimpark.example", "username": "bucket-kim", "secret": SECRETS[7],
                    "path": "bucket-kim",
                },
            }),
        ),
    ] {
        let answer = client.put(path, group).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    }
    assert_eq!(client.send("POST", "/routing/policies/apply", None, &[]).await.status, 200);
}

/// Lets the daemon write private values to its log: it logs the paths of requests that it refuses.
async fn log_private_values(client: &Client) {
    for private in
        ["kim-schlepptop", "203.0.113.77", "02:4b:49:4d:00:77", "vpn.kimpark.example", "kimuser", "kimkey"]
    {
        assert_eq!(client.get(&format!("/no/such/thing/{private}/of/all")).await.status, 404);
    }
}

async fn build(client: &Client) -> Value {
    let answer = client.send("POST", "/diagnostics/bundle", None, &[]).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let id = answer.data()["id"].as_str().expect("an id").to_owned();
    assert_eq!(answer.header("location"), format!("/api/v1/diagnostics/bundle/{id}"));
    let runtime = Handle::current();
    let complete = || {
        let bundle = runtime.block_on(client.get(&format!("/diagnostics/bundle/{id}"))).data();
        (bundle["state"] != "running").then_some(bundle)
    };
    let found = tokio::task::block_in_place(|| wait_until(BUILD_TIMEOUT, "the bundle is complete", complete));
    found.expect("a bundle")
}

/// Returns the files of the archive.
async fn download(client: &Client, id: &str) -> BTreeMap<String, String> {
    let request = Request::get(format!("/api/v1/diagnostics/bundle/{id}/archive"))
        .header("host", "127.0.0.1")
        .body(Body::empty())
        .expect("a request");
    let response = gateway_api::dispatch::answer(client.api.clone(), request, None).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/gzip");
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("bundle.tar.gz");
    fs::write(&archive, bytes).expect("written");
    let files = folder.path().join("files");
    fs::create_dir(&files).expect("a folder");
    let status = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&files).status().expect("tar");
    assert!(status.success());
    let entries = fs::read_dir(&files).expect("files").map(|entry| entry.expect("an entry"));
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("UTF-8");
        (name, fs::read_to_string(entry.path()).expect("text"))
    };
    entries.map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn bundle_of_a_seeded_gateway_has_no_private_value() {
    gateway_api::log::start(LogLevel::Debug);
    let client = Client::new();
    seed(&client).await;
    log_private_values(&client).await;
    let bundle = build(&client).await;
    assert_eq!(bundle["state"], "done", "{bundle}");
    let files = download(&client, bundle["id"].as_str().expect("an id")).await;
    // Each value was there to be shown: in the configuration, in metrics, or in the log.
    let metrics = client
        .raw(Request::get("/metrics").header("host", "127.0.0.1").body(Body::empty()).expect("a request"))
        .await
        .text;
    assert!(metrics.contains("tunnel-nach-oslo") && metrics.contains("regel-fuer-kim"), "{metrics}");
    let export = client.get("/config/export").await.text;
    for private in ["Kims Schlepptop", "203.0.113.77", "02:4b:49:4d:00:77", "kimpark", "192.168.77.0"] {
        assert!(export.contains(private), "{private}");
    }
    for (name, content) in &files {
        for private in SECRETS.iter().chain(PRIVATE) {
            let line =
                content.split(['\n', ',']).find(|line| line.to_lowercase().contains(&private.to_lowercase()));
            assert!(line.is_none(), "{name} has {private}: {}", line.unwrap_or_default());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bundle_is_complete_and_its_values_can_be_followed() {
    let client = Client::new();
    seed(&client).await;
    let bundle = build(&client).await;
    let id = bundle["id"].as_str().expect("an id");
    let files = download(&client, id).await;
    let parts = bundle["parts"].as_array().expect("parts");
    for part in parts {
        let file = part["file"].as_str().expect("a name");
        match part["size"].as_u64() {
            Some(size) => assert_eq!(files[file].len() as u64, size, "{file}"),
            // This process keeps no log, and has no kernel.
            None => assert!(part["error"].is_string() && !files.contains_key(file), "{part}"),
        }
    }
    let json = |file: &str| serde_json::from_str::<Value>(&files[file]).expect(file);
    assert_eq!(json("version.json")["data"]["api"], "v1");
    let configuration = json("configuration.json");
    let tunnel = &configuration["data"]["resources"]["tunnels"][0];
    assert_eq!((&tunnel["type"], &tunnel["has_private_key"]), (&json!("wireguard"), &json!(true)));
    let name = tunnel["name"].as_str().expect("a name");
    assert!(name.starts_with("name-"), "{name}");
    assert!(files["metrics.txt"].contains(name), "{name}");
    assert_eq!(json("manifest.json")["format"], "gateway-support-bundle/1");
    for file in files.keys().filter(|file| file.ends_with(".json")) {
        json(file);
    }
    let audit = client.get("/audit?limit=2").await.data();
    let entry = |index: usize| (audit[index]["action"].as_str(), audit[index]["resource_id"].as_str());
    assert_eq!(entry(0), (Some("read_support_bundle"), Some(id)));
    assert_eq!(entry(1), (Some("create_support_bundle"), Some(id)));
    // The next bundle has other pseudonyms, and takes the place of this one.
    let next = build(&client).await;
    let next = download(&client, next["id"].as_str().expect("an id")).await;
    assert!(!next["metrics.txt"].contains(name));
    assert_eq!(client.get(&format!("/diagnostics/bundle/{id}")).await.status, 404);
}
