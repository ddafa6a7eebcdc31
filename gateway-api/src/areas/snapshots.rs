//! Snapshots of the configuration, and the way back to one.

use gateway_ctl::store::{Safety, Snapshot, SnapshotReason, is_snapshot_name, restore};
use gateway_model::change::{Outcome, diff};
use gateway_model::problem::code;
use gateway_model::{EditError, Problems};
use schemars::JsonSchema;
use serde::Deserialize;

use super::plan::{self, PlanResult};
use crate::access::Access;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::gateway::blocking;
use crate::reply::With;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

pub fn rows(t: &mut Table) {
    t.view("/snapshots", "list_snapshots", snapshots)
        .summary("What the configuration was before each apply, import and rollback; newest first")
        .doc("The last fifty are kept. They hold no accounts, and their secrets as the store keeps them.")
        .access(Access::Administer);
    t.action(
        "/rollback",
        "rollback_snapshot",
        Effect::Stores(Audit { action: "rollback_snapshot", resource_type: "snapshot" }),
        rollback,
    )
    .summary("Go back to a snapshot")
    .doc(
        "Objects, settings and applied policies become those of the snapshot, in one transaction, with a snapshot \
         before it. Users and keys stay as they are: a way back brings no revoked key to life.",
    )
    .access(Access::Administer)
    .answers(&[Code::NotFound, Code::PreconditionFailed])
    .input_required = true;
}

async fn snapshots(cx: Cx, _: Req<()>) -> Result<With<Vec<Snapshot>>, ApiError> {
    let store = cx.open()?.store.clone();
    Ok(With::counted(blocking(move || store.snapshots()).await??))
}

/// Where to go back to.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RollbackInput {
    /// Name of a snapshot.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"))]
    pub snapshot: String,
    /// Seconds in which /apply/confirm must be called, up to 86400; 0: none needed.
    pub confirm_timeout_sec: u32,
}

async fn rollback(cx: Cx, request: Req<RollbackInput>) -> Result<With<PlanResult>, ApiError> {
    let RollbackInput { snapshot: name, confirm_timeout_sec } = request.input;
    plan::check_timeout(confirm_timeout_sec)?;
    let mut problems = Problems::new();
    if name.is_empty() {
        problems.required("snapshot");
    } else if !is_snapshot_name(&name) {
        let message = "The name of a snapshot has up to 64 letters, digits, hyphens and underscores.";
        problems.add(code::FORMAT, "snapshot", message);
    }
    if !problems.is_empty() {
        return Err(ApiError::validation(&problems));
    }
    let store = cx.open()?.store.clone();
    let wanted = name.clone();
    let found = blocking(move || store.snapshot(&wanted)).await??;
    let (_, target) = found.ok_or_else(|| ApiError::not_found("snapshot", &name))?;
    let confirm = plan::confirm_within(confirm_timeout_sec);
    let safety = Safety { reason: SnapshotReason::PreRollback, confirm };
    plan::carry_out(&cx, request.if_match, safety, move |draft| {
        let before = draft.clone();
        restore(draft, &target).map_err(|error| {
            let mut problems = Problems::new();
            problems.add(code::CONFLICT, "snapshot", error.to_string());
            EditError::Invalid(problems)
        })?;
        Ok(Outcome { changes: diff(&before, draft), warnings: Vec::new() })
    })
    .await
}
