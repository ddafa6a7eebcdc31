//! Datagrams with an Initial packet of QUIC, which the daemon decrypts.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::FlowKey;

/// Maximum length of a datagram that is copied. A power of two, beyond the packet size of Ethernet.
pub const DATAGRAM: usize = 2048;

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct QuicInitial {
    pub flow: FlowKey,
    pub length: u32,
    /// The payload of the datagram, `length` bytes of it.
    pub bytes: [u8; DATAGRAM],
}
