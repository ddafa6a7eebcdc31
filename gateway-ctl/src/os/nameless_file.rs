//! Files without a name: they go with their last descriptor, also after a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of the next file, so that two of this process never have the same name while they have one.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Creates a file in the folder, for reading and writing by this user alone.
pub fn create(folder: &Path) -> io::Result<File> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!(".nameless-{}-{number}", std::process::id()));
    // One that a process with this id left, which died in between.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _, Write as _};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn file_has_no_name_and_one_that_was_left_does_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let next = NEXT.load(Ordering::Relaxed);
        for number in next..next + 20 {
            fs::write(folder.path().join(format!(".nameless-{}-{number}", std::process::id())), "").unwrap();
        }
        let mut file = create(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 19);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        file.write_all(b"data").unwrap();
        file.rewind().unwrap();
        let mut back = String::new();
        file.read_to_string(&mut back).unwrap();
        assert_eq!(back, "data");
        assert!(create(&folder.path().join("missing")).is_err());
    }
}
