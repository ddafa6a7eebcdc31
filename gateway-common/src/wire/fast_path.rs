//! Fast path: established flows whose packets pass the IP stack by, with the address translation that conntrack gave
//! them.
//!
//! The maps of this module end with the daemon. An entry is valid only in the epoch and the plan generation in which
//! its flow was evaluated.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Address, Mac};

/// The epoch in which the fast path is off.
pub const FAST_OFF: u32 = 0;

/// Indexes of the words that decide whether entries are valid.
pub mod fast_words {
    /// The epoch, [`FAST_OFF`](super::FAST_OFF) while the fast path is off.
    pub const EPOCH: u32 = 0;
    /// End of the lease of the daemon, in [`DEADLINE_SHIFT`](crate::wire::DEADLINE_SHIFT) units of the flow clock.
    pub const LEASE: u32 = 1;
}

/// An interface that the fast path may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FastLink {
    /// Maximum length of IP packets, by the interface and all routes through it.
    pub mtu: u16,
    /// 1 for interfaces with an Ethernet header, 0 for interfaces whose packets begin with the IP header.
    pub ethernet: u16,
}

/// Bits of [`FastAction::flags`].
pub mod fast_flags {
    /// The packets are replies: they enter by an uplink or a tunnel and leave to the LAN.
    pub const REPLY: u8 = 1;
    /// Packets enter with an Ethernet header.
    pub const FROM_ETHERNET: u8 = 2;
    /// Packets leave with an Ethernet header.
    pub const TO_ETHERNET: u8 = 4;
    /// Packets get another source address, replies another destination address.
    pub const TRANSLATED: u8 = 8;
}

/// Action of the entries of many flows: of one host, policy and egress interface, and one direction. It does not change
/// while it is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(8))]
pub struct FastAction {
    pub epoch: u32,
    /// Generation of the plan that evaluated the flows.
    pub generation: u32,
    /// Index of the interface by which packets enter.
    pub ingress: u32,
    /// Index of the interface by which packets leave.
    pub egress: u32,
    /// Fwmark of the packets.
    pub mark: u32,
    /// Number of the policy, 0 without one.
    pub policy: u32,
    /// Number of the device, 0 without one.
    pub device: u32,
    /// Source address after the translation; for replies, destination address. Zero without translation.
    pub address: Address,
    /// Maximum length of IP packets on the egress interface.
    pub mtu: u16,
    /// [`crate::verdict::Reason`] as a number.
    pub reason: u8,
    /// Bits of [`fast_flags`].
    pub flags: u8,
    /// MAC address of the LAN host, the source of its packets.
    pub host: Mac,
    /// MAC addresses after the rewrite.
    pub to: Mac,
    pub from: Mac,
    pub _pad: [u8; 6],
}

/// All of an entry beside addresses and ports. It changes in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FastState {
    /// Protocol of the packets.
    pub protocol: u8,
    /// [`FastEnd`] as a number.
    pub end: u8,
    /// Source port after the translation; for replies, destination port. In memory order.
    pub port: u16,
    /// Index of the [`FastAction`].
    pub action: u16,
    /// Low bits of the epoch.
    pub epoch: u16,
    /// Digest of the key, the port and the action. An entry or an action may be replaced during a read; the result of
    /// such a read has another digest.
    pub digest: u32,
    /// Time at which the egress guard last confirmed the flow, in [`super::DEADLINE_SHIFT`] units of the flow clock.
    pub confirmed: u32,
    /// Time at which the IP stack last got a packet for confirmation, in the same units.
    pub probed: u32,
}

/// End of an entry before its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FastEnd {
    /// The entry is in use.
    None = 0,
    /// A segment with FIN or RST. The flow is not entered again before its next SYN.
    Closed = 1,
    /// A SYN, another flow with the same translation, or a packet of another host with the same addresses and ports.
    Replaced = 2,
}

/// Entry of one direction of an IPv4 flow. Addresses and ports are those before the translation, in memory order. Two
/// entries fill a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FastEntry4 {
    pub source: u32,
    pub destination: u32,
    pub source_port: u16,
    pub destination_port: u16,
    pub state: FastState,
}

/// Entry of one direction of an IPv6 flow, as [`FastEntry4`]. It fills a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FastEntry6 {
    pub source: Address,
    pub destination: Address,
    pub source_port: u16,
    pub destination_port: u16,
    pub state: FastState,
    pub _pad: [u32; 2],
}

/// Number of entries of a bucket, a power of two.
pub const FAST_PLACES: usize = 8;

/// Tags of the entries of a bucket: a byte of the hash of each key. They lie apart from the entries, close together, so
/// the search for a flow without an entry seldom misses the caches of the processor.
///
/// An entry whose tag another processor has overwritten is not found; its flow goes through the IP stack and gets
/// another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct FastTags(pub u64);

/// Counters of the entries of a bucket: bytes of IP packets above 24 bits of packets. A place keeps counting for the next
/// entry, so the counters are never reset.
pub type FastTraffic = [u64; FAST_PLACES];

/// Returns what a packet of this length adds to the counter of its entry.
#[inline(always)]
pub const fn fast_traffic(length: u32) -> u64 {
    (length as u64) << 24 | 1
}

/// Entry that another one has replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FastReplaced {
    /// Counter of its place.
    pub word: u64,
    /// Number of its bucket times [`FAST_PLACES`], and of its place.
    pub place: u32,
    /// 1 for a [`FastEntry6`], 0 for a [`FastEntry4`].
    pub ipv6: u32,
    /// The entry, from its first byte on. What follows a [`FastEntry4`] is undefined.
    pub entry: [u32; 16],
}

/// Packet that ingress evaluated, until the egress guard sees it after routing and translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FastPending {
    /// Flow clock in nanoseconds, 0 if the element is free.
    pub time: u64,
    pub source: Address,
    pub destination: Address,
    pub epoch: u32,
    pub generation: u32,
    pub interface: u32,
    pub mark: u32,
    pub policy: u32,
    pub device: u32,
    /// Length of the IP packet.
    pub length: u32,
    /// First word of the IP header, with the traffic class.
    pub first: u32,
    /// Content that translation does not change: sequence and acknowledgement number of TCP, or the beginning of the
    /// payload of UDP.
    pub content: [u32; 2],
    /// In memory order.
    pub source_port: u16,
    pub destination_port: u16,
    /// Identification of the IPv4 packet, 0 for IPv6.
    pub identification: u16,
    /// MAC address of the host, and of the interface of the gateway.
    pub host: Mac,
    pub gateway: Mac,
    pub protocol: u8,
    /// [`crate::verdict::Reason`] as a number.
    pub reason: u8,
    pub ipv6: u8,
    pub hop_limit: u8,
    pub _pad: [u8; 2],
}

/// Index of a counter of the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum FastCounter {
    /// Packets from the LAN that passed the IP stack by.
    Forwarded = 0,
    /// Replies that passed the IP stack by.
    Replied = 1,
    /// Packets of entries that the IP stack got for confirmation.
    Probed = 2,
    /// Entries that the egress guard made or confirmed.
    Confirmed = 3,
    /// Packets at the egress guard that did not match the pending packet of their index.
    Mismatched = 4,
    /// Entries that ended with FIN, RST or SYN.
    Ended = 5,
    /// Packets of entries that the IP stack got because they are too long, or their hop limit is too low.
    Exceptional = 6,
    /// Packets from the LAN that were evaluated while the fast path was on.
    Evaluated = 7,
    /// Packets of flows without an entry, because their bucket has no free place.
    Full = 8,
}

impl FastCounter {
    pub const ALL: [FastCounter; 9] = [
        FastCounter::Forwarded,
        FastCounter::Replied,
        FastCounter::Probed,
        FastCounter::Confirmed,
        FastCounter::Mismatched,
        FastCounter::Ended,
        FastCounter::Exceptional,
        FastCounter::Evaluated,
        FastCounter::Full,
    ];

    /// Returns the name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            FastCounter::Forwarded => "forwarded",
            FastCounter::Replied => "replied",
            FastCounter::Probed => "probed",
            FastCounter::Confirmed => "confirmed",
            FastCounter::Mismatched => "mismatched",
            FastCounter::Ended => "ended",
            FastCounter::Exceptional => "exceptional",
            FastCounter::Evaluated => "evaluated",
            FastCounter::Full => "full",
        }
    }
}
