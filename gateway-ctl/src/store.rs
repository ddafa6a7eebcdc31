//! Durable state: one file, one write path, one audit trail.
//!
//! Reads use [`Store::current`], a value in memory; only the audit trail is read from the file. All changes use
//! [`Store::commit`]. It writes rows, audit entry and revision in one transaction, flushes it to the disk, and then
//! publishes the new state. The file is locked against other processes while the store is open.

mod alerts;
mod audit;
mod backup_runs;
mod commit;
mod error;
mod file;
mod generations;
mod load;
mod migrate;
mod node_id;
mod notification_outbox;
mod open;
mod open_file;
mod passphrase_rotation;
mod paths;
mod reserve;
mod retention;
mod schema;
mod secrets_health;
mod secure_compaction;
mod sessions;
mod snapshots;
mod time;
mod values;
mod vault;
mod wipe;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use gateway_model::State;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::clock::SharedClock;
use file::Db;
use vault::SecretStorage;

pub use alerts::AlertFilter;
pub use audit::{
    AuditAuth, AuditEntry, AuditFault, AuditFilter, AuditReport, AuditResult, AuditTicket, PageEnd,
};
pub use backup_runs::{Outcome as BackupOutcome, Run as BackupRun, Trigger as BackupTrigger};
pub use commit::CommitError;
pub use error::Error;
pub use migrate::SCHEMA;
pub use passphrase_rotation::{RotateError, SecretEntry, SecretsStatus};
pub use reserve::DiskRoom;
pub use retention::AuditRetention;
pub use secrets_health::SecretsHealth;
pub use sessions::{ABSOLUTE as SESSION_LENGTH, Session};
pub use snapshots::{
    ChangeRecords, Confirm, Pending, RollbackOptions, RolledBackChange, SafeError, Snapshot, SnapshotReason,
    is_snapshot_name, restore,
};
pub use vault::SecretsMode;
pub use wipe::{DISCARDED, WIPED};

/// Durable store, shared as `Arc<Store>`. Writing blocks on the disk, so call it from a blocking task.
pub struct Store {
    path: PathBuf,
    clock: SharedClock,
    db: Db,
    current: ArcSwap<State>,
    revisions: watch::Sender<u64>,
    writer: Mutex<audit::ChainHead>,
    sessions: sessions::Sessions,
    sealing: ArcSwap<SecretStorage>,
    guarded: Mutex<snapshots::Guarded>,
    kept: Mutex<time::SavedTime>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Store {
    /// Returns the last committed state. Takes no lock.
    pub fn current(&self) -> Arc<State> {
        self.current.load_full()
    }

    /// Returns a receiver that wakes at each commit that changed the state, with its revision.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.revisions.subscribe()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// Returns the free space on the disk of the store; `None` if the file system does not report it.
    pub fn disk_room(&self) -> Option<DiskRoom> {
        self.db.reserve().room()
    }

    /// Allocates a released reserve again, once there is enough space. Blocks on the disk.
    pub fn renew_reserve(&self) {
        self.db.reserve().renew();
    }

    /// Reports whether the file contains a change that was reported as failed. Nothing can be read or written until
    /// the next start.
    pub fn is_ahead(&self) -> bool {
        self.db.is_ahead()
    }
}

#[cfg(test)]
mod tests;
