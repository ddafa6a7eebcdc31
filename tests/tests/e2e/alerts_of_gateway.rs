//! Alerts about the gateway itself, with real causes.

use gateway_tests::testbed::{Testbed, create};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::SOON;

/// Waits for an open alert of a kind, by a function that reads the open alerts.
fn wait_for(kind: &str, read: impl Fn() -> anyhow::Result<Value>) -> Value {
    let mut found = Value::Null;
    wait_ok(SOON, kind, || {
        let open = read()?;
        let alert = open.as_array().into_iter().flatten().find(|alert| alert["kind"] == kind);
        found = alert.cloned().ok_or_else(|| anyhow::anyhow!("{open}"))?;
        Ok(())
    })
    .expect("the alert");
    found
}

#[test]
fn five_wrong_passwords_are_an_alert_and_four_are_none() {
    let mut testbed = Testbed::prepare().expect("scene");
    testbed
        .daemon
        .configure(&json!({"auth": {"enabled": true, "local_net": "127.0.0.0/8"}}))
        .expect("configured");
    testbed.daemon.initialise().expect("initialised");
    let mut command = testbed.daemon.command(&["user", "add", "--username", "anna", "--role", "admin"]);
    let added = command.env("GATEWAY_USER_PASSWORD", "correct horse battery").output().expect("gatewayd");
    assert!(added.status.success(), "{added:?}");
    testbed.daemon.start().expect("started");
    let api = testbed.api();
    let attempt = || {
        let body = json!({"username": "anna", "password": "wrong horse battery"});
        api.send("POST", "/auth/login", Some(&body)).expect("an answer").status
    };
    for _ in 0..4 {
        assert_eq!(attempt(), 401);
    }
    assert_eq!(api.get("/alerts?kind=login_lockout").expect("the alerts"), json!([]));
    assert_eq!(attempt(), 401);
    let alert = wait_for("login_lockout", || api.get("/alerts/active"));
    assert!(alert["message"].as_str().is_some_and(|text| text.contains("anna")), "{alert}");
    assert_eq!((&alert["subject"], &alert["count"]), (&json!("127.0.0.1"), &json!(1)));
    assert_eq!(attempt(), 429);
}

#[test]
fn backup_target_that_refuses_is_an_alert_until_a_backup_succeeds() {
    let testbed = Testbed::start().expect("scene");
    let api = testbed.api();
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("missing");
    let config = json!({"enabled": true, "passphrase": "correct horse battery",
        "target": {"type": "local", "path": target}});
    api.put("/backup/config", &config).expect("set");
    std::fs::write(&target, "a file in the place of the folder").expect("written");
    let refused = api.send("POST", "/backup/run", None).expect("an answer");
    assert!(refused.status >= 400, "{}", refused.body);
    let alert = wait_for("backup_failed", || api.get("/alerts/active"));
    assert_eq!(alert["status"], "active");
    std::fs::remove_file(&target).expect("removed");
    std::fs::create_dir(&target).expect("created");
    api.act("/backup/run").expect("a backup");
    wait_ok(SOON, "the alert to end", || {
        let resolved = api.get("/alerts?kind=backup_failed&status=resolved")?;
        anyhow::ensure!(resolved[0]["id"] == alert["id"], "{resolved}");
        Ok(())
    })
    .expect("resolved");
}

#[test]
fn key_and_rollback_are_alerts() {
    let testbed = Testbed::start().expect("scene");
    let api = testbed.api();
    let key = create(api, "/auth/keys", &json!({"name": "scripts", "role": "viewer"})).expect("a key");
    let alert = wait_for("key_created", || api.get("/alerts/active"));
    assert_eq!((&alert["resource_id"], &alert["severity"]), (&json!(key), &json!("info")), "{alert}");
    let plan = json!({"resources": {"devices": [{"name": "new"}]}});
    let snapshot = api.post("/apply", &plan).expect("applied")["snapshot"].clone();
    api.post("/rollback", &json!({"snapshot": snapshot})).expect("rolled back");
    wait_for("rollback_performed", || api.get("/alerts/active"));
    // The rollback has not taken the alerts back.
    wait_for("key_created", || api.get("/alerts/active"));
}
