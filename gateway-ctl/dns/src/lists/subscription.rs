//! Lists that are kept up to date.

use std::time::Duration;

use gateway_core::dns::lists::Format;
use gateway_model::Id;

/// List that is kept up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// ID of the object that names the list.
    pub id: Id,
    pub url: String,
    /// Format; detected from the list if not set.
    pub format: Option<Format>,
    /// Interval between checks.
    pub every: Duration,
    pub limits: Limits,
    /// The list is one of public resolvers, whose names and networks are delivered as text, too.
    pub keeps_servers: bool,
}

/// Limits of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of entries. A list with more is rejected, and the previous copy stays.
    pub max_entries: u64,
    /// Maximum number of entries of all lists together. A list that exceeds it is rejected; the previous copy stays.
    pub max_total_entries: u64,
    /// Permits a server on this host, on the LAN, or at another address that is not public.
    pub private_targets: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_entries: 5_000_000, max_total_entries: 10_000_000, private_targets: false }
    }
}
