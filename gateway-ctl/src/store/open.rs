//! Opening of the store, as a value that all parts of the daemon share.

use std::path::Path;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use redb::ReadableDatabase;
use tokio::sync::watch;

use super::error::Error;
use super::file::Db;
use super::paths::folder_of;
use super::{Store, load, snapshots, time};
use crate::clock::SharedClock;

impl Store {
    /// Opens the file, or creates one with the built-in objects. Creates a missing folder.
    pub fn open(path: impl AsRef<Path>, clock: SharedClock) -> Result<Store, Error> {
        Self::open_with(path.as_ref(), clock, load::IfMissing::Create)
    }

    /// Opens an existing file. If there is none, the function fails and leaves nothing behind.
    pub fn open_existing(path: impl AsRef<Path>, clock: SharedClock) -> Result<Store, Error> {
        Self::open_with(path.as_ref(), clock, load::IfMissing::Refuse)
    }

    fn open_with(path: &Path, clock: SharedClock, missing: load::IfMissing) -> Result<Store, Error> {
        let path = path.to_owned();
        let (db, state, head, sessions, sealing) = load::open(&path, clock.as_ref(), missing)?;
        let guarded = snapshots::Guarded::load(&db)?;
        let kept = {
            let txn = db.begin_read().map_err(Error::at("begin to read"))?;
            time::resume(&txn, &head, clock.as_ref())?
        };
        let (revisions, _) = watch::channel(state.revision.0);
        let folder = folder_of(&path).to_owned();
        Ok(Store {
            path,
            clock,
            db: Db::new(db, &folder)?,
            current: ArcSwap::from_pointee(state),
            revisions,
            writer: Mutex::new(head),
            sessions,
            sealing: ArcSwap::from_pointee(sealing),
            guarded: Mutex::new(guarded),
            kept: Mutex::new(kept),
        })
    }
}
