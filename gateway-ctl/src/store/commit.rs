//! Write path: the only one of the store.

use std::sync::Arc;

use gateway_model::State;
use gateway_model::registry::KINDS;
use jiff::Timestamp;
use redb::WriteTransaction;

use super::Store;
use super::audit::{self, AuditResult, AuditTicket};
use super::error::Error;
use super::file::Writing;
use super::schema::{APPLIED, META, META_TEXT, SETTINGS, meta, rows};
use super::{time, vault};

/// Reason why a commit changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum CommitError<E> {
    /// The edit itself refused. Record the ticket with [`Store::record`].
    #[error("the edit was refused")]
    Refused { error: E, ticket: Box<AuditTicket> },
    #[error(transparent)]
    Store(#[from] Error),
}

/// Transaction that is about to write a draft.
pub(super) struct CommitContext<'a> {
    pub txn: &'a WriteTransaction,
    pub before: &'a State,
    pub draft: &'a State,
    /// True if the draft differs from the state before.
    pub changed: bool,
    pub now: Timestamp,
}

impl Store {
    /// Runs the edit on a draft of the state. If the edit succeeds, the draft becomes the state: rows, audit entry
    /// and revision are written in one transaction. Blocks on the disk and on other writers.
    ///
    /// Fills in the ticket's resource ID if the edit changed a single object of its resource type.
    pub fn commit<T, E>(
        &self,
        ticket: AuditTicket,
        edit: impl FnOnce(&mut State) -> Result<T, E>,
    ) -> Result<T, CommitError<E>> {
        self.commit_noted(ticket, |draft, _| edit(draft))
    }

    /// Works like [`Store::commit`], for edits that add to the audit entry.
    pub fn commit_noted<T, E>(
        &self,
        ticket: AuditTicket,
        edit: impl FnOnce(&mut State, &mut AuditTicket) -> Result<T, E>,
    ) -> Result<T, CommitError<E>> {
        self.commit_beside(ticket, edit, |_| Ok(())).map(|(answer, ())| answer)
    }

    /// Works like [`Store::commit_noted`], and writes more data in the transaction before the rows.
    pub(super) fn commit_beside<T, E, X>(
        &self,
        mut ticket: AuditTicket,
        edit: impl FnOnce(&mut State, &mut AuditTicket) -> Result<T, E>,
        beside: impl FnOnce(&CommitContext<'_>) -> Result<X, Error>,
    ) -> Result<(T, X), CommitError<E>> {
        // A writer that panicked left nothing half done: the head moves only after its transaction.
        let mut head = self.writer.lock();
        let before = self.current();
        let now = self.clock.now();
        let mut draft = before.begin(now);
        draft.sign(&ticket.actor);
        let answer = match edit(&mut draft, &mut ticket) {
            Ok(answer) => answer,
            Err(error) => return Err(CommitError::Refused { error, ticket: Box::new(ticket) }),
        };
        vault::seal_changed(&mut draft, &self.sealing.load())?;
        let changed = has_changed(&before, &draft);
        audit::note_changes(&mut ticket, &before, &draft);
        let vital = is_vital(&ticket.action);
        let entry = audit::Entry::new(&head, ticket, AuditResult::Success, now);
        let txn = self.begin(vital)?;
        let more = beside(&CommitContext { txn: &txn, before: &before, draft: &draft, changed, now })?;
        if changed {
            write_state(&txn, &before, &draft)?;
        }
        audit::append(&txn, &entry)?;
        if let Some(high) = self.clock.high_time() {
            time::put(&txn, &high)?;
        }
        txn.commit().map_err(|error| CommitError::Store(Error::at("commit")(error)))?;
        *head = entry.head();
        if changed {
            let revision = draft.revision.0;
            self.current.store(Arc::new(draft));
            self.revisions.send_replace(revision);
        }
        Ok((answer, more))
    }

    fn begin(&self, vital: bool) -> Result<Writing<'_>, Error> {
        let begun = if vital { self.db.begin_vital() } else { self.db.begin_write() };
        begun.map_err(Error::at("begin to write"))
    }

    /// Records an attempt that changed nothing in the store: refused, failed, or an action outside of it.
    pub fn record(&self, ticket: AuditTicket, result: AuditResult) -> Result<(), Error> {
        let mut head = self.writer.lock();
        let entry = audit::Entry::new(&head, ticket, result, self.clock.now());
        let txn = self.db.begin_write().map_err(Error::at("begin to write"))?;
        audit::append(&txn, &entry)?;
        txn.commit().map_err(Error::at("commit"))?;
        *head = entry.head();
        Ok(())
    }
}

/// Reports whether a change may use the reserve of a full disk: it frees space, ends something, or signs in a user
/// who can do so.
fn is_vital(action: &str) -> bool {
    const PREFIXES: &[&str] = &["delete_", "end_", "log", "revert_", "revoke_", "wipe_"];
    PREFIXES.iter().any(|prefix| action.starts_with(prefix))
}

fn has_applied_changed(before: &State, draft: &State) -> bool {
    let (old, new) = (&before.applied, &draft.applied);
    // Two applies of some policies may have the same revision and, with a coarse clock, the same time.
    (new.revision, new.at) != (old.revision, old.at)
        || new.policies.len() != old.policies.len()
        || !new.policies.arcs().zip(old.policies.arcs()).all(|(new, old)| Arc::ptr_eq(new, old))
}

fn has_changed(before: &State, draft: &State) -> bool {
    has_applied_changed(before, draft)
        || !draft.settings.dirty().is_empty()
        || KINDS.iter().any(|kind| kind.is_changed(draft))
}

/// Writes the differences between the states.
pub(super) fn write_state(txn: &WriteTransaction, before: &State, draft: &State) -> Result<(), Error> {
    let failed = || Error::at("write");
    let mut numbers = txn.open_table(META).map_err(Error::at("write"))?;
    numbers.insert(meta::REVISION, draft.revision.0).map_err(failed())?;
    for kind in KINDS.iter().filter(|kind| kind.is_changed(draft)) {
        let mut table = txn.open_table(rows(kind.collection)).map_err(Error::at("write"))?;
        for row in kind.changed_rows(draft) {
            match row.json {
                Some(json) => drop(table.insert(row.id.as_bytes(), json.as_slice()).map_err(failed())?),
                None => drop(table.remove(row.id.as_bytes()).map_err(failed())?),
            }
        }
        let (next_slot, revision) = kind.marks(draft);
        numbers.insert(meta::next_slot(kind.collection).as_str(), u64::from(next_slot)).map_err(failed())?;
        numbers.insert(meta::collection_revision(kind.collection).as_str(), revision.0).map_err(failed())?;
    }
    if !draft.settings.dirty().is_empty() {
        numbers.insert(meta::SETTINGS_REVISION, draft.settings.revision().0).map_err(failed())?;
        write_settings(txn, draft)?;
    }
    if has_applied_changed(before, draft) {
        numbers.insert(meta::APPLIED_REVISION, draft.applied.revision.0).map_err(failed())?;
        drop(numbers);
        write_applied(txn, before, draft)?;
    }
    Ok(())
}

fn write_settings(txn: &WriteTransaction, draft: &State) -> Result<(), Error> {
    let failed = || Error::at("write");
    let mut table = txn.open_table(SETTINGS).map_err(Error::at("write"))?;
    for key in draft.settings.dirty() {
        match draft.settings.setting(key) {
            Some(setting) => {
                table.insert(key.as_ref(), setting.stored_json().as_slice()).map_err(failed())?;
            }
            None => drop(table.remove(key.as_ref()).map_err(failed())?),
        }
    }
    Ok(())
}

/// Writes the policies whose frozen copy changed. Both sets are sorted by ID.
fn write_applied(txn: &WriteTransaction, before: &State, draft: &State) -> Result<(), Error> {
    let failed = || Error::at("write");
    let mut table = txn.open_table(APPLIED).map_err(Error::at("write"))?;
    let (old, new) = (&before.applied.policies, &draft.applied.policies);
    for policy in new.arcs() {
        if !old.get(policy.meta.id).is_some_and(|had| Arc::ptr_eq(had, policy)) {
            table
                .insert(policy.meta.id.as_bytes(), draft.applied.stored_json(policy).as_slice())
                .map_err(failed())?;
        }
    }
    for policy in old.iter().filter(|policy| !new.contains(policy.meta.id)) {
        table.remove(policy.meta.id.as_bytes()).map_err(failed())?;
    }
    let mut texts = txn.open_table(META_TEXT).map_err(Error::at("write"))?;
    match draft.applied.at {
        Some(at) => drop(texts.insert(meta::APPLIED_AT, at.to_string().as_str()).map_err(failed())?),
        None => drop(texts.remove(meta::APPLIED_AT).map_err(failed())?),
    }
    Ok(())
}
