//! Scheduled backups, and references between objects.

use gateway_ctl::services::backup::{Cause, Error as RunError, Health, Report, folder};
use gateway_ctl::store::{BackupRun, BackupTrigger};
use gateway_model::problem::code;
use gateway_model::references::References;
use gateway_model::registry;
use gateway_model::settings::groups::{BackupConfig, TargetType};
use gateway_model::{EditError, Problems, State};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::gateway::Open;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

pub(super) fn rows(t: &mut Table) {
    t.view("/references/{type}/{id}", "get_references", references)
        .summary("Objects that refer to this one, and what becomes of each when it is deleted")
        .doc(
            "type is a kind such as tunnel or trust_class; - and _ are equivalent. The outcome for a policy is that of its \
             hops and its failure policy, in the current and in the applied version; the worse one counts.",
        );
    t.view("/backup/status", "get_backup_status", status)
        .summary("Last backups, the next one, and the state of their target")
        .doc("The target is checked hourly and with each backup; the response shows the last check.");
    t.command(
        "/backup/run",
        "run_backup",
        Effect::Stores(Audit { action: "run_backup", resource_type: "backup" }),
        run,
    )
    .summary("Create a backup now")
    .doc(
        "Uses the configuration even while backups are disabled. The response is sent after the backup was written, read back and decrypted, or with the error. The run continues if the client disconnects.",
    )
    .answers(&[Code::InvalidState, Code::UpstreamFailed, Code::UpstreamTimeout]);
    t.group_checked::<BackupConfig>("/backup/config", "replace_backup_config", Access::Administer, check);
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BackupStatus {
    pub enabled: bool,
    /// Start of the backup that is running now; null if none is.
    pub running_since: Option<Timestamp>,
    /// Time of the last backup, successful or not; null before the first.
    pub last_run: Option<Timestamp>,
    /// Result of the last backup: `ok` or `failed`; null before the first.
    pub last_result: Option<gateway_ctl::store::BackupOutcome>,
    /// Size of the last backup in bytes; null if it failed.
    pub last_size: Option<u64>,
    /// Time of the last successful backup.
    pub last_success: Option<Timestamp>,
    /// Time of the next backup by the schedule, or of the next attempt after a failure. A past time means that it
    /// starts shortly. Null while backups are off.
    pub next_run: Option<Timestamp>,
    /// Time zone of the host, in which the schedule is interpreted.
    pub time_zone: String,
    pub target: BackupTargetStatus,
    /// `encrypted_storage` while the target lies in it and it is not open; null otherwise.
    pub waits_for: Option<&'static str>,
    /// Backups, newest first: the last 50, and the last successful one.
    pub history: Vec<BackupRun>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BackupTargetStatus {
    pub r#type: TargetType,
    /// Location of the backups.
    pub location: String,
    /// The last operation on the target succeeded. Null before the first operation since the start or the last change.
    pub reachable: Option<bool>,
    /// Time of the last operation on the target; null before the first.
    pub checked_at: Option<Timestamp>,
    /// Number of backups of this gateway at the target; null if they could not be listed.
    pub backups: Option<usize>,
    /// Error of the last operation; null if it succeeded.
    pub error: Option<String>,
}

impl From<Report> for BackupStatus {
    fn from(report: Report) -> Self {
        let Report { config, running_since, next, zone, health, is_waiting, runs } = report;
        let last = runs.first();
        let (checked_at, backups) = match health {
            Some(Health { checked_at, backups }) => (Some(checked_at), Some(backups)),
            None => (None, None),
        };
        let target = BackupTargetStatus {
            r#type: config.target.r#type,
            location: config.target.label(),
            reachable: backups.as_ref().map(Result::is_ok),
            checked_at,
            backups: backups.as_ref().and_then(|backups| backups.as_ref().ok().copied()),
            error: backups.and_then(Result::err),
        };
        Self {
            enabled: config.enabled,
            running_since,
            last_run: last.map(|run| run.at),
            last_result: last.map(|run| run.result),
            last_size: last.and_then(|run| run.size),
            last_success: runs.iter().find(|run| run.is_ok()).map(|run| run.at),
            next_run: next,
            time_zone: zone,
            target,
            waits_for: is_waiting.then_some("encrypted_storage"),
            history: runs,
        }
    }
}

async fn status(cx: Cx, _: Req<()>) -> Result<BackupStatus, ApiError> {
    let service = cx.open()?.backup.clone();
    Ok(blocking(move || service.report()).await??.into())
}

async fn run(cx: Cx, _: Req<()>) -> Result<BackupRun, ApiError> {
    let ticket = cx.own_ticket()?;
    match cx.open()?.backup.run(ticket, BackupTrigger::Manual).await {
        Ok(run) => Ok(run),
        Err(RunError::Failed { run, cause }) => {
            let code = match &cause {
                Cause::Target(error) if error.is_timeout() => Code::UpstreamTimeout,
                Cause::Target(_) | Cause::Differs => Code::UpstreamFailed,
                Cause::Spool(error) if error.kind() == std::io::ErrorKind::StorageFull => Code::StorageFull,
                Cause::Spool(_) | Cause::BrokenOff => Code::Internal,
            };
            let mut error = ApiError::new(code, format!("The backup failed: {cause}."))
                .detail("target", run.target.as_str())
                .detail("name", run.name.as_str());
            // The entry of the run contains the failure.
            error.recorded = true;
            Err(error)
        }
        Err(RunError::Busy) => {
            Err(ApiError::new(Code::InvalidState, "A backup is in progress.").detail("state", "running"))
        }
        Err(RunError::Waiting) => Err(ApiError::new(
            Code::InvalidState,
            "The backups live in the encrypted storage, which is not open: open it first.",
        )
        .detail("waits_for", "encrypted_storage")),
        Err(RunError::NotSetUp(missing)) => Err(ApiError::new(Code::InvalidState, missing)
            .detail("state", "not_set_up")
            .detail("allowed", vec!["PUT /backup/config"])),
        Err(RunError::Store(error)) => Err(error.into()),
    }
}

/// Checks that need the daemon: the backup directory must be outside of the state directory, or in the encrypted storage.
fn check(open: &Open, draft: &State) -> Result<(), EditError> {
    let config: BackupConfig = draft.group();
    let target = &config.target;
    let path = std::path::Path::new(&target.path);
    let is_checked = target.r#type == TargetType::Local && !target.path.is_empty();
    let is_in_storage = || open.backup.storage_folder().is_some_and(|of| folder::is_inside(path, &of));
    if !is_checked || !folder::is_inside(path, &open.backup.own_folder()) || is_in_storage() {
        return Ok(());
    }
    let mut problems = Problems::new();
    problems.add(
        code::CONFLICT,
        "target.path",
        "Not in the state directory of the gateway: a backup lies elsewhere, or in the folder backups of an encrypted \
         storage that holds backups.",
    );
    Err(EditError::Invalid(problems))
}

async fn references(cx: Cx, request: Req<()>) -> Result<References, ApiError> {
    let (kind, id) = (request.params.get("type"), request.params.get("id"));
    let state = cx.open()?.store.current();
    let Some(found) = registry::kind(kind) else {
        let allowed: Vec<&str> = registry::KINDS.iter().map(|kind| kind.noun).collect();
        return Err(ApiError::invalid_parameter("type", format!("There are no objects of type {kind:?}."))
            .detail("allowed", allowed));
    };
    Ok(found.references(&state, id)?)
}
