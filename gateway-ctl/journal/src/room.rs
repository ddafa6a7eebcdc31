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

/// Returns the part in use of the file system of this folder, in per cent, as `df` shows it: what only root may write counts
/// neither as used nor as free. `None` if the file system has no size.
pub fn used_percent(folder: &Path) -> io::Result<Option<f64>> {
    let file_system = rustix::fs::statvfs(folder)?;
    let used = file_system.f_blocks.saturating_sub(file_system.f_bfree);
    let total = used.saturating_add(file_system.f_bavail);
    Ok((total > 0).then(|| used as f64 * 100.0 / total as f64))
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
