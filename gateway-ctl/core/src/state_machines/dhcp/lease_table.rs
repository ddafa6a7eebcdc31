//! Leases by address, by client and by end.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::client_key::ClientKey;
use super::lease::{Lease, LeaseState};

/// All leases, ended ones included.
#[derive(Debug, Default)]
pub(super) struct LeaseTable {
    by_address: BTreeMap<Ipv4Addr, Lease>,
    by_client: BTreeSet<(ClientKey, Ipv4Addr)>,
    /// Ends of active leases and of quarantines.
    ends: BTreeSet<(i64, Ipv4Addr)>,
}

impl LeaseTable {
    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.by_address.values()
    }

    pub(super) fn get(&self, address: Ipv4Addr) -> Option<&Lease> {
        self.by_address.get(&address)
    }

    /// Inserts a lease. Replaces the one of its address.
    pub(super) fn insert(&mut self, lease: Lease) {
        self.remove(lease.address);
        self.by_client.insert((lease.key(), lease.address));
        if lease.state != LeaseState::Released {
            self.ends.insert((lease.ends, lease.address));
        }
        self.by_address.insert(lease.address, lease);
    }

    pub(super) fn remove(&mut self, address: Ipv4Addr) -> Option<Lease> {
        let lease = self.by_address.remove(&address)?;
        self.by_client.remove(&(lease.key(), address));
        self.ends.remove(&(lease.ends, address));
        Some(lease)
    }

    pub(super) fn of_client<'a>(&'a self, key: &ClientKey) -> impl Iterator<Item = &'a Lease> + use<'a> {
        let from = (key.clone(), Ipv4Addr::UNSPECIFIED);
        let to = (key.clone(), Ipv4Addr::BROADCAST);
        self.by_client.range(from..=to).filter_map(|(_, address)| self.by_address.get(address))
    }

    /// Returns the time of the next end.
    pub(super) fn next_end(&self) -> Option<i64> {
        self.ends.first().map(|(end, _)| *end)
    }

    /// Returns the address of a lease or quarantine that has ended, each once.
    pub(super) fn take_ended(&mut self, now: i64) -> Option<Ipv4Addr> {
        let (end, address) = *self.ends.first()?;
        if end > now {
            return None;
        }
        self.ends.pop_first();
        if self.get(address).is_some_and(|lease| lease.state == LeaseState::Declined) {
            self.remove(address);
        }
        Some(address)
    }
}
