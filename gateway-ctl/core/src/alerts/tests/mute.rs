//! Mutes of alerts.

use gateway_model::id::Id;
use gateway_model::kinds::alert_rule::AlertKind;
use jiff::SignedDuration;

use super::fixture::{Fixture, WAN};
use crate::alerts::{AlertStatus, IllegalTransition, Transition};

const DOWN: AlertKind = AlertKind::WanDown;
const RAISED: (Transition, bool) = (Transition::Raised, true);
const MUTED: (Transition, bool) = (Transition::Muted, true);
const UNMUTED: (Transition, bool) = (Transition::Unmuted, true);
const RESOLVED: (Transition, bool) = (Transition::Resolved, true);

fn tunnel() -> Id {
    "00000000-0000-4000-8000-000000000000".parse().unwrap()
}

/// Returns an engine with one tunnel over the uplink.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.dependencies = std::mem::take(&mut fixture.dependencies).with_tunnel(tunnel(), WAN);
    fixture
}

fn mute(fixture: &mut Fixture, id: u64, seconds: i64) {
    let time = SignedDuration::from_secs(seconds);
    let alert = fixture.engine.mute(id, time, "anna", fixture.now).unwrap();
    assert_eq!((alert.muted_until, alert.muted_by.as_deref()), (Some(fixture.now.wall + time), Some("anna")));
    fixture.store();
}

#[test]
fn alert_that_lasts_longer_than_its_mute_is_announced_again() {
    let mut fixture = Fixture::new();
    fixture.report(DOWN, WAN);
    mute(&mut fixture, 1, 600);
    assert_eq!(fixture.heard(), [RAISED, MUTED]);
    fixture.pass(599);
    assert!(!fixture.engine.is_waiting(), "nothing is due before the end of the mute");
    assert_eq!((fixture.heard(), fixture.engine.muted().count()), (vec![], 1));
    fixture.pass(1);
    assert_eq!((fixture.heard(), fixture.engine.muted().count()), (vec![UNMUTED], 0));
    assert_eq!(fixture.only_open().muted_until, None);
    fixture.end(DOWN, WAN);
    assert_eq!(fixture.heard(), [RESOLVED]);
}

#[test]
fn alert_that_is_muted_before_its_announcement_is_announced_after_it() {
    let mut fixture = fixture();
    fixture.report(AlertKind::TunnelDown, &tunnel().to_string());
    mute(&mut fixture, 1, 60);
    fixture.engine.acknowledge(1, "anna", fixture.now).unwrap();
    fixture.pass(59);
    assert_eq!(fixture.heard(), []);
    fixture.pass(1);
    assert_eq!(fixture.heard(), [RAISED]);
    assert_eq!(fixture.only_open().status, AlertStatus::Acknowledged);
}

#[test]
fn end_is_sent_and_the_next_alert_of_the_subject_is_muted_too() {
    let mut fixture = Fixture::new();
    fixture.report(DOWN, WAN);
    mute(&mut fixture, 1, 3600);
    fixture.end(DOWN, WAN);
    assert_eq!(fixture.heard(), [RAISED, MUTED, RESOLVED]);
    fixture.pass(400);
    fixture.report(DOWN, WAN);
    let alert = fixture.only_open();
    assert_eq!((alert.id, alert.muted_by.as_deref(), fixture.heard()), (2, Some("anna"), vec![]));
    assert_eq!(fixture.last_record(1).alert.muted_until, None);
    fixture.end(DOWN, WAN);
    fixture.report(DOWN, WAN);
    fixture.pass(3199);
    assert_eq!(fixture.heard(), []);
    fixture.pass(1);
    assert_eq!(fixture.heard(), [RAISED]);
}

#[test]
fn condition_that_is_away_at_the_end_of_the_mute_is_announced_when_it_returns() {
    let mut fixture = Fixture::new();
    for _ in 0..2 {
        fixture.report(DOWN, WAN);
        fixture.end(DOWN, WAN);
    }
    fixture.report(DOWN, WAN);
    fixture.pass(300);
    fixture.end(DOWN, WAN);
    fixture.report(DOWN, WAN);
    fixture.heard();
    mute(&mut fixture, 1, 60);
    fixture.end(DOWN, WAN);
    fixture.pass(61);
    assert_eq!((fixture.open(), fixture.heard()), (1, vec![MUTED]), "it flaps, so it waits");
    fixture.report(DOWN, WAN);
    assert_eq!(fixture.heard(), [UNMUTED]);
}

#[test]
fn mute_lasts_over_a_restart_and_a_clock_that_is_set() {
    for hours in [0, -1000] {
        let mut fixture = Fixture::new();
        fixture.report(DOWN, WAN);
        mute(&mut fixture, 1, 600);
        fixture.now.wall += SignedDuration::from_hours(hours);
        fixture.restart();
        fixture.pass(599);
        assert_eq!(fixture.heard(), [RAISED, MUTED]);
        fixture.report(DOWN, WAN);
        fixture.pass(1);
        assert_eq!(fixture.heard(), [UNMUTED], "it lasts as long again at most");
    }
}

#[test]
fn mute_that_ended_meanwhile_waits_for_what_the_producer_observes() {
    for lasts in [true, false] {
        let mut fixture = Fixture::new();
        fixture.report(DOWN, WAN);
        mute(&mut fixture, 1, 600);
        fixture.now.wall += SignedDuration::from_hours(1);
        fixture.restart();
        fixture.pass(10);
        assert_eq!(fixture.heard(), [RAISED, MUTED]);
        if lasts {
            fixture.report(DOWN, WAN);
            assert_eq!(fixture.heard(), [UNMUTED]);
        } else {
            fixture.end(DOWN, WAN);
            fixture.pass(21);
            assert_eq!(fixture.heard(), [RESOLVED]);
        }
    }
}

#[test]
fn mute_is_lifted_on_request_and_only_if_there_is_one() {
    let mut fixture = Fixture::new();
    fixture.report(DOWN, WAN);
    assert_eq!(fixture.engine.unmute(1, fixture.now), Err(IllegalTransition::NotMuted));
    assert_eq!(fixture.engine.unmute(9, fixture.now), Err(IllegalTransition::NotFound));
    mute(&mut fixture, 1, 60);
    mute(&mut fixture, 1, 600);
    fixture.pass(100);
    assert_eq!(fixture.heard(), [RAISED, MUTED, MUTED]);
    assert_eq!(fixture.engine.unmute(1, fixture.now).unwrap().muted_until, None);
    fixture.pass(0);
    assert_eq!(fixture.heard(), [UNMUTED]);
    fixture.end(DOWN, WAN);
    let refused = fixture.engine.mute(1, SignedDuration::from_secs(1), "anna", fixture.now);
    assert_eq!(refused, Err(IllegalTransition::State(AlertStatus::Resolved)));
}

#[test]
fn muted_consequence_stands_for_itself_after_the_mute() {
    let mut fixture = fixture();
    let (kind, subject) = (AlertKind::TunnelDown, tunnel().to_string());
    fixture.report(DOWN, WAN);
    fixture.report(kind, &subject);
    mute(&mut fixture, 2, 600);
    fixture.end(DOWN, WAN);
    fixture.heard();
    fixture.pass(0);
    fixture.pass(500);
    assert_eq!((fixture.heard(), fixture.only_open().caused_by), (vec![], None));
    fixture.pass(100);
    assert_eq!(fixture.heard(), [RAISED]);
}

#[test]
fn alert_that_has_a_cause_meanwhile_is_not_announced_again() {
    let mut fixture = fixture();
    let (kind, subject) = (AlertKind::TunnelDown, tunnel().to_string());
    fixture.report(kind, &subject);
    fixture.pass(1);
    mute(&mut fixture, 1, 60);
    fixture.report(DOWN, WAN);
    fixture.heard();
    fixture.pass(60);
    assert_eq!(fixture.heard(), []);
    fixture.end(DOWN, WAN);
    fixture.pass(60);
    assert_eq!(fixture.heard(), [RESOLVED, UNMUTED]);
}

#[test]
fn event_returns_after_the_mute_only_if_another_one_came() {
    for again in [false, true] {
        let mut fixture = Fixture::new();
        let kind = AlertKind::KeyCreated;
        fixture.report(kind, "key");
        mute(&mut fixture, 1, 60);
        fixture.pass(30);
        if again {
            fixture.report(kind, "key");
        }
        fixture.heard();
        fixture.pass(30);
        assert_eq!(fixture.heard(), if again { vec![UNMUTED] } else { vec![] });
    }
}
