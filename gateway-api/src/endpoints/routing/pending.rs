//! Stored policies that differ from the applied ones, and their discard.

use gateway_ctl::store::{AuditTicket, ChangeRecords, RollbackOptions, SnapshotReason};
use gateway_model::bulk_edit::ItemChange;
use gateway_model::bulk_edit::discard::{Discarded, PendingPolicy, discard, pending_changes};
use gateway_model::kinds::RoutingPolicy;
use gateway_model::{EditError, Resource, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Table};

const DISCARD: Audit = Audit { action: "discard_routing_policies", resource_type: RoutingPolicy::NOUN };

pub(super) fn rows(t: &mut Table) {
    t.view("/routing/pending", "list_pending_policies", pending)
        .heavy()
        .summary("Changes of policies that wait for an apply")
        .doc(
            "Policies whose stored form differs from the applied one. Both are merged with their profiles, chains and privacy classes. diff has the applied value as from and the stored one as to.",
        );
    t.command("/routing/policies/discard", DISCARD.action, Effect::Stores(DISCARD), run)
        .summary("Discard the changes of policies that wait for an apply")
        .doc(
            "Puts stored policies back to the form in which they were applied, in one transaction, with a snapshot taken first. Traffic does not change. Profiles, chains and privacy classes go back in the fields that an apply freezes, unless something other than policies uses them: for that, their change has taken effect. remaining lists the policies that stay pending, with the reason.",
        )
        .query::<DiscardQuery>()
        .answers(&[Code::ApplyInProgress]);
}

/// Query of a discard.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DiscardQuery {
    /// Responds with the changes that the discard would make now, and stores nothing.
    dry_run: bool,
}

async fn pending(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<ItemChange>>, ApiError> {
    let state = cx.open()?.store.current();
    Ok(WithHeaders::counted(blocking(move || pending_changes(&state)).await?))
}

/// Result of a discard.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct DiscardResult {
    pub dry_run: bool,
    /// Objects that went back: from the stored value to the one that was applied.
    pub changes: Vec<ItemChange>,
    /// Policies that stay pending.
    pub remaining: Vec<PendingPolicy>,
    /// Revision of the store after the discard; for a dry run the current one.
    pub revision: u64,
    /// Name of the snapshot taken before; null if nothing changed.
    pub snapshot: Option<String>,
}

async fn run(cx: Cx, request: Req<()>) -> Result<DiscardResult, ApiError> {
    let DiscardQuery { dry_run } = request.query.read()?;
    let open = cx.open()?;
    let store = open.store.clone();
    if let Some(pending) = store.pending() {
        // A rollback of the pending change would restore what it has written.
        return Err(ApiError::apply_in_progress(&pending));
    }
    if dry_run {
        let (state, now) = (store.current(), open.now());
        return blocking(move || {
            let Discarded { changes, remaining } = discard(&mut state.begin(now));
            DiscardResult { dry_run: true, changes, remaining, revision: state.revision.0, snapshot: None }
        })
        .await;
    }
    let ticket = cx.own_ticket()?;
    blocking(move || {
        let safety = RollbackOptions { reason: SnapshotReason::PreDiscard, confirm: None };
        let edit = |draft: &mut State, ticket: &mut AuditTicket| {
            let discarded = discard(draft);
            if !discarded.remaining.is_empty() {
                ticket.details = serde_json::json!({ "remaining": discarded.remaining });
            }
            Ok::<_, EditError>(discarded)
        };
        let (discarded, records) = store.commit_safely(ticket, safety, edit)?;
        let Discarded { changes, remaining } = discarded;
        let ChangeRecords { snapshot, .. } = records;
        Ok(DiscardResult {
            dry_run: false,
            changes,
            remaining,
            revision: store.current().revision.0,
            snapshot: snapshot.map(|snapshot| snapshot.name),
        })
    })
    .await?
}
