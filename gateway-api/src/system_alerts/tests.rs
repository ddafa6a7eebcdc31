//! Temperature, clock and secrets, from their causes to open alerts and notifications.

use std::fs;

use gateway_core::alerts::Transition;
use gateway_ctl::clock::ManualClock;
use gateway_ctl::services::alerts::Alerts;
use gateway_model::settings::groups::DeadmanSettings;

use super::*;

struct Gateway {
    _folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    active_alerts: ActiveAlerts,
    alerts: Alerts,
}

impl Gateway {
    fn new() -> Gateway {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at("2026-11-22T12:00:00Z".parse().unwrap());
        let store = Arc::new(Store::open(folder.path().join("store.redb"), clock.clone()).unwrap());
        let active_alerts = ActiveAlerts::new(clock.clone());
        let alerts = Alerts::open(store, active_alerts.clone()).unwrap();
        Gateway { _folder: folder, clock, active_alerts, alerts }
    }

    /// Reports each second for so long.
    fn pass(&self, seconds: u64, report: impl Fn(&ActiveAlerts)) {
        for _ in 0..seconds {
            self.clock.advance(Duration::from_secs(1));
            report(&self.active_alerts);
            self.alerts.process();
        }
    }

    fn notified(&self) -> Vec<(AlertKind, Transition)> {
        let notifications = self.alerts.notifications_after(0, 100).unwrap();
        notifications.iter().map(|one| (one.alert.kind, one.transition)).collect()
    }
}

#[test]
fn processor_that_is_hot_for_two_minutes_is_an_alert() {
    let (gateway, class) = (Gateway::new(), tempfile::tempdir().unwrap());
    let sensor = class.path().join("hwmon/hwmon0");
    fs::create_dir_all(&sensor).unwrap();
    fs::write(sensor.join("name"), "coretemp\n").unwrap();
    let set =
        |degrees: f64| fs::write(sensor.join("temp1_input"), format!("{}\n", degrees * 1000.0)).unwrap();
    let report = |alerts: &ActiveAlerts| report_temperature(alerts, cpu_temperature(class.path()));
    set(70.0);
    gateway.pass(10, report);
    set(91.5);
    gateway.pass(119, report);
    assert_eq!(gateway.notified(), []);
    gateway.pass(2, report);
    assert_eq!(gateway.notified(), [(AlertKind::CpuTempHigh, Transition::Raised)]);
    assert!(gateway.alerts.open_alerts()[0].message.contains("90 °C"));
    set(60.0);
    gateway.pass(1, report);
    assert_eq!(gateway.notified()[1..], [(AlertKind::CpuTempHigh, Transition::Resolved)]);
}

#[test]
fn clock_that_no_server_sets_is_an_alert_and_a_jump_is_none() {
    let gateway = Gateway::new();
    let switch = |clock_synced| deadman::Report {
        settings: DeadmanSettings::default(),
        last_checkin: None,
        deadline: None,
        warn_hours: Vec::new(),
        warned: None,
        clock_synced,
    };
    gateway.pass(10, |alerts| report_switch(alerts, &switch(true)));
    let unsynchronised = |alerts: &ActiveAlerts| report_switch(alerts, &switch(false));
    gateway.pass(300, unsynchronised);
    // The wall clock alone is set; the time of the rule goes on by the monotonic one.
    gateway.clock.set("2027-01-01T00:00:00Z".parse().unwrap());
    gateway.pass(299, unsynchronised);
    assert_eq!(gateway.notified(), []);
    gateway.clock.set("2026-11-22T12:00:00Z".parse().unwrap());
    gateway.pass(2, unsynchronised);
    assert_eq!(gateway.notified(), [(AlertKind::ClockUnsynchronised, Transition::Raised)]);
    gateway.pass(1, |alerts| report_switch(alerts, &switch(true)));
    assert_eq!(gateway.notified()[1..], [(AlertKind::ClockUnsynchronised, Transition::Resolved)]);
}

#[test]
fn secrets_are_an_alert_while_some_cannot_be_decrypted() {
    let gateway = Gateway::new();
    let place = |name: &str| SecretPlace {
        noun: "tunnel",
        id: "x".to_owned(),
        name: name.to_owned(),
        field: "private_key".to_owned(),
        updated_at: Timestamp::UNIX_EPOCH,
    };
    let unreadable: Vec<SecretPlace> = ["a", "b", "c", "d", "e"].map(place).into();
    let report = |health: SecretsHealth| {
        gateway.pass(1, |alerts| report_secrets(alerts, &health));
        gateway.alerts.open_alerts().first().map(|alert| alert.message.clone())
    };
    assert_eq!(report(SecretsHealth { unknown: 5, ..SecretsHealth::default() }), None);
    let message = report(SecretsHealth { unreadable, ..SecretsHealth::default() }).unwrap();
    assert!(message.ends_with("tunnel a private_key, tunnel b private_key, tunnel c private_key and 2 more"));
    assert!(
        report(SecretsHealth { unknown: 1, ..SecretsHealth::default() }).is_some(),
        "not known to be well"
    );
    assert!(report(SecretsHealth { is_locked: true, ..SecretsHealth::default() }).unwrap().contains("lost"));
    assert_eq!(report(SecretsHealth::default()), None);
}
