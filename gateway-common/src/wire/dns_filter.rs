//! In-kernel DNS filter: tables of listed names, the clients that it answers, the answers of blocked names, and hits.

use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::dns_cache::DnsCacheKey;
use super::{Address, Mac};

/// Slots of a bucket. A bucket is one cache line.
pub const FILTER_SLOTS: usize = 8;
/// Maximum length of the part of a block answer that follows the question.
pub const FILTER_TAIL: usize = 104;
/// Length of the header without the message id: flags and four counts.
pub const FILTER_HEAD: usize = 10;
/// Number of answers of one table: [`FilterKind`](crate::dns_filter::FilterKind) times type class times EDNS class.
pub const FILTER_ANSWERS: u32 = 20 * 3 * 3;

/// Client that the filter answers: its addresses, the address of the resolver that it queries, and its interface.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct FilterClientKey {
    pub client: Address,
    /// Address of the gateway; zero for queries that are redirected from the addresses of other resolvers.
    pub server: Address,
    pub interface: u32,
    /// Source MAC address of its queries.
    pub host: Mac,
    pub _pad: u16,
}

/// State of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FilterClient {
    /// Epoch of the DNS cache in which the entry is valid.
    pub epoch: u64,
    /// Expiry in nanoseconds of the monotonic clock.
    pub until: u64,
    /// Serial number of the table that applies to the client.
    pub serial: u64,
    /// Kinds of answers that the client may get, a bit for each.
    pub kinds: u32,
    /// Number of answers that the client may still get before the resolver serves it again.
    pub budget: u32,
}

/// Hash of a name in a table without its first and last five bits, with the kinds of its answer in the last ten.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(C)]
pub struct FilterSlot(pub u64);

/// Key of the hashes of names.
#[derive(Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NameKey {
    pub seed: u64,
    /// Odd number.
    pub factor: u64,
}

/// The key stays secret: a name with the hash of another one could be constructed with it.
impl fmt::Debug for NameKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NameKey")
    }
}

/// Element of a table. Element 0 is a [`FilterHeader`] instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FilterBucket {
    pub slots: [FilterSlot; FILTER_SLOTS],
}

/// Element 0 of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FilterHeader {
    pub serial: u64,
    pub key: NameKey,
    /// Number of buckets, which begin at element 1.
    pub buckets: u64,
    pub _pad: [u64; 4],
}

impl From<FilterHeader> for FilterBucket {
    fn from(header: FilterHeader) -> FilterBucket {
        zerocopy::transmute!(header)
    }
}

impl From<FilterBucket> for FilterHeader {
    fn from(element: FilterBucket) -> FilterHeader {
        zerocopy::transmute!(element)
    }
}

/// Block answer around the question: flags and counts before it, records behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FilterAnswer {
    /// Serial number of its table; 0 for an answer that no table has.
    pub serial: u64,
    /// Flags and counts, without the flags that are copied from the query.
    pub head: [u8; FILTER_HEAD],
    pub length: u16,
    pub _pad: u32,
    pub tail: [u8; FILTER_TAIL],
}

/// Answered query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FilterHit {
    /// Client, server address, interface and query. The server is that of the packet, also for a redirected query.
    pub query: DnsCacheKey,
    /// Index of the answer.
    pub answer: u32,
    /// Nanoseconds of the monotonic clock.
    pub time: u64,
}

/// Query while the programs evaluate it. In the kernel it is a value of a map: the verifier does not track values of
/// maps, so the states of a loop are equal after each pass.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FilterQuery {
    /// Hash of the last label of the name, of the last two, and so on.
    pub suffixes: [u64; FILTER_LABELS],
    /// Query bytes from the flags on, padded with zeroes. A power of two, so that a mask bounds each index.
    pub question: [u8; FILTER_QUESTION],
    /// Bit n: a label begins at offset n of the name.
    pub starts: [u64; 2],
    pub hash: u64,
    pub serial: u64,
    pub kinds: u32,
    /// Offset of the next label in the name.
    pub next: u32,
    /// Offset of the root label in the name.
    pub end: u32,
    /// Number of labels.
    pub labels: u32,
    /// Offset behind the question, from the flags on.
    pub question_end: u32,
    /// Type class and EDNS class: index of the answer among those of one kind.
    pub variant: u32,
    /// Bit n: an entry has kind n.
    pub seen: u32,
    /// Index of the answer.
    pub answer: u32,
}

/// Maximum number of labels of a name, without the root.
pub const FILTER_LABELS: usize = 16;
/// Length of the copy of the query.
pub const FILTER_QUESTION: usize = 128;
