//! Events of the detection, and what it keeps.

use gateway_model::settings::groups::Severity;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{device, mac};
use crate::bluetooth::detection::{Detection, FLOOD_DEVICES, IdsKind, LEARNING_TIME, MAX_EVENTS, MAX_KNOWN};
use crate::bluetooth::device::RemoteDevice;

fn start() -> Timestamp {
    "2026-11-20T12:00:00Z".parse().unwrap()
}

fn at(seconds: i64) -> Timestamp {
    start() + SignedDuration::from_secs(seconds)
}

/// Time behind the one for learning.
fn later(seconds: i64) -> Timestamp {
    at(seconds) + LEARNING_TIME
}

fn kinds(detection: &mut Detection, devices: &[RemoteDevice], now: Timestamp) -> Vec<IdsKind> {
    detection.observe(devices, now).into_iter().map(|event| event.kind).collect()
}

#[test]
fn devices_of_the_learning_time_are_known_and_later_ones_are_new_once() {
    let mut detection = Detection::default();
    assert!(detection.is_learning(start()) && detection.learned_until().is_none());
    let (old, new) = (device(1, Some("speaker")), device(2, None));
    assert_eq!(kinds(&mut detection, std::slice::from_ref(&old), at(0)), []);
    assert_eq!(detection.learned_until(), Some(later(0)));
    assert!(!detection.is_learning(later(0)));
    let both = [old, new];
    assert_eq!(kinds(&mut detection, &both, later(1)), [IdsKind::NewDevice]);
    assert_eq!(kinds(&mut detection, &both, later(2)), []);
    assert_eq!(kinds(&mut detection, &[], later(3)), []);
    assert_eq!(kinds(&mut detection, &both, later(4)), [], "it is known");
}

#[test]
fn other_address_with_the_name_of_a_device_that_is_gone_is_a_change_and_of_a_paired_one_a_spoof() {
    let mut detection = Detection::default();
    let speaker = device(1, Some("speaker"));
    let mut phone = device(2, Some("phone"));
    phone.paired = true;
    detection.observe(&[speaker.clone(), phone.clone()], at(0));
    let renumbered = device(3, Some("speaker"));
    assert_eq!(kinds(&mut detection, &[renumbered, phone.clone()], later(1)), [IdsKind::MacChange]);
    let spoof = device(4, Some("phone"));
    let events = detection.observe(&[spoof, phone.clone()], later(2));
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(
        (event.kind, event.severity, event.like),
        (IdsKind::SpoofedName, Severity::Critical, Some(mac(2)))
    );
    assert!(event.message().contains("00:16:3e:00:00:04 (phone)"), "{}", event.message());
    // A known device that takes the name later is one, too; also while learning.
    let mut learning = Detection::default();
    learning.observe(&[speaker.clone(), phone.clone()], at(0));
    let renamed = RemoteDevice { name: Some("phone".to_owned()), ..speaker };
    assert_eq!(kinds(&mut learning, &[renamed.clone(), phone.clone()], at(1)), [IdsKind::SpoofedName]);
    assert_eq!(kinds(&mut learning, &[renamed, phone], at(2)), [], "reported once");
}

#[test]
fn changing_addresses_are_neither_new_nor_kept() {
    let mut detection = Detection::default();
    let mut phone = device(2, Some("phone"));
    phone.paired = true;
    detection.observe(std::slice::from_ref(&phone), at(0));
    let private = RemoteDevice { random_address: true, ..device(9, Some("phone")) };
    assert_eq!(kinds(&mut detection, &[phone, private], later(1)), []);
    assert_eq!(detection.known().count(), 1);
}

#[test]
fn many_new_addresses_at_once_are_one_event_until_they_end() {
    let arrivals = |from: usize, count: usize| -> Vec<RemoteDevice> {
        (from..from + count).map(|number| device(u16::try_from(number).unwrap(), None)).collect()
    };
    let mut detection = Detection::default();
    assert_eq!(kinds(&mut detection, &arrivals(0, FLOOD_DEVICES - 1), at(0)), []);
    assert_eq!(kinds(&mut detection, &arrivals(100, 1), at(1)), [IdsKind::Flood]);
    assert_eq!(kinds(&mut detection, &arrivals(200, FLOOD_DEVICES), at(5)), [], "the same flood");
    assert_eq!(kinds(&mut detection, &arrivals(300, 5), at(20)), []);
    assert_eq!(
        kinds(&mut detection, &arrivals(400, FLOOD_DEVICES), at(120)),
        [IdsKind::Flood],
        "another one"
    );
    // Slow arrivals are none.
    let mut slow = Detection::default();
    for number in 0..200 {
        assert_eq!(kinds(&mut slow, &arrivals(number, 1), at(i64::try_from(number).unwrap())), []);
    }
}

#[test]
fn stored_state_keeps_known_devices_events_and_the_learning_time() {
    let mut detection = Detection::default();
    detection.observe(&[device(1, Some("speaker"))], at(0));
    detection.observe(&[device(2, None)], later(1));
    let stored = serde_json::to_vec(&detection).unwrap();
    let mut restored: Detection = serde_json::from_slice(&stored).unwrap();
    assert!(restored.known().eq(detection.known()) && restored.events().eq(detection.events()));
    assert_eq!(restored.learned_until(), detection.learned_until());
    assert_eq!(kinds(&mut restored, &[device(2, None)], later(2)), []);
    restored.clear();
    assert!(restored.is_learning(later(9)));
}

proptest! {
    /// Any history: memory is bounded, events have the time of their observation, and a paired device is none.
    #[test]
    fn state_is_bounded_and_paired_devices_are_no_intruders(
        history in prop::collection::vec(
            (prop::collection::vec((0u16..2000, 0u8..4, any::<bool>(), any::<bool>()), 0..80), 0i64..40_000), 1..40,
        ),
    ) {
        let mut detection = Detection::default();
        let mut now = start();
        for (devices, pause) in history {
            now += SignedDuration::from_secs(pause);
            let devices: Vec<RemoteDevice> = devices.into_iter().map(|(last, name, paired, random)| RemoteDevice {
                name: (name > 0).then(|| name.to_string()),
                paired,
                random_address: random && !paired,
                ..device(last, None)
            }).collect();
            for event in detection.observe(&devices, now) {
                prop_assert_eq!(event.time, now);
                if event.kind == IdsKind::SpoofedName || event.kind == IdsKind::MacChange {
                    prop_assert!(event.like.is_some() && event.like != Some(event.mac) && event.name.is_some());
                }
                if event.kind != IdsKind::Flood {
                    let suspects = devices.iter().filter(|device| device.mac == event.mac);
                    prop_assert!(suspects.clone().any(|device| !device.paired && !device.random_address));
                }
            }
            prop_assert!(detection.known().count() <= MAX_KNOWN);
            prop_assert!(detection.events().count() <= MAX_EVENTS);
        }
    }
}
