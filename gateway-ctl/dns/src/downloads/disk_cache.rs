//! Disk cache: last good downloads, for the next start. Each copy is a file named after its id, with a header in the
//! first line. A new file is written under another name and renamed when it is complete. Its modification time is the
//! time of the last check.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gateway_model::Id;
use serde::Serialize;

use gateway_journal::room;

/// Disk cache of one kind of download, identified by the file extension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskCache(pub &'static str);

/// File extension of incomplete files.
const PART: &str = "part";

impl DiskCache {
    pub(crate) fn path(self, folder: &Path, id: Id) -> PathBuf {
        folder.join(format!("{id}.{}", self.0))
    }

    /// Records that the copy on the server is unchanged. A copy that was erased meanwhile stays missing until the
    /// content changes.
    #[expect(clippy::disallowed_methods, reason = "the file system dates files by this clock")]
    pub(crate) fn checked(self, folder: &Path, id: Id) -> io::Result<()> {
        match File::options().append(true).open(self.path(folder, id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            file => file?.set_modified(SystemTime::now()),
        }
    }

    /// Deletes a copy that is no longer valid.
    pub(crate) fn forget(self, folder: &Path, id: Id) {
        let _ = fs::remove_file(self.path(folder, id));
    }

    /// Deletes the copies and incomplete files of all other ids.
    pub(crate) fn forget_others(self, folder: &Path, ids: &[Id]) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let known = path.file_stem().and_then(|stem| stem.to_str()?.parse::<Id>().ok());
            let ending = path.extension().and_then(|ending| ending.to_str());
            let ours = ending == Some(self.0) || ending == Some(PART);
            if ours && known.is_some_and(|id| !ids.contains(&id)) {
                let _ = fs::remove_file(path);
            }
        }
    }

    pub(crate) fn draft(self, folder: &Path, id: Id, head: &impl Serialize) -> io::Result<PendingFile> {
        room::check(folder)?;
        let place = self.path(folder, id);
        let beside = folder.join(format!("{id}.{PART}"));
        let file = File::create(&beside)?;
        let mut draft = PendingFile { file, beside, place, kept: false };
        let mut line = serde_json::to_vec(head)?;
        line.push(b'\n');
        draft.write(&line)?;
        Ok(draft)
    }
}

/// Copy that is being written. Dropping it before [`PendingFile::keep`] leaves no file.
pub(crate) struct PendingFile {
    file: File,
    beside: PathBuf,
    place: PathBuf,
    kept: bool,
}

impl PendingFile {
    pub(crate) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)
    }

    /// Completes the copy and replaces the previous one.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.beside, &self.place)?;
        self.kept = true;
        match self.place.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.beside);
        }
    }
}
