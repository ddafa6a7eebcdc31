//! Alert engine: states, thresholds, grouping, restarts; and random sequences of all of them.

mod fixture;
mod grouping;
mod mute;
mod random;
mod restart;

use gateway_model::kinds::alert_rule::AlertKind;

use super::*;
use fixture::{Fixture, WAN};

const DOWN: AlertKind = AlertKind::WanDown;

#[test]
fn alert_lives_from_the_begin_of_its_condition_to_its_end() {
    let mut fixture = Fixture::new();
    fixture.report(DOWN, WAN);
    assert_eq!(fixture.heard(), [(Transition::Raised, true)]);
    let alert = fixture.only_open();
    assert_eq!((alert.status, alert.count, alert.fingerprint.len()), (AlertStatus::Active, 1, 16));
    fixture.report(DOWN, WAN);
    assert_eq!(
        fixture.engine.acknowledge(alert.id, "anna", fixture.now).unwrap().acknowledged_by.as_deref(),
        Some("anna")
    );
    let again = fixture.engine.acknowledge(alert.id, "anna", fixture.now);
    assert_eq!(again, Err(IllegalTransition::State(AlertStatus::Acknowledged)));
    fixture.end(DOWN, WAN);
    assert_eq!(fixture.heard(), [(Transition::Acknowledged, true), (Transition::Resolved, true)]);
    let resolved = fixture.last_record(alert.id).alert;
    assert_eq!((resolved.status, resolved.auto_resolved, resolved.count), (AlertStatus::Resolved, true, 1));
    for refused in [
        fixture.engine.acknowledge(alert.id, "anna", fixture.now),
        fixture.engine.resolve(alert.id, "anna", fixture.now),
    ] {
        assert_eq!(refused, Err(IllegalTransition::State(AlertStatus::Resolved)));
    }
    assert_eq!(fixture.engine.resolve(99, "anna", fixture.now), Err(IllegalTransition::NotFound));
}

#[test]
fn flapping_subject_is_one_alert_with_a_count_and_resolves_after_a_quiet_time() {
    let mut fixture = Fixture::new();
    for _ in 0..10 {
        fixture.report(DOWN, WAN);
        fixture.pass(5);
        fixture.end(DOWN, WAN);
        fixture.pass(5);
    }
    assert_eq!(fixture.heard(), [(Transition::Raised, true), (Transition::Resolved, true)]);
    let alert = fixture.only_open();
    assert_eq!((alert.count, alert.id), (10, 1));
    fixture.pass(294);
    assert_eq!(fixture.open(), 1);
    fixture.pass(2);
    assert_eq!((fixture.open(), fixture.heard()), (0, vec![]));
}

#[test]
fn return_within_the_cooldown_is_announced_when_it_has_lasted() {
    let mut fixture = Fixture::new();
    fixture.report(DOWN, WAN);
    fixture.end(DOWN, WAN);
    fixture.pass(10);
    fixture.report(DOWN, WAN);
    fixture.heard();
    fixture.pass(20);
    // It went away for a short time, so the time begins again.
    fixture.end(DOWN, WAN);
    fixture.report(DOWN, WAN);
    fixture.pass(29);
    assert_eq!((fixture.open(), fixture.heard()), (1, vec![]));
    fixture.pass(1);
    assert_eq!(fixture.heard(), [(Transition::Raised, true)]);
    fixture.end(DOWN, WAN);
    fixture.pass(301);
    assert_eq!(fixture.heard(), [(Transition::Resolved, true)]);
    fixture.pass(301);
    fixture.report(DOWN, WAN);
    assert_eq!(fixture.only_open().id, 2, "after the cooldown it is another alert");
}

#[test]
fn flapping_return_is_announced_at_the_end_of_the_cooldown() {
    let mut fixture = Fixture::new();
    fixture.report(DOWN, WAN);
    fixture.end(DOWN, WAN);
    fixture.heard();
    for second in (0..300).step_by(20) {
        assert_eq!(fixture.heard(), [], "{second}");
        fixture.report(DOWN, WAN);
        fixture.pass(19);
        fixture.end(DOWN, WAN);
        fixture.pass(1);
    }
    fixture.report(DOWN, WAN);
    assert_eq!(fixture.heard(), [(Transition::Raised, true)]);
}

#[test]
fn condition_that_a_person_resolved_is_raised_again_after_the_cooldown() {
    let mut fixture = Fixture::new();
    fixture.report(DOWN, WAN);
    fixture.engine.resolve(1, "anna", fixture.now).unwrap();
    fixture.pass(200);
    fixture.report(DOWN, WAN);
    assert_eq!(fixture.open(), 0);
    fixture.pass(101);
    assert_eq!(fixture.only_open().id, 2);
    let record = fixture.last_record(1);
    assert_eq!((record.alert.resolved_by.as_deref(), record.alert.auto_resolved), (Some("anna"), false));
}

#[test]
fn window_threshold_and_failures_in_a_row_hold_an_alert_back() {
    let mut fixture = Fixture::new();
    let kind = AlertKind::CpuTempHigh;
    fixture.rule(kind, |rule| (rule.threshold, rule.window) = (85.0, jiff::SignedDuration::from_secs(120)));
    fixture.report_value(kind, "cpu", 90.0);
    fixture.pass(100);
    assert_eq!(fixture.open(), 0);
    fixture.report_value(kind, "cpu", 84.0);
    fixture.report_value(kind, "cpu", 86.0);
    fixture.pass(119);
    assert_eq!(fixture.open(), 0, "the window began again");
    fixture.pass(1);
    assert_eq!(fixture.open(), 1);
    fixture.report_value(kind, "cpu", 84.9);
    assert_eq!(fixture.open(), 0);

    let kind = AlertKind::BlocklistUpdateFailed;
    fixture.rule(kind, |rule| rule.threshold = 3.0);
    fixture.report(kind, "list");
    fixture.report(kind, "list");
    fixture.end(kind, "list");
    fixture.report(kind, "list");
    fixture.report(kind, "list");
    assert_eq!(fixture.open(), 0, "a success was in between");
    fixture.report(kind, "list");
    assert_eq!(fixture.open(), 1);

    let kind = AlertKind::DnsBypassAttempt;
    fixture.rule(kind, |rule| (rule.threshold, rule.window) = (3.0, jiff::SignedDuration::from_secs(60)));
    for times in [2, 1] {
        fixture.pass(61);
        fixture.report_times(kind, "device", times);
        fixture.pass(25);
    }
    assert_eq!(fixture.open(), 1);
    fixture.report_times(kind, "device", 2);
    assert_eq!(fixture.open(), 2, "three of them came within a minute");
}

#[test]
fn events_count_and_resolve_after_a_day() {
    let mut fixture = Fixture::new();
    let kind = AlertKind::KeyCreated;
    fixture.report(kind, "key");
    fixture.report(kind, "key");
    assert_eq!((fixture.only_open().count, fixture.heard()), (2, vec![(Transition::Raised, true)]));
    fixture.report_times(kind, "key", 5);
    assert_eq!((fixture.only_open().count, fixture.heard()), (7, vec![]));
    fixture.pass(24 * 3600 - 1);
    assert_eq!(fixture.open(), 1);
    fixture.pass(1);
    assert_eq!((fixture.open(), fixture.heard()), (0, vec![(Transition::Resolved, true)]));
}

#[test]
fn disabled_rule_and_scope_hold_alerts_back() {
    let mut fixture = Fixture::new();
    fixture.report(DOWN, WAN);
    fixture.rule(DOWN, |rule| rule.enabled = false);
    fixture.pass(1);
    assert_eq!(fixture.open(), 0);
    fixture.pass(400);
    fixture.rule(DOWN, |rule| rule.enabled = true);
    fixture.pass(1);
    assert_eq!(fixture.open(), 1, "the condition still holds");
    let kind = AlertKind::NewDevice;
    fixture.rule(kind, |rule| rule.devices = Some([gateway_model::id::Id::NIL].into()));
    fixture.report(kind, "host");
    assert_eq!(fixture.open(), 1, "the host is no device of the scope");
}

#[test]
fn every_kind_has_a_source_and_a_type() {
    for kind in AlertKind::ALL {
        let subject = describe(&gateway_model::State::empty(), &AlertKey::new(*kind, "x"));
        assert!(!subject.source.is_empty() && !subject.resource_type.is_empty() && subject.label == "x");
        let Behaviour { measure, is_event, .. } = behaviour(*kind);
        assert!(!is_event || measure == Measure::Rate, "{kind}: events are counted");
    }
}
