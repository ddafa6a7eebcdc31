//! Files of containers, and the files that move into them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use gateway_journal::erase::erase_file;
use rustix::fs::{FallocateFlags, fallocate};

use super::HEADER_BYTES;

/// Bytes that are allocated at a time.
const STEP_BYTES: u64 = 32 << 20;

/// Creates a file whose bytes the file system has reserved.
pub(super) fn allocate(path: &Path, bytes: u64, progress: &dyn Fn(u64)) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut done = 0;
    while done < bytes {
        let step = STEP_BYTES.min(bytes - done);
        match fallocate(&file, FallocateFlags::empty(), done, step) {
            Ok(()) => {}
            // Some file systems do not reserve: zeros take the room.
            Err(rustix::io::Errno::OPNOTSUPP) => write_zeros(&mut file, step)?,
            Err(error) => return Err(error.into()),
        }
        done += step;
        progress(done);
    }
    file.sync_all()?;
    sync_folder_of(path)
}

fn write_zeros(file: &mut File, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let step = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all(&zeros[..step])?;
        left -= step as u64;
    }
    Ok(())
}

/// Overwrites the header of a container. A missing one is fine.
pub(super) fn erase_header(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let length = file.metadata()?.len();
    write_zeros(&mut file, HEADER_BYTES.min(length))?;
    file.sync_all()
}

/// Copies a file, or the files of a folder with those of its subfolders. A missing one is fine.
pub(super) fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_dir() => copy_folder(from, to),
        Ok(_) => {
            let folder = to.parent().unwrap_or(Path::new("/"));
            make_folder(folder)?;
            copy_file(from, to)?;
            File::open(folder)?.sync_all()
        }
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    make_folder(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_file() {
            copy_file(&entry.path(), &target)?;
        }
    }
    File::open(to)?.sync_all()
}

/// Erases a file, or the files of a folder with those of its subfolders. A missing one is fine. Continues after a failure
/// and returns the first error.
pub(super) fn erase_files(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_dir() => erase_folder(path),
        Ok(_) => erase_file(path).and_then(|()| sync_folder_of(path)),
    }
}

fn erase_folder(folder: &Path) -> io::Result<()> {
    let mut outcome = Ok(());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let erased = if entry.file_type()?.is_dir() {
            erase_folder(&entry.path()).and_then(|()| fs::remove_dir(entry.path()))
        } else {
            erase_file(&entry.path())
        };
        outcome = outcome.and(erased);
    }
    outcome.and_then(|()| File::open(folder)?.sync_all())
}

/// Replaces a file. A crash leaves the old content or the new one.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let written = path.with_extension("part");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&written)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    rename(&written, path)
}

pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder_of(to)
}

pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        removed => removed?,
    }
    sync_folder_of(path)
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn a_container_has_its_room_and_only_root_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("container");
        let steps = Mutex::new(Vec::new());
        allocate(&path, (40 << 20) + 1, &|done| steps.lock().push(done)).expect("allocated");
        let metadata = fs::metadata(&path).expect("a file");
        assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), ((40 << 20) + 1, 0o600));
        assert_eq!(*steps.lock(), [32 << 20, (40 << 20) + 1]);
        allocate(&path, 1, &|_| {}).expect_err("it exists");
    }

    #[test]
    fn the_header_is_overwritten_and_the_rest_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("container");
        let header = usize::try_from(HEADER_BYTES).expect("small");
        fs::write(&path, vec![7; header + 5]).expect("written");
        erase_header(&path).expect("erased");
        let bytes = fs::read(&path).expect("readable");
        assert!(bytes[..header].iter().all(|byte| *byte == 0));
        assert_eq!(bytes[header..], [7; 5]);
        erase_header(&folder.path().join("none")).expect("no file is fine");
    }

    #[test]
    fn folders_are_copied_and_erased_with_their_subfolders() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("deep/to"));
        fs::create_dir_all(from.join("sub")).expect("folders");
        fs::write(from.join("a"), "one").expect("written");
        fs::write(from.join("sub/b"), "two").expect("written");
        copy_files(&from, &to).expect("copied");
        copy_files(&folder.path().join("none"), &to).expect("nothing to copy");
        assert_eq!(fs::read_to_string(to.join("sub/b")).expect("copied"), "two");
        erase_files(&from).expect("erased");
        assert_eq!(fs::read_dir(&from).expect("the folder stays").count(), 0);
        assert_eq!(fs::read_to_string(to.join("a")).expect("kept"), "one");
    }

    #[test]
    fn single_files_are_copied_and_erased_without_their_neighbours() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("dhcp/leases"), folder.path().join("inside/dhcp/leases"));
        fs::create_dir(folder.path().join("dhcp")).expect("a folder");
        fs::write(&from, "one").expect("written");
        fs::write(folder.path().join("dhcp/other"), "two").expect("written");
        copy_files(&from, &to).expect("copied");
        assert_eq!(fs::read_to_string(&to).expect("copied"), "one");
        erase_files(&from).expect("erased");
        erase_files(&from).expect("no file is fine");
        let left: Vec<_> = fs::read_dir(folder.path().join("dhcp")).expect("a folder").flatten().collect();
        assert_eq!(left.iter().map(fs::DirEntry::file_name).collect::<Vec<_>>(), ["other"]);
    }
}
