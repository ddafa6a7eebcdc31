//! Health of the backups for `/observer`.

use std::sync::Arc;

use gateway_core::health::{Check, Finding};

use super::Service;
use crate::service::{self, Health};
use crate::services::encrypted_storage::StorageContent;
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
        let check = |findings| Check::of("backup", findings, "");
        let report = match self.report() {
            Ok(report) if report.config.enabled => report,
            Ok(_) => return None,
            Err(error) => return Some(check(vec![Finding::backup_failed(&error.to_string())]).into()),
        };
        let failure = report.runs.first().and_then(|run| run.error.as_deref());
        let unreachable = report.health.as_ref().and_then(|health| health.backups.as_ref().err());
        let finding = match (failure, unreachable) {
            _ if report.is_waiting => Some(Finding::storage_locked(StorageContent::Backups.as_str())),
            (Some(failure), _) => Some(Finding::backup_failed(failure)),
            (None, Some(unreachable)) => Some(Finding::backup_target_unreachable(unreachable)),
            (None, None) => None,
        };
        let (since, checks) = (report.runs.first().map(|run| run.at), report.runs.len() as u64);
        Some(Health { since, checks, ..check(finding.into_iter().collect()).into() })
    }
}
