//! Rules of reservations.

use serde_json::json;

use crate::edit::EditError;
use crate::kinds::test_objects::*;

#[test]
fn reservations_are_of_one_card_one_address_and_one_name() {
    let mut state = draft();
    let input = json!({"mac": "02-42-AC-11-00-02", "ip": "192.168.1.20", "hostname": "NAS"});
    let (made_first, _) = made(&mut state, "dhcp_reservation", input);
    assert_eq!((&made_first["mac"], &made_first["hostname"]), (&json!("02:42:ac:11:00:02"), &json!("nas")));
    assert!(of("dhcp_reservation").find(&state, "02-42-ac-11-00-02").is_some());
    for (input, want) in [
        (json!({"mac": "02:42:ac:11:00:02", "ip": "192.168.1.21"}), "mac taken"),
        (json!({"mac": "02:42:ac:11:00:03", "ip": "192.168.1.20"}), "ip taken"),
        (json!({"mac": "02:42:ac:11:00:03", "ip": "192.168.1.21", "hostname": "nas"}), "hostname taken"),
    ] {
        assert_eq!(refusal(create(&mut state, "dhcp_reservation", input)), [want]);
    }
    refused(
        "dhcp_reservation",
        &[
            (json!({}), &["mac required", "ip required"]),
            (json!({"mac": "01:00:5e:00:00:01", "ip": "192.168.1.2"}), &["mac range"]),
            (json!({"mac": "02:42:ac:11:00:03", "ip": "fd00::1"}), &["ip format"]),
            (json!({"mac": "02:42:ac:11:00:03", "ip": "224.0.0.1"}), &["ip range"]),
            (
                json!({"mac": "02:42:ac:11:00:03", "ip": "192.168.1.2", "hostname": "a b"}),
                &["hostname format"],
            ),
        ],
    );
    let config = json!({"range_start": "192.168.1.100", "range_end": "192.168.1.200", "mask": "255.255.255.0", "gateway": "192.168.1.1"});
    let config: crate::settings::groups::DhcpConfig = serde_json::from_value(config).unwrap();
    state.set_group(&config);
    for (ip, want) in [
        ("192.168.2.20", "ip range"),
        ("192.168.1.1", "ip conflict"),
        ("192.168.1.255", "ip range"),
        ("192.168.1.0", "ip range"),
    ] {
        let input = json!({"mac": "02:42:ac:11:00:03", "ip": ip});
        assert_eq!(refusal(create(&mut state, "dhcp_reservation", input)), [want], "{ip}");
    }
    made(&mut state, "dhcp_reservation", json!({"mac": "02:42:ac:11:00:03", "ip": "192.168.1.21"}));
}

#[test]
fn a_reservation_names_a_device_that_has_the_card() {
    let mut state = draft();
    let device = create(&mut state, "device", json!({"name": "tv", "mac": "02:42:ac:11:00:09"}))
        .unwrap()
        .id
        .to_string();
    let (_, warnings) = made(
        &mut state,
        "dhcp_reservation",
        json!({"mac": "02:42:ac:11:00:09", "ip": "192.168.1.9", "device_id": device}),
    );
    assert!(warnings.is_empty());
    let (_, warnings) = made(
        &mut state,
        "dhcp_reservation",
        json!({"mac": "02:42:ac:11:00:08", "ip": "192.168.1.8", "device_id": device}),
    );
    assert_eq!(warnings, ["device_id"]);
    assert!(matches!(of("device").delete(&mut state, &device, None, true), Err(EditError::InUse { .. })));
}
