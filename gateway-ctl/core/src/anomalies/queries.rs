//! DNS queries of a device in an hour.

use super::names;
use super::sets::{BoundedMap, BoundedSet};

/// Query that a device sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuerySeen<'a> {
    /// In lower case.
    pub name: &'a str,
    /// The answer was that the name does not exist.
    pub nxdomain: bool,
    /// The name is one of a public resolver of DNS over HTTPS.
    pub is_doh: bool,
}

/// Generated names from which on it is an anomaly.
pub(super) const MAX_GENERATED: usize = 20;
/// Different names below a domain, and their mean length, from which on it is an anomaly.
pub(super) const MAX_BELOW_DOMAIN: usize = 100;
const MIN_MEAN_LENGTH: usize = 30;

/// Queries of an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HourQueries {
    pub count: u64,
    pub nxdomain: u64,
    generated: BoundedSet<u64, 128>,
    below: BoundedMap<u64, Below, 10>,
    /// Name of a resolver that was asked for last.
    pub doh: Option<String>,
}

/// Names below one domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Below {
    domain: String,
    names: BoundedSet<u64, 128>,
    length: usize,
}

impl HourQueries {
    pub(super) fn note(&mut self, query: &QuerySeen<'_>) {
        self.count += 1;
        self.nxdomain += u64::from(query.nxdomain);
        if query.is_doh {
            self.doh = Some(query.name.chars().take(64).collect());
        }
        if query.nxdomain && names::is_generated(query.name) {
            self.generated.insert(hash(query.name));
        }
        let below = names::below_domain(query.name);
        if below.len() < MIN_MEAN_LENGTH / 2 {
            return;
        }
        let domain = names::domain(query.name);
        let entry = self.below.entry(hash(domain), |below| below.names.len());
        if entry.domain.is_empty() {
            entry.domain = domain.chars().take(64).collect();
        }
        let before = entry.names.len();
        entry.names.insert(hash(query.name));
        if entry.names.len() > before {
            entry.length += below.len();
        }
    }

    /// Returns the number of names that look generated and do not exist.
    pub(super) fn generated(&self) -> usize {
        self.generated.len()
    }

    /// Returns the domain with the most long names below it, and their number.
    pub(super) fn tunnel(&self) -> Option<(&str, usize)> {
        let long = self.below.iter().map(|(_, below)| below);
        let long = long.filter(|below| below.length >= MIN_MEAN_LENGTH * below.names.len());
        long.max_by_key(|below| below.names.len()).map(|below| (below.domain.as_str(), below.names.len()))
    }

    /// Returns the bytes of memory that it takes, at most.
    pub(super) fn bytes(&self) -> usize {
        let below: usize = self.below.iter().map(|(_, below)| 96 + 64 + 16 * below.names.len()).sum();
        256 + 16 * self.generated.len() + below
    }
}

fn hash(text: &str) -> u64 {
    rapidhash::v3::rapidhash_v3(text.as_bytes())
}
