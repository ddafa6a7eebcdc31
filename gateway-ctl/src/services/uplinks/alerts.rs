//! Alerts about uplinks, by the name of their interface.

use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::uplink::UplinkState;

use crate::services::active_alerts::ActiveAlerts;
use crate::world::reports::uplinks::UplinkStates;

/// Raises the alerts of a report, and ends those that do not apply any more.
pub fn report(alerts: &ActiveAlerts, states: &UplinkStates) {
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
        alerts.keep(kind, |interface| now.contains(&interface));
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
        _ => alerts.keep(AlertKind::WanFailover, |_| false),
    }
}
