//! Database over one locked file handle, which can be closed while the library still holds the database.

use std::fs::{File, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redb::{Database, DatabaseError, StorageBackend};

use super::error::Error;

/// Timeout and retry interval for a lock that another process holds.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
const LOCK_RETRY: Duration = Duration::from_millis(10);

/// Access to the file for the database library, until it is closed.
#[derive(Debug)]
struct Backend {
    file: Arc<File>,
    closed: Arc<AtomicBool>,
}

impl Backend {
    fn file(&self) -> io::Result<&File> {
        match self.closed.load(Ordering::SeqCst) {
            false => Ok(&self.file),
            true => Err(io::Error::other("the file was opened again")),
        }
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.file()?.metadata().map(|metadata| metadata.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file()?.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file()?.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file()?.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file()?.write_all_at(data, offset)
    }
}

/// Database over a file that this process has locked.
pub(super) struct OpenFile {
    database: Database,
    /// Locked file; `None`: the database is in memory.
    file: Option<Arc<File>>,
    closed: Arc<AtomicBool>,
}

impl OpenFile {
    /// Locks the file and opens the database in it.
    pub(super) fn open(file: File, path: &Path) -> Result<OpenFile, Error> {
        lock(&file, path)?;
        Self::over(Arc::new(file)).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => Error::Locked { path: path.to_owned() },
            DatabaseError::UpgradeRequired(version) => {
                Error::Damaged { what: format!("its file format {version} is not known") }
            }
            error => Error::at("open the database")(error),
        })
    }

    pub(super) fn over(file: Arc<File>) -> Result<OpenFile, DatabaseError> {
        let closed = Arc::new(AtomicBool::new(false));
        let backend = Backend { file: file.clone(), closed: closed.clone() };
        let database = Database::builder().set_cache_size(16 << 20).create_with_backend(backend)?;
        Ok(OpenFile { database, file: Some(file), closed })
    }

    pub(super) fn in_memory() -> Result<OpenFile, DatabaseError> {
        let backend = redb::backends::InMemoryBackend::new();
        let database = Database::builder().create_with_backend(backend)?;
        Ok(OpenFile { database, file: None, closed: Arc::default() })
    }

    /// Returns the locked file, or `None` for a database in memory.
    pub(super) fn file(&self) -> Option<Arc<File>> {
        self.file.clone()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Denies the database library all access to the file from now on.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

/// Locks the file. A process forked while the file was open shares the lock until it executes its own program.
/// Another attempt may therefore succeed shortly.
fn lock(file: &File, path: &Path) -> Result<(), Error> {
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(LOCK_RETRY);
            }
            Err(TryLockError::WouldBlock) => return Err(Error::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => {
                return Err(Error::Open { path: path.to_owned(), source });
            }
        }
    }
}

impl Deref for OpenFile {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}
