//! TCP segments with a ClientHello of TLS, in which the daemon reads the name of the server for the flow log.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::FlowKey;

/// Maximum length of a payload that is copied. A power of two. What the kernel has merged may be longer.
pub const SEGMENT: usize = 2048;

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HelloSegment {
    pub flow: FlowKey,
    /// Sequence number of the first byte.
    pub sequence: u32,
    pub length: u32,
    /// The payload, `length` bytes of it.
    pub bytes: [u8; SEGMENT],
}
