//! Alerts with real causes: dead tunnels and drift.

use std::time::Duration;

use gateway_tests::daemon::Api;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::SOON;

/// Returns the open alerts of a kind.
fn open(api: &Api, kind: &str) -> anyhow::Result<Vec<Value>> {
    let all = api.get("/alerts/active")?;
    Ok(all.as_array().into_iter().flatten().filter(|alert| alert["kind"] == kind).cloned().collect())
}

fn wait_for_one(api: &Api, kind: &str, within: Duration) -> Value {
    let mut found = Value::Null;
    wait_ok(within, kind, || {
        let alerts = open(api, kind)?;
        anyhow::ensure!(alerts.len() == 1, "{alerts:?}");
        found = alerts[0].clone();
        Ok(())
    })
    .expect("the alert");
    found
}

fn wait_for_none(api: &Api, kind: &str, within: Duration) {
    wait_ok(within, "the alert to end", || {
        let alerts = open(api, kind)?;
        anyhow::ensure!(alerts.is_empty(), "{alerts:?}");
        Ok(())
    })
    .expect("no alert");
}

fn alert(api: &Api, id: &Value) -> Value {
    let all = api.get("/alerts?limit=1000").expect("the alerts");
    let found = all.as_array().into_iter().flatten().find(|alert| alert["id"] == *id);
    found.unwrap_or_else(|| panic!("{id} is not in {all}")).clone()
}

#[test]
fn dead_tunnel_is_acknowledged_and_resolves_itself() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    let api = testbed.api();
    let load = gateway_tests::traffic::Load::start(&network.laptop).expect("load");
    network.exit_a.kill9().expect("exit killed");
    wait_ok(2 * SOON, "the tunnel to be down", || {
        load.run_for(200)?;
        anyhow::ensure!(open(api, "tunnel_down")?.len() == 1, "{}", api.get("/tunnels")?);
        Ok(())
    })
    .expect("an alert");
    load.stop();
    let down = wait_for_one(api, "tunnel_down", SOON);
    assert_eq!((&down["resource_id"], &down["resource_type"]), (&json!(tunnel), &json!("tunnel")));
    assert!(down["title"].as_str().is_some_and(|title| title.ends_with("wg-a")), "{down}");
    let path = format!("/alerts/{}/acknowledge", down["id"]);
    assert_eq!(api.act(&path).expect("acknowledged")["status"], "acknowledged");
    let refused = api.send("POST", &path, None).expect("an answer");
    assert_eq!(
        (refused.status, &refused.body["error"]["code"]),
        (409, &json!("invalid_state")),
        "{}",
        refused.body
    );
    network.exit_a.start().expect("exit started");
    wait_for_none(api, "tunnel_down", 3 * SOON);
    let resolved = alert(api, &down["id"]);
    assert_eq!((&resolved["status"], &resolved["acknowledged_at"].is_string()), (&json!("resolved"), &true));
    for verb in ["acknowledge", "resolve"] {
        let refused = api.send("POST", &format!("/alerts/{}/{verb}", down["id"]), None).expect("an answer");
        assert_eq!((refused.status, &refused.body["error"]["code"]), (409, &json!("invalid_state")));
    }
}

#[test]
fn rules_flushed_by_another_program_are_an_alert() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert!(open(testbed.api(), "drift_detected").expect("the alerts").is_empty());
    network.gateway.run("nft", &["flush", "ruleset"]).expect("flushed");
    let drift = wait_for_one(testbed.api(), "drift_detected", SOON);
    assert_eq!(drift["subject"], "nft", "{drift}");
    let resolved = testbed.api().act(&format!("/alerts/{}/resolve", drift["id"])).expect("resolved");
    assert_eq!((&resolved["status"], &resolved["auto_resolved"]), (&json!("resolved"), &json!(false)));
    let audit = testbed.api().get("/audit?action=resolve_alert").expect("the audit trail");
    assert_eq!(audit[0]["resource_id"], json!(drift["id"].to_string()), "{audit}");
}

#[test]
fn exception_and_quarantine_are_alerts_while_they_last() {
    let testbed = Testbed::start().expect("scene");
    let api = testbed.api();
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    let body = json!({"type": "temporary-direct", "device_id": laptop, "duration_min": 3});
    let exception = create(api, "/exceptions", &body).expect("an exception");
    let started = wait_for_one(api, "exception_started", SOON);
    assert_eq!((&started["device_id"], &started["resource_id"]), (&json!(laptop), &json!(exception)));
    wait_for_one(api, "exception_expiring", SOON);
    api.delete(&format!("/exceptions/{exception}")).expect("revoked");
    wait_for_none(api, "exception_started", SOON);
    wait_for_none(api, "exception_expiring", SOON);
    let mut device = api.get(&format!("/devices/{laptop}")).expect("the device");
    device["status"] = json!("quarantined");
    api.put(&format!("/devices/{laptop}"), &device).expect("in quarantine");
    assert_eq!(wait_for_one(api, "device_quarantined", SOON)["device_id"], json!(laptop));
}
