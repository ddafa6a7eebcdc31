//! Source of notifications that a test makes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gateway_core::notifications::{AlertSnapshot, Notification, Transition, test_alert};
use gateway_ctl::services::deliveries::{NotificationSource, SourceEvent};
use gateway_model::settings::groups::Severity;
use jiff::Timestamp;
use tokio::sync::watch;

#[derive(Debug)]
pub(super) struct Scripted {
    kept: Mutex<Kept>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    notifications: Vec<Notification>,
    active: BTreeMap<String, AlertSnapshot>,
    muted: BTreeSet<String>,
}

impl Default for Scripted {
    fn default() -> Self {
        Self { kept: Mutex::default(), changed: watch::Sender::new(0) }
    }
}

impl Scripted {
    /// Raises an alert about a tunnel.
    pub(super) fn raise(&self, subject: &str, now: Timestamp) {
        let alert = AlertSnapshot {
            id: format!("alert-{subject}"),
            fingerprint: subject.to_owned(),
            kind: "tunnel_down".to_owned(),
            severity: Severity::Critical,
            title: format!("Tunnel down: {subject}"),
            message: "no reply".to_owned(),
            subject: subject.to_owned(),
            ..test_alert(now)
        };
        self.kept().active.insert(subject.to_owned(), alert.clone());
        self.notify(Transition::Firing, alert);
    }

    pub(super) fn resolve(&self, subject: &str, now: Timestamp) {
        let mut alert = self.kept().active.remove(subject).expect("an active alert");
        alert.resolved_at = Some(now);
        self.notify(Transition::Resolved, alert);
    }

    /// Mutes an alert, or lifts its mute.
    pub(super) fn mute(&self, subject: &str, is_muted: bool) {
        let mut kept = self.kept();
        if is_muted {
            kept.muted.insert(subject.to_owned());
        } else {
            kept.muted.remove(subject);
        }
        drop(kept);
        // Receivers are not notified of the mute itself.
        self.changed.send_modify(|_| {});
    }

    fn notify(&self, transition: Transition, alert: AlertSnapshot) {
        let sequence = {
            let mut kept = self.kept();
            let sequence = kept.notifications.len() as u64 + 1;
            kept.notifications.push(Notification { sequence, transition, is_consequence: false, alert });
            sequence
        };
        self.changed.send_replace(sequence);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NotificationSource for Scripted {
    fn events_after(&self, sequence: u64) -> Vec<SourceEvent> {
        let kept = self.kept();
        let later = kept.notifications.iter().filter(|known| known.sequence > sequence).take(3);
        later
            .map(|known| SourceEvent { sequence: known.sequence, notification: Some(known.clone()) })
            .collect()
    }

    fn active(&self) -> Vec<AlertSnapshot> {
        let kept = self.kept();
        let is_muted = |alert: &AlertSnapshot| kept.muted.contains(&alert.fingerprint);
        kept.active.values().filter(|alert| !is_muted(alert)).cloned().collect()
    }

    fn muted(&self) -> BTreeSet<String> {
        self.kept().muted.clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
