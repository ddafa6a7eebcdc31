//! The archive: a tar file (POSIX ustar) under gzip. A header has the size of its file, so each file is complete before
//! it is added.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, SeekFrom, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use gateway_ctl::os::nameless_file;
use jiff::Timestamp;

/// Size of a block of tar, and of the end of an archive.
const BLOCK_BYTES: usize = 512;
const END_BYTES: usize = 2 * BLOCK_BYTES;
/// Maximum size of a file, and of all files together.
const MAX_FILE_BYTES: u64 = 64 << 20;
const MAX_TOTAL_BYTES: u64 = 256 << 20;

/// An archive that is being written.
pub(super) struct Archive {
    out: GzEncoder<BufWriter<File>>,
    /// Folder of the files that are being written.
    folder: PathBuf,
    modified_at: Timestamp,
    total: u64,
}

impl Archive {
    pub(super) fn new(file: File, folder: PathBuf, modified_at: Timestamp) -> Archive {
        let out = GzEncoder::new(BufWriter::with_capacity(1 << 16, file), Compression::default());
        Archive { out, folder, modified_at, total: 0 }
    }

    pub(super) fn add_text(&mut self, name: &str, text: &str) -> io::Result<u64> {
        self.add(name, text.len() as u64, &mut text.as_bytes())
    }

    /// Adds a file that `write` writes, and returns its size. If that fails, or the file is too large, the archive stays
    /// as it is.
    pub(super) fn add_written(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<u64> {
        let room = MAX_FILE_BYTES.min(MAX_TOTAL_BYTES.saturating_sub(self.total));
        let file = BufWriter::with_capacity(1 << 16, nameless_file::create(&self.folder)?);
        let mut limited = Limited { out: file, room };
        write(&mut limited)?;
        let mut file = limited.out.into_inner().map_err(|error| error.into_error())?;
        let size = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        self.add(name, size, &mut BufReader::with_capacity(1 << 16, file))
    }

    /// Completes the archive and returns its file.
    pub(super) fn finish(mut self) -> io::Result<File> {
        self.out.write_all(&[0; END_BYTES])?;
        self.out.finish()?.into_inner().map_err(|error| error.into_error())
    }

    fn add(&mut self, name: &str, size: u64, content: &mut dyn Read) -> io::Result<u64> {
        self.out.write_all(&header(name, size, self.modified_at)?)?;
        let copied = io::copy(&mut content.take(size), &mut self.out)?;
        if copied != size {
            return Err(io::Error::other("a file of the bundle became shorter"));
        }
        let padding = size.next_multiple_of(BLOCK_BYTES as u64) - size;
        self.out.write_all(&[0; BLOCK_BYTES][..usize::try_from(padding).unwrap_or(0)])?;
        self.total += size;
        Ok(size)
    }
}

/// Returns the header of a file of mode 0600.
fn header(name: &str, size: u64, modified_at: Timestamp) -> io::Result<[u8; BLOCK_BYTES]> {
    let mut header = [0; BLOCK_BYTES];
    let mut set =
        |offset: usize, text: &str| header[offset..offset + text.len()].copy_from_slice(text.as_bytes());
    if name.len() > 100 {
        return Err(io::Error::other("a name of a file is too long for tar"));
    }
    let seconds = modified_at.as_second().max(0);
    set(0, name);
    set(100, "0000600");
    set(108, "0000000");
    set(116, "0000000");
    set(124, &format!("{size:011o}"));
    set(136, &format!("{seconds:011o}"));
    // Spaces while the sum is computed.
    set(148, "        ");
    set(156, "0");
    set(257, "ustar\0");
    set(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    Ok(header)
}

/// Writer of a file up to a size.
struct Limited<W> {
    out: W,
    room: u64,
}

impl<W: Write> Write for Limited<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.room {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large for a bundle"));
        }
        let written = self.out.write(bytes)?;
        self.room -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tar itself reads the archive")]
    fn tar_reads_the_archive_and_a_failed_part_leaves_no_trace() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = nameless_file::create(folder.path()).expect("a file");
        let now = "2026-11-30T12:00:00Z".parse().expect("a time");
        let mut archive = Archive::new(file, folder.path().to_owned(), now);
        let long = "line\n".repeat(40_000);
        archive.add_text("README.txt", "read").expect("added");
        archive
            .add_written("broken.json", |out| {
                out.write_all(b"{")?;
                Err(io::Error::other("broken off"))
            })
            .expect_err("it failed");
        assert_eq!(
            archive.add_written("long.txt", |out| out.write_all(long.as_bytes())).expect("added"),
            200_000
        );
        let mut file = archive.finish().expect("complete");
        file.seek(SeekFrom::Start(0)).expect("a file");
        let copy = folder.path().join("bundle.tar.gz");
        io::copy(&mut file, &mut File::create(&copy).expect("a file")).expect("copied");
        let tar = |arguments: &[&str]| {
            let output = Command::new("tar")
                .args(arguments)
                .arg(&copy)
                .stderr(Stdio::inherit())
                .output()
                .expect("tar");
            assert!(output.status.success());
            String::from_utf8(output.stdout).expect("text")
        };
        let list = tar(&["--utc", "-tvzf"]);
        assert!(list.starts_with("-rw------- 0/0               4 2026-11-30 12:00 README.txt\n"), "{list}");
        assert_eq!(list.lines().count(), 2, "{list}");
        assert_eq!(tar(&["-xzO", "long.txt", "-f"]), long);
    }

    #[test]
    fn file_has_a_maximum_size() {
        let mut limited = Limited { out: Vec::new(), room: 4 };
        limited.write_all(b"1234").expect("room");
        let error = limited.write_all(b"5").expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
