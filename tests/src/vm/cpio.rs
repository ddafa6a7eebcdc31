//! Writer of the archive format that the kernel unpacks as its initial file system ("newc"). Folders and regular files
//! only.

use std::fmt::Write as _;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive under construction.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    pub(super) fn folder(&mut self, name: &str) {
        self.entry(name, FOLDER, &[]);
    }

    pub(super) fn program(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    /// Closes the archive and returns its bytes.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("an initial file system holds no files of 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("names are short");
        // inode, mode, user, group, links, time, size, device (2), device of the node (2), size of name, check sum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        let mut header = String::from("070701");
        for field in fields {
            write!(header, "{field:08x}").expect("writing to a String does not fail");
        }
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::Archive;

    #[test]
    fn an_archive_unpacks_to_what_went_in() {
        let mut archive = Archive::default();
        archive.folder("bin");
        archive.program("bin/a", b"five\n");
        let folder = tempfile::tempdir().unwrap();
        let mut busybox = Command::new("busybox")
            .args(["cpio", "-i"])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .spawn()
            .expect("busybox is installed");
        busybox.stdin.take().unwrap().write_all(&archive.into_bytes()).unwrap();
        assert!(busybox.wait().unwrap().success());
        assert_eq!(std::fs::read(folder.path().join("bin/a")).unwrap(), b"five\n");
    }
}
