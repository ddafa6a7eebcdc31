//! Datagrams with an Initial packet of QUIC, which the daemon decrypts.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::FlowKey;

/// Maximum length of a datagram that is copied. A power of two, beyond the packet size of Ethernet.
pub const DATAGRAM: usize = 2048;
/// Maximum length of the headers before it. A power of two, beyond those of Ethernet, IPv6 and UDP.
pub const HEADERS: usize = 256;

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct QuicInitial {
    pub flow: FlowKey,
    /// Not zero: the program has dropped the packet, and the daemon sends it on when it knows the name in it.
    pub held: u32,
    /// Length of the headers from Ethernet to UDP. If the kernel had merged datagrams, they are those of the merged one.
    pub headers_length: u32,
    pub length: u32,
    pub headers: [u8; HEADERS],
    /// The payload of the datagram, `length` bytes of it.
    pub bytes: [u8; DATAGRAM],
}
