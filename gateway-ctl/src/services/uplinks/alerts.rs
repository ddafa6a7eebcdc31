//! Alerts about uplinks, by the name of their interface. An uplink that is not known to work again keeps its alerts: after a
//! start its state is unknown.

use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::groups::PAN_INTERFACE;
use gateway_model::settings::uplink::UplinkState;

use crate::services::active_alerts::ActiveAlerts;
use crate::world::reports::uplinks::UplinkStates;

/// Raises the alerts of a report, and ends those that do not apply any more.
pub(super) fn report(alerts: &ActiveAlerts, states: &UplinkStates) {
    let in_state = |state: UplinkState| {
        // The phone is offline whenever its network is not joined.
        let is_idle = move |interface: &str| state == UplinkState::Offline && interface == PAN_INTERFACE;
        let found = states.uplinks.iter().filter(move |(_, report)| report.state == state);
        let found = found.filter(move |(interface, _)| !is_idle(interface));
        found.map(|(interface, _)| interface.as_str()).collect::<Vec<_>>()
    };
    for (kind, state, text) in [
        (AlertKind::WanDown, UplinkState::Offline, "is offline"),
        (AlertKind::WanDegraded, UplinkState::Degraded, "has more loss or latency than its limits"),
        (AlertKind::CaptivePortal, UplinkState::Captive, "leads to a captive portal"),
    ] {
        let now = in_state(state);
        for interface in &now {
            alerts.raise(kind, interface, format!("the uplink {interface} {text}"));
        }
        alerts.keep(kind, |interface| now.contains(&interface) || is_undecided(states, interface));
    }
    for pin in &states.pins {
        let message =
            format!("the uplink {} flaps, and is in standby until {:.0}", pin.uplink, pin.pinned_until);
        alerts.raise(AlertKind::WanFlapping, states.interface_of(&pin.uplink), message);
    }
    let is_pinned =
        |interface: &str| states.pins.iter().any(|pin| states.interface_of(&pin.uplink) == interface);
    alerts.keep(AlertKind::WanFlapping, is_pinned);
    // A failover is over when traffic is back at the uplink that comes first.
    let newest = states.decisions.iter().find(|decision| decision.applied);
    match newest.and_then(|decision| Some((decision, decision.from.as_ref()?))) {
        Some((decision, from)) if states.is_on_standby => {
            let from = states.interface_of(from);
            alerts.raise(AlertKind::WanFailover, from, decision.reason.clone());
            alerts.keep(AlertKind::WanFailover, |interface| interface == from);
        }
        // After a start, the decision is not known any more. Without an active uplink, nothing is known.
        _ if states.is_on_standby || states.active.is_none() && !states.uplinks.is_empty() => {}
        _ => alerts.keep(AlertKind::WanFailover, |_| false),
    }
}

/// Reports whether the probes of an uplink have not decided on its state yet.
fn is_undecided(states: &UplinkStates, interface: &str) -> bool {
    let state = states.uplinks.get(interface).map(|report| report.state);
    matches!(state, Some(UplinkState::Connecting | UplinkState::Disconnecting))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::clock::SystemClock;
    use crate::world::reports::uplinks::{PinnedUplink, UplinkDecision, UplinkReport};

    #[test]
    fn phone_whose_network_is_not_joined_is_no_outage() {
        let alerts = ActiveAlerts::new(SystemClock::shared());
        let offline = || UplinkReport { state: UplinkState::Offline, ..UplinkReport::default() };
        let uplinks = [("eth0".to_owned(), offline()), (PAN_INTERFACE.to_owned(), offline())].into();
        report(&alerts, &UplinkStates { uplinks, ..UplinkStates::default() });
        let subjects: Vec<String> = alerts.list().into_iter().map(|alert| alert.subject).collect();
        assert_eq!(subjects, ["eth0"]);
    }

    #[test]
    fn subjects_are_interfaces() {
        let alerts = ActiveAlerts::new(SystemClock::shared());
        let uplink = |name: &str| UplinkReport { name: name.to_owned(), ..UplinkReport::default() };
        let name = || "fibre".to_owned();
        let decision = UplinkDecision {
            time: Timestamp::UNIX_EPOCH,
            uplink: "cable".to_owned(),
            from: Some(name()),
            to: Some("cable".to_owned()),
            reason: String::new(),
            applied: true,
            kernel_agrees_at: None,
        };
        let states = UplinkStates {
            uplinks: [("eth0".to_owned(), uplink("fibre")), ("eth2".to_owned(), uplink("cable"))].into(),
            active: Some("eth2".to_owned()),
            is_on_standby: true,
            decisions: [decision].into(),
            pins: vec![PinnedUplink { uplink: name(), count: 1, pinned_until: Timestamp::UNIX_EPOCH }],
            ..UplinkStates::default()
        };
        report(&alerts, &states);
        let listed = alerts.list().into_iter().map(|alert| (alert.kind, alert.subject));
        let expected = [AlertKind::WanFailover, AlertKind::WanFlapping].map(|kind| (kind, "eth0".to_owned()));
        assert_eq!(listed.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn undecided_uplink_keeps_its_alert_and_raises_none() {
        let alerts = ActiveAlerts::new(SystemClock::shared());
        let publish = |state: Option<UplinkState>| {
            let reports =
                state.map(|state| ("wan0".to_owned(), UplinkReport { state, ..UplinkReport::default() }));
            let states = UplinkStates { uplinks: reports.into_iter().collect(), ..UplinkStates::default() };
            report(&alerts, &states);
            alerts.list().iter().map(|alert| alert.kind).collect::<Vec<_>>()
        };
        use UplinkState::*;
        assert_eq!(publish(Some(Connecting)), []);
        for state in [Offline, Connecting, Offline] {
            assert_eq!(publish(Some(state)), [AlertKind::WanDown]);
        }
        assert_eq!(publish(Some(Online)), []);
        assert_eq!(publish(Some(Degraded)), [AlertKind::WanDegraded]);
        assert_eq!(publish(None), [], "the uplink is not configured any more");
    }
}
