//! Copies of plain values in words, one after the other.
//!
//! Where the compiler does not know two places to be distinct, it reads the whole value before it writes the first word,
//! which takes more registers than there are, or calls `memmove`, which is a loop over bytes.

use gateway_common::maps::Wire;

/// Copies a value, in the largest words that its alignment allows.
///
/// # Safety
///
/// `from` is readable, and `to` writable. Other processors may write to either.
#[inline(always)]
pub unsafe fn copy<T: Wire>(from: *const T, to: *mut T) {
    // SAFETY: as above; a size is a multiple of the alignment.
    unsafe {
        match align_of::<T>() {
            8 => copy_as::<T, u64>(from, to),
            4 => copy_as::<T, u32>(from, to),
            2 => copy_as::<T, u16>(from, to),
            _ => copy_as::<T, u8>(from, to),
        }
    }
}

#[inline(always)]
unsafe fn copy_as<T, W>(from: *const T, to: *mut T) {
    let (from, to) = (from.cast::<W>(), to.cast::<W>());
    let mut index = 0;
    while index < size_of::<T>() / size_of::<W>() {
        // Volatile: else the compiler makes one copy of them again.
        // SAFETY: the index is below the number of words of a value.
        unsafe { to.add(index).write(from.add(index).read_volatile()) };
        index += 1;
    }
}
