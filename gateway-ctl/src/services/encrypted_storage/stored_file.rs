//! Small file of a service, which may live in the encrypted storage.

use std::path::{Path, PathBuf};

use super::folder_gate::OpenFolder;
use super::layout::{StorageContent, plain_folder};
use super::storage::EncryptedStorage;

/// A file of the state folder, or of the encrypted storage.
#[derive(Debug)]
pub struct StoredFile {
    content: StorageContent,
    name: &'static str,
    /// Folder of the file; `None` while it waits for the storage.
    base: Option<PathBuf>,
    /// The storage stays mounted while this is there.
    folder: Option<OpenFolder>,
}

impl StoredFile {
    /// Returns the file as the disk has it. It is in use from the first [`StoredFile::follow`] on.
    pub fn new(state_dir: &Path, content: StorageContent, name: &'static str) -> StoredFile {
        StoredFile { content, name, base: plain_folder(state_dir, content), folder: None }
    }

    /// Returns the path, or `None` while the file waits for the storage, or was unmounted with it.
    pub fn path(&self) -> Option<PathBuf> {
        let is_in_place = self.folder.as_ref().is_none_or(OpenFolder::is_in_place);
        self.base.as_ref().filter(|_| is_in_place).map(|base| base.join(self.name))
    }

    /// Follows the storage. Returns the file at another location, if it has one now. The caller writes what it has to the
    /// earlier one, and takes this instead.
    pub fn follow(&mut self, storage: &EncryptedStorage) -> Option<StoredFile> {
        let folder = storage.open_folder(self.content);
        let base = folder.as_ref().map(|open| open.base().to_owned());
        let next = StoredFile { content: self.content, name: self.name, base, folder };
        if next.base != self.base {
            return Some(next);
        }
        *self = next;
        None
    }
}
