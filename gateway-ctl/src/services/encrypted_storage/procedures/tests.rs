//! Deaths at each instant of each procedure, by a kill and by a power cut.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::super::fake_volumes::{Death, FakeVolumes};
use super::*;

const BYTES: u64 = 64 << 10;
const DEATHS: [Death; 3] = [Death::Before, Death::Within, Death::Behind];

struct Silent;

impl SetUpObserver for Silent {
    fn begins(&self, _: Step) {}

    fn close_records(&self) -> Result<(), VolumeError> {
        Ok(())
    }
}

struct Fixture {
    _folder: tempfile::TempDir,
    layout: Layout,
    volumes: FakeVolumes,
    settings: StorageSettings,
    key: Secret,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let (state, devices) = (folder.path().join("state"), folder.path().join("devices"));
        for path in [&state, &devices] {
            fs::create_dir(path).expect("a folder");
        }
        let settings = StorageSettings {
            contents: vec![StorageContent::QueryLog, StorageContent::FlowLog],
            ..StorageSettings::default()
        };
        Fixture {
            layout: Layout::new(&state),
            volumes: FakeVolumes::new(&devices),
            settings,
            key: Secret::new("a long passphrase"),
            _folder: folder,
        }
    }

    fn seed(&self, records: &BTreeMap<String, Vec<u8>>) {
        for (name, bytes) in records {
            for folder in paths(&self.settings.contents) {
                let path = self.layout.state_dir.join(folder).join(name);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(path, bytes).expect("written");
            }
        }
    }

    fn set_up(&self) -> Result<(), VolumeError> {
        set_up(&self.volumes, &self.layout, &self.settings, (BYTES, &self.key), &Silent)
    }

    /// Returns the records below a folder, by their path in it.
    fn records(&self, base: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        for folder in paths(&self.settings.contents) {
            for entry in fs::read_dir(base.join(folder)).into_iter().flatten().flatten() {
                let bytes = fs::read(entry.path()).expect("a record");
                found.insert(Path::new(folder).join(entry.file_name()), bytes);
            }
        }
        found
    }

    fn plain(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.records(&self.layout.state_dir)
    }

    /// Starts again after a death, and checks what is there: all records, either unencrypted and alone, or in a storage
    /// that opens. Returns whether there is a storage.
    fn check_start(&self, seeded: &BTreeMap<PathBuf, Vec<u8>>, instant: &str) -> bool {
        let configured = recover(&self.volumes, &self.layout).expect("recovered");
        let left: Vec<_> = fs::read_dir(&self.layout.state_dir)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .filter(|name| name.starts_with("encrypted") && name != "encrypted")
            .collect();
        if configured {
            assert!(self.plain().is_empty(), "{instant}: records beside the storage");
            assert!(!left.contains(&"encrypted.new".to_owned()), "{instant}: {left:?}");
            unlock(&self.volumes, &self.layout, &self.key).expect("it opens");
            assert_eq!(&self.records(&self.layout.mount_point), seeded, "{instant}");
            lock(&self.volumes, &self.layout, Unmount::WhenUnused).expect("it closes");
        } else {
            assert_eq!(&self.plain(), seeded, "{instant}");
            assert!(left.is_empty(), "{instant}: {left:?}");
            assert!(
                self.records(&self.layout.mount_point).is_empty(),
                "{instant}: records below the mount point"
            );
        }
        configured
    }
}

fn two_records() -> BTreeMap<String, Vec<u8>> {
    [("a".to_owned(), b"alice.example".to_vec()), ("b".to_owned(), vec![7; 5000])].into()
}

#[test]
fn records_move_in_and_a_storage_opens_by_its_key_only() {
    let fixture = Fixture::new();
    fixture.seed(&two_records());
    let seeded = fixture.plain();
    assert_eq!(seeded.len(), 8);
    fixture.set_up().expect("set up");
    assert!(fixture.plain().is_empty());
    assert_eq!(fixture.records(&fixture.layout.mount_point), seeded);
    lock(&fixture.volumes, &fixture.layout, Unmount::WhenUnused).expect("locked");
    let wrong = unlock(&fixture.volumes, &fixture.layout, &Secret::new("another passphrase"));
    assert!(matches!(wrong, Err(VolumeError::WrongKey)));
    assert!(fixture.check_start(&seeded, "a clean start"));
    tear_down(&fixture.volumes, &fixture.layout).expect("torn down");
    assert!(!recover(&fixture.volumes, &fixture.layout).expect("recovered"));
}

#[test]
fn a_death_at_any_instant_of_the_set_up_leaves_nothing_or_a_storage() {
    let (mut with, mut without) = (0, 0);
    for by_power in [false, true] {
        for death in DEATHS {
            for operation in 0.. {
                let fixture = Fixture::new();
                fixture.seed(&two_records());
                let seeded = fixture.plain();
                fixture.volumes.dies_at(operation, death);
                let ended = fixture.set_up();
                if !fixture.volumes.is_dead() {
                    ended.expect("a set-up to its end");
                    // It has a dozen operations.
                    assert!(operation > 12, "{operation}");
                    break;
                }
                if by_power {
                    fixture.volumes.reboot()
                } else {
                    fixture.volumes.revive()
                }
                let instant = format!("operation {operation}, {death:?}, by power: {by_power}");
                if fixture.check_start(&seeded, &instant) { with += 1 } else { without += 1 }
            }
        }
    }
    // Both ends occur: before the rename, and behind it.
    assert!(with >= 18 && without >= 40, "{with} {without}");
}

#[test]
fn a_death_during_the_recovery_is_recovered() {
    for first in 0..14 {
        for second in 0..12 {
            let fixture = Fixture::new();
            fixture.seed(&two_records());
            let seeded = fixture.plain();
            fixture.volumes.dies_at(first, Death::Behind);
            // The death is the subject.
            let _ = fixture.set_up();
            fixture.volumes.revive();
            fixture.volumes.dies_at(second, Death::Within);
            let _ = recover(&fixture.volumes, &fixture.layout);
            fixture.volumes.reboot();
            fixture.check_start(&seeded, &format!("operations {first} and {second}"));
        }
    }
}

#[test]
fn a_death_during_the_teardown_leaves_one_that_can_be_repeated() {
    for death in DEATHS {
        for operation in 0..3 {
            let fixture = Fixture::new();
            fixture.set_up().expect("set up");
            lock(&fixture.volumes, &fixture.layout, Unmount::WhenUnused).expect("locked");
            fixture.volumes.dies_at(operation, death);
            tear_down(&fixture.volumes, &fixture.layout).expect_err("killed");
            fixture.volumes.reboot();
            if recover(&fixture.volumes, &fixture.layout).expect("recovered") {
                tear_down(&fixture.volumes, &fixture.layout).expect("torn down");
            }
            assert!(!fixture.layout.is_configured() && !fixture.layout.settings.exists());
        }
    }
}

/// A failure that is no death is undone at once.
#[test]
fn a_set_up_that_fails_leaves_the_records_where_they_were() {
    let fixture = Fixture::new();
    fixture.seed(&two_records());
    let seeded = fixture.plain();
    struct InUse;
    impl SetUpObserver for InUse {
        fn begins(&self, _: Step) {}
        fn close_records(&self) -> Result<(), VolumeError> {
            Err(VolumeError::Busy)
        }
    }
    let refused = set_up(&fixture.volumes, &fixture.layout, &fixture.settings, (BYTES, &fixture.key), &InUse);
    assert!(matches!(refused, Err(VolumeError::Busy)));
    assert!(!fixture.volumes.is_mounted(&fixture.layout.mount_point));
    assert!(!fixture.check_start(&seeded, "after a failure"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_records_survive_a_death(
        records in proptest::collection::btree_map("[a-z]{1,8}", proptest::collection::vec(any::<u8>(), 1..300), 0..6),
        operation in 0..24_usize,
        death in proptest::sample::select(DEATHS.to_vec()),
        by_power: bool,
    ) {
        let fixture = Fixture::new();
        fixture.seed(&records);
        let seeded = fixture.plain();
        fixture.volumes.dies_at(operation, death);
        let ended = fixture.set_up();
        prop_assert_eq!(ended.is_err() || fixture.layout.is_configured(), true);
        if by_power { fixture.volumes.reboot() } else { fixture.volumes.revive() }
        fixture.check_start(&seeded, "any instant");
    }
}
