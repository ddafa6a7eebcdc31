//! A backup on its way to the target: an encrypted file without a name. The content in clear is never in memory as a whole,
//! and never on a disk.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::encryption::{self, Form};
use crate::os::nameless_file;

/// Size of the parts in which a file is written.
const PART_BYTES: usize = 64 << 10;

/// Encrypted file, with what is needed to compare it after it was read back.
#[derive(Debug)]
pub(super) struct SealedFile {
    file: File,
    pub length: u64,
    /// Digest of the content in clear.
    digest: [u8; 32],
}

impl SealedFile {
    /// Encrypts what `write` writes into a file in the folder, while it writes it.
    pub(super) fn make(
        folder: &Path,
        passphrase: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<SealedFile> {
        let file = nameless_file::create(folder)?;
        let mut digest = Sha256::new();
        let out = io::BufWriter::with_capacity(PART_BYTES, &file);
        encryption::seal_stream(out, passphrase, Form::Binary, |sealed| {
            let mut sealed = io::BufWriter::with_capacity(PART_BYTES, sealed);
            write(&mut Digested { inner: &mut sealed, digest: &mut digest })?;
            sealed.flush()
        })?;
        let length = file.metadata()?.len();
        Ok(SealedFile { file, length, digest: digest.finalize().into() })
    }

    /// Returns the file, from its first byte on. Its position is shared, so that one reader at a time may use it.
    pub(super) fn reader(&self) -> io::Result<File> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }

    /// Reports whether another file decrypts to the same content, and has nothing behind it.
    pub(super) fn is_equal(&self, other: impl Read, passphrase: &str) -> bool {
        let mut other = Counted { inner: other, bytes: 0 };
        let mut digest = Sha256::new();
        let decrypted = encryption::open_stream(&mut other, passphrase).is_ok_and(|mut plain| {
            let mut digested = Digested { inner: &mut io::sink(), digest: &mut digest };
            io::copy(&mut plain, &mut digested).is_ok()
        });
        let rest = io::copy(&mut other, &mut io::sink());
        decrypted
            && rest.is_ok()
            && other.bytes == self.length
            && self.digest == <[u8; 32]>::from(digest.finalize())
    }
}

struct Digested<'a> {
    inner: &'a mut dyn Write,
    digest: &'a mut Sha256,
}

impl Write for Digested<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

struct Counted<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PASSPHRASE: &str = "correct horse battery";

    #[test]
    fn only_the_same_file_is_equal_and_none_has_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let content = |out: &mut dyn Write| (0..40_000_u32).try_for_each(|n| out.write_all(&n.to_le_bytes()));
        let sealed = SealedFile::make(folder.path(), PASSPHRASE, content).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut bytes = Vec::new();
        sealed.reader().unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, sealed.length);
        let is_equal = |bytes: &[u8], passphrase| sealed.is_equal(bytes, passphrase);
        assert!(is_equal(&bytes, PASSPHRASE));
        assert!(!is_equal(&bytes, "another passphrase"));
        assert!(!is_equal(&bytes[..bytes.len() - 1], PASSPHRASE));
        assert!(!is_equal(&[&bytes[..], b"x"].concat(), PASSPHRASE));
        let mut damaged = bytes.clone();
        damaged[100_000] ^= 1;
        assert!(!is_equal(&damaged, PASSPHRASE));
        let other = encryption::seal(b"another content", PASSPHRASE, Form::Binary).unwrap();
        assert!(!is_equal(&other, PASSPHRASE));
    }

    #[test]
    fn a_failure_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let failing = |_: &mut dyn Write| Err(io::Error::other("no"));
        assert!(SealedFile::make(folder.path(), PASSPHRASE, failing).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(SealedFile::make(&folder.path().join("missing"), PASSPHRASE, failing).is_err());
    }
}
