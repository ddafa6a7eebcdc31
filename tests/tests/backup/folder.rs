//! A local folder as target.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::backup::every::{self, backups};
use crate::backup::testbed::Testbed;

fn target(path: &Path) -> Value {
    json!({"type": "local", "path": path})
}

/// A small file system, or a read-only one. Dropping it removes it.
pub(super) struct Small(tempfile::TempDir);

impl Small {
    pub(super) fn new(options: &str) -> Small {
        let folder = tempfile::tempdir().expect("a folder");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder.path())
            .status()
            .expect("mount");
        assert!(status.success(), "root can mount");
        Small(folder)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // After a failed unmount the leftover mount does not affect the next test.
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_comes_and_the_oldest_go() {
    let folder = tempfile::tempdir().expect("a folder");
    every::comes_and_goes(&target(folder.path()), folder.path()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_no_half_file() {
    let small = Small::new("size=64k");
    let testbed = Testbed::new().await;
    let message = every::fails(&testbed, &target(small.path()), small.path()).await;
    assert!(message.contains("no room"), "{message}");
    assert_eq!(every::names(small.path()), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_cannot_be_written_is_reported() {
    let small = Small::new("ro");
    let testbed = Testbed::new().await;
    let message = every::fails(&testbed, &target(small.path()), small.path()).await;
    assert!(message.contains("Read-only"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_not_mounted_is_not_written_around() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("disk/backups");
    let testbed = Testbed::new().await;
    let message = every::fails(&testbed, &target(&missing), folder.path()).await;
    assert!(message.contains("does not exist"), "{message}");
    assert!(!folder.path().join("disk").exists());
    std::fs::create_dir_all(&missing).expect("mounted");
    let made = testbed.backup().await;
    assert_eq!(backups(&missing), [made]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = target(&folder.path().join("missing"));
    every::tells_no_secret(&target(folder.path()), &wrong, &[]).await;
}
