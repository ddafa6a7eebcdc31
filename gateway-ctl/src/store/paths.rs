//! Files of the store: their paths, how to open them, and durable renames.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::error::Error;

/// Returns the folder of a store.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Flushes the folder, so that a rename to this path is durable.
pub(super) fn sync_folder(path: &Path) -> Result<(), Error> {
    let folder = folder_of(path);
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| Error::Folder { path: folder.to_owned(), source })
}

/// Returns the path of the temporary file that later replaces this one.
pub(super) fn draft_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

pub(super) fn open_file(path: &Path, fresh: bool) -> Result<File, Error> {
    let failed = |source| Error::Open { path: path.to_owned(), source };
    if fresh {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    let file =
        OpenOptions::new().read(true).write(true).create_new(fresh).mode(0o600).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(Error::Damaged { what: "it is not a regular file".into() });
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
    }
    if !fresh && metadata.len() == 0 {
        return Err(Error::Damaged { what: "the file is empty".into() });
    }
    Ok(file)
}
