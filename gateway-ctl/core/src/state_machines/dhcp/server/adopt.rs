//! Service without the stored leases, and their return.
//!
//! While leases wait for their storage, no client gets an address that another one may have: only reservations and leases in
//! memory are served, and new addresses are withheld. Renewals are in memory only. If a run ends with them, the next one
//! keeps each lease that may have been renewed for as long as a renewal lasts.

use jiff::Timestamp;

use super::super::lease::{Lease, LeaseState};
use super::Server;

impl Server {
    /// Withholds new addresses, or ends that.
    pub fn set_withholding(&mut self, is_withholding: bool) {
        self.is_withholding = is_withholding;
    }

    pub fn is_withholding(&self) -> bool {
        self.is_withholding
    }

    /// Takes stored leases that were not at hand. A lease in memory is newer than the stored one of its address.
    /// `unknown_since`: the time of the last write, in seconds, if an earlier run may have renewed leases after it.
    pub fn adopt(
        &mut self,
        stored: impl IntoIterator<Item = Lease>,
        unknown_since: Option<i64>,
        now: Timestamp,
    ) {
        let longest = self.config.scopes.iter().map(|scope| i64::from(scope.lease_sec)).max();
        let now = now.as_second();
        // Renewals count from the second in which they are answered.
        let renewed_until = now + 1 + longest.unwrap_or_default();
        for mut lease in stored {
            if self.leases.get(lease.address).is_some() {
                continue;
            }
            let is_unknown = unknown_since.is_some_and(|since| lease.ends > since);
            if is_unknown && lease.state == LeaseState::Active {
                lease.ends = lease.ends.max(renewed_until);
            }
            if lease.is_active(now) && self.has_other_lease(&lease, now) {
                (lease.state, lease.ends) = (LeaseState::Released, now);
            }
            let address = lease.address;
            self.leases.insert(lease);
            self.refresh(address, now);
        }
        self.names_generation += 1;
    }

    /// Reports whether the client of a lease has another one in the same network, by its MAC address.
    fn has_other_lease(&self, lease: &Lease, now: i64) -> bool {
        let scope = self.config.scopes.iter().find(|scope| scope.network.contains(&lease.address));
        let Some(scope) = scope else { return false };
        let is_other = |other: &Lease| {
            other.mac == lease.mac && other.is_active(now) && scope.network.contains(&other.address)
        };
        // Stored leases of one client are alike; those in memory are few behind a start without them.
        let keys = [lease.key(), super::ClientKey::of_mac(lease.mac)];
        keys.iter().any(|key| self.leases.of_client(key).any(is_other))
    }
}
