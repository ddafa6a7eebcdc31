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

#[test]
fn metrics_show_the_state_and_what_waits() {
    let fixture = Fixture::new();
    let text = || {
        let mut registry = prometheus_client::registry::Registry::default();
        metrics::register(&mut registry, &fixture.storage.status());
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        text
    };
    let has = |text: &str, line: &str| text.lines().any(|shown| shown == line);
    assert!(has(&text(), "encrypted_storage_state{state=\"absent\"} 1"));
    assert!(!text().contains("encrypted_storage_size_bytes"));
    fixture.set_up();
    for line in [
        "encrypted_storage_state{state=\"mounted\"} 1",
        "encrypted_storage_size_bytes 67108864",
        "encrypted_storage_used_bytes 1",
        "encrypted_storage_key_slots{kind=\"other\"} 1",
        "encrypted_storage_waiting{content=\"flow_log\"} 0",
    ] {
        assert!(has(&text(), line), "{line}: {}", text());
    }
    fixture.storage.lock().expect("locked");
    assert!(has(&text(), "encrypted_storage_waiting{content=\"flow_log\"} 1"), "{}", text());
    assert!(!text().contains("encrypted_storage_used_bytes"));
}

#[test]
fn without_its_settings_a_storage_takes_no_unencrypted_records() {
    let fixture = Fixture::new();
    fixture.set_up();
    fs::write(fixture.state_dir().join("hosts.json"), "{}").expect("written");
    fs::remove_file(fixture.state_dir().join("encrypted.json")).expect("removed");
    let storage = fixture.restarted();
    assert_eq!(storage.waiting(), StorageContent::ALL, "nothing is written beside it");
    assert!(fixture.state_dir().join("hosts.json").exists(), "it may never have been in the storage");
}

/// Starts the daemon again after a reboot, with an empty store, and opens what can be opened.
fn started(fixture: &Fixture) -> EncryptedStorage {
    let store = crate::store::Store::open(fixture.folder.path().join("store.redb"), SystemClock::shared());
    let storage = fixture.restarted();
    storage.open_at_start(&store.expect("a store"));
    storage
}

#[test]
fn a_tpm_opens_the_storage_at_the_start_of_the_same_machine_only() {
    let fixture = Fixture::new();
    fixture.set_up();
    let wrong = fixture.storage.store_tpm2_key(&Secret::new("not the passphrase"), &[7]);
    assert!(matches!(wrong, Err(StorageError::Volume(VolumeError::WrongKey))));
    fixture.storage.store_tpm2_key(&key(), &[7]).expect("sealed");
    fixture.storage.store_tpm2_key(&key(), &[7]).expect("sealed again");
    let status = fixture.storage.status();
    let sealed: Vec<_> = status.keyslots.iter().map(|slot| (slot.is_tpm2, slot.tpm2_pcrs.len())).collect();
    assert_eq!((sealed, status.tpm2.opens_at_start), (vec![(false, 0), (true, 1)], true));

    fixture.volumes.reboot();
    let storage = started(&fixture);
    assert_eq!((storage.state(), storage.status().error), (StorageState::Mounted, None));

    fixture.volumes.reboot_changed();
    let storage = started(&fixture);
    assert_eq!(storage.state(), StorageState::Locked);
    let error = storage.status().error.expect("a reason");
    assert!(error.contains("TPM") && error.ends_with("the storage waits for its passphrase"), "{error}");
    storage.unlock(&key()).expect("the passphrase opens it");

    storage.remove_tpm2_key().expect("removed");
    let status = storage.status();
    assert_eq!((status.keyslots.len(), status.tpm2.opens_at_start), (1, false));
    fixture.volumes.reboot();
    assert_eq!(started(&fixture).status().error.as_deref(), Some("the storage waits for its passphrase"));
}
