//! Erasure of files: their bytes are overwritten before the files are removed.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Overwrites a regular file with zeros and removes it. Only removes other files and links. A missing file is not an
/// error.
pub fn erase_file(path: &Path) -> io::Result<()> {
    match overwrite(path).and_then(|()| fs::remove_file(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Erases the files of a folder, but not those of its subfolders. Continues after a failure and returns the first
/// error.
pub fn erase_files_of(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let mut result = Ok(());
    for entry in entries {
        let path = entry?.path();
        if !fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
            result = result.and(erase_file(&path));
        }
    }
    result
}

fn overwrite(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_file() {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    let mut file = OpenOptions::new().write(true).open(path)?;
    let zeros = vec![0u8; 1 << 16];
    let mut left = metadata.len();
    while left > 0 {
        let step = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all(&zeros[..step])?;
        left -= step as u64;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erased_file_is_gone_from_its_bytes_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, kept) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, b"a secret").expect("written");
        fs::hard_link(&path, &kept).expect("a second name for the same bytes");
        erase_file(&path).expect("erased");
        assert!(!path.exists());
        assert_eq!(fs::read(&kept).expect("readable"), [0; 8]);
        erase_file(&path).expect("gone already");
        erase_files_of(folder.path()).expect("erased");
        assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 0);
    }
}
