//! Counters and the records of the ring buffer.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Address;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CounterValue {
    pub packets: u64,
    pub bytes: u64,
}

/// Number of counters in one map value.
pub const COUNTER_PAGE: u32 = 64;

/// Page of adjacent counters. A per-CPU array finds each value through a table of pointers; with one counter per
/// value, many counters would cost two cache misses each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CounterPage(pub [CounterValue; COUNTER_PAGE as usize]);

/// Returns the page of a counter and its index in the page.
#[inline(always)]
pub const fn counter_place(number: u32) -> (u32, usize) {
    (number / COUNTER_PAGE, (number % COUNTER_PAGE) as usize)
}

/// Key of the counters of blocks: packets that asked another resolver, or that a privacy class blocked.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct BlockKey {
    /// Number of the device, 0 without one.
    pub device: u32,
    /// Number of the policy that would have routed the packet, 0 without one.
    pub policy: u32,
    /// [`crate::verdict::Reason`] as a number.
    pub reason: u32,
}

/// Sampled verdict, or a leak that the egress guard prevented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EventRecord {
    /// Boot-time clock, nanoseconds.
    pub time: u64,
    pub source: Address,
    pub destination: Address,
    pub interface: u32,
    pub mark: u32,
    pub policy: u32,
    pub device: u32,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
    /// [`crate::verdict::Reason`] as a number.
    pub reason: u8,
    /// [`crate::verdict::Action`] as a number.
    pub action: u8,
    /// 1 when the guard wrote it.
    pub guard: u8,
    pub length: u32,
    pub _pad: [u8; 4],
}
