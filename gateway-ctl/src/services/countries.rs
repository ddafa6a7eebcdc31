//! Countries of addresses, by a database in the MaxMind DB format that the user supplies.
//!
//! The file is read again when it has changed. Without one, no country is known.

mod database;

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gateway_core::countries::{Countries, CountryCode};
use parking_lot::RwLock;

use crate::handles::in_memory;
use crate::service::{Context, Service};
use crate::supervise::blocking;
use database::Database;
pub use database::DatabaseError;

/// Interval at which a changed file is looked for.
const INTERVAL: Duration = Duration::from_secs(10);

/// Database that the service opens. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct CountryDatabase(Arc<RwLock<State>>);

#[derive(Debug, Default)]
struct State {
    version: Option<FileVersion>,
    database: Option<Arc<Database>>,
    error: Option<String>,
}

/// File as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileVersion {
    path: PathBuf,
    changed_at: Option<SystemTime>,
    bytes: u64,
}

in_memory!(CountryDatabase);

impl Countries for CountryDatabase {
    fn country(&self, address: IpAddr) -> Option<CountryCode> {
        // The lock is not held while it searches.
        let database = self.0.read().database.clone()?;
        database.country(address)
    }
}

impl CountryDatabase {
    /// Reports whether countries are known.
    pub fn is_open(&self) -> bool {
        self.0.read().database.is_some()
    }

    /// Returns the reason for which the database cannot be used. `None` if it can, and if there is none.
    pub fn error(&self) -> Option<String> {
        self.0.read().error.clone()
    }

    /// Opens the file if it is another one than before. Keeps the former content of a file that cannot be read any more.
    pub fn update(&self, path: Option<&Path>) {
        let Some(path) = path else {
            *self.0.write() = State::default();
            return;
        };
        let version = FileVersion::of(path);
        let is_known = {
            let state = self.0.read();
            matches!((&state.version, &version), (Some(known), Ok(version)) if known == version)
        };
        if is_known {
            return;
        }
        let opened = version
            .map_err(DatabaseError::from)
            .and_then(|version| Ok((version, Arc::new(Database::open(path)?))));
        let mut state = self.0.write();
        match opened {
            Ok((version, database)) => {
                tracing::info!(path = %path.display(), kind = database.kind(), "read the database of countries");
                *state = State { version: Some(version), database: Some(database), error: None };
            }
            Err(error) => {
                let error = format!("{}: {error}", path.display());
                if state.error.as_ref() != Some(&error) {
                    tracing::warn!(%error, "failed to read the database of countries");
                }
                let is_other = state.version.as_ref().is_some_and(|version| version.path != path);
                if is_other {
                    *state = State::default();
                }
                state.error = Some(error);
            }
        }
    }
}

impl FileVersion {
    fn of(path: &Path) -> io::Result<FileVersion> {
        let metadata = std::fs::metadata(path)?;
        let (changed_at, bytes) = (metadata.modified().ok(), metadata.len());
        Ok(FileVersion { path: path.to_owned(), changed_at, bytes })
    }
}

/// Returns the service that opens the database.
pub fn service(context: &Context) -> Service {
    Service::new("countries", context, run)
}

async fn run(context: Context) {
    let database = context.handles.get::<CountryDatabase>();
    loop {
        let path = context.worlds.last().config.countries.database.clone();
        let opened = database.clone();
        blocking(move || opened.update(path.as_deref())).await;
        tokio::time::sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests;
