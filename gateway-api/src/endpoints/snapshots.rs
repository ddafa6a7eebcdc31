//! Snapshots of the configuration, and rollback to one.

use gateway_ctl::store::{RollbackOptions, Snapshot, SnapshotReason, is_snapshot_name, restore};
use gateway_model::bulk_edit::{Outcome, diff};
use gateway_model::field_diff;
use gateway_model::problem::code;
use gateway_model::{EditError, Problems, State};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::plan::{self, PlanResult};
use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

pub(super) fn rows(t: &mut Table) {
    t.view("/snapshots", "list_snapshots", snapshots)
        .summary("Snapshots of the configuration before each apply, import and rollback, newest first")
        .doc("The last fifty are kept. They contain no accounts, and secrets in their stored form.")
        .access(Access::Administer);
    let row = t.action("/snapshots", TAKE.action, Effect::Stores(TAKE), take);
    row.summary("Take a snapshot of the configuration now")
        .doc("Without a name, the name is derived from the time. A name in use is rejected.")
        .access(Access::Administer)
        .answers(&[Code::Conflict])
        .status(201);
    t.action(
        "/rollback",
        "rollback_snapshot",
        Effect::Stores(Audit { action: "rollback_snapshot", resource_type: "snapshot" }),
        rollback,
    )
    .summary("Roll back to a snapshot")
    .doc(
        "Restores objects, settings and applied policies from the snapshot in one transaction, with a snapshot taken first. Users and keys stay unchanged, so a rollback never restores a revoked key.",
    )
    .access(Access::Administer)
    .query::<RollbackQuery>()
    .answers(&[Code::NotFound, Code::PreconditionFailed])
    .requires_input();
}

/// Query of a rollback.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct RollbackQuery {
    /// Responds with the changes that the rollback would make now, by object, setting and field, and stores nothing.
    dry_run: bool,
}

async fn snapshots(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<Snapshot>>, ApiError> {
    let store = cx.open()?.store.clone();
    Ok(WithHeaders::counted(blocking(move || store.snapshots()).await??))
}

const TAKE: Audit = Audit { action: "create_snapshot", resource_type: "snapshot" };

/// A manual snapshot.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct SnapshotInput {
    /// Name of up to 64 letters, digits, hyphens and underscores; null: generated from the time.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"))]
    pub name: Option<String>,
}

async fn take(cx: Cx, request: Req<SnapshotInput>) -> Result<WithHeaders<Snapshot>, ApiError> {
    let name = request.input.name;
    if name.as_deref().is_some_and(|name| !is_snapshot_name(name)) {
        let mut problems = Problems::new();
        problems.add(code::FORMAT, "name", NAME_RULE);
        return Err(ApiError::validation(&problems));
    }
    let (store, mut ticket) = (cx.open()?.store.clone(), cx.own_ticket()?);
    ticket.resource_id.clone_from(&name);
    let wanted = name.clone();
    let taken = blocking(move || store.take_snapshot(ticket, SnapshotReason::Manual, wanted)).await??;
    let snapshot = taken.ok_or_else(|| {
        ApiError::new(Code::Conflict, "A snapshot of this name exists.").detail("field", "name")
    })?;
    let mut answer = WithHeaders::new(snapshot);
    answer.status = StatusCode::CREATED;
    answer.location = Some("/snapshots".to_owned());
    Ok(answer)
}

const NAME_RULE: &str = "The name of a snapshot has up to 64 letters, digits, hyphens and underscores.";

/// Target of a rollback.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct RollbackInput {
    /// Name of a snapshot.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"))]
    pub snapshot: String,
    /// Seconds within which /apply/confirm must be called, at most 86400. Otherwise the rollback is undone. 0: no
    /// confirmation needed.
    pub confirm_timeout_sec: u32,
}

async fn rollback(cx: Cx, request: Req<RollbackInput>) -> Result<WithHeaders<PlanResult>, ApiError> {
    let RollbackInput { snapshot: name, confirm_timeout_sec } = request.input;
    plan::check_timeout(confirm_timeout_sec)?;
    let mut problems = Problems::new();
    if name.is_empty() {
        problems.required("snapshot");
    } else if !is_snapshot_name(&name) {
        problems.add(code::FORMAT, "snapshot", NAME_RULE);
    }
    if !problems.is_empty() {
        return Err(ApiError::validation(&problems));
    }
    let RollbackQuery { dry_run } = request.query.read()?;
    let store = cx.open()?.store.clone();
    if let Some(pending) = store.pending() {
        return Err(ApiError::apply_in_progress(&pending));
    }
    let wanted = name.clone();
    let found = blocking(move || store.snapshot(&wanted)).await??;
    let (_, target) = found.ok_or_else(|| ApiError::not_found("snapshot", &name))?;
    let edit = move |draft: &mut State| {
        let before = draft.clone();
        restore(draft, &target).map_err(|error| {
            let mut problems = Problems::new();
            problems.add(code::CONFLICT, "snapshot", error.to_string());
            EditError::Invalid(problems)
        })?;
        let changes = diff(&before, draft);
        Ok(Outcome { changes, settings: field_diff::settings(&before, draft), warnings: Vec::new() })
    };
    if dry_run {
        let preview = plan::dry_run(&cx, request.if_match, plan::Gate::None, edit).await?;
        return Ok(WithHeaders::new(preview));
    }
    let confirm = plan::confirm_within(confirm_timeout_sec);
    let safety = RollbackOptions { reason: SnapshotReason::PreRollback, confirm };
    plan::execute(&cx, request.if_match, safety, plan::Gate::None, edit).await
}
