//! The gateway itself: temperature, clock and dead-man switch.

use gateway_tests::alerts::{open_alert, wait_for_alert};
use gateway_tests::temperature_sensor::TemperatureSensor;
use gateway_tests::testbed::{Testbed, create};
use gateway_tests::wait::wait_ok;
use gateway_tests::wall_clock::WallClock;
use serde_json::{Value, json};

use super::{set_rule, wait_for_end};
use crate::e2e::SOON;

const MINUTE: i64 = 60;

#[test]
fn hot_processor_and_a_clock_that_no_server_sets_are_alerts_until_they_end() {
    let mut testbed = Testbed::prepare().expect("scene");
    let clock = WallClock::install(&mut testbed.daemon).expect("a clock");
    clock.synchronise(true).expect("set");
    let sensor = TemperatureSensor::install(&mut testbed.daemon, 51.5).expect("a sensor");
    testbed.daemon.start().expect("daemon");
    let api = testbed.api();
    for kind in ["cpu_temp_high", "clock_unsynchronised"] {
        set_rule(api, kind, &json!({"window_sec": 0}));
    }
    assert_eq!(api.get("/platform").expect("the host")["cpu_temp"], 51.5);
    for (kind, subject) in [("cpu_temp_high", "cpu"), ("clock_unsynchronised", "clock")] {
        assert!(open_alert(api, kind, subject).is_err(), "{kind}");
    }

    sensor.set(91.0).expect("hot");
    let hot = wait_for_alert(api, "cpu_temp_high", "cpu", SOON).expect("an alert");
    assert_eq!((&hot["resource_type"], &hot["caused_by"]), (&json!("processor"), &Value::Null));
    assert!(hot["message"].as_str().is_some_and(|text| text.contains("90 °C")), "{hot}");
    // The threshold is that of the rule.
    set_rule(api, "cpu_temp_high", &json!({"threshold": 95.0}));
    wait_for_end(api, &hot, SOON);
    set_rule(api, "cpu_temp_high", &json!({"threshold": 85.0, "cooldown_sec": 0}));
    let hot = wait_for_alert(api, "cpu_temp_high", "cpu", SOON).expect("an alert");
    sensor.set(60.0).expect("cooler");
    wait_for_end(api, &hot, SOON);

    clock.synchronise(false).expect("set");
    let unset = wait_for_alert(api, "clock_unsynchronised", "clock", SOON).expect("an alert");
    assert_eq!(unset["resource_type"], "clock", "{unset}");
    clock.synchronise(true).expect("set");
    wait_for_end(api, &unset, SOON);
}

/// The gateway is off for two thirds of the time of the switch. Requests of a host that does not sign in are no check-in.
#[test]
fn dead_man_switch_warns_until_an_administrator_checks_in() {
    let mut testbed = Testbed::prepare().expect("scene");
    let clock = WallClock::install(&mut testbed.daemon).expect("a clock");
    clock.synchronise(true).expect("set");
    testbed.daemon.start().expect("daemon");
    let api = testbed.api();
    create(api, "/devices", &json!({"name": "kept"})).expect("a device");
    let key = api.post("/auth/keys", &json!({"name": "phone", "role": "operator"})).expect("a key");
    let key = key["key"].as_str().expect("its text").to_owned();
    api.put("/system/deadman", &json!({"enabled": true, "hours": 1, "level": "soft"})).expect("armed");
    testbed.daemon.terminate().expect("ended");
    let mut command = testbed.daemon.command(&["user", "add", "--username", "anna", "--role", "admin"]);
    let added = command.env("GATEWAY_USER_PASSWORD", "correct horse battery").output().expect("gatewayd");
    assert!(added.status.success(), "{added:?}");
    let auth = json!({"auth": {"enabled": true, "local_net": "127.0.0.0/8"}});
    testbed.daemon.configure(&auth).expect("configured");
    clock.set(40 * MINUTE).expect("later");
    testbed.daemon.start().expect("daemon");

    let api = testbed.api();
    let warning = wait_for_alert(api, "deadman_warning", "dead_man_switch", 2 * SOON).expect("an alert");
    assert_eq!((&warning["severity"], &warning["resource_type"]), (&json!("critical"), &json!("system")));
    assert!(warning["message"].as_str().is_some_and(|text| text.contains("50 per cent")), "{warning}");
    let header = format!("authorization: Bearer {key}");
    let url = "http://127.0.0.1:8080/api/v1/status";
    wait_ok(SOON, "a check-in", || {
        testbed.network.gateway.run("curl", &["-sf", "-H", &header, url]).map(drop)
    })
    .expect("checked in");
    wait_for_end(api, &warning, SOON);
}
