//! Snapshots: the whole configuration as it was before each apply, import and rollback, and the way back to one.
//!
//! A snapshot holds rows, settings and applied policies as the store keeps them, so sealed secrets stay sealed.
//! Accounts are not in it (a way back must not bring a revoked key to life), nor is what only this installation knows.

mod content;
mod pending;

use std::cmp::Reverse;
use std::sync::{MutexGuard, PoisonError};

use gateway_model::State;
use gateway_model::change::undo::ChangeSet;
use jiff::Timestamp;
use redb::{ReadableDatabase, ReadableTable, Table, TableDefinition, WriteTransaction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Store;
use super::audit::AuditTicket;
use super::commit::CommitError;
use super::error::Error;
use super::rotate;

use content::Content;
pub(super) use pending::store as store_pending;
pub use pending::{Confirm, Pending, Reverted};

/// Name to the JSON of [`Snapshot`].
const SNAPSHOTS: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("snapshots");
/// Name to the compressed content.
const CONTENTS: TableDefinition<'static, &'static str, &'static [u8]> =
    TableDefinition::new("snapshot_contents");

/// So many are kept; the oldest go.
pub const KEPT: usize = 50;

/// Why a snapshot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotReason {
    Manual,
    PreApply,
    PreImport,
    Scheduled,
    PreRollback,
}

impl SnapshotReason {
    fn as_str(self) -> &'static str {
        match self {
            SnapshotReason::Manual => "manual",
            SnapshotReason::PreApply => "pre-apply",
            SnapshotReason::PreImport => "pre-import",
            SnapshotReason::Scheduled => "scheduled",
            SnapshotReason::PreRollback => "pre-rollback",
        }
    }
}

/// What is known of a snapshot without opening it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    pub name: String,
    pub created_at: Timestamp,
    pub reason: SnapshotReason,
    /// Who made the change that it was taken before.
    pub author: String,
    /// Bytes in the store.
    pub size: u64,
    /// Of the service that took it.
    pub version: String,
    /// Of the store, when it was taken.
    pub revision: u64,
    /// What is in it, in words.
    pub summary: String,
}

/// How a change is made that can be taken back.
#[derive(Clone, Copy, Debug)]
pub struct Safety {
    pub reason: SnapshotReason,
    /// The change takes itself back unless it is confirmed.
    pub confirm: Option<Confirm>,
}

/// What was written beside a change.
#[derive(Clone, Debug, Default)]
pub struct Secured {
    /// Nothing, if there was nothing to change.
    pub snapshot: Option<Snapshot>,
    pub pending: Option<Pending>,
    /// What the change wrote, for [`Store::undo`].
    pub changes: ChangeSet,
}

/// Why a change with a snapshot changed nothing.
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

/// What is kept in memory; locked for the whole of a change that can be taken back.
#[derive(Debug)]
pub(super) struct Guarded {
    pending: Option<Pending>,
    newest: Option<Timestamp>,
}

impl Guarded {
    /// When all snapshots are gone: nothing waits, because there is nothing to go back to.
    pub(super) fn forget(&mut self) {
        *self = Guarded { pending: None, newest: None };
    }

    pub(super) fn load(db: &redb::Database) -> Result<Guarded, Error> {
        let txn = db.begin_read().map_err(Error::at("read the snapshots"))?;
        let newest = list(&txn)?.first().map(|snapshot| snapshot.created_at);
        Ok(Guarded { pending: pending::load(&txn)?, newest })
    }
}

/// Whether text can be the name of a snapshot. Names are keys and never paths, and look like neither anything else.
pub fn is_snapshot_name(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    first
        && text.len() <= 64
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

impl Store {
    /// All of them, newest first.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        list(&self.db.begin_read().map_err(Error::at("read the snapshots"))?)
    }

    /// When the newest one was taken.
    pub fn newest_snapshot(&self) -> Option<Timestamp> {
        self.guarded().newest
    }

    /// The change that waits to be confirmed.
    pub fn pending(&self) -> Option<Pending> {
        self.guarded().pending.clone()
    }

    /// [`Store::commit_noted`] with a snapshot of the state before, in the same transaction. Refused while an earlier
    /// change waits to be confirmed. A change that changes nothing leaves an audit entry and no snapshot.
    pub fn commit_safely<T, E>(
        &self,
        ticket: AuditTicket,
        safety: Safety,
        edit: impl FnOnce(&mut State, &mut AuditTicket) -> Result<T, E>,
    ) -> Result<(T, Secured), SafeError<E>> {
        let mut guarded = self.guarded();
        if let Some(pending) = &guarded.pending {
            return Err(SafeError::InProgress {
                pending: Box::new(pending.clone()),
                ticket: Box::new(ticket),
            });
        }
        let author = ticket.actor.clone();
        let (answer, secured) = self.commit_beside(ticket, edit, |moment| {
            if !moment.changed {
                return Ok(Secured::default());
            }
            let snapshot = take(moment.txn, moment.before, safety.reason, &author, moment.now, None)?;
            let pending = safety.confirm.map(|confirm| {
                Pending::new(snapshot.name.clone(), author.clone(), confirm, self.clock().as_ref())
            });
            let changes = ChangeSet::of(moment.before, moment.draft, content::is_kept);
            if let Some(pending) = &pending {
                pending::store(moment.txn, Some((pending, &changes)))?;
            }
            Ok(Secured { snapshot: Some(snapshot), pending, changes })
        })?;
        if let Some(snapshot) = &secured.snapshot {
            guarded.newest = Some(snapshot.created_at);
        }
        guarded.pending.clone_from(&secured.pending);
        Ok((answer, secured))
    }

    /// Takes one now. Nothing if the name is taken already.
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
        let taken = self.commit_beside(ticket, nothing, |moment| {
            take(moment.txn, moment.before, reason, &author, moment.now, name)
        });
        let ((), snapshot) = taken.map_err(never_refused)?;
        guarded.newest = Some(snapshot.created_at);
        Ok(Some(snapshot))
    }

    /// The state that a snapshot holds; nothing if there is none of that name. It has no accounts.
    /// Waits for writers, so never call it from within a commit.
    pub fn snapshot(&self, name: &str) -> Result<Option<(Snapshot, State)>, Error> {
        let (txn, sealing) = {
            // A change of the passphrase holds this lock until both the file and the sealing are the new ones.
            let _held = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
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
        rotate::adopt(&mut state, &sealing);
        Ok(Some((info, state)))
    }

    pub(super) fn guarded(&self) -> MutexGuard<'_, Guarded> {
        // What is guarded is a copy of what the file says, and changes only after it.
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the draft what a snapshot held, accounts and what only this installation knows apart.
pub fn restore(draft: &mut State, target: &State) -> Result<(), Error> {
    gateway_model::change::take_over(draft, target, content::is_kept)
        .map_err(|what| Error::Damaged { what: format!("the snapshot contradicts itself: {what}") })
}

/// Runs over the stored rows of all snapshots, and writes those anew of which `row` says that it changed them. Called
/// with the collection (`setting` for settings) and each row in its stored form. Gives the names of the snapshots that
/// are damaged; they are left as they are.
pub(super) fn rewrite(
    txn: &WriteTransaction,
    mut row: impl FnMut(&str, &mut serde_json::Value) -> bool,
) -> Result<Vec<String>, Error> {
    let mut infos = txn.open_table(SNAPSHOTS).map_err(Error::at("rewrite the snapshots"))?;
    let mut contents = txn.open_table(CONTENTS).map_err(Error::at("rewrite the snapshots"))?;
    let mut names = Vec::new();
    for entry in contents.iter().map_err(Error::at("rewrite the snapshots"))? {
        let (name, _) = entry.map_err(Error::at("rewrite the snapshots"))?;
        names.push(name.value().to_owned());
    }
    let mut damaged = Vec::new();
    for name in names {
        let content = {
            let found = contents.get(name.as_str()).map_err(Error::at("rewrite the snapshots"))?;
            let Some(found) = found else { continue };
            Content::unpack(found.value())
        };
        let Ok(mut content) = content else {
            damaged.push(name);
            continue;
        };
        if !content.for_each(&mut row) {
            continue;
        }
        let packed = content.pack()?;
        contents.insert(name.as_str(), packed.as_slice()).map_err(Error::at("rewrite the snapshots"))?;
        let info = {
            let found = infos.get(name.as_str()).map_err(Error::at("rewrite the snapshots"))?;
            let Some(found) = found else { continue };
            Snapshot { size: packed.len() as u64, ..read_info(found.value())? }
        };
        write_info(&mut infos, &info)?;
    }
    Ok(damaged)
}

/// Writes a snapshot of what stands in the tables, and drops the oldest.
fn take(
    txn: &WriteTransaction,
    before: &State,
    reason: SnapshotReason,
    author: &str,
    now: Timestamp,
    name: Option<String>,
) -> Result<Snapshot, Error> {
    let packed = Content::read(txn)?.pack()?;
    let mut infos = txn.open_table(SNAPSHOTS).map_err(Error::at("take a snapshot"))?;
    let mut contents = txn.open_table(CONTENTS).map_err(Error::at("take a snapshot"))?;
    let stem = format!("{}-{}", now.strftime("%Y%m%dT%H%M%SZ"), reason.as_str());
    let mut name = name.unwrap_or_else(|| stem.clone());
    let mut number = 2;
    while infos.get(name.as_str()).map_err(Error::at("take a snapshot"))?.is_some() {
        name = format!("{stem}-{number}");
        number += 1;
    }
    let info = Snapshot {
        name,
        created_at: now,
        reason,
        author: author.to_owned(),
        size: packed.len() as u64,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        revision: before.revision.0,
        summary: content::summary(before),
    };
    write_info(&mut infos, &info)?;
    contents.insert(info.name.as_str(), packed.as_slice()).map_err(Error::at("take a snapshot"))?;
    let mut all = Vec::new();
    for entry in infos.iter().map_err(Error::at("take a snapshot"))? {
        let (_, value) = entry.map_err(Error::at("take a snapshot"))?;
        all.push(read_info(value.value())?);
    }
    sort(&mut all);
    for old in all.iter().skip(KEPT) {
        infos.remove(old.name.as_str()).map_err(Error::at("drop a snapshot"))?;
        contents.remove(old.name.as_str()).map_err(Error::at("drop a snapshot"))?;
    }
    Ok(info)
}

fn list(txn: &redb::ReadTransaction) -> Result<Vec<Snapshot>, Error> {
    let table = txn.open_table(SNAPSHOTS).map_err(Error::at("read the snapshots"))?;
    let mut all = Vec::new();
    for entry in table.iter().map_err(Error::at("read the snapshots"))? {
        let (_, value) = entry.map_err(Error::at("read the snapshots"))?;
        all.push(read_info(value.value())?);
    }
    sort(&mut all);
    Ok(all)
}

/// Newest first. The clock may have been set back, the revision never is.
fn sort(all: &mut [Snapshot]) {
    all.sort_by_key(|one| Reverse((one.revision, one.created_at)));
}

fn read_info(json: &[u8]) -> Result<Snapshot, Error> {
    serde_json::from_slice(json).map_err(|_| Error::Damaged { what: "a snapshot cannot be read".into() })
}

fn write_info(infos: &mut Table<'_, &'static str, &'static [u8]>, info: &Snapshot) -> Result<(), Error> {
    let json = serde_json::to_vec(info).expect("a struct with string keys");
    infos.insert(info.name.as_str(), json.as_slice()).map_err(Error::at("write a snapshot"))?;
    Ok(())
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

#[cfg(test)]
mod tests;
