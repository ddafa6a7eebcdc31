//! File of the last value of each key. A record is durable when its append returns.
//!
//! One synchronisation of the disk serves all records of an append. The file is written into space that is allocated
//! before, so a synchronisation writes data only. It is compacted when most of its records are outdated.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::erase::erase_file;

/// Space that is allocated at once.
const CHUNK: u64 = 1 << 20;
/// Outdated records that are kept, besides as many as there are keys.
const OUTDATED: usize = 10_000;

#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
    /// End of the records.
    end: u64,
    /// End of the allocated space.
    allocated: u64,
    records: usize,
    /// A write failed: the file may lack what memory has, and is written again before the next append.
    is_behind: bool,
}

/// Records that were found in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// End of the last whole record.
    pub end: usize,
    pub records: usize,
}

impl Ledger {
    /// Opens a file, or creates it with its folder. `recover` reads its content.
    pub fn open(path: &Path, recover: impl FnOnce(&[u8]) -> Recovered) -> io::Result<Ledger> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder_of(path))?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        sync_folder(path)?;
        let bytes = fs::read(path)?;
        let Recovered { end, records } = recover(&bytes);
        Ok(Ledger {
            path: path.to_owned(),
            file,
            end: u64::try_from(end).map_err(io::Error::other)?,
            allocated: u64::try_from(bytes.len()).map_err(io::Error::other)?,
            records,
            is_behind: false,
        })
    }

    /// Makes encoded records durable.
    pub fn append(&mut self, encoded: &[u8], records: usize) -> io::Result<()> {
        if records == 0 {
            return Ok(());
        }
        let written = self.write(encoded);
        match written {
            Ok(()) => self.records += records,
            // What the kernel holds after a failed synchronisation is unknown.
            Err(_) => self.is_behind = true,
        }
        written
    }

    fn write(&mut self, encoded: &[u8]) -> io::Result<()> {
        let end = self.end + encoded.len() as u64;
        if end > self.allocated {
            let allocated = end.next_multiple_of(CHUNK);
            let zeros = vec![0; usize::try_from(allocated - self.allocated).map_err(io::Error::other)?];
            self.file.write_all_at(&zeros, self.allocated)?;
            self.allocated = allocated;
        }
        self.file.write_all_at(encoded, self.end)?;
        self.file.sync_data()?;
        self.end = end;
        Ok(())
    }

    /// Reports whether the file may lack what memory has.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Reports whether the file should be written again from memory, which has so many keys.
    pub fn wants_compaction(&self, keys: usize) -> bool {
        self.is_behind || self.records > 2 * keys + OUTDATED
    }

    /// Writes the file again, with these encoded records only.
    pub fn compact(&mut self, encoded: &[u8], records: usize) -> io::Result<()> {
        let draft = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&draft)?;
        file.write_all_at(encoded, 0)?;
        file.sync_all()?;
        fs::rename(&draft, &self.path)?;
        sync_folder(&self.path)?;
        let outdated = std::mem::replace(&mut self.file, file);
        overwrite(&outdated, self.allocated);
        self.end = encoded.len() as u64;
        self.allocated = self.end;
        self.records = records;
        self.is_behind = false;
        Ok(())
    }

    /// Erases all records.
    pub fn erase(&mut self) -> io::Result<()> {
        erase_file(&self.path)?;
        *self = Ledger::open(&self.path.clone(), |_| Recovered::default())?;
        Ok(())
    }
}

/// Overwrites a file that has no name any more. Its blocks would keep what was outdated.
fn overwrite(file: &File, length: u64) {
    let zeros = vec![0; 1 << 16];
    let mut at = 0;
    while at < length {
        let step = (length - at).min(zeros.len() as u64);
        let part = &zeros[..usize::try_from(step).unwrap_or(zeros.len())];
        if let Err(error) = file.write_all_at(part, at) {
            tracing::debug!(%error, "failed to overwrite outdated records");
            return;
        }
        at += step;
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}
