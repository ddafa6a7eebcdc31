//! Set-ups that are killed, at instants spread over their whole duration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use gateway_ctl::clock::SystemClock;
use gateway_ctl::os::encrypted_volume::{HostVolumes, KeyDerivation};
use gateway_ctl::services::encrypted_storage::{
    EncryptedStorage, MIN_SIZE_MB, SetUpRequest, StorageContent, StorageState,
};
use gateway_model::Secret;

use crate::vm::checks::this_program;

const FOLDER: &str = "GATEWAY_STORAGE_FOLDER";
const KILLS: u32 = 200;
const CHILD: &str = "vm::encrypted_storage::killed::child_that_sets_up";
const RECORD: &str = "alice.example";

fn key() -> Secret {
    Secret::new("a long passphrase")
}

fn storage(state: &Path) -> EncryptedStorage {
    // The strength of the key derivation is no matter here, and its time would be.
    EncryptedStorage::new(state, Arc::new(HostVolumes { derivation: KeyDerivation::Weak }))
}

#[test]
#[ignore = "runs inside the guest, in a process that is killed"]
fn child_that_sets_up() {
    let state = PathBuf::from(std::env::var_os(FOLDER).expect("a folder"));
    let request = SetUpRequest {
        size_mb: MIN_SIZE_MB,
        passphrase: key(),
        contents: vec![StorageContent::QueryLog, StorageContent::FlowLog],
    };
    storage(&state).begin_set_up(request, SystemClock::shared()).expect("begun").run();
}

fn spawn(state: &Path) -> Child {
    let mut command = Command::new(this_program());
    command.args(["--ignored", "--exact", "--test-threads=1", CHILD]).env(FOLDER, state);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a child")
}

/// Kills the set-up after this time, unless it has ended. Returns the time that it took if it has.
fn kill_after(state: &Path, time: Duration) -> Option<Duration> {
    let begun = Instant::now();
    let mut child = spawn(state);
    let pid = rustix::process::Pid::from_child(&child);
    let (ended, waiting) = channel();
    let waiter = std::thread::spawn(move || {
        child.wait().expect("it ends");
        // The receiver may have given up.
        let _ = ended.send(());
    });
    let has_ended = waiting.recv_timeout(time).is_ok();
    if !has_ended {
        // It may end at this very instant.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    waiter.join().expect("no panic");
    has_ended.then(|| begun.elapsed())
}

fn record(base: &Path) -> Option<String> {
    fs::read_to_string(base.join("flows/record")).ok()
}

/// Starts again, and checks that the record is in one of the two places, whole, and in no other. Returns whether there was
/// a storage, which is removed.
fn check_start(state: &Path) -> bool {
    let storage = storage(state);
    storage.recover();
    let inside = state.join("encrypted");
    assert!(!state.join("encrypted.new").exists());
    match storage.state() {
        StorageState::Absent => {
            assert_eq!(record(state).as_deref(), Some(RECORD));
            assert_eq!(record(&inside), None);
            false
        }
        StorageState::Locked => {
            assert_eq!((record(state), record(&inside)), (None, None));
            storage.unlock(&key()).expect("it opens");
            assert_eq!(record(&inside).as_deref(), Some(RECORD));
            storage.lock().expect("it closes");
            storage.tear_down().expect("torn down");
            true
        }
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "runs inside the guest"]
fn two_hundred_kills_leave_nothing_or_a_storage() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let seed = || {
        fs::create_dir_all(state.join("flows")).expect("a folder");
        fs::write(state.join("flows/record"), RECORD).expect("a record");
    };
    seed();
    let whole = kill_after(&state, Duration::from_secs(120)).expect("a set-up to its end");
    assert!(check_start(&state), "a set-up that was not killed");
    let (mut with, mut without) = (0, 0);
    for number in 0..KILLS {
        seed();
        kill_after(&state, whole * number / KILLS);
        if check_start(&state) { with += 1 } else { without += 1 }
    }
    println!(
        "measured a set-up takes {whole:?}; of {KILLS} that were killed, {with} left a storage and {without} nothing"
    );
    assert!(without > 0);
    let left = fs::read_dir("/dev/mapper").expect("device-mapper").count();
    assert_eq!(left, 1, "the control device only");
}
