//! The alert engine as the source of notifications.

use std::collections::BTreeSet;

use gateway_core::alerts::{self, Alert};
use gateway_core::notifications::{AlertSnapshot, Notification, Transition};
use gateway_outbound::causes::with_causes;
use tokio::sync::watch;

use super::source::{NotificationSource, SourceEvent};
use crate::services::alerts::Alerts;

/// Maximum number of transitions that are read at once.
const MAX_EVENTS: usize = 100;

impl NotificationSource for Alerts {
    fn events_after(&self, sequence: u64) -> Vec<SourceEvent> {
        match self.notifications_after(sequence, MAX_EVENTS) {
            Ok(notifications) => notifications.into_iter().map(event).collect(),
            Err(error) => {
                tracing::error!(error = with_causes(&error), "failed to read the notifications of alerts");
                Vec::new()
            }
        }
    }

    fn active(&self) -> Vec<AlertSnapshot> {
        self.sent_alerts().into_iter().map(snapshot).collect()
    }

    fn muted(&self) -> BTreeSet<String> {
        self.muted_fingerprints()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.watch_notifications()
    }
}

fn event(notification: alerts::Notification) -> SourceEvent {
    let alerts::Notification { sequence, transition, is_consequence, alert, .. } = notification;
    let transition = match transition {
        alerts::Transition::Raised | alerts::Transition::Promoted | alerts::Transition::Unmuted => {
            Some(Transition::Firing)
        }
        alerts::Transition::Resolved => Some(Transition::Resolved),
        alerts::Transition::Acknowledged | alerts::Transition::Muted => None,
    };
    let alert = snapshot(alert);
    let notification =
        transition.map(|transition| Notification { sequence, transition, is_consequence, alert });
    SourceEvent { sequence, notification }
}

fn snapshot(alert: Alert) -> AlertSnapshot {
    AlertSnapshot {
        id: alert.id.to_string(),
        fingerprint: alert.fingerprint,
        kind: alert.kind.to_string(),
        severity: alert.severity,
        title: alert.title,
        message: alert.message,
        subject: alert.subject,
        resource_type: Some(alert.resource_type).filter(|text| !text.is_empty()),
        resource_id: alert.resource_id,
        device_id: alert.device_id.map(|id| id.to_string()),
        labels: alert.labels,
        count: alert.count,
        first_seen: alert.first_seen,
        last_seen: alert.last_seen,
        resolved_at: alert.resolved_at,
    }
}
