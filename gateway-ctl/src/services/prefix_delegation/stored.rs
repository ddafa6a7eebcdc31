//! Leases on disk. After a restart the client asks for the same prefix (RFC 8415, section 18.2.12).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway_core::state_machines::prefix_delegation::Lease;
use ipnet::Ipv6Net;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::os::json_file;

/// A lease with times of the wall clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredLease {
    pub net: Ipv6Net,
    pub server: Vec<u8>,
    pub preferred_until: Timestamp,
    pub valid_until: Timestamp,
}

impl StoredLease {
    /// Converts the times of a lease. `now` is the same time by both clocks.
    pub(super) fn new(lease: &Lease, now: (Duration, Timestamp)) -> StoredLease {
        let at = |time: Duration| {
            let left = SignedDuration::try_from(time.saturating_sub(now.0)).unwrap_or(SignedDuration::MAX);
            now.1.saturating_add(left).unwrap_or(Timestamp::MAX)
        };
        StoredLease {
            net: lease.net,
            server: lease.server.clone(),
            preferred_until: at(lease.preferred_until),
            valid_until: at(lease.valid_until),
        }
    }

    pub(super) fn lease(&self, now: (Duration, Timestamp)) -> Lease {
        let at = |time: Timestamp| now.0 + Duration::try_from(time.duration_since(now.1)).unwrap_or_default();
        Lease::stored(self.net, self.server.clone(), at(self.preferred_until), at(self.valid_until))
    }
}

pub(super) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("ipv6-delegations.json")
}

/// Returns the stored leases by uplink. A file that is missing or damaged has none.
pub(super) fn read(path: &Path) -> BTreeMap<String, StoredLease> {
    json_file::read(path)
}

pub(super) fn write(path: &Path, leases: &BTreeMap<String, StoredLease>) -> io::Result<()> {
    json_file::write(path, leases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_the_same_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        assert_eq!(read(&path), BTreeMap::new());
        let at = |second| Timestamp::from_second(second).unwrap();
        let second = Duration::from_secs;
        let net = "2001:db8:1::/56".parse().unwrap();
        let lease = Lease::stored(net, vec![0, 3, 0, 1], second(150), second(200));
        let stored = StoredLease::new(&lease, (second(100), at(5000)));
        assert_eq!((stored.preferred_until, stored.valid_until), (at(5050), at(5100)));
        let leases = BTreeMap::from([("wan0".to_owned(), stored.clone())]);
        write(&path, &leases).unwrap();
        assert_eq!(read(&path), leases);
        let later = stored.lease((second(1), at(5060)));
        assert_eq!((later.preferred_until, later.valid_until), (second(1), second(41)));
        std::fs::write(&path, "[]").unwrap();
        assert_eq!(read(&path), BTreeMap::new());
    }

    #[test]
    fn endless_lifetimes_have_an_end() {
        let lease = Lease::stored("2001:db8:1::/56".parse().unwrap(), vec![], Duration::MAX, Duration::MAX);
        let now = (Duration::ZERO, Timestamp::UNIX_EPOCH);
        assert_eq!(StoredLease::new(&lease, now).valid_until, Timestamp::MAX);
    }
}
