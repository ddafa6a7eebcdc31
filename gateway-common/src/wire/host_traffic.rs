//! Traffic of the hosts of the LAN, as the tap on LAN interfaces counts it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Mac;

/// Host of the LAN: a MAC address at an interface. The daemon enters those that are counted, so forged addresses take no
/// room.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct HostKey {
    pub interface: u32,
    pub mac: Mac,
    pub _pad: [u8; 2],
}

impl HostKey {
    pub const fn new(interface: u32, mac: Mac) -> HostKey {
        HostKey { interface, mac, _pad: [0; 2] }
    }
}

/// Bytes of the frames between a host and this gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HostTraffic {
    /// Bytes that the host has sent.
    pub sent: u64,
    /// Bytes that it has received.
    pub received: u64,
}
