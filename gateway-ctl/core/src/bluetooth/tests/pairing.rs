//! Pairings, with the answers of users.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::mac;
use crate::bluetooth::pairing::{
    AgentReply, AgentRequest, PAIRING_TIMEOUT, PairingError, PairingState, PairingWindow, UserAnswer, is_pin,
    shown_passkey,
};

fn at(seconds: i64) -> Timestamp {
    "2026-11-20T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn state(window: &PairingWindow) -> Option<PairingState> {
    window.current().map(|current| current.state)
}

fn passkey(text: &str) -> UserAnswer {
    UserAnswer::Passkey(text.to_owned())
}

#[test]
fn passkey_that_both_devices_show_is_confirmed_by_the_user() {
    let mut window = PairingWindow::default();
    window.begin(mac(1), None, at(0)).unwrap();
    assert_eq!(window.begin(mac(2), None, at(1)), Err(PairingError::Busy(mac(1))));
    assert_eq!(window.handle_request(mac(1), &AgentRequest::Confirm(42), true, at(1)), None);
    assert_eq!(window.current().and_then(|one| one.passkey.as_deref()), Some("000042"));
    assert_eq!(window.take_reply(mac(1), at(2)), None, "it waits");
    assert_eq!(window.answer(mac(2), passkey("000042"), at(2)), Err(PairingError::NotWaiting));
    window.answer(mac(1), passkey("000042"), at(2)).unwrap();
    assert_eq!(window.take_reply(mac(1), at(2)), Some(AgentReply::Accept));
    assert_eq!(state(&window), Some(PairingState::Connecting));
    window.end(mac(1), Ok(()));
    assert_eq!(state(&window), Some(PairingState::Paired));
    window.begin(mac(2), None, at(3)).unwrap();
}

#[test]
fn other_passkey_and_silence_are_refusals() {
    let mut window = PairingWindow::default();
    window.begin(mac(1), None, at(0)).unwrap();
    window.handle_request(mac(1), &AgentRequest::Confirm(123_456), true, at(0));
    assert_eq!(window.answer(mac(1), passkey("123457"), at(1)), Err(PairingError::PasskeyDiffers));
    assert_eq!(window.take_reply(mac(1), at(1)), Some(AgentReply::Reject));
    window.end(mac(1), Err("refused".to_owned()));
    window.begin(mac(1), None, at(2)).unwrap();
    window.handle_request(mac(1), &AgentRequest::Confirm(123_456), true, at(2));
    let end = at(2) + PAIRING_TIMEOUT;
    assert_eq!(window.take_reply(mac(1), end), Some(AgentReply::Reject));
    assert_eq!((state(&window), window.running()), (Some(PairingState::Failed), None));
    assert_eq!(window.answer(mac(1), passkey("123456"), end), Err(PairingError::NotWaiting));
}

#[test]
fn pin_comes_with_the_request_or_afterwards() {
    let mut window = PairingWindow::default();
    window.begin(mac(1), Some("0000".to_owned()), at(0)).unwrap();
    let reply = window.handle_request(mac(1), &AgentRequest::Pin, true, at(0));
    assert_eq!(reply, Some(AgentReply::Pin("0000".to_owned())));
    assert!(!format!("{window:?} {reply:?}").contains("0000"), "secrets");
    // A second request for it means that the first was wrong.
    assert_eq!(window.handle_request(mac(1), &AgentRequest::Pin, true, at(1)), None);
    window.answer(mac(1), UserAnswer::Pin("1234".to_owned()), at(2)).unwrap();
    assert_eq!(window.take_reply(mac(1), at(2)), Some(AgentReply::Pin("1234".to_owned())));
    window.end(mac(1), Ok(()));
    window.begin(mac(2), None, at(3)).unwrap();
    assert_eq!(window.handle_request(mac(2), &AgentRequest::Passkey, true, at(3)), None);
    window.answer(mac(2), UserAnswer::Pin("012345".to_owned()), at(3)).unwrap();
    assert_eq!(window.take_reply(mac(2), at(3)), Some(AgentReply::Passkey(12345)));
}

#[test]
fn other_devices_begin_only_in_the_window_and_only_if_the_settings_allow_them() {
    let request = AgentRequest::Authorize;
    let mut window = PairingWindow::default();
    let reject = Some(AgentReply::Reject);
    assert_eq!(window.handle_request(mac(1), &request, true, at(0)), reject);
    window.open(at(120));
    assert_eq!(window.open_until(at(119)), Some(at(120)));
    assert_eq!(window.handle_request(mac(1), &request, false, at(1)), reject, "it is not allowed");
    assert_eq!(window.handle_request(mac(1), &request, true, at(1)), None);
    assert_eq!(state(&window), Some(PairingState::Accept));
    assert_eq!(window.handle_request(mac(2), &request, true, at(2)), reject, "one at a time");
    window.answer(mac(1), UserAnswer::Refuse, at(2)).unwrap();
    assert_eq!(window.take_reply(mac(1), at(2)), reject);
    window.end(mac(1), Err("refused".to_owned()));
    assert_eq!(window.handle_request(mac(1), &request, true, at(120)), reject, "the window is closed");
    window.begin(mac(3), None, at(130)).unwrap();
    let reply = window.handle_request(mac(3), &request, true, at(130));
    assert_eq!(reply, Some(AgentReply::Accept), "a user began it");
}

#[test]
fn passkey_for_the_other_device_is_shown() {
    let mut window = PairingWindow::default();
    window.begin(mac(1), None, at(0)).unwrap();
    let reply = window.handle_request(mac(1), &AgentRequest::Display("654321".to_owned()), true, at(0));
    assert_eq!((reply, state(&window)), (Some(AgentReply::Accept), Some(PairingState::EnterOnDevice)));
    window.end(mac(1), Ok(()));
    assert_eq!(window.current().and_then(|one| one.passkey.clone()), None);
}

#[test]
fn pins_have_one_to_sixteen_printable_characters() {
    assert!(is_pin("0") && is_pin("0123456789abcdef"));
    assert!(!is_pin("") && !is_pin("0123456789abcdef0") && !is_pin("1\n") && !is_pin("ä"));
}

proptest! {
    /// No order of events accepts a pairing that no user began or answered.
    #[test]
    fn acceptance_needs_a_user(events in prop::collection::vec((0u8..6, 0u16..3, 0u32..3, 0i64..40), 1..60)) {
        let mut window = PairingWindow::default();
        let (mut now, mut consent) = (0, None);
        for (event, device, key, pause) in events {
            now += pause;
            let device = mac(device);
            match event {
                0 => {
                    if window.begin(device, None, at(now)).is_ok() {
                        consent = None;
                    }
                }
                1 => window.open(at(now + 30)),
                2 => {
                    let reply = window.handle_request(device, &AgentRequest::Confirm(key), true, at(now));
                    prop_assert!(reply.is_none_or(|reply| reply == AgentReply::Reject));
                    consent = None;
                }
                3 => {
                    let shown = window.current().and_then(|one| one.passkey.clone());
                    let text = shown_passkey(key);
                    if window.answer(device, passkey(&text), at(now)).is_ok() {
                        prop_assert_eq!(shown, Some(text));
                        consent = Some(device);
                    }
                }
                4 => {
                    if window.take_reply(device, at(now)) == Some(AgentReply::Accept) {
                        prop_assert_eq!(consent, Some(device));
                    }
                }
                _ => window.end(device, Ok(())),
            }
        }
    }
}
