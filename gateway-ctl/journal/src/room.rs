//! Free disk space. Dispensable files stop growing long before the disk is full.

use std::io;
use std::path::Path;

/// Bytes that the query log and the copies of lists and zones leave to the store, which usually is on the same disk.
pub const FLOOR_BYTES: u64 = 16 << 20;

/// Returns the bytes that can be written to the file system of this folder.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let file_system = rustix::fs::statvfs(folder)?;
    Ok(file_system.f_bavail.saturating_mul(file_system.f_frsize))
}

/// Returns a `StorageFull` error if less than [`FLOOR_BYTES`] are free. A file system that does not report its free
/// space passes.
pub fn check(folder: &Path) -> io::Result<()> {
    match free_bytes(folder) {
        Ok(free) if free < FLOOR_BYTES => {
            let reason =
                format!("{} MiB left, {} MiB are kept free for the store", free >> 20, FLOOR_BYTES >> 20);
            Err(io::Error::new(io::ErrorKind::StorageFull, reason))
        }
        _ => Ok(()),
    }
}
