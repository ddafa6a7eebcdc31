//! Alert engine at work: it takes the reports of services, applies the rules, stores alerts and notifications, and publishes
//! what changes.
//!
//! The engine itself is `gateway_core::alerts`. Everything it returns is stored in one transaction before receivers get it.
//! While the disk is full, alerts are kept in memory and are published nevertheless; they are stored later.

mod metrics;
mod request_error;
mod requests;
mod state;
mod surroundings;

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gateway_core::alerts::{
    self, Alert, AlertEngine, AlertKey, Announced, Changes, Notification, Report, Surroundings,
};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::service::Service;
use crate::services::active_alerts::{ActiveAlert, ActiveAlerts, AlertReport};
use crate::store::{Error, Store};
use crate::supervise::blocking;
use crate::world::Worlds;

pub use request_error::RequestError;
use state::{State, now};
use surroundings::View;

/// Interval at which time is followed while something is due.
const SHORT_INTERVAL: Duration = Duration::from_millis(250);
/// Interval at which time is followed otherwise.
const LONG_INTERVAL: Duration = Duration::from_secs(2);
/// Interval of the removal of old alerts.
const TRIM_INTERVAL: Duration = Duration::from_secs(3600);
/// Capacity of the channel of changed alerts. A subscriber that lags behind by more gets an error that it missed some.
const CHANNEL_CAPACITY: usize = 256;

/// Alerts of the gateway. Clones are the same.
#[derive(Clone)]
pub struct Alerts(Arc<Inner>);

struct Inner {
    store: Arc<Store>,
    active_alerts: ActiveAlerts,
    /// Publisher of the world; missing until the engine of the gateway runs.
    worlds: OnceLock<Arc<Worlds>>,
    state: Mutex<State>,
    changed: broadcast::Sender<Alert>,
    /// Sequence number of the last notification.
    sequence: watch::Sender<u64>,
}

impl std::fmt::Debug for Alerts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alerts").field("store", &self.0.store).finish_non_exhaustive()
    }
}

impl Alerts {
    /// Continues with the stored alerts, whose conditions are restored in the registry. This comes before any service
    /// starts that reports conditions.
    pub fn open(store: Arc<Store>, active_alerts: ActiveAlerts) -> Result<Alerts, Error> {
        let stored = store.alert_records()?;
        let sequence = watch::channel(stored.last_sequence).0;
        let now = now(&store);
        let engine = AlertEngine::restore(stored, now);
        for record in engine.open().filter(|record| record.ended_at.is_none()) {
            let Alert { kind, subject, message, first_seen: since, .. } = record.alert.clone();
            if !alerts::behaviour(kind).is_event {
                let (value, times, until) = (None, 1, record.holds_until);
                active_alerts.restore(ActiveAlert { kind, subject, message, value, since, times, until });
            }
        }
        let state = State::new(engine);
        let changed = broadcast::channel(CHANNEL_CAPACITY).0;
        let (worlds, state) = (OnceLock::new(), Mutex::new(state));
        Ok(Alerts(Arc::new(Inner { store, active_alerts, worlds, state, changed, sequence })))
    }

    /// Returns the service.
    pub fn service(&self, worlds: &Arc<Worlds>) -> Service {
        // A second service of the same alerts would see the same world.
        let _ = self.0.worlds.set(worlds.clone());
        let (erased, measured) = (self.clone(), self.clone());
        Service::new("alerts", self, |alerts| alerts.follow())
            .measures(move |registry| metrics::register(registry, &measured.lock()))
            .erases(move |_| {
                let alerts = erased.clone();
                async move {
                    alerts.erase();
                    Ok(())
                }
            })
    }

    /// Follows reports and time until it is aborted.
    async fn follow(self) {
        let mut trimmed: Option<Instant> = None;
        loop {
            let alerts = self.clone();
            let is_waiting = blocking(move || alerts.process()).await;
            if trimmed.is_none_or(|last| last.elapsed() >= TRIM_INTERVAL) {
                trimmed = Some(Instant::now());
                let store = self.0.store.clone();
                match blocking(move || store.trim_alerts()).await {
                    Ok(0) => {}
                    Ok(removed) => tracing::info!(removed, "removed old alerts"),
                    Err(error) => tracing::error!(%error, "failed to remove old alerts"),
                }
            }
            let pause = if is_waiting { SHORT_INTERVAL } else { LONG_INTERVAL };
            tokio::select! {
                () = self.0.active_alerts.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Takes the queued reports, and follows the time. Blocks on the disk. Returns whether something is due soon.
    pub fn process(&self) -> bool {
        let mut state = self.lock();
        self.advance(&mut state);
        if let Err(error) = self.save(&mut state) {
            if !std::mem::replace(&mut state.is_failing, true) {
                tracing::error!(%error, "failed to store alerts: they are kept in memory");
            }
            return true;
        }
        if std::mem::take(&mut state.is_failing) {
            tracing::info!("stored the alerts that were kept in memory");
        }
        state.engine.is_waiting()
    }

    fn advance(&self, state: &mut State) {
        let now = now(&self.0.store);
        let queued = self.0.active_alerts.take_reports();
        let view = View::new(&self.0.store, self.0.worlds.get(), &state.engine, &queued.reports);
        let surroundings = Surroundings { rules: &view.rules, dependencies: &view.dependencies };
        if queued.is_complete_state {
            let reported: Vec<AlertKey> = queued.reports.iter().map(key_of).collect();
            let unconfirmed = self.0.active_alerts.unconfirmed();
            let open = state.engine.open().map(|record| record.alert.key());
            let ended = open.filter(|key| !reported.contains(key) && !unconfirmed.contains(key));
            for key in ended.collect::<Vec<_>>() {
                state.engine.end(&key, surroundings, now);
            }
        }
        for report in queued.reports {
            match report {
                AlertReport::Ended(key) => state.engine.end(&key, surroundings, now),
                AlertReport::Holds(condition) => {
                    let ActiveAlert { kind, subject, message, value, times, until, .. } = condition;
                    let key = AlertKey::new(kind, subject);
                    let subject = alerts::describe(&view.state, &key);
                    let report = Report { subject, message, value, times, until };
                    state.engine.report(&key, report, surroundings, now);
                }
            }
        }
        state.engine.advance(surroundings, now);
        self.publish(state);
    }

    /// Publishes what changed, and keeps it to be stored.
    fn publish(&self, state: &mut State) {
        let changes = state.engine.take_changes();
        for record in changes.records.values() {
            // Without a subscriber, the send fails, which is no error.
            let _ = self.0.changed.send(record.alert.clone());
            let Alert { id, kind, status, subject, count, .. } = &record.alert;
            tracing::info!(id, %kind, status = status.as_str(), subject, count, "alert changed");
        }
        state.count(&changes);
        state.unsaved.extend(changes);
    }

    /// Stores the changes, in one transaction.
    fn save(&self, state: &mut State) -> Result<(), Error> {
        let last = state.unsaved.notifications.last().map(|notification| notification.sequence);
        if !state.unsaved.is_empty() {
            let saved = self.0.store.keep_alerts(&state.unsaved);
            if saved.is_ok() {
                state.unsaved = Changes::default();
            }
            self.0.sequence.send_if_modified(|sequence| {
                let newest = last.unwrap_or_default().max(*sequence);
                std::mem::replace(sequence, newest) != newest
            });
            saved?;
        }
        Ok(())
    }

    /// Returns the open alerts, oldest first.
    pub fn open_alerts(&self) -> Vec<Alert> {
        self.lock().engine.open().map(|record| record.alert.clone()).collect()
    }

    /// Returns the open alerts that receivers were notified of, oldest first. Consequences are none of them, and neither
    /// are alerts that are muted.
    pub fn sent_alerts(&self) -> Vec<Alert> {
        let state = self.lock();
        let sent = state
            .engine
            .open()
            .filter(|record| record.announced == Some(Announced::Sent) && record.alert.muted_until.is_none());
        sent.map(|record| record.alert.clone()).collect()
    }

    /// Returns the fingerprints of the alerts that are muted.
    pub fn muted_fingerprints(&self) -> BTreeSet<String> {
        self.lock().engine.muted().map(|record| record.alert.fingerprint.clone()).collect()
    }

    /// Returns the open alerts and a receiver for all later changes.
    pub fn subscribe(&self) -> (Vec<Alert>, broadcast::Receiver<Alert>) {
        let state = self.lock();
        let open = state.engine.open().map(|record| record.alert.clone()).collect();
        (open, self.0.changed.subscribe())
    }

    /// Returns at most `limit` notifications after a sequence number, oldest first. A receiver stores the number of the last
    /// one that it has delivered, and continues with it after a restart. Blocks on the disk.
    ///
    /// Notifications of which the disk had no room are returned from memory. They are given again after a crash.
    pub fn notifications_after(&self, sequence: u64, limit: usize) -> Result<Vec<Notification>, Error> {
        let state = self.lock();
        let mut notifications = self.0.store.alert_notifications_after(sequence, limit)?;
        let unsaved =
            state.unsaved.notifications.iter().filter(|notification| notification.sequence > sequence);
        notifications.extend(unsaved.take(limit - notifications.len()).cloned());
        Ok(notifications)
    }

    /// Returns a receiver of the sequence number of the newest notification.
    pub fn watch_notifications(&self) -> watch::Receiver<u64> {
        self.0.sequence.subscribe()
    }

    /// Forgets all alerts. The store erases its copy by itself.
    fn erase(&self) {
        let mut state = self.lock();
        self.0.active_alerts.forget();
        state.engine.clear();
        state.unsaved = Changes::default();
    }

    /// Locks the state; a panic between two statements leaves it consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

fn key_of(report: &AlertReport) -> AlertKey {
    match report {
        AlertReport::Holds(condition) => AlertKey::new(condition.kind, condition.subject.clone()),
        AlertReport::Ended(key) => key.clone(),
    }
}

#[cfg(test)]
mod tests;
