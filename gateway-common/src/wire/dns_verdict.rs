//! Hosts whose DNS queries XDP may answer, because the verdict on such a query is known.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Address, Mac};

/// Key of a known verdict on DNS queries: everything that the decision reads of a query, except for the source port,
/// which no rule on such queries reads.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct DnsVerdictKey {
    pub client: Address,
    /// Destination address of the query.
    pub server: Address,
    /// Ingress interface of the query.
    pub interface: u32,
    /// Source MAC address.
    pub host: Mac,
    pub _pad: u16,
}

/// Verdict that lets queries of a host reach the resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DnsVerdictValue {
    /// Expiry in nanoseconds of the monotonic clock.
    pub until: u64,
    /// Epoch of the fast path in which the query was evaluated.
    pub epoch: u32,
    /// Generation of the plan that evaluated it.
    pub generation: u32,
    /// Number of the policy, 0 without one.
    pub policy: u32,
    /// Number of the device, 0 without one.
    pub device: u32,
    /// [`crate::verdict::Reason`] as a number.
    pub reason: u32,
    /// Fwmark of the query.
    pub mark: u32,
}

/// Lifetime of a known verdict on DNS queries in nanoseconds. The next query after it is evaluated again.
pub const DNS_VERDICT_LIFETIME: u64 = 5_000_000_000;
