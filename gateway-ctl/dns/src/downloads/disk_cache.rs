//! Last good copies of what comes from elsewhere, for the next start: a file each, by its id, with a first line that says
//! what it is. A file is written beside its place and put there when it is whole; its time is that of the last look.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gateway_model::Id;
use serde::Serialize;

use crate::room;

/// DiskCache of one kind, by the ending of their names.
#[derive(Clone, Copy, Debug)]
pub struct DiskCache(pub &'static str);

/// The ending of what is not whole.
const PART: &str = "part";

impl DiskCache {
    pub fn path(self, folder: &Path, id: Id) -> PathBuf {
        folder.join(format!("{id}.{}", self.0))
    }

    /// The copy still is what its server has. One that was erased meanwhile is missing until the contents change.
    pub fn checked(self, folder: &Path, id: Id) -> io::Result<()> {
        match File::options().append(true).open(self.path(folder, id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            file => file?.set_modified(SystemTime::now()),
        }
    }

    /// Deletes a copy that does not hold any more.
    pub fn forget(self, folder: &Path, id: Id) {
        let _ = fs::remove_file(self.path(folder, id));
    }

    /// Deletes all copies but these, and what was not written to its end.
    pub fn forget_others(self, folder: &Path, ids: &[Id]) {
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

    pub fn draft(self, folder: &Path, id: Id, head: &impl Serialize) -> io::Result<Draft> {
        room::check(folder)?;
        let place = self.path(folder, id);
        let beside = folder.join(format!("{id}.{PART}"));
        let file = File::create(&beside)?;
        let mut draft = Draft { file, beside, place, kept: false };
        let mut line = serde_json::to_vec(head)?;
        line.push(b'\n');
        draft.write(&line)?;
        Ok(draft)
    }
}

/// A copy that is being written. Dropped before it is kept it leaves nothing.
pub struct Draft {
    file: File,
    beside: PathBuf,
    place: PathBuf,
    kept: bool,
}

impl Draft {
    pub fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece)
    }

    /// It takes the place of the copy before.
    pub fn keep(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.beside, &self.place)?;
        self.kept = true;
        match self.place.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.beside);
        }
    }
}
