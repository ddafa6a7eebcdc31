//! Journal of leases on disk. A lease is durable when its append returns.
//!
//! Decision 0112 says why.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use gateway_core::state_machines::dhcp::{Lease, append, recover};
use gateway_journal::{Ledger, Recovered};

/// File of the folder.
const FILE: &str = "leases";

#[derive(Debug)]
pub(super) struct Journal(Ledger);

impl Journal {
    /// Opens the journal of a folder, or creates it. Returns it with its leases.
    pub(super) fn open(folder: &Path) -> io::Result<(Journal, BTreeMap<Ipv4Addr, Lease>)> {
        let (mut leases, mut damaged_bytes) = (BTreeMap::new(), 0);
        let ledger = Ledger::open(&folder.join(FILE), |bytes| {
            let recovered = recover(bytes);
            (leases, damaged_bytes) = (recovered.leases, recovered.damaged_bytes);
            Recovered { end: recovered.end, records: recovered.records }
        })?;
        let mut journal = Journal(ledger);
        if damaged_bytes > 0 {
            tracing::warn!(
                bytes = damaged_bytes,
                leases = leases.len(),
                "journal of DHCP leases was cut or damaged: what was readable is kept"
            );
            journal.compact(leases.values())?;
        }
        Ok((journal, leases))
    }

    /// Returns the time of the last write, in seconds since the Unix epoch.
    pub(super) fn written_at(folder: &Path) -> Option<i64> {
        std::fs::metadata(folder.join(FILE)).map(|metadata| metadata.mtime()).ok()
    }

    /// Makes leases durable.
    pub(super) fn append(&mut self, leases: &[Lease]) -> io::Result<()> {
        let (records, count) = encode(leases.iter());
        self.0.append(&records, count)
    }

    /// Reports whether the file may lack what memory has.
    pub(super) fn is_behind(&self) -> bool {
        self.0.is_behind()
    }

    /// Reports whether the file should be written again from the leases in memory.
    pub(super) fn wants_compaction(&self, leases: usize) -> bool {
        self.0.wants_compaction(leases)
    }

    /// Writes the file again, with these leases only.
    pub(super) fn compact<'a>(&mut self, leases: impl Iterator<Item = &'a Lease>) -> io::Result<()> {
        let (records, count) = encode(leases);
        self.0.compact(&records, count)
    }

    /// Erases all records.
    pub(super) fn erase(&mut self) -> io::Result<()> {
        self.0.erase()
    }
}

/// Encodes leases. Returns them with their number.
fn encode<'a>(leases: impl Iterator<Item = &'a Lease>) -> (Vec<u8>, usize) {
    let mut records = Vec::new();
    let count = leases.map(|lease| append(&mut records, lease)).count();
    (records, count)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};

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
        drop(journal);
        let end = recover(&fs::read(&path).expect("a file")).end as u64;
        OpenOptions::new().write(true).open(&path).expect("a file").set_len(end - 3).expect("cut");
        let (mut journal, leases) = Journal::open(folder.path()).expect("a journal");
        assert_eq!(leases.into_values().collect::<Vec<_>>(), [lease(1, 10)]);
        assert!(
            fs::metadata(&path).expect("a file").len() < end && !folder.path().join("leases.new").exists()
        );
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
