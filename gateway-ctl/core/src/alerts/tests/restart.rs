//! Restarts of the daemon.

use gateway_model::kinds::alert_rule::AlertKind;
use jiff::SignedDuration;

use super::fixture::{Fixture, WAN};
use crate::alerts::Transition;

const DOWN: AlertKind = AlertKind::WanDown;

#[test]
fn alert_keeps_its_number_and_count_over_a_restart() {
    for ends_first in [false, true] {
        let mut fixture = Fixture::new();
        fixture.report(DOWN, WAN);
        fixture.restart();
        if ends_first {
            // The producer has not observed anything yet.
            fixture.end(DOWN, WAN);
            fixture.pass(10);
        }
        fixture.report(DOWN, WAN);
        fixture.pass(40);
        let alert = fixture.only_open();
        assert_eq!((alert.id, alert.count), (1, 1));
        assert_eq!(fixture.heard(), [(Transition::Raised, true)]);
    }
}

#[test]
fn time_of_the_end_is_stored_with_the_alert() {
    let mut fixture = Fixture::new();
    let until = fixture.now.wall + SignedDuration::from_mins(10);
    for until in [until, until + SignedDuration::from_mins(5)] {
        fixture.report_until(DOWN, WAN, until);
        assert_eq!(fixture.last_record(1).holds_until, Some(until));
    }
    fixture.report(DOWN, WAN);
    assert_eq!(fixture.last_record(1).holds_until, None);
}

#[test]
fn alert_that_ended_meanwhile_resolves_after_the_settling_time() {
    let mut fixture = Fixture::new();
    fixture.report(DOWN, WAN);
    fixture.restart();
    fixture.pass(3600);
    assert_eq!(fixture.open(), 1, "nothing was observed");
    fixture.restart();
    fixture.end(DOWN, WAN);
    fixture.pass(29);
    assert_eq!(fixture.open(), 1);
    fixture.pass(1);
    assert_eq!(fixture.heard(), [(Transition::Raised, true), (Transition::Resolved, true)]);
}

#[test]
fn jumps_of_the_wall_clock_change_nothing() {
    let mut fixture = Fixture::new();
    fixture.report(DOWN, WAN);
    fixture.end(DOWN, WAN);
    let normal = fixture.now.wall;
    for hours in [-1000, 1000, 0] {
        fixture.now.wall = normal + SignedDuration::from_hours(hours);
        fixture.pass(1);
        fixture.report(DOWN, WAN);
        fixture.end(DOWN, WAN);
    }
    let alert = fixture.only_open();
    assert_eq!((alert.id, alert.count), (1, 4));
    let times: Vec<_> = fixture.records.values().map(|record| record.alert.first_seen).collect();
    assert_eq!(times.len(), 1);
}

#[test]
fn alert_that_a_person_resolved_does_not_return_by_a_restart() {
    let mut fixture = Fixture::new();
    fixture.report(DOWN, WAN);
    fixture.engine.resolve(1, "anna", fixture.now).unwrap();
    fixture.store();
    fixture.restart();
    fixture.report(DOWN, WAN);
    assert_eq!(fixture.open(), 0);
    fixture.pass(301);
    assert_eq!(fixture.only_open().id, 2);
}
