//! Bluetooth against mock objects of BlueZ on a bus of their own. They have no radio.

mod networks;
mod pairing;

use gateway_tests::alerts::wait_for_alert;
use gateway_tests::bluez_mock::BluezMock;
use gateway_tests::daemon::Api;
use gateway_tests::testbed::Testbed;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::SOON;

const PHONE: &str = "00:16:3e:00:00:01";
const SPEAKER: &str = "00:16:3e:00:00:02";

/// A gateway beside BlueZ.
struct Scene {
    testbed: Testbed,
    bluez: BluezMock,
}

impl Scene {
    /// Returns a running daemon at the bus of a mock that is prepared by a function.
    fn start(prepare: impl FnOnce(&mut BluezMock)) -> Scene {
        let mut bluez = BluezMock::prepare().expect("a bus");
        prepare(&mut bluez);
        let mut testbed = Testbed::prepare().expect("scene");
        testbed.daemon.set_environment("DBUS_SYSTEM_BUS_ADDRESS", bluez.address().into());
        testbed.daemon.start().expect("started");
        Scene { testbed, bluez }
    }

    /// Returns a daemon with an adapter and a phone, once it has found both.
    fn with_phone() -> Scene {
        let scene = Scene::start(|bluez| {
            bluez.start_bus().expect("a bus");
            bluez.start_mock().expect("a mock");
            bluez.add_adapter().expect("an adapter");
            bluez.add_phone(&PHONE.to_uppercase(), "Phone of Ada").expect("a phone");
        });
        scene.wait_for_status("an adapter", |status| status["available"] == true);
        scene.wait_for_device("/bluetooth/nearby", PHONE);
        scene
    }

    fn api(&self) -> &Api {
        self.testbed.api()
    }

    fn wait_for_status(&self, what: &str, is_met: impl Fn(&Value) -> bool) -> Value {
        wait_ok(2 * SOON, what, || {
            let status = self.api().get("/bluetooth/status")?;
            anyhow::ensure!(is_met(&status), "{status}");
            Ok(status)
        })
        .expect(what)
    }

    fn wait_for_device(&self, list: &str, mac: &str) -> Value {
        wait_ok(SOON, "a device", || {
            let devices = self.api().get(list)?;
            let found = devices.as_array().into_iter().flatten().find(|device| device["mac"] == mac);
            found.cloned().ok_or_else(|| anyhow::anyhow!("{devices}"))
        })
        .expect("a device")
    }

    /// Returns status, code and error of a request. Null is no body.
    fn refused(&self, method: &str, path: &str, body: &Value) -> (u16, String, Value) {
        let body = Some(body).filter(|body| !body.is_null());
        let reply = self.api().send(method, path, body).expect("an answer");
        let error = reply.body["error"].clone();
        (reply.status, error["code"].as_str().unwrap_or_default().to_owned(), error)
    }
}

#[test]
fn without_bus_daemon_or_adapter_the_missing_part_is_named_and_nothing_is_pretended() {
    let mut scene = Scene::start(|_| ());
    let needs = |scene: &Scene, part: &str| {
        let status = scene.wait_for_status(part, |status| {
            status["needs"].as_str().is_some_and(|needs| needs.contains(part))
        });
        assert_eq!((&status["available"], &status["powered"]), (&json!(false), &Value::Null), "{status}");
        for path in ["enable", "disable", "scan", "pan/connect", "pan/disconnect", "nap/start", "nap/stop"] {
            let (status, code, error) = scene.refused("POST", &format!("/bluetooth/{path}"), &json!({}));
            assert_eq!((status, code.as_str()), (501, "not_supported"), "{path}: {error}");
            assert!(error["details"]["needs"].as_str().is_some_and(|needs| needs.contains(part)), "{error}");
        }
        let (status, code, _) = scene.refused("POST", "/bluetooth/pair", &json!({"mac": PHONE}));
        assert_eq!((status, code.as_str()), (501, "not_supported"));
        let (status, ..) = scene.refused("PUT", "/bluetooth/name", &json!({"name": "gateway"}));
        assert_eq!(status, 501);
    };
    needs(&scene, "system bus");
    for list in ["devices", "nearby"] {
        assert_eq!(scene.api().get(&format!("/bluetooth/{list}")).expect("a list"), json!([]));
    }
    scene.bluez.start_bus().expect("a bus");
    needs(&scene, "daemon of BlueZ");
    scene.bluez.start_mock().expect("a mock");
    needs(&scene, "adapter");
    scene.bluez.add_adapter().expect("an adapter");
    scene.wait_for_status("an adapter", |status| status["available"] == true);
    scene.bluez.remove_adapter().expect("pulled out");
    needs(&scene, "adapter");
    // A crash of the daemon and of the bus: each is found again.
    scene.bluez.add_adapter().expect("an adapter");
    scene.wait_for_status("an adapter", |status| status["available"] == true);
    scene.bluez.kill_mock().expect("killed");
    needs(&scene, "daemon of BlueZ");
    scene.bluez.kill_bus().expect("killed");
    needs(&scene, "system bus");
    scene.bluez.start_bus().expect("a bus");
    scene.bluez.start_mock().expect("a mock");
    scene.bluez.add_adapter().expect("an adapter");
    scene.wait_for_status("all again", |status| status["available"] == true);
}

#[test]
fn adapter_is_switched_named_and_scans_and_settings_count_at_once() {
    let scene = Scene::with_phone();
    let api = scene.api();
    let status = api.get("/bluetooth/status").expect("the state");
    assert_eq!((&status["powered"], &status["needs"]), (&json!(true), &Value::Null), "{status}");
    assert_eq!(status["adapter"]["address"], "00:01:02:03:04:05");
    let named = api.put("/bluetooth/name", &json!({"name": "hallway"})).expect("named");
    assert_eq!(named["adapter"]["name"], "hallway", "{named}");
    let off = api.act("/bluetooth/disable").expect("off");
    assert_eq!(off["powered"], false, "{off}");
    let (status, code, error) = scene.refused("POST", "/bluetooth/scan", &json!({}));
    assert_eq!((status, code.as_str()), (409, "invalid_state"), "{error}");
    api.put("/bluetooth/settings", &json!({"discoverable_timeout": 90})).expect("stored");
    let on = api.post("/bluetooth/enable", &json!({"discoverable": true})).expect("on");
    assert_eq!((&on["powered"], &on["adapter"]["discoverable"]), (&json!(true), &json!(true)), "{on}");
    assert!(on["pairing_until"].is_string(), "{on}");
    let scan = api.post("/bluetooth/scan", &json!({"duration_sec": 2})).expect("a scan");
    assert!(scan["scan_until"].is_string(), "{scan}");
    scene.bluez.add_phone(&SPEAKER.to_uppercase(), "Speaker").expect("a speaker");
    let speaker = scene.wait_for_device("/bluetooth/nearby", SPEAKER);
    assert_eq!(
        (&speaker["name"], &speaker["rssi"], &speaker["paired"]),
        (&json!("Speaker"), &json!(-79), &json!(false)),
        "{speaker}"
    );
    scene.wait_for_status("the scan to end", |status| status["scan_until"].is_null());
    let signal = api.get(&format!("/bluetooth/rssi/{SPEAKER}")).expect("a signal");
    assert_eq!(signal["rssi"], -79, "{signal}");
    let (status, ..) = scene.refused("GET", "/bluetooth/rssi/00:16:3e:00:00:99", &Value::Null);
    assert_eq!(status, 404);
    let (status, ..) = scene.refused("POST", "/bluetooth/scan", &json!({"duration_sec": 0}));
    assert_eq!(status, 422);
}

#[test]
fn flood_of_devices_is_an_alert_and_known_devices_survive_a_restart() {
    let mut scene = Scene::with_phone();
    let ids = scene.api().get("/bluetooth/ids").expect("the detection");
    assert_eq!((&ids["learning"], &ids["events"]), (&json!(true), &json!([])), "{ids}");
    scene.bluez.add_devices(60).expect("devices");
    let alert = wait_for_alert(scene.api(), "bluetooth_ids", "flood", 2 * SOON).expect("an alert");
    assert_eq!(alert["source"], "bluetooth", "{alert}");
    let ids = scene.api().get("/bluetooth/ids").expect("the detection");
    assert_eq!(
        (&ids["events"][0]["kind"], &ids["events"][0]["severity"]),
        (&json!("flood"), &json!("critical"))
    );
    let learned_until = ids["learned_until"].clone();
    scene.testbed.daemon.terminate().expect("ended");
    scene.testbed.daemon.start().expect("started again");
    let ids = scene.api().get("/bluetooth/ids").expect("the detection");
    assert_eq!(
        (&ids["events"][0]["kind"], &ids["learned_until"]),
        (&json!("flood"), &learned_until),
        "{ids}"
    );
    let knows =
        |ids: &Value| ids["known"].as_array().is_some_and(|all| all.iter().any(|one| one["mac"] == PHONE));
    assert!(knows(&ids), "{ids}");
}
