//! Alerts over a store: restarts, requests, and a disk without room.

use std::time::Duration;

use gateway_core::alerts::AlertStatus;
use gateway_model::kinds::alert_rule::AlertKind;
use jiff::SignedDuration;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::store::AlertFilter;

const DOWN: AlertKind = AlertKind::WanFailover;

struct Gateway {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
}

impl Gateway {
    fn new() -> Gateway {
        let clock = ManualClock::at("2026-11-22T12:00:00Z".parse().unwrap());
        Gateway { folder: tempfile::tempdir().unwrap(), clock }
    }

    /// Starts a daemon, as after the end of the last one.
    fn start(&self) -> (ActiveAlerts, Alerts) {
        let store = Arc::new(Store::open(self.folder.path().join("store.redb"), self.clock.clone()).unwrap());
        let active_alerts = ActiveAlerts::new(self.clock.clone());
        let alerts = Alerts::open(store, active_alerts.clone()).unwrap();
        (active_alerts, alerts)
    }
}

#[test]
fn alert_survives_the_daemon_and_is_notified_once() {
    let gateway = Gateway::new();
    {
        let (active_alerts, alerts) = gateway.start();
        active_alerts.raise(DOWN, "wan0", "it is offline".into());
        alerts.process();
        gateway.clock.advance(Duration::from_secs(2));
        alerts.process();
        assert_eq!(alerts.notifications_after(0, 10).unwrap().len(), 1);
    }
    let (active_alerts, alerts) = gateway.start();
    assert_eq!(active_alerts.list().len(), 1);
    active_alerts.keep(DOWN, |_| false);
    alerts.process();
    active_alerts.raise(DOWN, "wan0", "it is offline".into());
    gateway.clock.advance(Duration::from_secs(40));
    alerts.process();
    let [alert] = &alerts.open_alerts()[..] else { panic!("one alert") };
    assert_eq!((alert.id, alert.count, alert.title.as_str()), (1, 1, "Uplink changed: wan0"));
    active_alerts.clear(DOWN, "wan0");
    alerts.process();
    let notifications = alerts.notifications_after(1, 10).unwrap();
    assert_eq!((notifications.len(), notifications[0].alert.status), (1, AlertStatus::Resolved));
    assert_eq!(alerts.0.store.alerts(10, None, &AlertFilter::default()).unwrap().1, 1);
}

#[test]
fn requests_follow_the_states_of_an_alert() {
    let gateway = Gateway::new();
    let (active_alerts, alerts) = gateway.start();
    active_alerts.raise(DOWN, "wan0", "it is offline".into());
    let alert = alerts.acknowledge(1, "anna").unwrap();
    assert_eq!((alert.status, alert.acknowledged_by.as_deref()), (AlertStatus::Acknowledged, Some("anna")));
    assert_eq!(alerts.resolve(1, "bert").unwrap().resolved_by.as_deref(), Some("bert"));
    let refused = |error| matches!(error, Err(RequestError::State(AlertStatus::Resolved)));
    assert!(refused(alerts.acknowledge(1, "anna")));
    active_alerts.clear(DOWN, "wan0");
    // The engine has forgotten it, and the store has not.
    gateway.clock.advance(Duration::from_secs(3600));
    alerts.process();
    assert!(refused(alerts.acknowledge(1, "anna")) && refused(alerts.resolve(1, "anna")));
    assert!(matches!(alerts.resolve(2, "anna"), Err(RequestError::NotFound)));
}

#[test]
fn mute_survives_the_daemon_and_the_alert_returns_after_it() {
    let gateway = Gateway::new();
    let hour = SignedDuration::from_secs(3600);
    {
        let (active_alerts, alerts) = gateway.start();
        active_alerts.raise(DOWN, "wan0", "it is offline".into());
        alerts.process();
        gateway.clock.advance(Duration::from_secs(2));
        alerts.process();
        assert!(matches!(alerts.unmute(1), Err(RequestError::NotMuted)));
        let alert = alerts.mute(1, hour, "anna").unwrap();
        assert_eq!(alert.muted_until, Some(gateway.clock.now() + hour));
        assert_eq!((alerts.sent_alerts(), alerts.muted_fingerprints().len()), (vec![], 1));
        active_alerts.clear(DOWN, "wan0");
        alerts.process();
        assert!(matches!(alerts.mute(1, hour, "anna"), Err(RequestError::State(AlertStatus::Resolved))));
    }
    gateway.clock.advance(Duration::from_secs(600));
    let (active_alerts, alerts) = gateway.start();
    active_alerts.raise(DOWN, "wan0", "it is offline".into());
    alerts.process();
    let [alert] = &alerts.open_alerts()[..] else { panic!("one alert") };
    assert_eq!((alert.id, alert.muted_by.as_deref()), (2, Some("anna")));
    gateway.clock.advance(Duration::from_secs(2990));
    alerts.process();
    let transitions = |alerts: &Alerts| {
        let notifications = alerts.notifications_after(0, 10).unwrap();
        notifications.iter().map(|one| (one.alert.id, one.transition)).collect::<Vec<_>>()
    };
    use gateway_core::alerts::Transition::{Muted, Raised, Resolved};
    let before = [(1, Raised), (1, Muted), (1, Resolved)];
    assert_eq!(transitions(&alerts), before);
    gateway.clock.advance(Duration::from_secs(10));
    alerts.process();
    assert_eq!(transitions(&alerts), [&before[..], &[(2, Raised)]].concat());
    assert_eq!(alerts.sent_alerts().len(), 1);
}

#[test]
fn wipe_forgets_alerts_and_what_is_still_there_is_reported_again() {
    let gateway = Gateway::new();
    let (active_alerts, alerts) = gateway.start();
    active_alerts.raise(DOWN, "wan0", "it is offline".into());
    alerts.process();
    alerts.erase();
    assert_eq!((alerts.open_alerts(), active_alerts.list()), (vec![], vec![]));
    active_alerts.raise(DOWN, "wan0", "it is offline".into());
    alerts.process();
    assert_eq!(alerts.open_alerts()[0].id, 2);
}
