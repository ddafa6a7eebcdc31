//! Snapshots: the whole configuration before each apply, import and rollback, and the rollback to a snapshot.
//!
//! A snapshot contains rows, settings and applied policies in their stored form, so sealed secrets stay sealed. It
//! excludes accounts, because a rollback must not restore a revoked key. It also excludes the settings that are
//! specific to this installation.

mod content;
mod guarded;
mod pending;
mod revert;
mod safety;

use std::cmp::Reverse;

use gateway_model::State;
use jiff::Timestamp;
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Error;
use content::Content;

pub(super) use guarded::Guarded;
pub(super) use pending::store as store_pending;
pub use pending::{Confirm, Pending};
pub use revert::RolledBackChange;
pub use safety::{ChangeRecords, RollbackOptions, SafeError};

/// Name to the JSON of [`Snapshot`].
const SNAPSHOTS: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("snapshots");
/// Name to the compressed content.
const CONTENTS: TableDefinition<'static, &'static str, &'static [u8]> =
    TableDefinition::new("snapshot_contents");

/// Maximum number of snapshots; the oldest are dropped.
pub(super) const KEPT: usize = 50;

/// Reason of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotReason {
    Manual,
    PreApply,
    PreImport,
    Scheduled,
    PreRollback,
    /// Before the discard of pending policies.
    PreDiscard,
}

impl SnapshotReason {
    fn as_str(self) -> &'static str {
        match self {
            SnapshotReason::Manual => "manual",
            SnapshotReason::PreApply => "pre-apply",
            SnapshotReason::PreImport => "pre-import",
            SnapshotReason::Scheduled => "scheduled",
            SnapshotReason::PreRollback => "pre-rollback",
            SnapshotReason::PreDiscard => "pre-discard",
        }
    }
}

/// Metadata of a snapshot, readable without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    pub name: String,
    pub created_at: Timestamp,
    pub reason: SnapshotReason,
    /// Author of the change that followed the snapshot.
    pub author: String,
    /// Size in the store, in bytes.
    pub size: u64,
    /// Version of the service that took the snapshot.
    pub version: String,
    /// Revision of the store at the snapshot.
    pub revision: u64,
    /// Human-readable summary of the content.
    pub summary: String,
}

/// Reports whether a text is a valid name of a snapshot. Names are keys, never paths, and cannot be mistaken for
/// anything else.
pub fn is_snapshot_name(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    first
        && text.len() <= 64
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Replaces the draft by the content of a snapshot, except accounts and the settings of this installation.
pub fn restore(draft: &mut State, target: &State) -> Result<(), Error> {
    gateway_model::bulk_edit::take_over(draft, target, content::is_kept)
        .map_err(|what| Error::Damaged { what: format!("the snapshot contradicts itself: {what}") })
}

/// Calls `row` for the stored rows of all snapshots, and rewrites the snapshots with changed rows. `row` gets the
/// collection (`setting` for settings) and each row in its stored form, and returns `true` if it changed the row.
/// Returns the names of the damaged snapshots, which stay as they are.
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

/// Writes a snapshot of the tables, and drops the oldest.
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

/// Sorts newest first, by revision: the clock may have been set back, but the revision never is.
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

#[cfg(test)]
mod tests;
