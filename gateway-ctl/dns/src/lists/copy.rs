//! The last good copy of a list on disk: a line that says where it came from, then the list as it came.
//!
//! A file is written beside its place and put there when it is whole. Its time is that of the last look at the list.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use gateway_core::dns::lists::{List, Reader};
use gateway_core::dns::table::Key;
use gateway_model::Id;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Subscription;

const ENDING: &str = "list";
/// Longest first line.
const HEAD: u64 = 16 * 1024;
const PIECE: usize = 64 * 1024;

/// What the server said of a list, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub url: String,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub fetched: Timestamp,
}

pub struct Copy {
    pub head: Head,
    pub list: List,
    pub checked: Timestamp,
}

fn path(folder: &Path, id: Id) -> PathBuf {
    folder.join(format!("{id}.{ENDING}"))
}

/// None if there is no copy, or one from another address.
pub fn read(folder: &Path, subscription: &Subscription, key: Key) -> io::Result<Option<Copy>> {
    let file = match File::open(path(folder, subscription.id)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let checked = file.metadata()?.modified()?;
    let mut file = BufReader::with_capacity(PIECE, file);
    let mut line = Vec::new();
    file.by_ref().take(HEAD).read_until(b'\n', &mut line)?;
    let head: Head = serde_json::from_slice(&line)?;
    if head.url != subscription.url {
        return Ok(None);
    }
    let mut reader = Reader::new(subscription.format, key);
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        reader.push(piece);
        let length = piece.len();
        file.consume(length);
    }
    let checked = Timestamp::try_from(checked).unwrap_or(head.fetched);
    Ok(Some(Copy { head, list: reader.finish(), checked }))
}

/// A copy that is being written. Dropped before it is kept it leaves nothing.
pub struct Draft {
    file: File,
    beside: PathBuf,
    place: PathBuf,
    kept: bool,
}

impl Draft {
    pub fn new(folder: &Path, id: Id, head: &Head) -> io::Result<Draft> {
        let place = path(folder, id);
        let beside = folder.join(format!("{id}.part"));
        let mut file = File::create(&beside)?;
        let mut line = serde_json::to_vec(head)?;
        line.push(b'\n');
        file.write_all(&line)?;
        Ok(Draft { file, beside, place, kept: false })
    }

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

/// The list is still what its server has.
pub fn checked(folder: &Path, id: Id) -> io::Result<()> {
    File::options().append(true).open(path(folder, id))?.set_modified(std::time::SystemTime::now())
}

/// Deletes the copies of all lists but these, and what was not written to its end.
pub fn forget_others(folder: &Path, ids: &[Id]) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let known = path.file_stem().and_then(|stem| stem.to_str()?.parse::<Id>().ok());
        let ours = matches!(path.extension().and_then(|ending| ending.to_str()), Some(ENDING | "part"));
        if ours && known.is_some_and(|id| !ids.contains(&id)) {
            let _ = fs::remove_file(path);
        }
    }
}
