//! Disk space of the store: a floor below which ordinary changes are refused, and a reserve for the changes that free
//! space.
//!
//! Sign-in, deletions, reverts and wipes may use the reserve; ordinary changes are refused before they begin. The query
//! log and downloaded lists stop earlier, at 16 MiB.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// File in the folder of the store. Its allocated bytes are released when the disk is full.
const NAME: &str = "reserve";
const RESERVE_BYTES: u64 = 4 << 20;
/// Minimum free space for ordinary changes.
const FLOOR_BYTES: u64 = 2 << 20;

/// Free disk space of the store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskRoom {
    pub free_bytes: u64,
    /// Part of the disk that is in use, in per cent.
    pub used_percent: f64,
    /// Floor below which changes are refused.
    pub floor_bytes: u64,
    /// True if the reserve for deletions, sign-in and revocation exists.
    pub reserve: bool,
}

impl DiskRoom {
    pub fn is_full(&self) -> bool {
        self.free_bytes < self.floor_bytes
    }

    /// Returns a human-readable description of the functions that fail for lack of space.
    pub fn shortage(&self) -> Option<String> {
        if self.is_full() {
            return Some(
                "The disk of the store is full: changes are refused until there is room.".to_owned(),
            );
        }
        let low = self.free_bytes < gateway_journal::room::FLOOR_BYTES;
        let free = self.free_bytes >> 20;
        low.then(|| format!("{free} MiB are left: the query log and copies of lists are not written."))
    }
}

#[derive(Debug)]
pub(super) struct Reserve {
    folder: PathBuf,
}

impl Reserve {
    pub(super) fn new(folder: &Path) -> Reserve {
        Reserve { folder: folder.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }

    /// Returns the free space; `None` if the file system does not report it.
    pub(super) fn room(&self) -> Option<DiskRoom> {
        let free_bytes = gateway_journal::room::free_bytes(&self.folder).ok()?;
        let used_percent = gateway_journal::room::used_percent(&self.folder).ok()??;
        Some(DiskRoom { free_bytes, used_percent, floor_bytes: FLOOR_BYTES, reserve: self.path().exists() })
    }

    fn is_full(&self) -> bool {
        self.room().is_some_and(|room| room.is_full())
    }

    /// Fails while the disk is almost full. A write that fails halfway costs more than a refused one.
    pub(super) fn check(&self) -> io::Result<()> {
        match self.is_full() {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    /// Releases the reserve if it is needed now.
    pub(super) fn release_if_full(&self) {
        if self.is_full() && fs::remove_file(self.path()).is_ok() {
            tracing::warn!("disk of the store is full: released the reserve");
        }
    }

    /// Allocates a missing reserve if there is enough space.
    pub(super) fn renew(&self) {
        let spare = self.room().is_some_and(|room| !room.reserve && room.free_bytes >= 4 * RESERVE_BYTES);
        if spare && let Err(error) = self.allocate() {
            tracing::debug!(%error, "failed to allocate the reserve of the store");
            let _ = fs::remove_file(self.path());
        }
    }

    fn allocate(&self) -> io::Result<()> {
        let file = File::create(self.path())?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, RESERVE_BYTES)?;
        file.sync_all()
    }
}
