//! Access to the bytes of a packet, bounds-checked, for kernel contexts and byte slices alike.

/// A packet that starts with its link-layer header.
pub trait Packet {
    /// The `N` bytes at `offset`, if the packet has them.
    fn bytes<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;

    /// Length of the whole packet.
    fn length(&self) -> u32;

    /// VLAN tag control information that the hardware or the kernel has taken out of the frame.
    fn stripped_vlan(&self) -> Option<u16> {
        None
    }
}

impl Packet for [u8] {
    fn bytes<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let end = offset.checked_add(N)?;
        self.get(offset..end)?.try_into().ok()
    }

    fn length(&self) -> u32 {
        u32::try_from(self.len()).unwrap_or(u32::MAX)
    }
}
