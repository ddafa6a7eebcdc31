//! End of a pending change: confirmation or rollback.

use gateway_model::State;
use gateway_model::bulk_edit::undo::{self, ChangeSet, Overlap};

use super::pending::{self, Pending};
use super::safety::{never_refused, nothing};
use crate::store::Store;
use crate::store::audit::AuditTicket;
use crate::store::commit::CommitError;
use crate::store::error::Error;

/// Pending change that was rolled back.
#[derive(Clone, Debug)]
pub struct RolledBackChange {
    pub pending: Pending,
    /// Objects that were written after the change as well, or that later writes need.
    pub overlaps: Vec<Overlap>,
}

impl Store {
    /// Confirms the pending change and returns it; `None` if there is none.
    pub fn confirm_pending(&self, ticket: AuditTicket) -> Result<Option<Pending>, Error> {
        let mut guarded = self.guarded();
        if guarded.pending.is_none() {
            return Ok(None);
        }
        self.commit_beside(ticket, nothing, |context| pending::store(context.txn, None))
            .map_err(never_refused)?;
        Ok(guarded.pending.take())
    }

    /// Rolls back the pending change in one transaction, and keeps everything written since. Returns the change;
    /// `None` if there is none.
    pub fn revert_pending(&self, ticket: AuditTicket) -> Result<Option<RolledBackChange>, Error> {
        let mut guarded = self.guarded();
        let Some(pending) = guarded.pending.clone() else { return Ok(None) };
        if self.snapshot(&pending.snapshot)?.is_none() {
            // The store was wiped meanwhile, so there is nothing to roll back to.
            self.commit_beside(ticket, nothing, |context| pending::store(context.txn, None))
                .map_err(never_refused)?;
            guarded.pending = None;
            return Ok(None);
        }
        let changes = {
            let txn = self.db.begin_read().map_err(Error::at("read the change that waits"))?;
            pending::load_changes(&txn)?
        };
        let overlaps = self.restore_from(ticket, &pending.snapshot, &changes)?;
        guarded.pending = None;
        Ok(Some(RolledBackChange { pending, overlaps }))
    }

    /// Undoes a change that did not come into force. A pending change ceases to wait for its confirmation.
    pub fn undo(
        &self,
        ticket: AuditTicket,
        snapshot: &str,
        changes: &ChangeSet,
    ) -> Result<Vec<Overlap>, Error> {
        let mut guarded = self.guarded();
        let overlaps = self.restore_from(ticket, snapshot, changes)?;
        guarded.pending = None;
        Ok(overlaps)
    }

    fn restore_from(
        &self,
        ticket: AuditTicket,
        name: &str,
        changes: &ChangeSet,
    ) -> Result<Vec<Overlap>, Error> {
        let Some((_, base)) = self.snapshot(name)? else {
            return Err(Error::Damaged { what: format!("the snapshot {name} is not there") });
        };
        let undo = |draft: &mut State, ticket: &mut AuditTicket| {
            let overlaps = undo::undo(draft, &base, changes);
            if !overlaps.is_empty() {
                ticket.details = serde_json::json!({ "overlaps": overlaps });
            }
            Ok(overlaps)
        };
        match self.commit_beside(ticket, undo, |context| pending::store(context.txn, None)) {
            Ok((overlaps, ())) => Ok(overlaps),
            Err(CommitError::Refused { error, .. } | CommitError::Store(error)) => Err(error),
        }
    }

    /// Rolls back an overdue pending change at the start. Returns `true` if there was one.
    pub fn revert_overdue(&self) -> Result<bool, Error> {
        let overdue =
            self.pending().is_some_and(|pending| pending.remaining(self.clock().as_ref()).is_zero());
        if !overdue {
            return Ok(false);
        }
        let ticket = AuditTicket::system("revert_apply", "plan");
        Ok(self.revert_pending(ticket)?.is_some())
    }
}
