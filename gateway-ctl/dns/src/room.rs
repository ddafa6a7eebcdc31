//! Room on a disk: what is only kept for convenience stops long before the disk is full.

use std::io;
use std::path::Path;

/// The query log and copies of lists and zones leave this much to the store, which is on the same disk as a rule.
pub const FLOOR_BYTES: u64 = 16 << 20;

/// Bytes that can be written to the file system of this folder.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let file_system = rustix::fs::statvfs(folder)?;
    Ok(file_system.f_bavail.saturating_mul(file_system.f_frsize))
}

/// Refuses where less than [`FLOOR_BYTES`] are left. A file system that does not say is taken to have room.
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
