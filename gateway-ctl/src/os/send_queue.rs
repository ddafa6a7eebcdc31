//! Send queue of a TCP socket.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

nix::ioctl_read_bad!(siocoutq, libc::TIOCOUTQ, libc::c_int);

/// Returns the number of bytes that the peer's host has not confirmed (tcp(7), SIOCOUTQ).
pub(crate) fn unconfirmed_bytes(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes = 0;
    // SAFETY: the descriptor is open, and the kernel writes one integer.
    unsafe { siocoutq(socket.as_raw_fd(), &raw mut bytes) }?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}
