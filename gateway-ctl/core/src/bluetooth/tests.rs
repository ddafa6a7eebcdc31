//! Tests of Bluetooth: names, services and classes of devices.

mod detection;
mod failover;
mod nap;
mod pairing;

use gateway_model::id::MacAddr;

use super::device::{DeviceClass, RemoteDevice, service_names, shown_name};
use proptest::prelude::*;

fn mac(last: u16) -> MacAddr {
    let [high, low] = last.to_be_bytes();
    MacAddr([0x00, 0x16, 0x3e, 0, high, low])
}

fn device(last: u16, name: Option<&str>) -> RemoteDevice {
    RemoteDevice {
        mac: mac(last),
        random_address: false,
        name: name.map(str::to_owned),
        paired: false,
        trusted: false,
        connected: false,
        rssi: Some(-60),
        class: None,
        services: Vec::new(),
        network: None,
    }
}

#[test]
fn names_of_devices_are_shown_without_what_imitates_others() {
    assert_eq!(shown_name("  Phone \u{202e}of\u{200b} Ada\n").as_deref(), Some("Phone of Ada"));
    assert_eq!(shown_name(" \u{feff}\t"), None);
    assert_eq!(shown_name(&"ä".repeat(300)).map(|name| name.chars().count()), Some(64));
}

#[test]
fn services_have_names_once_and_others_keep_their_uuid() {
    let uuids = [
        "00001116-0000-1000-8000-00805F9B34FB",
        "00001112-0000-1000-8000-00805f9b34fb",
        "00001108-0000-1000-8000-00805f9b34fb",
        "6e400001-b5a3-f393-e0a9-e50e24dcca9e",
        "no uuid",
    ];
    let names = service_names(&uuids.map(str::to_owned));
    assert_eq!(names, ["network_access_point", "headset", "6e400001-b5a3-f393-e0a9-e50e24dcca9e"]);
}

#[test]
fn class_of_a_device_is_its_major_class() {
    assert_eq!(DeviceClass::of(5_898_764), Some(DeviceClass::Phone));
    assert_eq!(DeviceClass::of(0x0c_010c), Some(DeviceClass::Computer));
    assert_eq!((DeviceClass::of(0), DeviceClass::of(0x1f00)), (None, Some(DeviceClass::Uncategorized)));
}

proptest! {
    #[test]
    fn shown_names_are_short_printable_and_stay_as_they_are(name in "\\PC{0,80}|.{0,300}") {
        if let Some(shown) = shown_name(&name) {
            prop_assert!((1..=64).contains(&shown.chars().count()));
            prop_assert!(!shown.chars().any(char::is_control));
            prop_assert_eq!(shown_name(&shown), Some(shown));
        }
    }
}
