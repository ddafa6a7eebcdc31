//! Alerts about the gateway itself: changes that the audit trail shows, backups, the certificate, the processor, the clock and
//! the dead-man switch.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gateway_ctl::services::active_alerts::ActiveAlerts;
use gateway_ctl::services::deadman;
use gateway_ctl::store::{
    self, AuditEntry, AuditFilter, AuditResult, BackupRun, BackupTrigger, SecretsHealth, Store,
};
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::secrets::SecretPlace;
use gateway_model::settings::groups::BackupConfig;
use jiff::Timestamp;

use crate::blocking::blocking;
use crate::context::Api;
use crate::gateway::{Gateway, Open};
use crate::host_info::cpu_temperature;

const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of audit entries that one look takes. Older ones among more are skipped.
const MAX_ENTRIES: usize = 500;
/// Degrees by which a message about the temperature is rounded, so that it seldom changes.
const TEMPERATURE_STEP: f64 = 5.0;
/// CPU time for secrets that were not tried yet, in each interval.
const SECRETS_BUDGET: Duration = Duration::from_millis(100);
/// Maximum number of secrets that a message names.
const MAX_NAMED: usize = 3;
const CPU: &str = "cpu";
const SECRETS: &str = "secrets";
const API_CERTIFICATE: &str = "api";
const CLOCK: &str = "clock";
const SWITCH: &str = "dead_man_switch";

/// Last audit entry and backup that were reported.
#[derive(Debug, Default)]
struct Reported {
    /// Last audit entry; `None` before the first look.
    entry: Option<u64>,
    /// Start of the last backup.
    backup: Option<Timestamp>,
}

/// Follows the gateway until it is aborted.
pub(crate) async fn follow(api: Arc<Api>) {
    let mut reported = Reported::default();
    loop {
        let watched = api.clone();
        let looked = blocking(move || {
            if let Gateway::Open(open) = &watched.gateway
                && let Err(error) = look(open, &mut reported)
            {
                tracing::error!(%error, "failed to read what alerts are about");
            }
            reported
        });
        match looked.await {
            Ok(after) => reported = after,
            Err(error) => {
                tracing::error!(error = error.message, "the look for alerts failed");
                reported = Reported::default();
            }
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn look(open: &Open, reported: &mut Reported) -> Result<(), store::Error> {
    let alerts = &open.active_alerts;
    report_changes(alerts, &open.store, &mut reported.entry)?;
    report_backup(alerts, &open.store, &mut reported.backup)?;
    report_certificate(alerts, open);
    report_secrets(alerts, &open.store.verify_secrets(SECRETS_BUDGET));
    report_temperature(alerts, cpu_temperature(Path::new("/sys/class")));
    report_switch(alerts, &open.deadman.report()?);
    Ok(())
}

/// Reports the new entries of the audit trail.
fn report_changes(alerts: &ActiveAlerts, store: &Store, last: &mut Option<u64>) -> Result<(), store::Error> {
    let newest = |limit| store.audit(limit, None, &AuditFilter::default()).map(|(entries, _)| entries);
    // Of an empty trail, the first entry is new.
    let entry = newest(1)?.first().map_or(0, |entry| entry.id);
    let Some(before) = last.replace(entry) else { return Ok(()) };
    let count = usize::try_from(entry.saturating_sub(before)).unwrap_or(MAX_ENTRIES).min(MAX_ENTRIES);
    if count > 0 {
        newest(count)?
            .iter()
            .rev()
            .filter(|entry| entry.id > before)
            .for_each(|entry| report_change(alerts, entry));
    }
    Ok(())
}

fn report_change(alerts: &ActiveAlerts, entry: &AuditEntry) {
    if entry.result != AuditResult::Success {
        return;
    }
    let AuditEntry { actor, resource_id, .. } = entry;
    let subject = resource_id.as_deref().unwrap_or_default();
    match entry.action.as_str() {
        "create_api_key" => {
            alerts.note_event(AlertKind::KeyCreated, subject, format!("{actor} created an API key"));
        }
        "rollback_snapshot" | "revert_apply" => {
            let message = format!("{actor} took the configuration back to an earlier state");
            alerts.note_event(AlertKind::RollbackPerformed, subject, message);
        }
        _ => {}
    }
}

/// Reports the result of the last backup.
fn report_backup(
    alerts: &ActiveAlerts,
    store: &Store,
    last: &mut Option<Timestamp>,
) -> Result<(), store::Error> {
    let newest: Option<BackupRun> = store.backup_runs()?.into_iter().next();
    let is_enabled = store.current().group::<BackupConfig>().enabled;
    match newest.filter(|run| !run.is_ok()) {
        Some(run) => {
            if last.replace(run.at) != Some(run.at) {
                let message = run.error.as_deref().unwrap_or("the reason is not known");
                alerts.raise(AlertKind::BackupFailed, &run.target, format!("the backup failed: {message}"));
            }
            // Scheduled backups that were disabled cannot succeed any more.
            let lasts = is_enabled || run.trigger == BackupTrigger::Manual;
            alerts.keep(AlertKind::BackupFailed, |target| target == run.target && lasts);
        }
        None => alerts.keep(AlertKind::BackupFailed, |_| false),
    }
    Ok(())
}

/// Reports the days that the certificate of the API has left.
fn report_certificate(alerts: &ActiveAlerts, open: &Open) {
    let Some(status) = open.tls.certificate() else {
        return alerts.clear(AlertKind::CertExpiring, API_CERTIFICATE);
    };
    if let Some(end) = status.not_after {
        let days = end.duration_since(open.now()).as_secs_f64() / 86_400.0;
        let message = format!("the certificate of the API ends at {end:.0}");
        alerts.measure(AlertKind::CertExpiring, API_CERTIFICATE, days, message);
    }
}

/// Reports secrets that cannot be decrypted. While some were not tried, the alert of an earlier run stays.
fn report_secrets(alerts: &ActiveAlerts, health: &SecretsHealth) {
    if health.is_locked {
        let message = "the passphrase of the secrets is lost: set it again".to_owned();
        return alerts.raise(AlertKind::SecretsDecryptFailed, SECRETS, message);
    }
    if health.unreadable.is_empty() {
        if health.unknown == 0 {
            alerts.clear(AlertKind::SecretsDecryptFailed, SECRETS);
        }
        return;
    }
    let named: Vec<String> = health
        .unreadable
        .iter()
        .take(MAX_NAMED)
        .map(|SecretPlace { noun, name, field, .. }| format!("{noun} {name} {field}").trim_end().to_owned())
        .collect();
    let more = health.unreadable.len() - named.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let message = format!("secrets cannot be decrypted, set them again: {}{more}", named.join(", "));
    alerts.raise(AlertKind::SecretsDecryptFailed, SECRETS, message);
}

fn report_temperature(alerts: &ActiveAlerts, degrees: Option<f64>) {
    match degrees {
        Some(degrees) => {
            let step = (degrees / TEMPERATURE_STEP).floor() * TEMPERATURE_STEP;
            let message = format!("the processor has {step} °C or more");
            alerts.measure(AlertKind::CpuTempHigh, CPU, degrees, message);
        }
        None => alerts.clear(AlertKind::CpuTempHigh, CPU),
    }
}

/// Reports the dead-man switch, and the clock that it depends on.
fn report_switch(alerts: &ActiveAlerts, report: &deadman::Report) {
    match report.warned.filter(|_| report.settings.enabled) {
        Some(percent) => {
            let message = format!("{percent} per cent of the time of the dead-man switch have passed");
            alerts.measure(AlertKind::DeadmanWarning, SWITCH, f64::from(percent), message);
        }
        None => alerts.clear(AlertKind::DeadmanWarning, SWITCH),
    }
    match report.clock_synced {
        true => alerts.clear(AlertKind::ClockUnsynchronised, CLOCK),
        false => {
            let message = "no time server sets the clock of the gateway".to_owned();
            alerts.raise(AlertKind::ClockUnsynchronised, CLOCK, message);
        }
    }
}

#[cfg(test)]
mod tests;
