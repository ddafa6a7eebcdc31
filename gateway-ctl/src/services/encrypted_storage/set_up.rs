//! Set-up on request: checks of the room, progress, and the result.

use gateway_model::Secret;

use super::error::StorageError;
use super::folder_gate::Location;
use super::layout::{StorageContent, StorageSettings};
use super::procedures::{self, SetUpObserver, Step};
use super::status::{SetUpPhase, SetUpProgress, StorageState};
use super::storage::{EncryptedStorage, Inner, Operation, RELEASE_TIMEOUT};
use crate::clock::SharedClock;
use crate::os::encrypted_volume::{HEADER_BYTES, VolumeError};

/// Smallest size, in MiB: the header, and a file system that has some room.
pub const MIN_SIZE_MB: u64 = 64;
/// Largest size, in MiB: 16 TiB.
pub const MAX_SIZE_MB: u64 = 16 << 20;
/// Bytes that stay free on the disk of the state folder, for the store.
const DISK_RESERVE: u64 = 128 << 20;
/// Bytes that a file system needs for itself, and the part of its size that it needs beside them.
const FILE_SYSTEM_BYTES: u64 = 16 << 20;
const FILE_SYSTEM_SHARE: u64 = 16;
/// Share of the set-up that the allocation takes, in per cent.
const ALLOCATION_PERCENT: u64 = 50;

/// Set-up as requested.
#[derive(Debug)]
pub struct SetUpRequest {
    pub size_mb: u64,
    pub passphrase: Secret,
    pub contents: Vec<StorageContent>,
}

/// A set-up that has begun.
pub struct BegunSetUp {
    storage: EncryptedStorage,
    request: SetUpRequest,
    clock: SharedClock,
    _operation: Operation,
}

impl EncryptedStorage {
    /// Begins a set-up, after the checks of its room. [`BegunSetUp::run`] does the work.
    pub fn begin_set_up(
        &self,
        request: SetUpRequest,
        clock: SharedClock,
    ) -> Result<BegunSetUp, StorageError> {
        let operation = self.begin(&[StorageState::Absent])?;
        self.check_room(&request)?;
        let progress = SetUpProgress {
            phase: SetUpPhase::Allocating,
            percent: 0,
            error: None,
            started_at: clock.now(),
            ended_at: None,
        };
        self.0.current.lock().set_up = Some(progress);
        Ok(BegunSetUp { storage: self.clone(), request, clock, _operation: operation })
    }

    fn check_room(&self, request: &SetUpRequest) -> Result<(), StorageError> {
        let Inner { layout, effects, .. } = &*self.0;
        let needed = (request.size_mb << 20).saturating_add(DISK_RESERVE);
        let free = effects.free_bytes(&layout.state_dir)?;
        if free < needed {
            return Err(StorageError::NoRoom { needed, free });
        }
        let paths = request.contents.iter().flat_map(|content| content.paths());
        let records: u64 = paths.map(|path| bytes_of(&layout.state_dir.join(path))).sum();
        let minimum_mb = minimum_mb(records);
        if request.size_mb < minimum_mb {
            return Err(StorageError::TooSmall { minimum_mb });
        }
        Ok(())
    }
}

/// Returns the size of a storage for records of so many bytes, in MiB.
fn minimum_mb(records: u64) -> u64 {
    let overhead = HEADER_BYTES + FILE_SYSTEM_BYTES + records / FILE_SYSTEM_SHARE;
    (records + overhead).div_ceil(1 << 20).max(MIN_SIZE_MB)
}

/// Returns the bytes of a file, or of the files of a folder with those of its subfolders.
fn bytes_of(path: &std::path::Path) -> u64 {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| bytes_of(&entry.path())).sum()
        }
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    }
}

impl BegunSetUp {
    /// Sets the storage up, which ends mounted. Blocks for as long as it takes.
    pub fn run(self) {
        let Inner { layout, effects, gate, current } = &*self.storage.0;
        let contents = self.request.contents.clone();
        let settings = StorageSettings { contents: contents.clone(), ..StorageSettings::default() };
        let bytes = self.request.size_mb << 20;
        let made =
            procedures::set_up(&**effects, layout, &settings, (bytes, &self.request.passphrase), &self);
        // The last step may fail behind its effect.
        match (made.is_ok(), layout.is_configured()) {
            (true, _) => {
                current.lock().settings = settings;
                self.storage.refresh();
                self.storage.mounted();
            }
            (false, true) => {
                current.lock().settings = settings;
                self.storage.refresh();
                gate.set(Location::Closed, &contents);
            }
            (false, false) => gate.set(Location::Plain, &[]),
        }
        self.end(made);
    }

    fn end(&self, made: Result<(), VolumeError>) {
        let mut current = self.storage.0.current.lock();
        let Some(progress) = &mut current.set_up else { return };
        progress.ended_at = Some(self.clock.now());
        match made {
            Ok(()) => (progress.phase, progress.percent) = (SetUpPhase::Done, 100),
            Err(error) => {
                tracing::error!(%error, "failed to set up the encrypted storage");
                (progress.phase, progress.error) = (SetUpPhase::Failed, Some(error.to_string()));
            }
        }
    }
}

impl SetUpObserver for BegunSetUp {
    fn begins(&self, step: Step) {
        let total = (self.request.size_mb << 20).max(1);
        let (phase, percent) = match step {
            Step::Allocate { bytes } => {
                (SetUpPhase::Allocating, bytes.saturating_mul(ALLOCATION_PERCENT) / total)
            }
            Step::Format => (SetUpPhase::Formatting, ALLOCATION_PERCENT),
            Step::MakeFileSystem => (SetUpPhase::MakingFileSystem, 65),
            Step::MoveRecords => (SetUpPhase::MovingRecords, 75),
            Step::EraseRecords => (SetUpPhase::ErasingRecords, 90),
        };
        if let Some(progress) = &mut self.storage.0.current.lock().set_up {
            progress.phase = phase;
            progress.percent = u8::try_from(percent).unwrap_or(100);
        }
    }

    fn close_records(&self) -> Result<(), VolumeError> {
        let gate = &self.storage.0.gate;
        gate.set(Location::Closed, &self.request.contents);
        gate.wait_released(RELEASE_TIMEOUT).map_err(|used| {
            tracing::warn!(?used, "records are in use and cannot move into the encrypted storage");
            VolumeError::Busy
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_size_has_room_for_the_records_and_the_file_system() {
        assert_eq!(minimum_mb(0), MIN_SIZE_MB);
        assert_eq!(minimum_mb(1 << 30), 1024 + 64 + 32);
    }
}
