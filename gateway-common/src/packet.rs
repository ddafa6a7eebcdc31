//! Access to the bytes of a packet, bounds-checked, for kernel contexts and byte slices alike.

use crate::maps::Wire;

/// Headers must end within so many bytes: kernel and userspace look at no more.
pub const HEADER_WINDOW: usize = 256;

/// A packet that starts with its link-layer header.
pub trait Packet {
    /// The bytes at `offset` as a value, if the packet has them within [`HEADER_WINDOW`].
    fn read<T: Wire>(&self, offset: usize) -> Option<T>;

    /// Length of the whole packet.
    fn length(&self) -> u32;

    /// VLAN tag control information that the hardware or the kernel has taken out of the frame.
    fn stripped_vlan(&self) -> Option<u16> {
        None
    }
}

impl Packet for [u8] {
    fn read<T: Wire>(&self, offset: usize) -> Option<T> {
        let end = offset.checked_add(size_of::<T>()).filter(|end| *end <= HEADER_WINDOW)?;
        T::read_from_bytes(self.get(offset..end)?).ok()
    }

    fn length(&self) -> u32 {
        u32::try_from(self.len()).unwrap_or(u32::MAX)
    }
}
