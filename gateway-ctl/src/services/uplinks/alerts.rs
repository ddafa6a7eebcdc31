//! Alerts about uplinks, by the name of their interface. An uplink that is not known to work again keeps its alerts: after a
//! start its state is unknown.

use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::uplink::UplinkState;

use crate::services::active_alerts::ActiveAlerts;
use crate::world::reports::uplinks::UplinkStates;

/// Raises the alerts of a report, and ends those that do not apply any more.
pub(super) fn report(alerts: &ActiveAlerts, states: &UplinkStates) {
    let in_state = |state: UplinkState| {
        let found = states.uplinks.iter().filter(move |(_, report)| report.state == state);
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
        alerts.raise(AlertKind::WanFlapping, &pin.uplink, message);
    }
    alerts.keep(AlertKind::WanFlapping, |uplink| states.pins.iter().any(|pin| pin.uplink == uplink));
    // A failover is over when traffic is back at the uplink that comes first.
    let newest = states.decisions.iter().find(|decision| decision.applied);
    match newest.and_then(|decision| Some((decision, decision.from.as_ref()?))) {
        Some((decision, from)) if states.is_on_standby => {
            alerts.raise(AlertKind::WanFailover, from, decision.reason.clone());
            alerts.keep(AlertKind::WanFailover, |uplink| uplink == from);
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
    use super::*;
    use crate::clock::SystemClock;
    use crate::world::reports::uplinks::UplinkReport;

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
