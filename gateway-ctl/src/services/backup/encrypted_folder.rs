//! Folder of backups in the encrypted storage. It is the one folder below the state directory that a local target may name.

use std::path::{Path, PathBuf};

use gateway_model::settings::groups::{BackupTarget, TargetType};

use super::folder::is_inside;
use super::{Error, Service};
use crate::services::encrypted_storage::{OpenFolder, StorageContent};

impl Service {
    /// Returns the folder in the encrypted storage that a target may name. `None`: backups are not among its contents.
    pub fn storage_folder(&self) -> Option<PathBuf> {
        self.storage.folder_of_backups()
    }

    fn is_in_storage(&self, target: &BackupTarget) -> bool {
        let is_inside = |folder: PathBuf| is_inside(Path::new(&target.path), &folder);
        target.r#type == TargetType::Local && self.storage_folder().is_some_and(is_inside)
    }

    /// Opens the encrypted storage for a target in it. Fails while the storage is closed.
    pub(super) fn open_storage(&self, target: &BackupTarget) -> Result<Option<OpenFolder>, Error> {
        if !self.is_in_storage(target) {
            return Ok(None);
        }
        let folder = self.storage.open_folder(StorageContent::Backups).ok_or(Error::Waiting)?;
        if let Some(path) = self.storage_folder() {
            // In a mounted storage it is on the right disk. A failure appears as a missing folder.
            let _ = std::fs::create_dir_all(path);
        }
        Ok(Some(folder))
    }

    /// Reports whether a target waits for the encrypted storage.
    pub(super) fn is_waiting(&self, target: &BackupTarget) -> bool {
        self.storage.waiting().contains(&StorageContent::Backups) && self.is_in_storage(target)
    }
}
