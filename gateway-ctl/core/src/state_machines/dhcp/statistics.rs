//! Counters of messages, and the use of pools.

use std::collections::BTreeMap;

use super::message::{Rejection, RequestKind};
use super::reply::ReplyKind;

/// Use of the addresses of a scope. Reserved and excluded addresses are not part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Name of the scope.
    pub name: String,
    pub interface: String,
    pub size: u32,
    pub active: u32,
    pub offered: u32,
    pub declined: u32,
    pub free: u32,
}

impl PoolUsage {
    /// Returns the percentage of addresses that clients have or are offered.
    pub fn percent(&self) -> f64 {
        if self.size == 0 { 100.0 } else { f64::from(self.size - self.free) * 100.0 / f64::from(self.size) }
    }
}

/// Messages since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub requests: BTreeMap<RequestKind, u64>,
    pub offers: u64,
    pub acks: u64,
    pub naks: u64,
    /// Datagrams that were no requests of clients.
    pub rejected: u64,
    /// Requests of networks that are not served, and of clients of other servers.
    pub ignored: u64,
    /// Clients that got no address because there was none.
    pub without_address: u64,
    /// Requests for a new address while leases wait for the encrypted storage.
    pub withheld: u64,
    /// Offers that were withdrawn for another client.
    pub evicted_offers: u64,
    /// Addresses that were found in use.
    pub conflicts: u64,
}

impl Counters {
    pub(super) fn note_reply(&mut self, kind: ReplyKind) {
        *match kind {
            ReplyKind::Offer => &mut self.offers,
            ReplyKind::Ack => &mut self.acks,
            ReplyKind::Nak => &mut self.naks,
        } += 1;
    }

    /// Counts a datagram that is no request.
    pub fn note_rejection(&mut self, _: Rejection) {
        self.rejected += 1;
    }
}
