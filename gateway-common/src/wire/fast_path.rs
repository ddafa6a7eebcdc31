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

/// IPv4 flow before the translation of this direction. Addresses and ports are in memory order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct FastKey4 {
    pub source: u32,
    pub destination: u32,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u32,
}

/// IPv6 flow before the translation of this direction. Addresses and ports are in memory order.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct FastKey6 {
    pub source: Address,
    pub destination: Address,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u32,
}

/// Bits of [`FastAction::flags`].
pub mod fast_flags {
    /// The packets are replies: they enter by an uplink or a tunnel and leave to the LAN.
    pub const REPLY: u8 = 1;
    /// Packets enter with an Ethernet header.
    pub const FROM_ETHERNET: u8 = 2;
    /// Packets leave with an Ethernet header.
    pub const TO_ETHERNET: u8 = 4;
}

/// Action of an entry, the same for both address families. It does not change while the entry is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FastAction {
    pub epoch: u32,
    /// Generation of the plan that evaluated the flow.
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
    /// Ports after the translation, in memory order.
    pub source_port: u16,
    pub destination_port: u16,
    /// Maximum length of IP packets on the egress interface.
    pub mtu: u16,
    /// Source MAC address that packets of the LAN host have. Not compared for replies.
    pub host: Mac,
    /// MAC addresses after the rewrite.
    pub to: Mac,
    pub from: Mac,
    /// [`crate::verdict::Reason`] as a number.
    pub reason: u8,
    /// Bits of [`fast_flags`].
    pub flags: u8,
    pub _pad: [u8; 2],
}

/// State of an entry, which changes in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FastState {
    /// Digest of the key and of everything before the state. The kernel may reuse an element for another flow during
    /// a read; the result of such a read has another digest.
    pub digest: u32,
    /// Time at which the egress guard last confirmed the flow, in [`super::DEADLINE_SHIFT`] units of the flow clock.
    pub confirmed: u32,
    /// Time at which the IP stack last got a packet for confirmation, in the same units.
    pub probed: u32,
    /// [`FastEnd`] as a number.
    pub end: u32,
}

/// End of an entry before its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FastEnd {
    /// The entry is in use.
    None = 0,
    /// A segment with FIN or RST. The flow is not entered again before its next SYN.
    Closed = 1,
    /// A SYN, or another flow with the same translation.
    Replaced = 2,
}

/// Entry of an IPv4 flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FastValue4 {
    /// Addresses after the translation, in memory order.
    pub source: u32,
    pub destination: u32,
    pub action: FastAction,
    pub state: FastState,
}

/// Entry of an IPv6 flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FastValue6 {
    /// Addresses after the translation.
    pub source: Address,
    pub destination: Address,
    pub action: FastAction,
    pub state: FastState,
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
}

impl FastCounter {
    pub const ALL: [FastCounter; 8] = [
        FastCounter::Forwarded,
        FastCounter::Replied,
        FastCounter::Probed,
        FastCounter::Confirmed,
        FastCounter::Mismatched,
        FastCounter::Ended,
        FastCounter::Exceptional,
        FastCounter::Evaluated,
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
        }
    }
}

/// Odd multiplier from which each word gets its own summand, so that the order of words matters.
const MULTIPLIER: u32 = 0x9e37_79b1;

/// Multilinear hash of words: a sum of products of pairs (NH of RFC 4418, section 5.2.2). The products are independent
/// of one another, so the processor computes them in parallel.
macro_rules! sum_of_products {
    ($sum:ident, $words:expr, $($index:literal)*) => {$({
        const FIRST: u32 = MULTIPLIER.wrapping_mul(2 * $index + 1);
        const SECOND: u32 = MULTIPLIER.wrapping_mul(2 * $index + 101);
        let (first, second) = ($words[2 * $index], $words[2 * $index + 1]);
        let product = (first.wrapping_add(FIRST) as u64).wrapping_mul(second.wrapping_add(SECOND) as u64);
        $sum = $sum.wrapping_add(product);
    })*};
}

/// Summands of the words of the value follow those of the key.
macro_rules! digest {
    ($key:expr, $value:expr, $seed:expr, [$($of_key:literal)*], [$($of_value:literal)*]) => {{
        let mut sum = $seed as u64;
        sum_of_products!(sum, $key, $($of_key)*);
        let mut of_value = 0u64;
        sum_of_products!(of_value, $value, $($of_value)*);
        sum = sum.wrapping_add(of_value.wrapping_mul(MULTIPLIER as u64));
        (sum ^ sum >> 32) as u32
    }};
}

impl FastValue4 {
    /// Returns the digest of the key, the addresses, the action and a secret.
    #[inline(always)]
    pub fn digest_for(&self, key: &FastKey4, seed: u32) -> u32 {
        let key: &[u32; 4] = zerocopy::transmute_ref!(key);
        let value: &[u32; 20] = zerocopy::transmute_ref!(self);
        digest!(key, value, seed, [0 1], [0 1 2 3 4 5 6 7])
    }
}

impl FastValue6 {
    /// Returns the digest of the key, the addresses, the action and a secret.
    #[inline(always)]
    pub fn digest_for(&self, key: &FastKey6, seed: u32) -> u32 {
        let key: &[u32; 10] = zerocopy::transmute_ref!(key);
        let value: &[u32; 26] = zerocopy::transmute_ref!(self);
        digest!(key, value, seed, [0 1 2 3 4], [0 1 2 3 4 5 6 7 8 9 10])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_key_and_action_changes_the_digest() {
        let key = FastKey4 { source: 1, destination: 2, source_port: 3, destination_port: 4, protocol: 6 };
        let action = FastAction { epoch: 7, generation: 8, mtu: 1500, ..FastAction::default() };
        let value = FastValue4 { source: 5, destination: 6, action, state: FastState::default() };
        let digest = value.digest_for(&key, 9);
        assert_ne!(digest, value.digest_for(&key, 10), "another secret");
        let mut bytes: [u8; 80] = zerocopy::transmute!(value);
        for index in 0..80 {
            bytes[index] ^= 1;
            let torn: FastValue4 = zerocopy::transmute!(bytes);
            assert_eq!(torn.digest_for(&key, 9) == digest, index >= 64, "byte {index}");
            bytes[index] ^= 1;
        }
        let mut bytes: [u8; 16] = zerocopy::transmute!(key);
        for index in 0..16 {
            bytes[index] ^= 0x80;
            let other: FastKey4 = zerocopy::transmute!(bytes);
            assert_ne!(value.digest_for(&other, 9), digest, "byte {index} of the key");
            bytes[index] ^= 0x80;
        }
    }

    #[test]
    fn each_word_of_a_long_entry_changes_the_digest() {
        let key = FastKey6 { source: Address([1, 2, 3, 4]), protocol: 17, ..FastKey6::default() };
        let value = FastValue6 { destination: Address([5, 6, 7, 8]), ..FastValue6::default() };
        let digest = value.digest_for(&key, 9);
        let mut bytes: [u8; 104] = zerocopy::transmute!(value);
        for index in 0..104 {
            bytes[index] ^= 1;
            let torn: FastValue6 = zerocopy::transmute!(bytes);
            assert_eq!(torn.digest_for(&key, 9) == digest, index >= 88, "byte {index}");
            bytes[index] ^= 1;
        }
    }
}
