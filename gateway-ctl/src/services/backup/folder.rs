//! Local folder as the target of backups. It is not created: below an empty mount point a new folder would fill the
//! wrong disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Take};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::error::Error;

/// Existing folder outside of the state directory.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Opens the folder without creating it: below an unmounted mount point, a created path would be on the wrong
    /// disk. It must be outside of `own`, or inside of `allowed`.
    pub(super) async fn new(path: &str, own: &Path, allowed: Option<&Path>) -> Result<Folder, Error> {
        let (path, own, allowed) = (PathBuf::from(path), own.to_owned(), allowed.map(Path::to_owned));
        blocking("looking at the folder", move || {
            if !path.is_absolute() {
                return Err(Error::Setup("the path of the folder is not absolute".to_owned()));
            }
            let found = path.canonicalize().map_err(|error| explain("looking at the folder", &error))?;
            let is_allowed = allowed.is_some_and(|allowed| is_inside(&found, &allowed));
            if is_inside(&found, &own) && !is_allowed {
                return Err(Error::OwnFolder);
            }
            if !found.is_dir() {
                return Err(Error::NoFolder);
            }
            Ok(Folder(found))
        })
        .await
    }

    pub(super) async fn list(&self) -> Result<Vec<String>, Error> {
        let folder = self.0.clone();
        blocking("listing the folder", move || {
            let mut names = Vec::new();
            let failed = |error| explain("listing the folder", &error);
            for entry in fs::read_dir(folder).map_err(failed)? {
                // A name that is not UTF-8 does not belong to a backup of this gateway.
                names.extend(entry.map_err(failed)?.file_name().into_string().ok());
            }
            Ok(names)
        })
        .await
    }

    pub(super) async fn write(&self, name: &str, source: File) -> Result<(), Error> {
        let path = self.0.join(name);
        blocking("writing the file", move || {
            write(&path, source).map_err(|error| explain("writing the file", &error))
        })
        .await
    }

    /// Opens a file, to read at most one byte beyond the length.
    pub(super) async fn read(&self, name: &str, length: usize) -> Result<Take<File>, Error> {
        let path = self.0.join(name);
        blocking("reading the file back", move || {
            let file = File::open(path).map_err(|error| explain("reading the file back", &error))?;
            Ok(file.take(length as u64 + 1))
        })
        .await
    }

    pub(super) async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let (from, to, folder) = (self.0.join(from), self.0.join(to), self.0.clone());
        blocking("renaming the file", move || {
            fs::rename(from, to)
                .and_then(|()| File::open(folder)?.sync_all())
                .map_err(|error| explain("renaming the file", &error))
        })
        .await
    }

    pub(super) async fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.0.join(name);
        blocking("removing a file", move || {
            fs::remove_file(path).map_err(|error| explain("removing a file", &error))
        })
        .await
    }
}

/// Reports whether a path leads into a folder, as far as both exist.
pub fn is_inside(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| {
        // The nearest existing ancestor determines where the rest of the path would be created.
        let mut rest = PathBuf::new();
        for part in path.ancestors() {
            if let Ok(found) = part.canonicalize() {
                return found.join(rest);
            }
            if let Some(name) = part.file_name() {
                rest = Path::new(name).join(rest);
            }
        }
        path.to_owned()
    };
    real(path).starts_with(real(folder))
}

fn write(path: &Path, mut source: File) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    io::copy(&mut source, &mut file)?;
    file.sync_all()
}

fn explain(doing: &'static str, error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::Full,
        ErrorKind::NotFound | ErrorKind::NotADirectory => Error::NoFolder,
        _ => Error::failed(doing, error),
    }
}

async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::failed(doing, error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[tokio::test]
    async fn files_are_for_the_gateway_alone_and_are_listed() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let target = Folder::new(folder.path().to_str().unwrap(), Path::new("/nowhere"), None).await.unwrap();
        let source = other.path().join("source");
        fs::write(&source, b"data").unwrap();
        target.write("a.part", File::open(&source).unwrap()).await.unwrap();
        target.rename("a.part", "a").await.unwrap();
        assert_eq!(target.list().await.unwrap(), ["a"]);
        for (length, want) in [(4, "data"), (2, "dat")] {
            let mut back = String::new();
            target.read("a", length).await.unwrap().read_to_string(&mut back).unwrap();
            assert_eq!(back, want, "at most one more than asked for, which shows");
        }
        let mode = fs::metadata(folder.path().join("a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        target.remove("a").await.unwrap();
        assert_eq!(target.remove("a").await, Err(Error::NoFolder));
    }

    #[tokio::test]
    async fn the_state_directory_is_refused_through_any_path() {
        let own = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let link = other.path().join("link");
        symlink(own.path(), &link).unwrap();
        fs::create_dir(own.path().join("below")).unwrap();
        for path in [own.path().to_owned(), own.path().join("below"), link.clone(), link.join("below")] {
            let refused = Folder::new(path.to_str().unwrap(), own.path(), None).await.err();
            assert_eq!(refused, Some(Error::OwnFolder), "{}", path.display());
        }
        assert!(is_inside(&link.join("not/there/yet"), own.path()));
        assert!(!is_inside(&other.path().join("not/there/yet"), own.path()));
        let (below, allowed) = (own.path().join("below"), own.path().join("below"));
        let opened = Folder::new(below.to_str().unwrap(), own.path(), Some(&allowed)).await;
        assert!(opened.is_ok(), "the folder of the encrypted storage");
        let missing =
            Folder::new(other.path().join("missing").to_str().unwrap(), own.path(), None).await.err();
        assert_eq!(missing, Some(Error::NoFolder));
        assert!(Folder::new("relative", own.path(), None).await.is_err());
    }
}
