//! Waits until descriptors are readable.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Returns a registration of a copy of the descriptor, to wait until the file is readable.
pub(crate) fn watch(descriptor: BorrowedFd<'_>) -> io::Result<AsyncFd<OwnedFd>> {
    let copy = descriptor.try_clone_to_owned()?;
    // SAFETY: the descriptor is open, and of the same file, until its owner ends with the registration.
    let watched = unsafe { AsyncFd::register_with_interest(copy, Interest::READABLE) };
    watched.map_err(io::Error::from)
}
