//! Application of a change that arrived: as a whole or not at all.
//!
//! The edit authorises the node again in the transaction that writes it, and the gating tests of this gateway must pass.
//! A plan that the kernel refuses is taken back. The change is commit-confirmed: it stays only if the node is reached
//! after it, so that a policy that cuts the gateway off takes itself back.

use std::sync::Arc;
use std::time::Duration;

use gateway_core::compile::Input;
use gateway_core::federation::replica::Change;
use gateway_core::network_tests::failing_gates;
use gateway_model::bulk_edit::receive;
use gateway_model::kinds::{Node, ReceivedKind};
use gateway_model::{EditError, State};
use serde_json::Map;

use super::Federation;
use crate::reconcile::Reason;
use crate::store::{
    AuditTicket, ChangeRecords, CommitError, Confirm, RollbackOptions, SafeError, SnapshotReason,
};
use crate::supervise::blocking;
use crate::world::World;

/// Author of changes that arrive, in the audit trail and of the pending change.
pub(super) const ACTOR: &str = "federation";
/// Time in which the node has to be reached after a change.
pub(super) const CONFIRM_WITHIN: Duration = Duration::from_secs(60);

/// Reason why a change was not applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    /// An earlier change waits for its confirmation.
    #[error("{0}")]
    Busy(String),
    #[error("the change was refused: {0}")]
    Refused(#[from] EditError),
    #[error(transparent)]
    Store(#[from] crate::store::Error),
    #[error("the kernel refused the plan, and the change was taken back: {0}")]
    Kernel(String),
}

impl Federation {
    /// Writes the changes of a node and enforces them. The change waits for its confirmation.
    pub(super) async fn apply(
        self: &Arc<Self>,
        node: &Arc<Node>,
        changes: Arc<Vec<Change>>,
        received: Vec<ReceivedKind>,
    ) -> Result<(), ApplyError> {
        let (federation, node) = (self.clone(), node.clone());
        let secured = blocking(move || federation.write(&node, &changes, &received)).await?;
        let status = self.enforcement.reconcile(Reason::Apply).await;
        let status = status.map_err(|stopped| ApplyError::Kernel(stopped.to_string()))?;
        let Some(refusal) = status.and_then(|status| status.refusal()) else { return Ok(()) };
        let ChangeRecords { snapshot, changes, .. } = secured;
        if let Some(snapshot) = snapshot {
            let store = self.store.clone();
            let ticket = AuditTicket::system("revert_apply", "plan");
            blocking(move || store.undo(ticket, &snapshot.name, &changes)).await?;
            // The earlier plan is still in force.
            let _ = self.enforcement.reconcile(Reason::Apply).await;
        }
        Err(ApplyError::Kernel(refusal))
    }

    fn write(
        &self,
        node: &Node,
        changes: &[Change],
        received: &[ReceivedKind],
    ) -> Result<ChangeRecords, ApplyError> {
        let World { network, facts, .. } = self.worlds.now();
        let confirm = Some(Confirm { within: CONFIRM_WITHIN });
        let options = RollbackOptions { reason: SnapshotReason::PreApply, confirm };
        let mut ticket = AuditTicket::system("sync_node", "node").on(node.meta.id);
        ticket.actor = ACTOR.to_owned();
        let written = self.store.commit_safely(ticket, options, |draft, ticket| {
            let counts = edit(draft, node, changes, received)?;
            let failing =
                failing_gates(&Input { state: draft, network: &network, facts: &facts, now: draft.now() });
            if !failing.is_empty() {
                let names: Vec<&str> = failing.iter().map(|test| test.name.as_str()).collect();
                let reason = format!("the policies fail the gating tests {}", names.join(", "));
                return Err(EditError::PolicyConflict { policies: Vec::new(), reason });
            }
            ticket.details = counts;
            Ok(())
        });
        match written {
            Ok(((), secured)) => Ok(secured),
            Err(SafeError::InProgress { pending, .. }) => {
                Err(ApplyError::Busy(format!("a change waits to be confirmed until {}", pending.until)))
            }
            Err(SafeError::Commit(CommitError::Refused { error, .. })) => Err(error.into()),
            Err(SafeError::Commit(CommitError::Store(error))) => Err(error.into()),
        }
    }
}

/// Writes the objects and the state of their kinds. Returns the details of the audit entry.
fn edit(
    draft: &mut State,
    asked: &Node,
    changes: &[Change],
    received: &[ReceivedKind],
) -> Result<serde_json::Value, EditError> {
    let id = asked.meta.id;
    let node = draft.expect::<Node>(id, None)?;
    let permitted = node.received_kinds(draft);
    let is_same_key = node.public_key == asked.public_key || node.previous_key == asked.public_key;
    let is_same = node.received == asked.received && is_same_key;
    if let Some(change) = changes.iter().find(|change| !permitted.contains(&change.received.kind) || !is_same)
    {
        let kind = change.received.kind;
        let message = format!("The node {} may not send {kind} any more.", node.name);
        return Err(EditError::WrongState {
            resource_type: "node",
            id,
            state: node.status.as_str(),
            message,
        });
    }
    let mut resources = Map::new();
    for change in changes {
        resources.extend(change.objects.clone());
    }
    let outcome = receive(draft, &node, resources).map_err(EditError::Invalid)?;
    draft.update::<Node>(id, None, |node| node.received = received.to_vec())?;
    let kinds: Vec<&str> = changes.iter().map(|change| change.received.kind.as_str()).collect();
    let changed =
        outcome.changes.iter().filter(|change| change.op != gateway_model::bulk_edit::Op::Unchanged);
    Ok(serde_json::json!({"node": node.name, "kinds": kinds, "objects": changed.count()}))
}
