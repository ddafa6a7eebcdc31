//! Changes with a snapshot of the state before them, and the snapshots of a store.

use gateway_model::State;
use gateway_model::bulk_edit::undo::ChangeSet;
use jiff::Timestamp;
use parking_lot::MutexGuard;

use super::content::{self, Content};
use super::guarded::Guarded;
use super::pending::{self, Confirm, Pending};
use super::{CONTENTS, SNAPSHOTS, Snapshot, SnapshotReason, list, read_info, take};
use crate::store::audit::AuditTicket;
use crate::store::commit::CommitError;
use crate::store::error::Error;
use crate::store::{Store, passphrase_rotation};

/// Options of a change that can be rolled back.
#[derive(Clone, Copy, Debug)]
pub struct RollbackOptions {
    pub reason: SnapshotReason,
    /// Deadline of the confirmation; without one in time, the change is rolled back.
    pub confirm: Option<Confirm>,
}

/// Records written beside a change.
#[derive(Clone, Debug, Default)]
pub struct ChangeRecords {
    /// Snapshot before the change; `None` if nothing changed.
    pub snapshot: Option<Snapshot>,
    pub pending: Option<Pending>,
    /// Objects that the change wrote, for [`Store::undo`].
    pub changes: ChangeSet,
}

/// Reason why a change with a snapshot changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum SafeError<E> {
    /// An earlier change waits for its confirmation.
    #[error("an earlier change waits to be confirmed until {}", pending.until)]
    InProgress { pending: Box<Pending>, ticket: Box<AuditTicket> },
    #[error(transparent)]
    Commit(#[from] CommitError<E>),
}

impl<E> From<Error> for SafeError<E> {
    fn from(error: Error) -> Self {
        SafeError::Commit(CommitError::Store(error))
    }
}

impl Store {
    /// Returns all snapshots, newest first.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        list(&self.db.begin_read().map_err(Error::at("read the snapshots"))?)
    }

    /// Returns the time of the newest snapshot.
    pub fn newest_snapshot(&self) -> Option<Timestamp> {
        self.guarded().newest
    }

    /// Returns the pending change.
    pub fn pending(&self) -> Option<Pending> {
        self.guarded().pending.clone()
    }

    /// Works like [`Store::commit_noted`], with a snapshot of the state before in the same transaction. Refuses while
    /// an earlier change is pending. A change without effect leaves an audit entry and no snapshot.
    pub fn commit_safely<T, E>(
        &self,
        ticket: AuditTicket,
        safety: RollbackOptions,
        edit: impl FnOnce(&mut State, &mut AuditTicket) -> Result<T, E>,
    ) -> Result<(T, ChangeRecords), SafeError<E>> {
        let mut guarded = self.guarded();
        if let Some(pending) = &guarded.pending {
            return Err(SafeError::InProgress {
                pending: Box::new(pending.clone()),
                ticket: Box::new(ticket),
            });
        }
        let author = ticket.actor.clone();
        let (answer, secured) = self.commit_beside(ticket, edit, |context| {
            if !context.changed {
                return Ok(ChangeRecords::default());
            }
            let snapshot = take(context.txn, context.before, safety.reason, &author, context.now, None)?;
            let pending = safety.confirm.map(|confirm| {
                Pending::new(snapshot.name.clone(), author.clone(), confirm, self.clock().as_ref())
            });
            let changes = ChangeSet::of(context.before, context.draft, content::is_kept);
            if let Some(pending) = &pending {
                pending::store(context.txn, Some((pending, &changes)))?;
            }
            Ok(ChangeRecords { snapshot: Some(snapshot), pending, changes })
        })?;
        if let Some(snapshot) = &secured.snapshot {
            guarded.newest = Some(snapshot.created_at);
        }
        guarded.pending.clone_from(&secured.pending);
        Ok((answer, secured))
    }

    /// Takes a snapshot now. Returns `None` if the name is already in use.
    pub fn take_snapshot(
        &self,
        ticket: AuditTicket,
        reason: SnapshotReason,
        name: Option<String>,
    ) -> Result<Option<Snapshot>, Error> {
        let mut guarded = self.guarded();
        let taken = |name: &String| Ok::<_, Error>(self.snapshots()?.iter().any(|one| one.name == *name));
        if name.as_ref().map(taken).transpose()? == Some(true) {
            return Ok(None);
        }
        let author = ticket.actor.clone();
        let taken = self.commit_beside(ticket, nothing, |context| {
            take(context.txn, context.before, reason, &author, context.now, name)
        });
        let ((), snapshot) = taken.map_err(never_refused)?;
        guarded.newest = Some(snapshot.created_at);
        Ok(Some(snapshot))
    }

    /// Returns a snapshot and its state, without accounts; `None` if no snapshot has that name. Waits for writers, so
    /// never call it from within a commit.
    pub fn snapshot(&self, name: &str) -> Result<Option<(Snapshot, State)>, Error> {
        let (txn, sealing) = {
            // A change of the passphrase holds this lock until the file and the sealing are both new.
            let _held = self.writer.lock();
            (self.db.begin_read().map_err(Error::at("read a snapshot"))?, self.sealing.load_full())
        };
        let infos = txn.open_table(SNAPSHOTS).map_err(Error::at("read a snapshot"))?;
        let contents = txn.open_table(CONTENTS).map_err(Error::at("read a snapshot"))?;
        let found = (
            infos.get(name).map_err(Error::at("read a snapshot"))?,
            contents.get(name).map_err(Error::at("read a snapshot"))?,
        );
        let (Some(info), Some(packed)) = found else { return Ok(None) };
        let info = read_info(info.value())?;
        let mut state = Content::unpack(packed.value())?.into_state()?;
        passphrase_rotation::adopt(&mut state, &sealing);
        Ok(Some((info, state)))
    }

    pub(in crate::store) fn guarded(&self) -> MutexGuard<'_, Guarded> {
        // The guarded data is a copy of the file, and changes only after it.
        self.guarded.lock()
    }
}

pub(super) fn nothing(_: &mut State, _: &mut AuditTicket) -> Result<(), std::convert::Infallible> {
    Ok(())
}

pub(super) fn never_refused(error: CommitError<std::convert::Infallible>) -> Error {
    match error {
        CommitError::Store(error) => error,
        CommitError::Refused { error, .. } => match error {},
    }
}
