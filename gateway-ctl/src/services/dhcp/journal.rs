//! Journal of leases on disk. A lease is durable when its append returns.
//!
//! One synchronisation of the disk serves all leases of an append. The file is written into space that is allocated
//! before, so a synchronisation writes data only. It is compacted when most of its records are outdated.
//!
//! Decision 0112 says why.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use gateway_core::state_machines::dhcp::{Lease, append, recover};
use gateway_dns::erase::erase_file;

/// Space that is allocated at once.
const CHUNK: u64 = 1 << 20;
/// Outdated records that are kept, besides as many as there are leases.
const OUTDATED: usize = 10_000;

#[derive(Debug)]
pub struct Journal {
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

impl Journal {
    /// Opens the journal of a folder, or creates it. Returns it with its leases.
    pub fn open(folder: &Path) -> io::Result<(Journal, BTreeMap<Ipv4Addr, Lease>)> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join("leases");
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        sync_folder(&path)?;
        let bytes = fs::read(&path)?;
        let recovered = recover(&bytes);
        let end = u64::try_from(recovered.end).map_err(io::Error::other)?;
        let mut journal = Journal {
            path,
            file,
            end,
            allocated: u64::try_from(bytes.len()).map_err(io::Error::other)?,
            records: recovered.records,
            is_behind: false,
        };
        drop(bytes);
        if recovered.damaged_bytes > 0 {
            tracing::warn!(
                bytes = recovered.damaged_bytes,
                leases = recovered.leases.len(),
                "journal of DHCP leases was cut or damaged: what was readable is kept"
            );
            journal.compact(recovered.leases.values())?;
        }
        Ok((journal, recovered.leases))
    }

    /// Makes leases durable.
    pub fn append(&mut self, leases: &[Lease]) -> io::Result<()> {
        if leases.is_empty() {
            return Ok(());
        }
        let mut records = Vec::with_capacity(leases.len() * 64);
        leases.iter().for_each(|lease| append(&mut records, lease));
        let written = self.write(&records);
        match written {
            Ok(()) => self.records += leases.len(),
            // What the kernel holds after a failed synchronisation is unknown.
            Err(_) => self.is_behind = true,
        }
        written
    }

    fn write(&mut self, records: &[u8]) -> io::Result<()> {
        let end = self.end + records.len() as u64;
        if end > self.allocated {
            let allocated = end.next_multiple_of(CHUNK);
            let zeros = vec![0; usize::try_from(allocated - self.allocated).map_err(io::Error::other)?];
            self.file.write_all_at(&zeros, self.allocated)?;
            self.allocated = allocated;
        }
        self.file.write_all_at(records, self.end)?;
        self.file.sync_data()?;
        self.end = end;
        Ok(())
    }

    /// Reports whether the file may lack what memory has.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Reports whether the file should be written again from the leases in memory.
    pub fn wants_compaction(&self, leases: usize) -> bool {
        self.is_behind || self.records > 2 * leases + OUTDATED
    }

    /// Writes the file again, with these leases only.
    pub fn compact<'a>(&mut self, leases: impl Iterator<Item = &'a Lease>) -> io::Result<()> {
        let draft = self.path.with_extension("new");
        let mut records = Vec::new();
        let count = leases.map(|lease| append(&mut records, lease)).count();
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all_at(&records, 0)?;
        file.sync_all()?;
        fs::rename(&draft, &self.path)?;
        sync_folder(&self.path)?;
        let outdated = std::mem::replace(&mut self.file, file);
        overwrite(&outdated, self.allocated);
        self.end = records.len() as u64;
        self.allocated = self.end;
        self.records = count;
        self.is_behind = false;
        Ok(())
    }

    /// Erases all records.
    pub fn erase(&mut self) -> io::Result<()> {
        erase_file(&self.path)?;
        let folder = self.path.parent().unwrap_or(Path::new(".")).to_owned();
        let (journal, _) = Journal::open(&folder)?;
        *self = journal;
        Ok(())
    }
}

/// Overwrites a file that has no name any more. Its blocks would keep the names of clients.
fn overwrite(file: &File, length: u64) {
    let zeros = vec![0; 1 << 16];
    let mut at = 0;
    while at < length {
        let step = (length - at).min(zeros.len() as u64);
        let part = &zeros[..usize::try_from(step).unwrap_or(zeros.len())];
        if let Err(error) = file.write_all_at(part, at) {
            tracing::debug!(%error, "failed to overwrite an outdated journal of leases");
            return;
        }
        at += step;
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use gateway_core::state_machines::dhcp::LeaseState;
    use gateway_model::MacAddr;

    use super::*;

    fn lease(number: u32, ends: i64) -> Lease {
        let [_, _, c, d] = number.to_be_bytes();
        Lease {
            address: Ipv4Addr::from(0x0a00_0000 + number),
            mac: MacAddr([2, 0, 0, 0, c, d]),
            client_id: None,
            hostname: Some("host".into()),
            vendor_class: None,
            starts: 0,
            ends,
            state: LeaseState::Active,
        }
    }

    fn reopened(folder: &Path) -> BTreeMap<Ipv4Addr, Lease> {
        Journal::open(folder).expect("a journal").1
    }

    #[test]
    fn leases_are_there_after_a_restart_and_the_last_of_an_address_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, leases) = Journal::open(folder.path()).expect("a journal");
        assert!(leases.is_empty());
        journal.append(&[lease(1, 10), lease(2, 10)]).expect("written");
        journal.append(&[lease(1, 20)]).expect("written");
        let leases: Vec<Lease> = reopened(folder.path()).into_values().collect();
        assert_eq!(leases, [lease(1, 20), lease(2, 10)]);
        // It continues where it ended.
        let (mut journal, _) = Journal::open(folder.path()).expect("a journal");
        journal.append(&[lease(3, 30)]).expect("written");
        assert_eq!(reopened(folder.path()).len(), 3);
    }

    #[test]
    fn a_torn_tail_is_cut_and_others_follow_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("leases");
        let (mut journal, _) = Journal::open(folder.path()).expect("a journal");
        journal.append(&[lease(1, 10), lease(2, 10)]).expect("written");
        let end = journal.end;
        drop(journal);
        OpenOptions::new().write(true).open(&path).expect("a file").set_len(end - 3).expect("cut");
        let (mut journal, leases) = Journal::open(folder.path()).expect("a journal");
        assert_eq!(leases.into_values().collect::<Vec<_>>(), [lease(1, 10)]);
        assert!(journal.end < end && !folder.path().join("leases.new").exists());
        journal.append(&[lease(3, 10)]).expect("written");
        assert_eq!(reopened(folder.path()).len(), 2);
    }

    #[test]
    fn compaction_keeps_the_leases_and_frees_the_rest() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, _) = Journal::open(folder.path()).expect("a journal");
        for round in 0..4 {
            let leases: Vec<Lease> = (1..=5000).map(|number| lease(number, round)).collect();
            assert!(!journal.wants_compaction(5000), "{round}");
            journal.append(&leases).expect("written");
        }
        journal.append(&[lease(1, 9)]).expect("written");
        assert!(journal.wants_compaction(5000));
        let leases = reopened(folder.path());
        let before = fs::metadata(folder.path().join("leases")).expect("a file").len();
        journal.compact(leases.values()).expect("compacted");
        assert!(!journal.wants_compaction(5000));
        assert!(fs::metadata(folder.path().join("leases")).expect("a file").len() < before / 3);
        journal.append(&[lease(2, 9)]).expect("written");
        let mut expected = leases;
        expected.insert(lease(2, 9).address, lease(2, 9));
        assert_eq!(reopened(folder.path()), expected);
    }

    #[test]
    fn nothing_is_left_after_an_erasure() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut journal, _) = Journal::open(folder.path()).expect("a journal");
        journal.append(&[lease(1, 10)]).expect("written");
        journal.erase().expect("erased");
        assert_eq!(reopened(folder.path()), BTreeMap::new());
        journal.append(&[lease(2, 10)]).expect("written");
        assert_eq!(reopened(folder.path()).len(), 1);
    }
}
