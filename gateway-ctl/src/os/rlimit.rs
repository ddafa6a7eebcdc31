//! Resource limits of this process: descriptors and memory.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit and returns the new limit.
///
/// Child processes inherit it. None of the gateway's child processes closes or polls all possible descriptors.
pub fn raise_open_files() -> io::Result<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(open_files())
}

/// Returns the present limit.
pub fn open_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Makes the allocator return the memory of large objects (lists during import) to the kernel at once (mallopt(3)).
///
/// By default the glibc allocator takes the size of such objects as usual after the first one, and keeps their
/// memory.
#[cfg(target_env = "gnu")]
pub fn return_large_memory() {
    const LARGE: libc::c_int = 1 << 20;
    // SAFETY: it takes two numbers. It cannot fail for a size that small, and no code depends on its result.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
}

#[cfg(not(target_env = "gnu"))]
pub fn return_large_memory() {}

/// Returns free memory that the allocator keeps to the kernel (malloc_trim(3)). Takes some milliseconds.
#[cfg(target_env = "gnu")]
pub fn return_free_memory() {
    // SAFETY: it takes a number and touches only free memory.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
pub fn return_free_memory() {}
