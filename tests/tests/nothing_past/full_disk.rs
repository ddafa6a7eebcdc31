//! A full disk: changes are rejected, deletions work, and everything works again afterwards.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::nothing_past::first_start::{assert_nothing_leaked, bind, wait_until_through};

const SOON: Duration = Duration::from_secs(20);

/// Size of the disk in bytes.
pub(super) const DISK: u64 = 64 << 20;

/// A small file system in memory.
pub(super) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(super) fn mount(at: &Path) -> SmallDisk {
        fs::create_dir_all(at).expect("mount point");
        let size = format!("size={DISK}");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).status();
        assert!(done.expect("mount").success(), "cannot mount a tmpfs");
        SmallDisk(at.to_owned())
    }

    /// Fills the disk completely.
    fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.filler()).expect("filler");
        let mut piece = vec![0x5a; 1 << 20];
        while !piece.is_empty() {
            match file.write_all(&piece) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => piece.truncate(piece.len() / 2),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Fills the disk except for this many bytes.
    pub(super) fn fill_but(&self, bytes: u64) {
        self.fill();
        let file = File::options().write(true).open(self.filler()).expect("filler");
        let length = file.metadata().expect("length").len();
        file.set_len(length - bytes).expect("shortened");
    }

    pub(super) fn free(&self) {
        // A child of another test that has not begun its program yet may have the file open, and would keep its pages.
        File::options().write(true).truncate(true).open(self.filler()).expect("emptied");
        fs::remove_file(self.filler()).expect("removed");
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The daemon may still have open files there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn post(testbed: &Testbed, path: &str, body: &Value) -> (u16, Value) {
    let reply = testbed.api().send("POST", path, Some(body)).expect("answer");
    (reply.status, reply.body)
}

fn device(testbed: &Testbed, name: &str) -> (u16, Value) {
    post(testbed, "/devices", &json!({ "name": name }))
}

fn storage(testbed: &Testbed) -> Value {
    let observer = testbed.api().get("/observer").expect("observer");
    let rows = observer.as_array().cloned().unwrap_or_default();
    rows.into_iter().find(|row| row["subsystem"] == "storage").expect("storage is observed")
}

#[test]
fn full_disk_refuses_changes_and_everything_works_again_when_there_is_room() {
    let testbed = Testbed::prepare().expect("scene");
    let disk = SmallDisk::mount(&testbed.daemon.state_directory());
    let mut testbed = testbed;
    testbed.daemon.start().expect("started");
    bind(&testbed);
    let (status, doomed) = device(&testbed, "doomed");
    assert_eq!(status, 201, "{doomed}");
    let health = || testbed.api().get("/health").expect("health");
    assert_eq!((&health()["status"], &storage(&testbed)["state"]), (&json!("ok"), &json!("ok")));
    for round in 0..2 {
        disk.fill();
        for attempt in 0..5 {
            let (status, refused) = device(&testbed, &format!("refused {round} {attempt}"));
            assert_eq!((status, &refused["error"]["code"]), (507, &json!("storage_full")), "{refused}");
        }
        let health = health();
        assert_eq!(
            (&health["status"], &health["cause"]),
            (&json!("degraded"), &json!("storage_full")),
            "{health}"
        );
        assert_eq!(storage(&testbed)["state"], "failed");
        // Existing state is readable and still protects.
        assert!(testbed.api().get("/audit").is_ok());
        wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
        disk.free();
        let (status, made) = device(&testbed, &format!("made {round}"));
        assert_eq!(status, 201, "{made}");
        assert_eq!(storage(&testbed)["state"], "ok");
        wait_ok(SOON, "the reserve to be made again", || {
            anyhow::ensure!(testbed.daemon.state_directory().join("reserve").exists(), "missing");
            Ok(())
        })
        .expect("made again");
    }
    // A deletion frees space: it may use the reserve.
    disk.fill();
    let id = doomed["data"]["id"].as_str().expect("an id");
    testbed.api().delete(&format!("/devices/{id}")).expect("deleted on a full disk");
    disk.free();
    let tv = testbed.device(&testbed.network.tv).expect("device");
    testbed.policy(&policy("tv", 20, ("device", &tv), &["wg-a"])).expect("applied");
    wait_until_through(&testbed.network.tv, &testbed.network.exit_a);
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started again");
    wait_until_through(&testbed.network.tv, &testbed.network.exit_a);
    testbed.daemon.terminate().expect("ended");
    assert!(
        testbed.daemon.run(&["audit", "verify"]).expect("checked").contains("none changed and none missing")
    );
    assert_nothing_leaked(&testbed, "full disk");
}

#[test]
fn sign_in_works_on_a_full_disk() {
    let mut testbed = Testbed::prepare().expect("scene");
    let disk = SmallDisk::mount(&testbed.daemon.state_directory());
    // No address grants access without a credential.
    let closed = json!({"auth": {"enabled": true, "local_net": "192.0.2.0/24"}});
    testbed.daemon.configure(&closed).expect("configured");
    testbed.daemon.initialise().expect("initialised");
    let password = "correct horse battery";
    let mut command = testbed.daemon.command(&["user", "add", "--username", "anna", "--role", "admin"]);
    let added = command.env("GATEWAY_USER_PASSWORD", password).output().expect("gatewayd");
    assert!(added.status.success(), "{added:?}");
    testbed.daemon.start().expect("started");
    wait_ok(SOON, "the reserve to be made", || {
        anyhow::ensure!(testbed.daemon.state_directory().join("reserve").exists(), "missing");
        Ok(())
    })
    .expect("made");
    disk.fill();
    let (status, body) = post(&testbed, "/auth/login", &json!({"username": "anna", "password": password}));
    assert_eq!(status, 200, "{body}");
    assert!(!testbed.daemon.state_directory().join("reserve").exists(), "the reserve was not used");
}

/// Source of a library that makes writes at a position of a file (the database's write call) fail with this error
/// number while it is set.
const FAULTS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile long long *fault;

__attribute__((constructor)) static void map_fault(void) {
    int file = open(getenv("DISK_FAULT"), O_RDONLY | O_CLOEXEC);
    void *at = mmap(0, sizeof *fault, PROT_READ, MAP_SHARED, file, 0);
    if (file < 0 || at == MAP_FAILED) abort();
    fault = at;
}

ssize_t pwrite64(int file, const void *data, size_t length, off64_t at) {
    if (fault && *fault) { errno = *fault; return -1; }
    return syscall(SYS_pwrite64, file, data, length, at);
}
"#;

const EIO: i64 = 5;
const ENOSPC: i64 = 28;

#[test]
fn writes_that_fail_in_the_middle_do_not_outlive_their_cause() {
    let mut testbed = Testbed::prepare().expect("scene");
    let folder = testbed.daemon.state_directory().with_file_name("faults");
    fs::create_dir(&folder).expect("folder");
    let (source, library, fault) = (folder.join("faults.c"), folder.join("faults.so"), folder.join("fault"));
    fs::write(&source, FAULTS).expect("written");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).output();
    let made = made.expect("a C compiler");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::write(&fault, 0i64.to_ne_bytes()).expect("written");
    testbed.daemon.set_environment("DISK_FAULT", fault.clone());
    testbed.daemon.set_environment("LD_PRELOAD", library);
    testbed.daemon.start().expect("started");
    let set = |number: i64| {
        use std::os::unix::fs::FileExt;
        let file = File::options().write(true).open(&fault).expect("fault");
        file.write_all_at(&number.to_ne_bytes(), 0).expect("written");
    };
    for (number, expected) in [(ENOSPC, 507), (EIO, 500), (ENOSPC, 507)] {
        set(number);
        for attempt in 0..4 {
            let (status, refused) = device(&testbed, &format!("refused {number} {attempt}"));
            assert_eq!(status, expected, "{number} {attempt}: {refused}");
        }
        set(0);
        for attempt in 0..2 {
            let name =
                format!("made after {number} {expected} {attempt} {}", testbed.daemon.pid().unwrap_or(0));
            let known = testbed.api().get("/devices").expect("devices").as_array().map_or(0, Vec::len);
            let (status, made) = device(&testbed, &format!("{name} {known}"));
            assert_eq!(status, 201, "after {number}: {made}\n{}", testbed.daemon.last_words());
        }
        assert!(testbed.api().get("/audit").is_ok());
    }
    let known = testbed.api().get("/devices").expect("devices").as_array().map_or(0, Vec::len);
    assert_eq!(known, 6, "what was refused is not there");
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started again");
    let after = testbed.api().get("/devices").expect("devices").as_array().map_or(0, Vec::len);
    assert_eq!(after, known);
    testbed.daemon.terminate().expect("ended");
    assert!(
        testbed.daemon.run(&["audit", "verify"]).expect("checked").contains("none changed and none missing")
    );
}
