//! DNS answers that the ingress program returns: an answer that a client just got is returned again for the very
//! same question. Only the resolver decides which client gets which answer; an entry holds while nothing that it was made
//! from has changed.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Address;

/// Longest question, from the flags on.
pub const QUESTION: usize = 88;
/// Longest answer, from the flags on; a power of two, so that a mask bounds its length for the verifier.
pub const ANSWER: usize = 512;
/// So many TTLs of an answer can count down.
pub const TTLS: usize = 8;
/// The id of a message, which stands before what is kept.
pub const MESSAGE_ID: usize = 2;

/// Key of a cached answer: client, server address, interface and query bytes. The case of letters counts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct DnsCacheKey {
    pub client: Address,
    /// Address of the gateway that was asked.
    pub server: Address,
    /// Interface that the question came in by.
    pub interface: u32,
    pub length: u32,
    /// The question from its flags on; zeroes follow.
    pub question: [u8; QUESTION],
}

/// An answer. An entry that is overwritten while it is read differs at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DnsCacheValue {
    /// Unique among all entries.
    pub id: u64,
    /// It holds in this epoch only.
    pub epoch: u64,
    /// Nanoseconds of the monotonic clock: until then it holds.
    pub until: u64,
    /// From then on its TTLs count down.
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

/// An answer that was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DnsHit {
    /// Of the entry.
    pub id: u64,
    /// Nanoseconds of the monotonic clock.
    pub time: u64,
}
