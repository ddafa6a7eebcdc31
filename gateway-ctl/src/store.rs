//! The durable state: one file, one write path, one audit trail.
//!
//! Reads come from [`Store::current`], a value in memory; only the audit trail is read from the file. All changes go
//! through [`Store::commit`], which writes rows, audit entry and revision in one transaction, flushed to the disk,
//! and then publishes the new state. The file is locked against other processes while the store is open.

mod audit;
mod backups;
mod commit;
mod error;
mod load;
mod migrate;
mod rewrite;
mod rotate;
mod schema;
mod sessions;
mod snapshots;
mod vault;
mod wipe;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use gateway_model::State;
use tokio::sync::watch;

use crate::clock::SharedClock;
use rewrite::Db;
use vault::Sealing;

pub use audit::{
    AuditAuth, AuditEntry, AuditFault, AuditFilter, AuditReport, AuditResult, AuditTicket, Before,
};
pub use backups::{Outcome as BackupOutcome, Run as BackupRun, Trigger as BackupTrigger};
pub use commit::CommitError;
pub use error::Error;
pub use migrate::SCHEMA;
pub use rotate::{RotateError, SecretEntry, SecretsStatus};
pub use sessions::{ABSOLUTE as SESSION_LENGTH, Session};
pub use snapshots::{
    Confirm, Pending, SafeError, Safety, Secured, Snapshot, SnapshotReason, is_snapshot_name, restore,
};
pub use vault::SecretsMode;

/// The store. Shared as `Arc<Store>`. Writing blocks on the disk: call it from a blocking task.
pub struct Store {
    path: PathBuf,
    clock: SharedClock,
    db: Db,
    current: ArcSwap<State>,
    revisions: watch::Sender<u64>,
    writer: Mutex<audit::Head>,
    sessions: sessions::Sessions,
    sealing: ArcSwap<Sealing>,
    guarded: Mutex<snapshots::Guarded>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the file, or makes a new one with the built-in objects. The folder is made if it is missing.
    pub fn open(path: impl AsRef<Path>, clock: SharedClock) -> Result<Store, Error> {
        let path = path.as_ref().to_owned();
        let (db, state, head, sessions, sealing) = load::open(&path, clock.as_ref())?;
        let guarded = snapshots::Guarded::load(&db)?;
        let (revisions, _) = watch::channel(state.revision.0);
        Ok(Store {
            path,
            clock,
            db: Db::new(db),
            current: ArcSwap::from_pointee(state),
            revisions,
            writer: Mutex::new(head),
            sessions,
            sealing: ArcSwap::from_pointee(sealing),
            guarded: Mutex::new(guarded),
        })
    }

    /// The state as last committed. Costs no lock.
    pub fn current(&self) -> Arc<State> {
        self.current.load_full()
    }

    /// Wakes at each commit that changed the state, with its revision.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.revisions.subscribe()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }
}

#[cfg(test)]
mod tests;
