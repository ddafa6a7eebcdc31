//! Lists to be kept up to date.

use std::time::Duration;

use gateway_core::dns::lists::Format;
use gateway_model::Id;

/// A list to be kept up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Of the object that names it.
    pub id: Id,
    pub url: String,
    /// Detected from the list if not given.
    pub format: Option<Format>,
    /// From one look at it to the next.
    pub every: Duration,
    pub limits: Limits,
}

/// Bounds of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A list with more entries is refused, and the copy before stays.
    pub max_entries: u64,
    /// A list that would make it more entries of all lists together is refused, and the copy before stays.
    pub max_total_entries: u64,
    /// Its server may be this host, a host of the LAN, or have another address that is none of the internet.
    pub private_targets: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_entries: 5_000_000, max_total_entries: 10_000_000, private_targets: false }
    }
}
