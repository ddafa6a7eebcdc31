//! In-kernel DNS packet cache: the ingress program repeats an answer for an identical query of the same client. Only
//! the resolver creates entries; an entry is valid until one of its inputs changes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Address, Mac};

/// Maximum length of a query, counted from the flags.
pub const QUESTION: usize = 88;
/// Maximum length of an answer, counted from the flags. A power of two, so that a mask bounds the length for the
/// verifier.
pub const ANSWER: usize = 512;
/// Maximum number of TTLs in an answer that count down.
pub const TTLS: usize = 8;
/// Length of the message id, which is not stored.
pub const MESSAGE_ID: usize = 2;

/// Key of a cached answer: client, server address, interface, MAC address and query bytes. The case of letters counts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct DnsCacheKey {
    pub client: Address,
    /// Address of the gateway that received the query.
    pub server: Address,
    /// Ingress interface of the query.
    pub interface: u32,
    /// Source MAC address of the query: two hosts may claim one address.
    pub host: Mac,
    pub length: u16,
    /// Query bytes from the flags on, padded with zeroes.
    pub question: [u8; QUESTION],
}

/// Cached answer. An entry that is overwritten during a read differs at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DnsCacheValue {
    /// Unique among all entries.
    pub id: u64,
    /// Epoch in which the entry is valid.
    pub epoch: u64,
    /// Expiry in nanoseconds of the monotonic clock.
    pub until: u64,
    /// Start of the TTLs in nanoseconds of the monotonic clock.
    pub since: u64,
    /// Change of the checksum of the message from the query to this answer.
    pub change: u32,
    /// Index of the answer's last byte.
    pub last: u16,
    /// Number of TTLs that count down.
    pub ttls: u16,
    pub ttl: [u32; TTLS],
    /// Their offsets in bytes from the flags.
    pub at: [u16; TTLS],
    pub answer: [u8; ANSWER],
    pub tail: u64,
}

/// Cache hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DnsHit {
    /// Id of the cache entry.
    pub id: u64,
    /// Nanoseconds of the monotonic clock.
    pub time: u64,
}
