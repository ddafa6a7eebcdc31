//! Export and import through the API: plain and encrypted.

use std::process::{Command, Stdio};

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::contract::client::{Answer, Client};
use crate::contract::examples;

const PASSPHRASE: &str = "correct horse battery";

async fn testbed() -> Client {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    client.create("/tunnels", examples::tunnel(1)).await;
    let mut policy = examples::policy(1);
    policy["source_type"] = json!("device");
    policy["source_value"] = device["id"].clone();
    client.create("/routing/policies", policy).await;
    client
}

fn key() -> String {
    examples::tunnel(1)["private_key"].as_str().expect("a key").to_owned()
}

async fn sealed(client: &Client, path: &str) -> Vec<u8> {
    let request = Request::post(format!("/api/v1{path}"))
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .body(Body::from(json!({"passphrase": PASSPHRASE}).to_string()))
        .expect("a request");
    let response = gateway_api::dispatch::answer(client.api.clone(), request, None).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/octet-stream");
    response.into_body().collect().await.expect("a body").to_bytes().to_vec()
}

async fn import_file(client: &Client, query: &str, file: Vec<u8>, passphrase: &str) -> Answer {
    let request = Request::post(format!("/api/v1/backup/import{query}"))
        .header("host", "127.0.0.1")
        .header("content-type", "application/octet-stream")
        .header("x-passphrase", passphrase)
        .body(Body::from(file))
        .expect("a request");
    client.raw(request).await
}

#[tokio::test]
async fn a_plain_export_has_no_secrets_and_comes_back_without_change() {
    let client = testbed().await;
    let answer = client.get("/config/export").await;
    assert!(!answer.text.contains(&key()));
    let document = answer.data();
    assert_eq!(document["schema"], "gateway-config/1");
    for field in ["version", "created_at", "node", "revision"] {
        assert!(!document[field].is_null(), "{field}");
    }
    assert!(document["resources"].get("users").is_none() && document["resources"].get("api_keys").is_none());
    // The document itself, or within its response envelope.
    for body in [document.clone(), answer.json()] {
        let result = client.post("/config/import", body).await;
        assert_eq!(result.status, 200, "{}", result.text);
        let result = result.data();
        let counts = &result["counts"];
        assert_eq!(
            (&counts["create"], &counts["update"], &counts["delete"]),
            (&json!(0), &json!(0), &json!(0)),
            "{result}"
        );
    }
    let state = client.get("/tunnels").await.data();
    assert_eq!(state[0]["has_private_key"], true);
}

#[tokio::test]
async fn an_import_makes_the_configuration_the_export_again() {
    let client = testbed().await;
    let document = client.get("/config/export").await.data();
    client.create("/devices", examples::device(2)).await;
    let dry = client.post("/config/import?dry_run=true", document.clone()).await.data();
    assert_eq!((&dry["counts"]["delete"], &dry["applied"]), (&json!(1), &json!(false)));
    let merged = client.post("/config/import?mode=merge", document.clone()).await.data();
    assert_eq!(merged["counts"]["delete"], 0);
    let result = client.post("/config/import", document).await.data();
    assert_eq!(result["counts"]["delete"], 1, "{result}");
    assert_eq!(client.get("/snapshots").await.data()[0]["reason"], "pre_import");
    // A new gateway has none of the keys. Objects that need one are omitted and reported.
    let other = Client::new();
    let document = client.get("/config/export").await.data();
    let result = other.post("/config/import", document).await.data();
    assert!(
        result["warnings"]
            .as_array()
            .is_some_and(|list| list.iter().any(|w| w["path"] == "resources.tunnels[0]")),
        "{result}"
    );
    assert_eq!(other.get("/devices").await.data().as_array().map(Vec::len), Some(1));
    client
        .post("/config/import?mode=sideways", json!({"schema": "gateway-config/1"}))
        .await
        .error(400, "invalid_parameter");
}

#[tokio::test]
async fn an_encrypted_export_carries_the_secrets_to_another_gateway() {
    let client = testbed().await;
    for path in ["/config/export-encrypted", "/backup/export-encrypted"] {
        let file = sealed(&client, path).await;
        let other = Client::new();
        let result = import_file(&other, "", file, PASSPHRASE).await;
        assert_eq!(result.status, 200, "{}", result.text);
        let id = other.get("/tunnels").await.data()[0]["id"].as_str().expect("an id").to_owned();
        let config = other.get(&format!("/tunnels/{id}/config?reveal=true")).await;
        assert!(config.text.contains(&key()), "{}", config.text);
        assert_eq!(
            other.get("/routing/policies").await.data()[0]["source_value"],
            client.get("/devices").await.data()[0]["id"]
        );
    }
    let text = client.post("/backup/export", json!({"passphrase": PASSPHRASE})).await.data();
    let content = text["content"].as_str().expect("text");
    assert!(content.starts_with("-----BEGIN AGE ENCRYPTED FILE-----"));
    let other = Client::new();
    let body = json!({"passphrase": PASSPHRASE, "content": content});
    assert_eq!(other.post("/backup/import", body).await.status, 200);
    assert_eq!(other.get("/tunnels").await.data().as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn unreadable_and_foreign_documents_change_nothing() {
    let client = testbed().await;
    let before = client.get("/config/export").await.data()["resources"].clone();
    let file = sealed(&client, "/backup/export-encrypted").await;
    import_file(&client, "", file.clone(), "another passphrase").await.error(422, "decrypt_failed");
    let mut damaged = file.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    import_file(&client, "", damaged, PASSPHRASE).await.error(422, "decrypt_failed");
    import_file(&client, "", file[..file.len() - 3].to_vec(), PASSPHRASE).await.error(422, "decrypt_failed");
    import_file(&client, "", b"nonsense".to_vec(), PASSPHRASE).await.error(422, "decrypt_failed");
    import_file(&client, "", file, "").await.error(422, "validation_failed");
    for (body, code) in [
        (json!({}), "validation_failed"),
        (json!({"schema": "somebody-elses/1"}), "validation_failed"),
        (json!({"schema": "gateway-config/2", "version": "9.9"}), "validation_failed"),
        (
            json!({"schema": "gateway-config/1", "resources": {"devices": [{"name": ""}]}}),
            "validation_failed",
        ),
    ] {
        client.post("/config/import", body).await.error(422, code);
    }
    client
        .post("/config/export-encrypted", json!({"passphrase": "short"}))
        .await
        .error(422, "validation_failed");
    client.post("/backup/export", json!({"passphrase": ""})).await.error(422, "validation_failed");
    assert_eq!(client.get("/config/export").await.data()["resources"], before);
    assert_eq!(client.get("/snapshots").await.data(), json!([]));
}

#[tokio::test]
async fn a_passphrase_reaches_no_audit_entry() {
    let client = testbed().await;
    sealed(&client, "/config/export-encrypted").await;
    let entry = client.last_audit().await;
    assert_eq!(entry["action"], "export_config_encrypted");
    let all: Value = client.get("/audit").await.data();
    assert!(!all.to_string().contains(PASSPHRASE));
}

/// The standard tool decrypts exports: reading a backup does not need this gateway.
#[tokio::test]
async fn age_opens_an_encrypted_export() {
    let client = testbed().await;
    let file = sealed(&client, "/backup/export-encrypted").await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("backup.age");
    std::fs::write(&path, file).expect("written");
    // age reads passphrases from a terminal only; script(1) provides one.
    let command = format!("age --decrypt {}", path.display());
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--echo", "never", "--command", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script of util-linux and age are installed by cargo xtask setup");
    let mut input = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut input, format!("{PASSPHRASE}\n").as_bytes()).expect("typed");
    let output = child.wait_with_output().expect("ended");
    drop(input);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("gateway-config/1") && text.contains(&key()), "{text}");
}

/// More than any other body may have: what a gateway exports it imports.
#[tokio::test]
async fn exports_of_any_size_are_imported_plain_and_encrypted() {
    let devices: Vec<Value> = (0..10_000)
        .map(|n| json!({"name": format!("device {n}"), "mac": format!("02:00:00:00:{:02x}:{:02x}", n / 256, n % 256)}))
        .collect();
    let blocked: Vec<Value> = (0..10_000).map(|n| json!({"domain": format!("ads-{n}.example")})).collect();
    let policies: Vec<Value> = (0..500)
        .map(|n| {
            examples::policy(1)
                .as_object()
                .cloned()
                .map(|mut policy| {
                    policy["name"] = json!(format!("policy {n}"));
                    policy["priority"] = json!(n);
                    policy["source_value"] = json!(format!("10.{}.{}.0/24", n / 256, n % 256));
                    Value::Object(policy)
                })
                .expect("an object")
        })
        .collect();
    let resources = json!({"devices": devices, "dns_blocklist": blocked, "routing_policies": policies});
    let document = json!({"schema": "gateway-config/1", "secrets": false, "resources": resources});
    let client = Client::new();
    let answer = client.post("/config/import", document).await;
    assert_eq!(answer.status, 200, "{}", &answer.text[..answer.text.len().min(500)]);
    let plain = client.get("/config/export").await;
    assert!(plain.text.len() > 3 << 20, "{} bytes", plain.text.len());
    let file = sealed(&client, "/backup/export-encrypted").await;
    let armored = client.post("/backup/export", json!({"passphrase": PASSPHRASE})).await.data();
    let content = armored["content"].as_str().expect("text");
    assert_eq!(armored["size"], content.len());
    assert!(file.len() > 2 << 20 && content.len() > 2 << 20);
    let export = plain.data();
    for way in 0..3 {
        let other = Client::new();
        let answer = match way {
            0 => other.post("/config/import", export.clone()).await,
            1 => import_file(&other, "", file.clone(), PASSPHRASE).await,
            _ => {
                let body = json!({"passphrase": PASSPHRASE, "content": content});
                other.post("/backup/import", body).await
            }
        };
        assert_eq!(answer.status, 200, "{way}: {}", &answer.text[..answer.text.len().min(500)]);
        let again = other.get("/config/export").await.data();
        for part in ["resources", "settings", "pending"] {
            assert!(again[part] == export[part], "{way}: {part} differs");
        }
    }
    // Bodies of other endpoints keep their limit.
    let large = json!({"name": "x".repeat(3 << 20)});
    client.post("/devices", large).await.error(413, "payload_too_large");
}
