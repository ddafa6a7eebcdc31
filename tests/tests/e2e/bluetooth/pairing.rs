//! Pairing with devices, in both directions.

use serde_json::{Value, json};

use super::{PHONE, SPEAKER, Scene};

fn pair(scene: &Scene, more: &[(&str, Value)]) -> Value {
    let mut body = json!({"mac": PHONE});
    for (field, value) in more {
        body[*field] = value.clone();
    }
    scene.api().post("/bluetooth/pair", &body).expect("an answer")
}

#[test]
fn pairing_is_confirmed_by_the_passkey_and_the_device_is_trusted_and_forgotten() {
    let scene = Scene::with_phone();
    scene.bluez.set_pairing("confirm", 4321).expect("set");
    let waiting = pair(&scene, &[]);
    let pairing = &waiting["pairing"];
    assert_eq!(
        (&pairing["state"], &pairing["passkey"], &waiting["paired"]),
        (&json!("confirm_passkey"), &json!("004321"), &json!(false)),
        "{waiting}"
    );
    let paired = pair(&scene, &[("passkey", json!("004321"))]);
    assert_eq!(
        (&paired["pairing"]["state"], &paired["paired"], &paired["trusted"]),
        (&json!("paired"), &json!(true), &json!(false)),
        "{paired}"
    );
    let device = scene.wait_for_device("/bluetooth/devices", PHONE);
    let services = device["services"].as_array().expect("services");
    assert!(services.contains(&json!("pan_user")) && services.contains(&json!("audio_source")), "{device}");
    let trusted = pair(&scene, &[("trusted", json!(true))]);
    assert_eq!(trusted["trusted"], true, "{trusted}");
    // Trust ends with the settings.
    scene.api().put("/bluetooth/settings", &json!({"allowed_macs": [SPEAKER]})).expect("stored");
    let is_trusted = || scene.wait_for_device("/bluetooth/devices", PHONE)["trusted"] == true;
    gateway_tests::wait::wait_for(crate::e2e::SOON, "the trust to end", || !is_trusted()).expect("ended");
    scene.api().delete(&format!("/bluetooth/devices/{PHONE}")).expect("forgotten");
    assert_eq!(scene.api().get("/bluetooth/devices").expect("a list"), json!([]));
    let (status, ..) = scene.refused("DELETE", &format!("/bluetooth/devices/{PHONE}"), &Value::Null);
    assert_eq!(status, 404);
}

#[test]
fn other_passkey_wrong_pin_and_devices_that_are_not_allowed_are_refused() {
    let scene = Scene::with_phone();
    scene.bluez.set_pairing("confirm", 111_111).expect("set");
    pair(&scene, &[]);
    let wrong = json!({"mac": PHONE, "passkey": "111112"});
    let (status, code, error) = scene.refused("POST", "/bluetooth/pair", &wrong);
    assert_eq!((status, code.as_str()), (409, "invalid_state"), "{error}");
    scene.wait_for_status("the pairing to fail", |status| status["pairing"]["state"] == "failed");
    scene.bluez.set_pairing("pin", 1234).expect("set");
    let wrong = json!({"mac": PHONE, "pin": "0000"});
    let (status, code, error) = scene.refused("POST", "/bluetooth/pair", &wrong);
    assert_eq!((status, code.as_str()), (502, "dependency_failed"), "{error}");
    assert!(!error.to_string().contains("0000"), "{error}");
    let waiting = pair(&scene, &[]);
    assert_eq!(waiting["pairing"]["state"], "enter_pin", "{waiting}");
    let paired = pair(&scene, &[("pin", json!("1234")), ("trusted", json!(true))]);
    assert_eq!(paired["paired"], true, "{paired}");
    scene.bluez.add_phone(&SPEAKER.to_uppercase(), "Speaker").expect("a speaker");
    scene.wait_for_device("/bluetooth/nearby", SPEAKER);
    scene.api().put("/bluetooth/settings", &json!({"allowed_macs": [PHONE]})).expect("stored");
    let (status, _, error) = scene.refused("POST", "/bluetooth/pair", &json!({"mac": SPEAKER}));
    assert_eq!((status, &error["details"]["fields"][0]["path"]), (422, &json!("mac")), "{error}");
}

#[test]
fn devices_begin_a_pairing_only_in_the_window_and_a_user_accepts_it() {
    let scene = Scene::with_phone();
    scene.bluez.set_pairing("authorize", 0).expect("set");
    let rejected = scene.bluez.begin_pairing(&PHONE.to_uppercase()).expect("an answer");
    assert_eq!(rejected, "org.bluez.Error.AuthenticationRejected", "the window is closed");
    scene.api().post("/bluetooth/enable", &json!({"discoverable": true})).expect("a window");
    let answer = std::thread::scope(|scope| {
        let phone = scope.spawn(|| scene.bluez.begin_pairing(&PHONE.to_uppercase()));
        let waiting = scene.wait_for_status("a pairing", |status| status["pairing"]["state"] == "accept");
        assert_eq!(
            (&waiting["pairing"]["incoming"], &waiting["pairing"]["mac"]),
            (&json!(true), &json!(PHONE))
        );
        pair(&scene, &[("accept", json!(true))]);
        phone.join().expect("an answer").expect("an answer")
    });
    assert_eq!(answer, "paired");
    let paired = scene.wait_for_status("the end", |status| status["pairing"]["state"] == "paired");
    assert_eq!(paired["pairing"]["error"], Value::Null);
}
