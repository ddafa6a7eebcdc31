//! Open file of the store: its transactions, and recovery after the disk was full or failed.
//!
//! After one failed write, the database library refuses all access until the file is opened again. The store reopens
//! it over the same file handle, so that the file stays locked. If a transaction that was reported as failed is in
//! the file nevertheless, the file and the memory differ. Every access then fails until the daemon restarts.

use std::io;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use redb::{Database, ReadTransaction, ReadableDatabase, StorageError, TransactionError, WriteTransaction};

use super::error::Error;
use super::open_file::OpenFile;
use super::reserve::Reserve;
use super::schema::META;
use super::secure_compaction;

/// Key of the table `meta`: number of transactions.
const COMMITS: &str = "commits";

/// Open file, which may be replaced by another.
pub(super) struct Db {
    open: ArcSwap<OpenFile>,
    discarded: AtomicBool,
    reserve: Reserve,
    /// Number of transactions that are known to be in the file.
    commits: AtomicU64,
    /// Set when a transaction did not complete. The next access checks whether the file is still usable.
    suspect: AtomicBool,
    /// Set when the file is ahead of the memory.
    ahead: AtomicBool,
    reopening: Mutex<()>,
}

impl Db {
    pub(super) fn new(open: OpenFile, folder: &Path) -> Result<Db, Error> {
        let commits = count(&open).map_err(Error::at("read"))?;
        Ok(Db {
            open: ArcSwap::from_pointee(open),
            discarded: AtomicBool::new(false),
            reserve: Reserve::new(folder),
            commits: AtomicU64::new(commits),
            suspect: AtomicBool::new(false),
            ahead: AtomicBool::new(false),
            reopening: Mutex::default(),
        })
    }

    pub(super) fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    /// Reports whether the file contains a transaction that was reported as failed. Only a restart reads it.
    pub(super) fn is_ahead(&self) -> bool {
        self.ahead.load(Ordering::SeqCst)
    }

    pub(super) fn begin_read(&self) -> Result<ReadTransaction, TransactionError> {
        self.check()?;
        if self.suspect.load(Ordering::SeqCst) {
            self.begin().map(drop)?;
        }
        self.open.load().begin_read()
    }

    /// Begins a transaction, unless the disk is almost full.
    pub(super) fn begin_write(&self) -> Result<Writing<'_>, TransactionError> {
        self.reserve.check().map_err(StorageError::Io)?;
        self.begin()
    }

    /// Begins a transaction that may use the reserve: it ends, revokes or removes something, or signs in a user who
    /// has to free space.
    pub(super) fn begin_vital(&self) -> Result<Writing<'_>, TransactionError> {
        self.reserve.release_if_full();
        self.begin()
    }

    fn begin(&self) -> Result<Writing<'_>, TransactionError> {
        loop {
            self.check()?;
            let open = self.open.load_full();
            let txn = match open.begin_write() {
                Ok(txn) => txn,
                Err(TransactionError::Storage(StorageError::PreviousIo)) => {
                    self.reopen(&open)?;
                    self.open.load().begin_write()?
                }
                Err(error) => return Err(error),
            };
            // A writer that waited while the file was replaced must not write into the old one.
            let current = self.open.load();
            if Arc::ptr_eq(&open, &current) || open.is_closed() {
                self.suspect.store(false, Ordering::SeqCst);
                let number = self.commits.load(Ordering::SeqCst) + 1;
                return Ok(Writing { txn: Some(txn), number, db: self });
            }
        }
    }

    /// Reopens the file after a failed write.
    fn reopen(&self, failed: &Arc<OpenFile>) -> Result<(), TransactionError> {
        let _alone = self.reopening.lock();
        let Some(file) = failed.file().filter(|_| Arc::ptr_eq(failed, &self.open.load())) else {
            return Ok(());
        };
        // The remains of the old database must not write any more.
        failed.close();
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let open = OpenFile::over(file).map_err(|error| cause(error.into()))?;
            let commits = count(&open).map_err(cause)?;
            Ok::<_, io::Error>((open, commits))
        }));
        let opened = opened.unwrap_or_else(|_| Err(io::Error::other("the file cannot be read back")));
        let (open, commits) = opened.map_err(StorageError::Io)?;
        if commits != self.commits.load(Ordering::SeqCst) {
            self.ahead.store(true, Ordering::SeqCst);
            tracing::error!("a change that was reported as failed is in the store: restart the daemon");
            return self.check();
        }
        self.open.store(Arc::new(open));
        tracing::warn!("opened the store again after a failed write");
        Ok(())
    }

    /// Releases the file. Afterwards, nothing can be read or written.
    pub(super) fn discard(&self) -> Result<(), Error> {
        let nowhere = OpenFile::in_memory().map_err(Error::at("let the file go"))?;
        self.discarded.store(true, Ordering::SeqCst);
        self.open.store(Arc::new(nowhere));
        Ok(())
    }

    /// Replaces the file by a new one with the same tables. Writers wait.
    pub(super) fn rewrite(&self, path: &Path) -> Result<(), Error> {
        let open = self.open.load_full();
        let held = open.begin_write().map_err(Error::at("begin to write"))?;
        let fresh = secure_compaction::copy(&open, path)?;
        self.open.store(Arc::new(fresh));
        held.abort().map_err(Error::at("let the old file go"))
    }

    fn check(&self) -> Result<(), TransactionError> {
        let reason = match (self.discarded.load(Ordering::SeqCst), self.is_ahead()) {
            (false, false) => return Ok(()),
            (true, _) => "the store was destroyed",
            (false, true) => "the store has a change that was reported as failed: start the daemon again",
        };
        Err(TransactionError::Storage(StorageError::Io(io::Error::other(reason))))
    }
}

/// Returns the error of the disk, if the disk caused it.
fn cause(error: redb::Error) -> io::Error {
    match error {
        redb::Error::Io(error) => error,
        error => io::Error::other(error),
    }
}

/// Returns the number of transactions in the file.
fn count(database: &Database) -> Result<u64, redb::Error> {
    let txn = database.begin_read()?;
    let table = match txn.open_table(META) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(0),
        table => table?,
    };
    Ok(redb::ReadableTable::get(&table, COMMITS)?.map_or(0, |value| value.value()))
}

/// Transaction, which changes nothing unless it is committed.
pub(super) struct Writing<'a> {
    txn: Option<WriteTransaction>,
    number: u64,
    db: &'a Db,
}

impl Writing<'_> {
    pub(super) fn commit(mut self) -> Result<(), redb::Error> {
        let Some(txn) = self.txn.take() else { return Ok(()) };
        let committed = self.stamp(&txn).and_then(|()| txn.commit().map_err(redb::Error::from));
        match &committed {
            Ok(()) => self.db.commits.store(self.number, Ordering::SeqCst),
            Err(_) => self.db.suspect.store(true, Ordering::SeqCst),
        }
        committed
    }

    fn stamp(&self, txn: &WriteTransaction) -> Result<(), redb::Error> {
        txn.open_table(META)?.insert(COMMITS, self.number)?;
        Ok(())
    }
}

impl Deref for Writing<'_> {
    type Target = WriteTransaction;

    fn deref(&self) -> &WriteTransaction {
        self.txn.as_ref().expect("taken by commit, which consumes it")
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        // The transaction may have been abandoned because the disk failed.
        if self.txn.take().is_some() {
            self.db.suspect.store(true, Ordering::SeqCst);
        }
    }
}
