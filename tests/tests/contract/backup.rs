//! Scheduled backups through the API, with a folder as their target.

use axum::body::Body;
use gateway_api::context::Settings;
use gateway_api::gateway::Gateway;
use http::Request;
use serde_json::{Value, json};

use crate::contract::client::Client;
use crate::contract::examples;

const PASSPHRASE: &str = "correct horse battery";

fn config(path: &std::path::Path) -> Value {
    json!({"enabled": true, "passphrase": PASSPHRASE, "target": {"type": "local", "path": path}})
}

#[tokio::test]
async fn the_configuration_comes_back_as_it_was_and_its_secrets_are_never_shown() {
    let client = Client::new();
    let folder = tempfile::tempdir().expect("a folder");
    let defaults = client.get("/backup/config").await.data();
    assert_eq!(
        (&defaults["enabled"], &defaults["schedule"], &defaults["retain"], &defaults["include"]),
        (&json!(false), &json!("0 3 * * *"), &json!(14), &json!(["config"]))
    );
    let set = client.put("/backup/config", config(folder.path())).await;
    assert_eq!(set.status, 200, "{}", set.text);
    let shown = client.get("/backup/config").await;
    assert!(!shown.text.contains("correct horse"));
    let again = client.put("/backup/config", shown.data()).await;
    assert_eq!((again.status, &again.json()["warnings"]), (200, &Value::Null), "{}", again.text);
    let kept = client.get("/backup/config").await.data();
    assert_eq!((&kept["has_passphrase"], &kept["target"]["has_secret"]), (&json!(true), &json!(false)));
    let secrets = client.get("/secrets").await;
    assert!(secrets.text.contains("backup.config.passphrase") && !secrets.text.contains("correct"));
    assert!(!client.get("/audit").await.text.contains("correct horse"));
    assert!(!client.get("/settings").await.text.contains("correct horse"));
}

#[tokio::test]
async fn invalid_contents_and_targets_are_refused() {
    let state = tempfile::tempdir().expect("a folder");
    let inside = state.path().join("backups");
    std::fs::create_dir(&inside).expect("a folder");
    let gateway = Gateway::detached(state.path()).expect("a store");
    let client = Client::over(gateway, Settings::default(), state);
    let refused = |answer: crate::contract::client::Answer| {
        let details = answer.error(422, "validation_failed");
        let field = details["fields"][0].clone();
        (
            field["path"].as_str().expect("a path").to_owned(),
            field["rule"].as_str().expect("a rule").to_owned(),
        )
    };
    let put = async |value: Value| client.put("/backup/config", value).await;
    let owned = |path: &str, rule: &str| (path.to_owned(), rule.to_owned());
    assert_eq!(refused(put(config(&inside)).await), owned("target.path", "conflict"));
    assert_eq!(refused(put(config(std::path::Path::new("backups"))).await), owned("target.path", "format"));
    for include in ["history", "leases"] {
        let mut value = config(std::path::Path::new("/srv"));
        value["include"] = json!(["config", include]);
        assert_eq!(refused(put(value).await), owned("include[1]", "not_supported"));
    }
    let mut value = config(std::path::Path::new("/srv"));
    value["schedule"] = json!("now and then");
    assert_eq!(refused(put(value).await), owned("schedule", "format"));
    assert_eq!(client.get("/backup/config").await.data()["enabled"], false);
    let details = client.send("POST", "/backup/run", None, &[]).await.error(409, "invalid_state");
    assert_eq!(details["state"], "not_set_up");
}

#[tokio::test]
async fn a_requested_backup_is_made_reported_and_restored_elsewhere() {
    let client = Client::new();
    let tunnel = examples::tunnel(1);
    client.create("/tunnels", tunnel.clone()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let before = client.get("/backup/status").await.data();
    for field in ["last_run", "last_result", "last_size", "next_run"] {
        assert_eq!(before[field], Value::Null, "{field}");
    }
    assert_eq!((&before["target"]["reachable"], &before["history"]), (&Value::Null, &json!([])));
    assert_eq!(client.put("/backup/config", config(folder.path())).await.status, 200);
    let entries = client.audit_count().await;
    let run = client.send("POST", "/backup/run", None, &[]).await;
    assert_eq!(run.status, 200, "{}", run.text);
    let run = run.data();
    assert_eq!((&run["result"], &run["trigger"]), (&json!("ok"), &json!("manual")));
    assert_eq!(client.audit_count().await, entries + 1, "one entry for one run");
    let audit = client.last_audit().await;
    assert_eq!((&audit["action"], &audit["result"]), (&json!("run_backup"), &json!("success")));
    assert_eq!(audit["details"]["name"], run["name"]);
    let status = client.get("/backup/status").await.data();
    assert_eq!((&status["last_result"], &status["last_run"]), (&json!("ok"), &run["at"]));
    assert_eq!((&status["last_size"], &status["history"]), (&run["size"], &json!([run])));
    assert!(status["next_run"].is_string(), "{status}");
    assert_eq!((&status["target"]["reachable"], &status["target"]["backups"]), (&json!(true), &json!(1)));
    let observed = client.get("/observer").await.data();
    let row = observed.as_array().expect("a list").iter().find(|row| row["subsystem"] == "backup").cloned();
    assert_eq!(row.expect("backups are observed")["state"], "ok");

    let name = run["name"].as_str().expect("a name");
    let file = std::fs::read(folder.path().join(name)).expect("the backup");
    assert_eq!(json!(file.len()), run["size"]);
    let other = Client::new();
    let request = Request::post("/api/v1/backup/import")
        .header("host", "127.0.0.1")
        .header("content-type", "application/octet-stream")
        .header("x-passphrase", PASSPHRASE)
        .body(Body::from(file))
        .expect("a request");
    let taken = other.raw(request).await;
    assert_eq!(taken.status, 200, "{}", taken.text);
    let id = other.get("/tunnels").await.data()[0]["id"].as_str().expect("a tunnel").to_owned();
    let revealed = other.get(&format!("/tunnels/{id}/config?reveal=true")).await.text;
    assert!(revealed.contains(tunnel["private_key"].as_str().expect("a key")), "{revealed}");
    assert_eq!(other.get("/backup/config").await.data(), client.get("/backup/config").await.data());
}

#[tokio::test]
async fn a_backup_that_fails_says_why_and_leaves_one_entry() {
    let client = Client::new();
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("not-mounted");
    assert_eq!(client.put("/backup/config", config(&missing)).await.status, 200);
    let entries = client.audit_count().await;
    let details = client.send("POST", "/backup/run", None, &[]).await.error(502, "upstream_failed");
    assert_eq!(details["target"], json!(missing));
    assert_eq!(client.audit_count().await, entries + 1);
    let audit = client.last_audit().await;
    assert_eq!((&audit["action"], &audit["result"]), (&json!("run_backup"), &json!("failed")));
    let status = client.get("/backup/status").await.data();
    assert_eq!((&status["last_result"], &status["last_size"]), (&json!("failed"), &Value::Null));
    assert_eq!(status["target"]["reachable"], false);
    assert!(
        status["history"][0]["error"].as_str().is_some_and(|why| why.contains("does not exist")),
        "{status}"
    );
    let observed = client.get("/observer").await.data();
    let row = observed.as_array().expect("a list").iter().find(|row| row["subsystem"] == "backup").cloned();
    assert_eq!(row.expect("backups are observed")["state"], "failed");
}
