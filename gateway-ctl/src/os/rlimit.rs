//! What this process may take of the machine: descriptors and memory.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as this process may; what it is then.
///
/// Programs that are started inherit it: none of ours closes or polls all descriptors there could be.
pub fn raise_open_files() -> io::Result<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(open_files())
}

/// The limit as it is.
pub fn open_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Memory of large things (lists on their way in) goes back to the kernel as soon as they are gone (mallopt(3)).
///
/// By itself the allocator of glibc takes the size of such things for usual after the first one, and keeps what they left.
#[cfg(target_env = "gnu")]
pub fn return_large_memory() {
    const LARGE: libc::c_int = 1 << 20;
    // SAFETY: it takes two numbers. It cannot fail for a size that small, and nothing hangs on it.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
}

#[cfg(not(target_env = "gnu"))]
pub fn return_large_memory() {}

/// Gives memory that the allocator keeps for later back to the kernel (malloc_trim(3)). Takes some milliseconds.
#[cfg(target_env = "gnu")]
pub fn return_free_memory() {
    // SAFETY: it takes a number and touches free memory alone.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
pub fn return_free_memory() {}
