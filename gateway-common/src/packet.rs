//! Access to the bytes of a packet, bounds-checked, for kernel contexts and byte slices alike.

use crate::maps::Wire;
use crate::wire::{NAME, ServerNames};

/// Maximum offset of the end of the headers; kernel and userspace read no further.
pub const HEADER_WINDOW: usize = 256;

/// A packet that starts with its link-layer header.
pub trait Packet {
    /// Returns the value at `offset`; `None` if it does not lie in the packet and within [`HEADER_WINDOW`].
    fn read<T: Wire>(&self, offset: usize) -> Option<T>;

    /// Returns the value at any `offset` of the packet.
    fn load<T: Wire>(&self, offset: usize) -> Option<T>;

    /// Copies a name of at most [`NAME`] bytes from any `offset`, and returns whether it lies in the packet.
    fn load_name(&self, offset: usize, length: usize, name: &mut [u8; NAME]) -> bool;

    /// Reads a name that was loaded: [`ServerNames::read`], which a kernel program calls in a form of its own.
    #[inline(always)]
    fn read_names(&self, name: &[u8; NAME], length: usize, is_whole: bool, names: &mut ServerNames) {
        names.read(name, length, is_whole);
    }

    /// Length of the whole packet.
    fn length(&self) -> u32;

    /// VLAN tag control information that the hardware or the kernel removed from the frame.
    fn stripped_vlan(&self) -> Option<u16> {
        None
    }
}

impl Packet for [u8] {
    fn read<T: Wire>(&self, offset: usize) -> Option<T> {
        let end = offset.checked_add(size_of::<T>()).filter(|end| *end <= HEADER_WINDOW)?;
        T::read_from_bytes(self.get(offset..end)?).ok()
    }

    fn load<T: Wire>(&self, offset: usize) -> Option<T> {
        let end = offset.checked_add(size_of::<T>())?;
        T::read_from_bytes(self.get(offset..end)?).ok()
    }

    fn load_name(&self, offset: usize, length: usize, name: &mut [u8; NAME]) -> bool {
        let bytes = offset.checked_add(length).and_then(|end| self.get(offset..end));
        let (Some(bytes), Some(name)) = (bytes, name.get_mut(..length)) else { return false };
        name.copy_from_slice(bytes);
        true
    }

    fn length(&self) -> u32 {
        u32::try_from(self.len()).unwrap_or(u32::MAX)
    }
}
