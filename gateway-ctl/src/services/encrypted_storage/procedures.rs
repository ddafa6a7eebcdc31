//! Set-up, recovery after a crash, and teardown of the storage, step by step.
//!
//! The set-up works on files of its own, and one rename makes the storage exist. A crash before it leaves nothing, and a
//! crash behind it a storage with all records. Each start removes what a crash has left.
//!
//! Decision 0206 says why.

use gateway_model::Secret;

use super::layout::{Layout, StorageContent, StorageSettings};
use crate::os::encrypted_volume::{Unmount, VolumeEffects, VolumeError};

/// Step of a set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Allocate { bytes: u64 },
    Format,
    MakeFileSystem,
    MoveRecords,
    EraseRecords,
}

/// Parts of the daemon that follow a set-up.
pub(super) trait SetUpObserver {
    fn begins(&self, step: Step);

    /// Makes the users of the records close their files.
    fn close_records(&self) -> Result<(), VolumeError>;
}

/// Sets a storage up and mounts it. An error leaves nothing.
pub(super) fn set_up(
    effects: &dyn VolumeEffects,
    layout: &Layout,
    settings: &StorageSettings,
    (bytes, key): (u64, &Secret),
    observer: &dyn SetUpObserver,
) -> Result<(), VolumeError> {
    let made = make(effects, layout, settings, (bytes, key), observer);
    if let Err(error) = made {
        if let Err(left) = remove_unfinished(effects, layout) {
            tracing::warn!(error = %left, "failed to remove what a failed set-up of the encrypted storage has left");
        }
        return Err(error);
    }
    // The storage exists: what fails from here on is done again at the next start.
    observer.begins(Step::EraseRecords);
    if let Err(error) = erase_plain(effects, layout, &settings.contents) {
        tracing::error!(%error, "failed to erase records that have moved into the encrypted storage");
    }
    Ok(())
}

fn make(
    effects: &dyn VolumeEffects,
    layout: &Layout,
    settings: &StorageSettings,
    (bytes, key): (u64, &Secret),
    observer: &dyn SetUpObserver,
) -> Result<(), VolumeError> {
    observer.begins(Step::Allocate { bytes: 0 });
    effects.allocate(&layout.unfinished, bytes, &|bytes| observer.begins(Step::Allocate { bytes }))?;
    observer.begins(Step::Format);
    effects.format(&layout.unfinished, key)?;
    effects.open(&layout.unfinished, &layout.device, key)?;
    observer.begins(Step::MakeFileSystem);
    effects.make_file_system(&layout.device)?;
    effects.mount(&layout.device, &layout.mount_point)?;
    observer.begins(Step::MoveRecords);
    observer.close_records()?;
    for path in paths(&settings.contents) {
        effects.copy_files(&layout.state_dir.join(path), &layout.mount_point.join(path))?;
    }
    let text = serde_json::to_vec(settings)
        .map_err(|error| VolumeError::at("write the settings of the storage")(error.into()))?;
    effects.write_file(&layout.settings, &text)?;
    effects.rename(&layout.unfinished, &layout.container)
}

fn paths(contents: &[StorageContent]) -> impl Iterator<Item = &'static str> {
    contents.iter().flat_map(|content| content.paths().iter().copied())
}

/// Erases the records that have moved. Continues after a failure and returns the first error.
fn erase_plain(
    effects: &dyn VolumeEffects,
    layout: &Layout,
    contents: &[StorageContent],
) -> Result<(), VolumeError> {
    let erased = paths(contents).map(|path| effects.erase_files(&layout.state_dir.join(path)));
    erased.fold(Ok(()), Result::and)
}

/// Closes the volume of an earlier run, and removes what a crash has left. Returns whether a storage is configured.
pub(super) fn recover(effects: &dyn VolumeEffects, layout: &Layout) -> Result<bool, VolumeError> {
    let removed = remove_unfinished(effects, layout);
    if !layout.is_configured() {
        return removed.map(|()| false);
    }
    // Without its settings it is unknown which records the storage has.
    let contents = layout.readable_settings().map(|settings| settings.contents).unwrap_or_default();
    removed.and(erase_plain(effects, layout, &contents)).map(|()| true)
}

fn remove_unfinished(effects: &dyn VolumeEffects, layout: &Layout) -> Result<(), VolumeError> {
    let unmounted = effects.unmount(&layout.mount_point, Unmount::Now);
    let closed = effects.close(&layout.device, Unmount::Now);
    let removed = effects.remove(&layout.unfinished);
    let settings = match layout.is_configured() {
        true => Ok(()),
        false => {
            effects.remove(&layout.settings).and(effects.remove(&layout.settings.with_extension("part")))
        }
    };
    unmounted.and(closed).and(removed).and(settings)
}

/// Opens and mounts the storage. An error leaves it closed.
pub(super) fn unlock(effects: &dyn VolumeEffects, layout: &Layout, key: &Secret) -> Result<(), VolumeError> {
    effects.open(&layout.container, &layout.device, key)?;
    mount(effects, layout)
}

/// Opens the storage by a key that the TPM releases, and mounts it. An error leaves it closed.
pub(super) fn unlock_by_tpm2(effects: &dyn VolumeEffects, layout: &Layout) -> Result<(), VolumeError> {
    effects.open_by_tpm2(&layout.container, &layout.device)?;
    mount(effects, layout)
}

fn mount(effects: &dyn VolumeEffects, layout: &Layout) -> Result<(), VolumeError> {
    effects.mount(&layout.device, &layout.mount_point).inspect_err(|_| {
        if let Err(error) = effects.close(&layout.device, Unmount::WhenUnused) {
            tracing::warn!(%error, "failed to close an encrypted storage that could not be mounted");
        }
    })
}

/// Unmounts and closes the storage.
pub(super) fn lock(effects: &dyn VolumeEffects, layout: &Layout, how: Unmount) -> Result<(), VolumeError> {
    effects.unmount(&layout.mount_point, how)?;
    effects.close(&layout.device, how)
}

/// Destroys a storage that is not mounted. The header goes first.
pub(super) fn tear_down(effects: &dyn VolumeEffects, layout: &Layout) -> Result<(), VolumeError> {
    effects.erase_header(&layout.container)?;
    effects.remove(&layout.container)?;
    effects.remove(&layout.settings)
}

#[cfg(test)]
mod tests;
