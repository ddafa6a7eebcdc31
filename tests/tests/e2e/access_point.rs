//! The access point on a host without a radio: the missing part is named, and its network is there all the same.

use gateway_tests::testbed::Testbed;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::SOON;

fn access_point(interface: &str) -> Value {
    json!({"interface": interface, "subnet": "10.9.0.0/24", "ip": "10.9.0.1", "enabled": true, "ssid": "home",
        "passphrase": "correct horse", "country": "DE"})
}

#[test]
fn without_a_radio_the_missing_part_is_named_and_nothing_is_pretended() {
    let mut testbed = Testbed::prepare().expect("a network");
    testbed.daemon.configure(&json!({"network": {"ap": access_point("eth1")}})).expect("configured");
    testbed.daemon.start().expect("started");
    let status = wait_ok(SOON, "the missing part", || {
        let status = testbed.api().get("/access-point/status")?;
        let needs = status["needs"].as_str().unwrap_or_default();
        let is_named = needs.contains("hostapd") || needs.contains("eth1 is no wireless interface");
        anyhow::ensure!(status["enabled"] == true && is_named, "{status}");
        Ok(status)
    })
    .expect("a state");
    assert_eq!(
        (&status["running"], &status["radio"], &status["stations"]),
        (&json!(false), &Value::Null, &Value::Null)
    );
    let health = testbed.api().get("/health").expect("health");
    let check =
        health["checks"].as_array().into_iter().flatten().find(|check| check["name"] == "access_point");
    assert_eq!(check.expect("a check")["state"], "failed", "{health}");
    let services = testbed.api().get("/services").expect("services");
    let hostapd = services.as_array().into_iter().flatten().find(|service| service["name"] == "hostapd");
    assert_eq!(
        (&hostapd.expect("a row")["running"], &hostapd.expect("a row")["required_by"]),
        (&json!(false), &json!(["access point"]))
    );
}

#[test]
fn passphrase_is_stored_beside_the_setting_and_waits_for_a_restart() {
    let testbed = Testbed::start().expect("a network");
    let api = testbed.api();
    let show = || api.get("/settings/network.ap").expect("the setting");
    let put = |value: &Value| {
        api.send("PUT", "/settings/network.ap", Some(&json!({"value": value}))).expect("an answer")
    };
    let path =
        |reply: &gateway_tests::daemon::Reply| reply.body["error"]["details"]["fields"][0]["path"].clone();
    let mut outside = access_point("eth1");
    outside["ip"] = json!("10.7.0.1");
    let refused = put(&outside);
    assert_eq!((refused.status, path(&refused)), (422, json!("network.ap.ip")), "{}", refused.body);
    let mut short = access_point("eth1");
    short["passphrase"] = json!("2short");
    let refused = put(&short);
    assert_eq!((refused.status, path(&refused)), (422, json!("network.ap.passphrase")));
    assert!(!refused.body.to_string().contains("2short"), "{}", refused.body);
    assert!(show()["value"].is_null(), "nothing is stored on error");

    assert_eq!(put(&access_point("eth1")).status, 200);
    let shown = show();
    assert_eq!(
        (&shown["value"]["has_passphrase"], &shown["pending_restart"], &shown["apply"]),
        (&json!(true), &json!(true), &json!("restart"))
    );
    assert!(!shown.to_string().contains("horse"), "{shown}");
    assert_eq!(api.get("/access-point/status").expect("a state")["enabled"], false, "until the next start");
    // The shown form changes nothing, and another passphrase is another value.
    assert_eq!(put(&shown["value"]).status, 200);
    let export = api.get("/config/export").expect("an export").to_string();
    assert!(!export.contains("horse"), "{export}");
    let secrets = api.get("/secrets").expect("the secrets").to_string();
    assert!(secrets.contains("network.ap.passphrase"), "{secrets}");
    assert_eq!(put(&Value::Null).status, 200);
    let secrets = api.get("/secrets").expect("the secrets").to_string();
    assert!(!secrets.contains("network.ap.passphrase"), "{secrets}");
}
