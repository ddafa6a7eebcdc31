//! Storage with fake volumes: states, folders, and what a wipe leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gateway_model::Secret;
use gateway_model::settings::groups::WipeLevel;

use super::fake_volumes::{Death, FakeVolumes};
use super::*;
use crate::clock::SystemClock;
use crate::os::encrypted_volume::VolumeError;

struct Fixture {
    folder: tempfile::TempDir,
    volumes: Arc<FakeVolumes>,
    storage: EncryptedStorage,
}

fn key() -> Secret {
    Secret::new("a long passphrase")
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("state/flows")).expect("a folder");
        fs::create_dir(folder.path().join("devices")).expect("a folder");
        fs::write(folder.path().join("state/flows/record"), "alice.example").expect("a record");
        let volumes = Arc::new(FakeVolumes::new(&folder.path().join("devices")));
        let storage = EncryptedStorage::new(&folder.path().join("state"), volumes.clone());
        Fixture { folder, volumes, storage }
    }

    fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn request(size_mb: u64) -> SetUpRequest {
        SetUpRequest { size_mb, passphrase: key(), contents: vec![StorageContent::FlowLog] }
    }

    fn set_up(&self) {
        let begun = self.storage.begin_set_up(Self::request(MIN_SIZE_MB), SystemClock::shared());
        begun.expect("begun").run();
    }

    fn base(&self, content: StorageContent) -> Option<PathBuf> {
        self.storage.open_folder(content).map(|folder| folder.base().to_owned())
    }

    fn has_plain_record(&self) -> bool {
        self.state_dir().join("flows/record").exists()
    }

    /// Starts the daemon again on the same state folder.
    fn restarted(&self) -> EncryptedStorage {
        let storage = EncryptedStorage::new(&self.state_dir(), self.volumes.clone());
        storage.recover();
        storage
    }
}

#[test]
fn records_move_into_a_new_storage_and_wait_while_it_is_locked() {
    let fixture = Fixture::new();
    let Fixture { storage, .. } = &fixture;
    assert_eq!(storage.state(), StorageState::Absent);
    assert_eq!(fixture.base(StorageContent::FlowLog), Some(fixture.state_dir()));
    fixture.set_up();
    let status = storage.status();
    let progress = status.set_up.expect("a progress");
    assert_eq!((progress.phase, progress.percent, progress.error), (SetUpPhase::Done, 100, None));
    assert_eq!((status.state, status.keyslots.len()), (StorageState::Mounted, 1));
    let inside = fixture.state_dir().join("encrypted");
    assert_eq!(fixture.base(StorageContent::FlowLog), Some(inside.clone()));
    assert_eq!(
        fixture.base(StorageContent::Captures),
        Some(fixture.state_dir()),
        "it is not among the contents"
    );
    assert!(inside.join("flows/record").exists() && !fixture.has_plain_record());

    storage.lock().expect("locked");
    assert_eq!(fixture.base(StorageContent::FlowLog), None);
    assert_eq!(storage.waiting(), [StorageContent::FlowLog]);
    assert!(matches!(
        storage.unlock(&Secret::new("not the passphrase")),
        Err(StorageError::Volume(VolumeError::WrongKey))
    ));
    storage.unlock(&key()).expect("opened");
    assert_eq!(fixture.base(StorageContent::FlowLog), Some(inside));
}

#[test]
fn a_storage_that_was_open_is_locked_after_a_kill() {
    let fixture = Fixture::new();
    fixture.set_up();
    let storage = fixture.restarted();
    assert_eq!(storage.state(), StorageState::Locked);
    assert!(storage.open_folder(StorageContent::FlowLog).is_none());
    assert_eq!(
        health(&storage).map(|health| health.check.message).as_deref(),
        Some("waiting for encrypted storage: flow_log")
    );
    storage.unlock(&key()).expect("opened");
    assert!(fixture.state_dir().join("encrypted/flows/record").exists());
}

#[test]
fn operations_need_their_state() {
    let fixture = Fixture::new();
    let Fixture { storage, .. } = &fixture;
    let state = |refused: Result<(), StorageError>| match refused {
        Err(StorageError::State { have, .. }) => have,
        other => panic!("{other:?}"),
    };
    for operation in [EncryptedStorage::lock, EncryptedStorage::tear_down] {
        assert_eq!(state(operation(storage)), StorageState::Absent);
    }
    assert_eq!(state(storage.unlock(&key())), StorageState::Absent);
    fixture.set_up();
    assert_eq!(state(storage.tear_down()), StorageState::Mounted);
    assert_eq!(state(storage.unlock(&key())), StorageState::Mounted);
    storage.lock().expect("locked");
    storage.change_passphrase(&key(), &Secret::new("another passphrase")).expect("changed");
    storage.unlock(&key()).expect_err("the earlier passphrase");
    storage.tear_down().expect("torn down");
    assert_eq!(
        (storage.state(), fixture.base(StorageContent::FlowLog)),
        (StorageState::Absent, Some(fixture.state_dir()))
    );
}

#[test]
fn a_set_up_needs_room_and_is_one_at_a_time() {
    let fixture = Fixture::new();
    let begin = |size_mb| fixture.storage.begin_set_up(Fixture::request(size_mb), SystemClock::shared());
    assert!(matches!(begin(MAX_SIZE_MB), Err(StorageError::NoRoom { .. })));
    let record = fs::File::create(fixture.state_dir().join("flows/large")).expect("a file");
    // It is sparse, so it takes no room.
    record.set_len(100 << 20).expect("a length");
    assert!(matches!(begin(MIN_SIZE_MB), Err(StorageError::TooSmall { minimum_mb: 139 })));
    let _begun = begin(139).expect("begun");
    assert_eq!(fixture.storage.state(), StorageState::SettingUp);
    assert!(matches!(begin(139), Err(StorageError::State { have: StorageState::SettingUp, .. })));
}

#[test]
fn a_failed_set_up_says_why_and_leaves_the_records() {
    let fixture = Fixture::new();
    // The device cannot be made: the process itself lives on.
    fixture.volumes.dies_at(3, Death::Before);
    let begun = fixture.storage.begin_set_up(Fixture::request(MIN_SIZE_MB), SystemClock::shared());
    begun.expect("begun").run();
    fixture.volumes.revive();
    let status = fixture.storage.status();
    let progress = status.set_up.expect("a progress");
    assert_eq!(progress.phase, SetUpPhase::Failed);
    assert!(progress.error.is_some() && progress.ended_at.is_some());
    assert!(fixture.has_plain_record());
    assert_eq!(fixture.base(StorageContent::FlowLog), Some(fixture.state_dir()));
}

#[test]
fn a_wipe_leaves_no_record_in_a_locked_storage_and_a_hard_one_in_none() {
    for (level, is_locked, erased) in [
        (WipeLevel::Soft, false, false),
        (WipeLevel::Soft, true, true),
        (WipeLevel::Medium, true, true),
        (WipeLevel::Hard, false, true),
        (WipeLevel::Hard, true, true),
    ] {
        let fixture = Fixture::new();
        fixture.set_up();
        if is_locked {
            fixture.storage.lock().expect("locked");
        }
        fixture.storage.erase(level).expect("erased");
        assert_eq!(fixture.storage.state() == StorageState::Erased, erased, "{level} {is_locked}");
        if erased {
            assert!(fixture.storage.open_folder(StorageContent::FlowLog).is_none(), "{level}");
            let storage = fixture.restarted();
            storage.unlock(&key()).expect_err("no header");
            storage.tear_down().expect("torn down");
        }
    }
}

#[test]
fn plain_folders_follow_the_disk() {
    let fixture = Fixture::new();
    fixture.set_up();
    let plain = |content| plain_folder(Path::new(&fixture.state_dir()), content);
    assert_eq!(plain(StorageContent::FlowLog), None);
    assert_eq!(plain(StorageContent::QueryLog), Some(fixture.state_dir()));
}
