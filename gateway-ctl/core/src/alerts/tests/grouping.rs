//! Causes and consequences.

use gateway_model::id::Id;
use gateway_model::kinds::alert_rule::AlertKind;

use super::fixture::{Fixture, WAN};
use crate::alerts::{Dependencies, Transition};

fn tunnel(number: u128) -> Id {
    uuid(number)
}

fn uuid(number: u128) -> Id {
    format!("00000000-0000-4000-8000-{number:012}").parse().unwrap()
}

fn fixture(tunnels: u128) -> Fixture {
    let mut fixture = Fixture::new();
    let none = Dependencies::default();
    fixture.dependencies =
        (0..tunnels).fold(none, |dependencies, number| dependencies.with_tunnel(tunnel(number), WAN));
    fixture
}

#[test]
fn dead_uplink_with_fifty_tunnels_is_one_notification() {
    for uplink_first in [true, false] {
        let mut fixture = fixture(50);
        if uplink_first {
            fixture.report(AlertKind::WanDown, WAN);
        }
        for number in 0..50 {
            fixture.report(AlertKind::TunnelDown, &tunnel(number).to_string());
        }
        if !uplink_first {
            fixture.report(AlertKind::WanDown, WAN);
        }
        fixture.pass(2);
        let heard = fixture.heard();
        assert_eq!(heard.iter().filter(|(_, sent)| *sent).count(), 1, "{heard:?}");
        assert_eq!((heard.len(), fixture.open()), (51, 51));
        let cause =
            fixture.engine.open().find(|record| record.alert.kind == AlertKind::WanDown).unwrap().alert.id;
        let below = fixture.engine.open().filter(|record| record.alert.caused_by == Some(cause)).count();
        assert_eq!(below, 50);
        // The uplink returns, and all tunnels but one with it.
        fixture.end(AlertKind::WanDown, WAN);
        fixture.pass(20);
        for number in 1..50 {
            fixture.end(AlertKind::TunnelDown, &tunnel(number).to_string());
        }
        let sent = |fixture: &mut Fixture| -> Vec<Transition> {
            fixture.heard().into_iter().filter(|(_, sent)| *sent).map(|(transition, _)| transition).collect()
        };
        assert_eq!(sent(&mut fixture), [Transition::Resolved]);
        fixture.pass(41);
        assert_eq!(sent(&mut fixture), [Transition::Promoted]);
        assert_eq!(fixture.only_open().caused_by, None);
        fixture.end(AlertKind::TunnelDown, &tunnel(0).to_string());
        assert_eq!(sent(&mut fixture), [Transition::Resolved]);
    }
}

#[test]
fn tunnel_waits_for_an_uplink_that_is_in_doubt() {
    let mut fixture = fixture(1);
    fixture.dependencies = fixture.dependencies.clone().with_doubtful(WAN);
    fixture.report(AlertKind::TunnelDown, &tunnel(0).to_string());
    fixture.pass(10);
    assert_eq!(fixture.heard(), []);
    fixture.report(AlertKind::WanDown, WAN);
    fixture.pass(1);
    assert_eq!(fixture.heard(), [(Transition::Raised, true), (Transition::Raised, false)]);
}

#[test]
fn tunnel_without_a_cause_is_announced_after_a_second() {
    let mut fixture = fixture(1);
    fixture.report(AlertKind::TunnelDown, &tunnel(0).to_string());
    assert_eq!(fixture.heard(), []);
    fixture.pass(1);
    assert_eq!(fixture.heard(), [(Transition::Raised, true)]);
    // A cause that is found later explains it, and its end is sent nevertheless.
    fixture.report(AlertKind::WanDown, WAN);
    assert_eq!(fixture.engine.open().filter(|record| record.alert.caused_by.is_some()).count(), 1);
    fixture.end(AlertKind::TunnelDown, &tunnel(0).to_string());
    assert_eq!(fixture.heard(), [(Transition::Raised, true), (Transition::Resolved, true)]);
}

#[test]
fn failover_and_flapping_are_consequences_of_what_the_uplink_suffers() {
    use AlertKind::*;
    for (cause, consequence, is_one) in [
        (WanDown, WanFailover, true),
        (WanDegraded, WanFailover, true),
        (CaptivePortal, WanFailover, true),
        (WanDown, WanFlapping, true),
        (WanDegraded, TunnelDown, false),
    ] {
        let mut fixture = fixture(1);
        let subject = if consequence == TunnelDown { tunnel(0).to_string() } else { WAN.to_owned() };
        fixture.report(cause, WAN);
        fixture.report(consequence, &subject);
        fixture.pass(70);
        let mut open = fixture.engine.open().map(|record| (record.alert.kind, record.alert.caused_by));
        let found = open.find(|(kind, _)| *kind == consequence).expect("it is open");
        assert_eq!(found.1.is_some(), is_one, "{cause} {consequence}");
    }
}
