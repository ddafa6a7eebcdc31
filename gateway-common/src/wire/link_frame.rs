//! Copies of broadcast and multicast packets that the daemon reads.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Mac;

/// Maximum length of a packet that is copied. A power of two, beyond the packet size of Ethernet.
pub const LINK_PACKET: usize = 2048;

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LinkFrame {
    /// Index of the interface that it arrived at.
    pub interface: u32,
    /// A [`LinkProtocol`](crate::link_protocol::LinkProtocol).
    pub protocol: u32,
    pub length: u32,
    /// Source address of the frame.
    pub mac: Mac,
    pub padding: u16,
    /// The packet from its IP header on, `length` bytes of it.
    pub bytes: [u8; LINK_PACKET],
}
