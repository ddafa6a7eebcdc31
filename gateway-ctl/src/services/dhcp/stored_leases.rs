//! Stored leases: the journal in its folder, which may be in the encrypted storage.
//!
//! While the storage is closed there is no journal. The server withholds new addresses then, and what it gives to clients
//! that it knows is in memory only. A file beside the storage marks that, before the first such lease is given: a run that
//! finds it keeps each lease that may have been renewed.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway_core::state_machines::dhcp::Lease;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use super::handle::DhcpServer;
use super::journal::Journal;
use crate::services::encrypted_storage::{EncryptedStorage, OpenFolder, StorageContent};
use crate::supervise::blocking;

/// Folder of the journal.
const FOLDER: &str = "dhcp";
/// Mark of leases that are in memory only. It is empty.
const MARK: &str = "dhcp/unstored";
/// Pause after a journal that could not be opened.
const RETRY: Duration = Duration::from_secs(5);

/// Journal of the leases, and the folder that it is in.
pub(super) struct StoredLeases {
    storage: EncryptedStorage,
    /// `None` while the leases wait for the storage.
    folder: Option<OpenFolder>,
    /// Absent while another thread writes it, and while there is no folder.
    journal: Option<Journal>,
    mark: PathBuf,
    /// The mark was made: by this run, or before by one whose memory is lost.
    mark_is_own: Option<bool>,
    retry_at: Option<Instant>,
}

impl StoredLeases {
    pub(super) fn new(storage: EncryptedStorage, state_dir: &Path) -> StoredLeases {
        let mark = state_dir.join(MARK);
        StoredLeases { storage, folder: None, journal: None, mark, mark_is_own: None, retry_at: None }
    }

    /// Returns the changes of the folder.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.storage.watch()
    }

    /// Reports whether the file may lack what memory has.
    pub(super) fn is_behind(&self) -> bool {
        self.journal.as_ref().is_none_or(Journal::is_behind)
    }

    /// Follows the leases into the encrypted storage and out of it. The server gets those that it lacks.
    pub(super) async fn follow(&mut self, dhcp: &DhcpServer, now: Timestamp) -> io::Result<()> {
        let folder = self.storage.open_folder(StorageContent::DhcpLeases);
        let base = |folder: &Option<OpenFolder>| folder.as_ref().map(|open| open.base().to_owned());
        let is_same = base(&folder) == base(&self.folder) && self.journal.is_some() == folder.is_some();
        if is_same || self.retry_at.is_some_and(|at| Instant::now() < at) {
            return Ok(());
        }
        dhcp.lock().server.set_withholding(true);
        // The file is closed before its folder is left.
        (self.journal, self.retry_at) = (None, None);
        self.folder = None;
        let Some(folder) = folder else {
            tracing::warn!("DHCP leases wait for the encrypted storage: new clients get no address");
            return Ok(());
        };
        match self.open(folder.base().join(FOLDER), dhcp, now).await {
            Ok(journal) => (self.journal, self.folder) = (Some(journal), Some(folder)),
            Err(error) => {
                self.retry_at = Some(Instant::now() + RETRY);
                return Err(error);
            }
        }
        self.mark_is_own = None;
        dhcp.lock().server.set_withholding(false);
        Ok(())
    }

    /// Opens the journal, and brings it and the server to the same leases.
    async fn open(&self, folder: PathBuf, dhcp: &DhcpServer, now: Timestamp) -> io::Result<Journal> {
        // The memory of this run has what it has renewed.
        let (mark, is_own_mark) = (self.mark.clone(), self.mark_is_own == Some(true));
        let open = move || {
            let is_marked = mark.exists();
            let written_at = Journal::written_at(&folder).filter(|_| is_marked && !is_own_mark);
            Journal::open(&folder).map(|(journal, leases)| (journal, leases, is_marked, written_at))
        };
        let (mut journal, leases, is_marked, written_at) = blocking(open).await?;
        let all: Option<Vec<Lease>> = {
            let server = &mut dhcp.lock().server;
            let has_newer = !server.is_empty();
            server.adopt(leases.into_values(), written_at, now);
            (has_newer || is_marked).then(|| server.stored().cloned().collect())
        };
        let Some(all) = all else { return Ok(journal) };
        let mark = self.mark.clone();
        blocking(move || {
            journal.compact(all.iter())?;
            match std::fs::remove_file(mark) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(journal),
            }
        })
        .await
    }

    /// Marks that leases are in memory only.
    async fn mark(&mut self) -> io::Result<()> {
        if self.mark_is_own.is_some() {
            return Ok(());
        }
        let mark = self.mark.clone();
        let make = move || {
            let is_own = !mark.exists();
            let folder = mark.parent().unwrap_or(Path::new("/"));
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            File::create(&mark)?.sync_all()?;
            File::open(folder)?.sync_all()?;
            io::Result::Ok(is_own)
        };
        self.mark_is_own = Some(blocking(make).await?);
        Ok(())
    }

    /// Makes leases durable. Without a folder they are in memory, and that is marked.
    pub(super) async fn store(&mut self, dhcp: &DhcpServer, leases: Vec<Lease>) -> io::Result<()> {
        let Some(mut journal) = self.journal.take() else { return self.mark().await };
        let compacted: Option<Vec<Lease>> = {
            let shared = dhcp.lock();
            let wants = journal.wants_compaction(shared.server.len());
            wants.then(|| shared.server.stored().cloned().collect())
        };
        let (journal, written) = blocking(move || {
            // The leases of the server include those of this output.
            let written = match compacted {
                Some(all) => journal.compact(all.iter()),
                None => journal.append(&leases),
            };
            (journal, written)
        })
        .await;
        self.journal = Some(journal);
        written
    }

    /// Erases all leases on disk. Those in a closed storage go with its header.
    pub(super) async fn erase(&mut self) -> io::Result<()> {
        let Some(mut journal) = self.journal.take() else { return Ok(()) };
        let (journal, erased) = blocking(move || {
            let erased = journal.erase();
            (journal, erased)
        })
        .await;
        self.journal = Some(journal);
        erased
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use gateway_core::state_machines::dhcp::LeaseState;
    use gateway_model::MacAddr;

    use super::*;
    use crate::services::encrypted_storage::fixture::StorageFixture;

    fn lease(number: u8) -> Lease {
        Lease {
            address: Ipv4Addr::new(10, 0, 0, number),
            mac: MacAddr([2, 0, 0, 0, 0, number]),
            client_id: None,
            hostname: None,
            vendor_class: None,
            starts: 0,
            ends: 4_000_000_000,
            state: LeaseState::Active,
        }
    }

    /// A server and its stored leases, followed on a runtime of their own.
    struct Fixture {
        dhcp: DhcpServer,
        leases: StoredLeases,
        runtime: tokio::runtime::Runtime,
    }

    impl Fixture {
        fn start(fixture: &StorageFixture) -> Fixture {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let (dhcp, leases) =
                (DhcpServer::default(), StoredLeases::new(fixture.storage.clone(), &fixture.state_dir()));
            dhcp.lock().server.set_withholding(true);
            let mut fixture = Fixture { dhcp, leases, runtime: runtime.expect("a runtime") };
            fixture.follow();
            fixture
        }

        fn follow(&mut self) {
            let now = Timestamp::from_second(1_800_000_000).expect("a time");
            self.runtime.block_on(self.leases.follow(&self.dhcp, now)).expect("followed");
        }

        /// Gives a lease to a client, as the server does.
        fn give(&mut self, number: u8) {
            let now = Timestamp::from_second(1_800_000_000).expect("a time");
            self.dhcp.lock().server.adopt([lease(number)], None, now);
            let store = self.leases.store(&self.dhcp, vec![lease(number)]);
            self.runtime.block_on(store).expect("stored");
        }

        fn known(&self) -> Vec<u8> {
            self.dhcp.lock().server.stored().map(|lease| lease.mac.octets()[5]).collect()
        }

        fn is_withholding(&self) -> bool {
            self.dhcp.lock().server.is_withholding()
        }
    }

    #[test]
    fn leases_move_into_the_encrypted_storage_and_are_withheld_while_it_is_closed() {
        let mut storage = StorageFixture::new();
        let plain = storage.state_dir().join("dhcp/leases");
        let mut fixture = Fixture::start(&storage);
        assert!(!fixture.is_withholding());
        fixture.give(1);
        assert!(plain.exists());
        storage.set_up(StorageContent::DhcpLeases, || fixture.follow());
        assert!(storage.inside("dhcp/leases").exists() && !plain.exists());
        assert!(!fixture.is_withholding());
        fixture.give(2);
        storage.lock(|| fixture.follow());
        assert!(fixture.is_withholding());
        fixture.give(3);
        assert!(!plain.exists());
        let mark = storage.state_dir().join(MARK);
        assert!(mark.exists(), "the third is in memory only");
        storage.unlock();
        fixture.follow();
        assert!(!fixture.is_withholding() && !mark.exists());

        // A run that starts without its leases gets them when the storage opens.
        storage.reboot();
        let mut fixture = Fixture::start(&storage);
        assert!(fixture.is_withholding() && fixture.known().is_empty());
        fixture.give(4);
        storage.unlock();
        fixture.follow();
        assert!(!fixture.is_withholding());
        assert_eq!(fixture.known(), [1, 2, 3, 4]);
        fixture.runtime.block_on(fixture.leases.erase()).expect("erased");
        drop(fixture);
        assert!(Fixture::start(&storage).known().is_empty());
    }
}
