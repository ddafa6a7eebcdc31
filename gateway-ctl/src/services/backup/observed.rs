//! Health of the backups for `/observer`.

use std::sync::Arc;

use super::Service;
use crate::service::{self, Health, HealthState};
use crate::supervise::blocking;

impl Service {
    /// Returns the service that reports whether the last backup succeeded. It reports nothing while backups are off.
    pub fn health(self: &Arc<Self>) -> service::Service {
        let backups = self.clone();
        service::Service::idle("backup").reports(move || {
            let backups = backups.clone();
            blocking(move || backups.observe())
        })
    }

    fn observe(&self) -> Option<Health> {
        let health = |state, message| Health { subsystem: "backup", state, message, since: None, checks: 0 };
        let report = match self.report() {
            Ok(report) if report.config.enabled => report,
            Ok(_) => return None,
            Err(error) => return Some(health(HealthState::Failed, error.to_string())),
        };
        let failure = report.runs.first().and_then(|run| run.error.clone());
        let unreachable = report.health.as_ref().and_then(|health| health.backups.as_ref().err().cloned());
        let (state, message) = match (failure, unreachable) {
            (Some(failure), _) => (HealthState::Failed, format!("the last backup failed: {failure}")),
            (None, Some(unreachable)) => (HealthState::Degraded, unreachable),
            (None, None) => (HealthState::Ok, String::new()),
        };
        let (since, checks) = (report.runs.first().map(|run| run.at), report.runs.len() as u64);
        Some(Health { since, checks, ..health(state, message) })
    }
}
