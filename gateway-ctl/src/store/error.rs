//! Errors of the store's file. A caller that cannot open the store falls back to default deny.

use std::io;
use std::path::PathBuf;

use gateway_model::registry::LoadError;
use gateway_model::secrets::SecretPlace;

/// Failed operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot create the folder {path}")]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot open the store {path}")]
    Open {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the store {path} is in use by another process")]
    Locked { path: PathBuf },
    /// The file is intact, but was written by a newer version of the service.
    #[error(
        "the store has schema {found}, this version knows schemas up to {known}: start the version that wrote it, or a newer one"
    )]
    NewerSchema { found: u64, known: u64 },
    /// The file cannot be read back as written.
    #[error("the store is damaged: {what}")]
    Damaged { what: String },
    /// The folder was wiped: blocking stays in force until an administrator removes the marker.
    #[error("this gateway was wiped; remove {path} and start the daemon to set it up again")]
    Wiped { path: PathBuf },
    /// Values are sealed, and the passphrase is missing.
    #[error("the passphrase of the secrets is missing: set it again before a secret can be stored")]
    SecretsLocked,
    #[error("{} secrets can neither be read nor stored", places.len())]
    SecretsUnreadable { places: Vec<SecretPlace> },
    #[error("cannot {operation} in the store")]
    Database {
        operation: &'static str,
        #[source]
        source: Box<redb::Error>,
    },
}

impl Error {
    /// Returns a converter for `map_err` that adds the operation and distinguishes damage from other failures.
    pub(super) fn at<E: Into<redb::Error>>(operation: &'static str) -> impl Fn(E) -> Error {
        move |error| match error.into() {
            redb::Error::Corrupted(what) => Error::Damaged { what },
            redb::Error::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
                Error::Damaged { what: source.to_string() }
            }
            error @ (redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableIsMultimap(_)
            | redb::Error::TableIsNotMultimap(_)
            | redb::Error::TypeDefinitionChanged { .. }
            | redb::Error::TableDoesNotExist(_)) => Error::Damaged { what: error.to_string() },
            source => Error::Database { operation, source: Box::new(source) },
        }
    }

    /// Reports whether the disk is full.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Database { source, .. } => {
                matches!(source.as_ref(), redb::Error::Io(error) if is_full(error))
            }
            Error::Folder { source, .. } | Error::Open { source, .. } => is_full(source),
            Error::Locked { .. }
            | Error::NewerSchema { .. }
            | Error::Damaged { .. }
            | Error::Wiped { .. }
            | Error::SecretsLocked
            | Error::SecretsUnreadable { .. } => false,
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Error {
        let what = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Error::Damaged { what }
    }
}
