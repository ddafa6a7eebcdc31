//! Alerts of the reconcile loop: a plan that is not in force, and objects that another program changed.

use std::collections::BTreeMap;

use gateway_model::kinds::alert_rule::AlertKind;

use crate::reconcile::Status;
use crate::services::active_alerts::ActiveAlerts;

/// Subject of the alert of a plan that is not in force.
const PLAN: &str = "plan";
/// Maximum number of objects that a message names.
const MAX_NAMED: usize = 3;

/// Drift that was reported so far.
#[derive(Debug, Default)]
pub(super) struct Reconciling {
    drift_found: u64,
}

impl Reconciling {
    pub(super) fn report(&mut self, alerts: &ActiveAlerts, status: &Status) {
        // Before the first run nothing is known.
        if status.run == 0 {
            return;
        }
        match status.enforcement_failure() {
            Some(failure) => alerts.raise(AlertKind::ApplyFailed, PLAN, failure),
            None => alerts.clear(AlertKind::ApplyFailed, PLAN),
        }
        self.report_drift(alerts, status);
    }

    /// Reports the new drift items, by subsystem.
    fn report_drift(&mut self, alerts: &ActiveAlerts, status: &Status) {
        let new =
            status.drift_found.saturating_sub(std::mem::replace(&mut self.drift_found, status.drift_found));
        let new = usize::try_from(new).unwrap_or(usize::MAX).min(status.drift.len());
        let mut subsystems: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for item in status.drift.iter().rev().take(new) {
            subsystems.entry(&item.subsystem).or_default().push(&item.resource);
        }
        for (subsystem, resources) in subsystems {
            let named = resources[..resources.len().min(MAX_NAMED)].join(", ");
            let message = match resources.len() - resources.len().min(MAX_NAMED) {
                0 => format!("another program changed {named}"),
                more => format!("another program changed {named} and {more} more"),
            };
            for _ in &resources {
                alerts.note_event(AlertKind::DriftDetected, subsystem, message.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::alerts::AlertKey;
    use jiff::Timestamp;

    use super::*;
    use crate::clock::SystemClock;
    use crate::reconcile::{DriftItem, Severity};
    use crate::services::active_alerts::AlertReport;

    #[test]
    fn each_drift_item_is_reported_once() {
        let alerts = ActiveAlerts::new(SystemClock::shared());
        let mut reconciling = Reconciling::default();
        let item = DriftItem {
            subsystem: "nft".into(),
            resource: "table inet gateway".into(),
            field: "rules".into(),
            expected: "3".into(),
            actual: "2".into(),
            severity: Severity::Critical,
            detected_at: Timestamp::UNIX_EPOCH,
            repaired: true,
        };
        let mut status = Status { run: 1, ..Status::default() };
        for (found, expected) in [(0, 0), (2, 2), (2, 0), (3, 1)] {
            status.drift = std::iter::repeat_n(item.clone(), found).collect();
            status.drift_found = found as u64;
            reconciling.report(&alerts, &status);
            let reports = alerts.take_reports().reports;
            assert_eq!(reports.len(), expected);
            let key = AlertKey::new(AlertKind::DriftDetected, "nft");
            assert!(reports.iter().all(|report| match report {
                AlertReport::Holds(event) => (event.kind, &event.subject) == (key.kind, &key.subject),
                AlertReport::Ended(_) => false,
            }));
        }
    }
}
