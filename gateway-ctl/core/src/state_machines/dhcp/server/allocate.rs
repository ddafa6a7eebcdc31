//! Choice of the address for a client (RFC 2131, section 4.3.1).

use std::net::Ipv4Addr;

use jiff::Timestamp;

use super::super::client_key::ClientKey;
use super::super::lease::{LeaseState, LeaseStatus};
use super::super::message::Request;
use super::{MAX_LEASES, Server};

impl Server {
    /// Returns the address for a client. `None`: all are in use.
    pub(super) fn allocate(
        &mut self,
        request: &Request,
        key: &ClientKey,
        scope: usize,
        now: Timestamp,
    ) -> Option<Ipv4Addr> {
        let seconds = now.as_second();
        if let Some(address) = self.reserved_address(request, scope, seconds) {
            return Some(address);
        }
        let earlier = self.earlier_address(request, key, scope, seconds);
        if self.is_withholding {
            return earlier.filter(|address| self.has_lease(*address, request, seconds));
        }
        if earlier.is_some() {
            return earlier;
        }
        let is_possible = |address: &Ipv4Addr| self.pools[scope].is_free(*address) && self.has_room(*address);
        let requested = request.requested.filter(is_possible);
        if requested.is_some() {
            return requested;
        }
        let is_full = self.leases.len() >= MAX_LEASES;
        let free = if is_full { self.pools[scope].oldest_ended() } else { self.pools[scope].next_free() };
        if free.is_some() {
            return free;
        }
        if let Some(address) = self.offers.oldest(Some(scope)) {
            self.evict(address, seconds);
            return self.pools[scope].is_free(address).then_some(address);
        }
        None
    }

    /// Reports whether a client has the lease of an address.
    pub(super) fn has_lease(&self, address: Ipv4Addr, request: &Request, now: i64) -> bool {
        self.leases.get(address).is_some_and(|lease| lease.is_active(now) && self.is_of(lease, request))
    }

    /// Returns the reserved address of a client, unless another one has it still.
    fn reserved_address(&self, request: &Request, scope: usize, now: i64) -> Option<Ipv4Addr> {
        let address = self.reservation(request.mac, scope)?.address;
        self.is_reserved_address_free(address, request, now).then_some(address)
    }

    /// Reports whether no other host has the address that is reserved for a client.
    pub(super) fn is_reserved_address_free(&self, address: Ipv4Addr, request: &Request, now: i64) -> bool {
        let lease =
            self.leases.get(address).filter(|lease| lease.status(now).is_some_and(LeaseStatus::is_in_use));
        lease.is_none_or(|lease| lease.state == LeaseState::Active && lease.mac == request.mac)
    }

    /// Returns the address that a client has, was offered, or had.
    fn earlier_address(
        &self,
        request: &Request,
        key: &ClientKey,
        scope: usize,
        now: i64,
    ) -> Option<Ipv4Addr> {
        let network = self.config.scopes[scope].network;
        let own = self.leases.of_client(key).filter(|lease| network.contains(&lease.address));
        let mut own: Vec<_> = own.collect();
        own.sort_by_key(|lease| std::cmp::Reverse((lease.is_active(now), lease.ends)));
        if let Some(lease) =
            own.iter().find(|lease| lease.is_active(now) && self.may_keep(lease.address, request, scope))
        {
            return Some(lease.address);
        }
        let offered =
            self.offers.of_client(key, scope).filter(|address| self.pools[scope].contains(*address));
        let had = own.iter().map(|lease| lease.address).find(|address| self.pools[scope].is_free(*address));
        offered.or(had)
    }

    /// Reports whether a client may keep an address that it has a lease of. A lease outside of the range stays: the
    /// range can be changed while clients use it.
    pub(super) fn may_keep(&self, address: Ipv4Addr, request: &Request, scope: usize) -> bool {
        let of_scope = &self.config.scopes[scope];
        let is_of_other = self.reserved.get(&address).is_some_and(|mac| *mac != request.mac);
        of_scope.has_host(address) && !of_scope.is_excluded(address) && !is_of_other
    }

    /// Withdraws an offer for another client.
    pub(super) fn evict(&mut self, address: Ipv4Addr, now: i64) {
        if self.offers.remove(address).is_some() {
            self.counters.evicted_offers += 1;
            self.refresh(address, now);
        }
    }
}
