//! Arrays of the kernel that are mapped into memory (`BPF_F_MMAPABLE`). A program may write to them meanwhile.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::{self, NonNull};

use gateway_common::maps::Wire;

/// A part of an array, mapped until the value is dropped.
#[derive(Debug)]
pub struct Mapped {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Mapped {}
// SAFETY: what others share is only read, each time as a copy.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Maps the first bytes of an array, only to read them.
    pub fn read_only(array: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        Self::new(array, 0, length, libc::PROT_READ)
    }

    /// Maps bytes from a multiple of the page size on.
    fn new(array: BorrowedFd<'_>, first: usize, length: usize, protection: libc::c_int) -> io::Result<Self> {
        let at = libc::off_t::try_from(first).map_err(io::Error::other)?;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, array.as_raw_fd(), at)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast()).map(|start| Self { start, length }).ok_or_else(io::Error::last_os_error)
    }

    /// Returns what begins at an offset in bytes. It may be a mixture if a program writes to it.
    ///
    /// # Panics
    ///
    /// Panics if it is not within the mapping or not aligned.
    pub fn read<T: Wire>(&self, offset: usize) -> T {
        assert!(offset + size_of::<T>() <= self.length && offset.is_multiple_of(align_of::<T>()));
        // SAFETY: within the mapping and aligned, as its start is a page. All bytes are valid in a `Wire` type.
        unsafe { self.start.add(offset).cast::<T>().read_volatile() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping of this value, of which no reference was given away.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Writes words into an array, from the first one on. The offset is in bytes, a multiple of a word.
pub(super) fn write_words(array: BorrowedFd<'_>, offset: usize, words: &[u32]) -> io::Result<()> {
    // SAFETY: the call has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_err(io::Error::other)?;
    let (first, within) = (offset / page * page, offset % page);
    let length = (within + size_of_val(words)).next_multiple_of(page);
    let mapped = Mapped::new(array, first, length, libc::PROT_READ | libc::PROT_WRITE)?;
    for (index, word) in words.iter().enumerate() {
        // SAFETY: the words are within the mapping, which may be written to and which nothing else in this process
        // uses. Programs of the kernel may write to it meanwhile.
        unsafe { mapped.start.add(within).cast::<u32>().add(index).write_volatile(*word) };
    }
    Ok(())
}
