//! Alert for low disk space: the part in use, which its rule compares with the threshold, and a shortage by which functions
//! stop, which is above any threshold.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::health::{Check, Finding};
use gateway_model::kinds::alert_rule::AlertKind;

use crate::service::{Context, Health, Service};
use crate::services::active_alerts::ActiveAlerts;
use crate::store::{DiskRoom, Store};
use crate::supervise::blocking;

const POLL_INTERVAL: Duration = Duration::from_secs(2);
const LOW: AlertKind = AlertKind::StorageLow;
const SUBJECT: &str = "store";
/// Steps of the reported part in use, in per cent, so that not each write is a report.
const STEPS_OF_PERCENT: f64 = 10.0;

/// Returns the service that reports the free disk space.
pub fn report(store: &Arc<Store>) -> Service {
    let store = store.clone();
    Service::idle("storage").reports(move || std::future::ready(health(&store)))
}

/// Runs until it is aborted.
pub async fn run(Context { store, active_alerts, .. }: Context) {
    loop {
        let polled = store.clone();
        // Some file systems do not report their free space.
        if let Some(room) = blocking(move || polled.disk_room()).await {
            publish(&active_alerts, room);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns the health of the store's disk, or `None` if the file system does not report its free space.
pub fn health(store: &Store) -> Option<Health> {
    let room = store.disk_room()?;
    let finding = room.shortage().map(|shortage| Finding::storage(&shortage, room.is_full()));
    Some(Check::of("storage", finding.into_iter().collect(), "").into())
}

fn publish(active_alerts: &ActiveAlerts, room: DiskRoom) {
    match room.shortage() {
        Some(message) => active_alerts.raise(LOW, SUBJECT, message),
        None => {
            let percent = (room.used_percent * STEPS_OF_PERCENT).floor() / STEPS_OF_PERCENT;
            let message = format!("{:.0} per cent of the disk of the store are in use", percent.floor());
            active_alerts.measure(LOW, SUBJECT, percent, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::services::active_alerts::AlertReport;

    /// Returns a disk of 100 MiB.
    fn disk(free: u64) -> DiskRoom {
        let used_percent = 100.0 - free as f64;
        DiskRoom { free_bytes: free << 20, used_percent, floor_bytes: 2 << 20, reserve: true }
    }

    #[test]
    fn part_in_use_is_measured_and_a_shortage_is_above_any_threshold() {
        let active_alerts = ActiveAlerts::new(SystemClock::shared());
        for free in [64, 8, 1, 16] {
            publish(&active_alerts, disk(free));
        }
        let published = active_alerts.take_reports().reports.into_iter().map(|report| match report {
            AlertReport::Holds(condition) => condition.value,
            AlertReport::Ended(key) => panic!("{key:?} has ended"),
        });
        assert_eq!(published.collect::<Vec<_>>(), [Some(36.0), None, None, Some(84.0)]);
        publish(&active_alerts, disk(8));
        assert!(active_alerts.list()[0].message.contains("8 MiB"));
        publish(&active_alerts, disk(1));
        assert!(active_alerts.list()[0].message.contains("changes are refused"));
    }

    #[test]
    fn small_writes_are_no_reports() {
        let active_alerts = ActiveAlerts::new(SystemClock::shared());
        for used_percent in [36.51, 36.55, 36.59, 36.61] {
            publish(&active_alerts, DiskRoom { used_percent, ..disk(64) });
        }
        assert_eq!(active_alerts.take_reports().reports.len(), 2);
    }
}
