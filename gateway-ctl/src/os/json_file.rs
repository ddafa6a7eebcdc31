//! Small JSON files of the state folder.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use gateway_journal::erase::erase_file;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Returns the value of a file. One that is missing or damaged has the default.
pub(crate) fn read<T: DeserializeOwned + Default>(path: &Path) -> T {
    match std::fs::read(path).map(|bytes| serde_json::from_slice(&bytes)) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => {
            tracing::warn!(path = %path.display(), %error, "ignored a damaged file");
            T::default()
        }
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(path = %path.display(), %error, "failed to read a file");
            }
            T::default()
        }
    }
}

/// Replaces a file. A crash leaves the old content or the new one.
pub(crate) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let written = path.with_extension("new");
    let mut file = File::create(&written)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    file.sync_all()?;
    std::fs::rename(&written, path)
}

/// Erases a file and what an interrupted [`write()`] left of it.
pub(crate) fn erase(path: &Path) -> io::Result<()> {
    erase_file(path).and(erase_file(&path.with_extension("new")))
}
