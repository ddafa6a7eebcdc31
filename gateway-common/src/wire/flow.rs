//! The flow table: the verdict each flow got, for as long as it lives.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Address, Mac};

/// One direction of a conversation as it enters from the LAN. The sender's MAC address is part of
/// it, so that no other host can ride on a flow.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct FlowKey {
    pub source: Address,
    pub destination: Address,
    pub interface: u32,
    pub source_port: u16,
    pub destination_port: u16,
    pub mac: Mac,
    pub vlan: u16,
    pub protocol: u8,
    /// [`Fragment`] as a number.
    pub fragment: u8,
    pub _pad: [u8; 2],
}

/// Whether a packet is a piece of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fragment {
    #[default]
    Whole = 0,
    /// Has the transport header.
    First = 1,
    /// Has no ports: judged by its addresses only.
    Later = 2,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FlowValue {
    /// Boot-time clock, nanoseconds, of a recent packet.
    pub seen: u64,
    pub generation: u32,
    /// Mark the packets bear; meaningless when `action` drops.
    pub mark: u32,
    pub policy: u32,
    pub device: u32,
    /// [`crate::verdict::Action`] as a number.
    pub action: u8,
    /// [`crate::verdict::Reason`] as a number.
    pub reason: u8,
    /// Leg of the flow, 0 without one.
    pub leg: u8,
    /// 1 when a TCP connection has got beyond its opening segments.
    pub established: u8,
    pub _pad: [u8; 4],
}
