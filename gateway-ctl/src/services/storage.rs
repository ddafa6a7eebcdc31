//! Alert for low disk space: raised when space runs short, cleared when there is enough again.

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
        None => active_alerts.clear(LOW, SUBJECT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::services::active_alerts::AlertReport;

    #[test]
    fn shortage_is_an_alert_until_there_is_room() {
        let active_alerts = ActiveAlerts::new(SystemClock::shared());
        let mib = |free: u64| DiskRoom { free_bytes: free << 20, floor_bytes: 2 << 20, reserve: true };
        for free in [64, 8, 1, 8, 16] {
            publish(&active_alerts, mib(free));
        }
        let published = active_alerts.take_reports().reports.into_iter().map(|report| match report {
            AlertReport::Holds(condition) => Some(condition.message),
            AlertReport::Ended(_) => None,
        });
        let published: Vec<Option<String>> = published.collect();
        assert!(matches!(&published[..], [Some(_), Some(_), Some(_), None]), "{published:?}");
        publish(&active_alerts, mib(8));
        assert!(active_alerts.list()[0].message.contains("8 MiB"));
        publish(&active_alerts, mib(1));
        assert!(active_alerts.list()[0].message.contains("changes are refused"));
    }
}
