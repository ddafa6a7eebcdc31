//! A state folder whose encrypted storage has fake volumes, for tests of the services with records in it.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use gateway_model::Secret;
use tempfile::TempDir;

use super::fake_volumes::FakeVolumes;
use super::{EncryptedStorage, MIN_SIZE_MB, SetUpRequest, StorageContent, StorageState};
use crate::clock::SystemClock;

pub(crate) struct StorageFixture {
    folder: TempDir,
    volumes: Arc<FakeVolumes>,
    pub storage: EncryptedStorage,
}

fn key() -> Secret {
    Secret::new("a long passphrase")
}

impl StorageFixture {
    pub(crate) fn new() -> StorageFixture {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("state")).expect("a folder");
        std::fs::create_dir(folder.path().join("devices")).expect("a folder");
        let volumes = Arc::new(FakeVolumes::new(&folder.path().join("devices")));
        let storage = EncryptedStorage::new(&folder.path().join("state"), volumes.clone());
        StorageFixture { folder, volumes, storage }
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Returns a path in the mounted storage.
    pub(crate) fn inside(&self, path: &str) -> PathBuf {
        self.state_dir().join("encrypted").join(path)
    }

    /// Sets the storage up for one content, whose user follows it by `follow`.
    pub(crate) fn set_up(&self, content: StorageContent, mut follow: impl FnMut()) {
        let request = SetUpRequest { size_mb: MIN_SIZE_MB, passphrase: key(), contents: vec![content] };
        let begun = self.storage.begin_set_up(request, SystemClock::shared()).expect("begun");
        while_following(&mut follow, move || begun.run());
        assert_eq!(self.storage.state(), StorageState::Mounted, "{:?}", self.storage.status());
    }

    pub(crate) fn lock(&self, mut follow: impl FnMut()) {
        let storage = self.storage.clone();
        while_following(&mut follow, move || storage.lock().expect("locked"));
    }

    /// Unmounts the storage under its users.
    pub(crate) fn unmount_by_force(&self) {
        self.storage.close_now();
    }

    pub(crate) fn unlock(&self) {
        self.storage.unlock(&key()).expect("opened");
    }

    /// Starts the machine again: the storage is locked.
    pub(crate) fn reboot(&mut self) {
        self.volumes.reboot();
        self.storage = EncryptedStorage::new(&self.state_dir(), self.volumes.clone());
        self.storage.recover();
    }
}

/// Runs an operation that waits for the users of records, and lets them follow until it ends, and once more.
fn while_following(follow: &mut impl FnMut(), operation: impl FnOnce() + Send + 'static) {
    let operation = thread::spawn(operation);
    while !operation.is_finished() {
        follow();
        thread::yield_now();
    }
    operation.join().expect("no panic");
    follow();
}
