//! The server: leases, offers and pools, and the reaction to each message.

mod acknowledge;
mod adopt;
mod allocate;
mod discover;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use gateway_model::MacAddr;
use jiff::{SignedDuration, Timestamp};

use super::client_key::ClientKey;
use super::lease::{Lease, LeaseState, LeaseStatus};
use super::lease_table::LeaseTable;
use super::message::{Request, RequestKind};
use super::offers::Offers;
use super::pool::{AddressUse, Pool};
use super::reply::{Reply, ReplyKind, Terms};
use super::scope::{Reservation, Scope, ServerConfig};
use super::statistics::{Counters, PoolUsage};

/// Time for which an offered address is kept for its client.
const OFFER_HOLD: SignedDuration = SignedDuration::from_secs(20);
/// Time in which a host that uses an address must answer a probe.
const PROBE_TIME: SignedDuration = SignedDuration::from_millis(400);
/// Time in which an address that is in use by another host is not given out.
const QUARANTINE_SEC: i64 = 3600;
/// Most leases, ended ones included.
const MAX_LEASES: usize = 1 << 18;

/// Server without input and output.
#[derive(Debug, Default)]
pub struct Server {
    config: ServerConfig,
    /// One for each scope.
    pools: Vec<Pool>,
    /// MAC addresses by reserved address.
    reserved: BTreeMap<Ipv4Addr, MacAddr>,
    leases: LeaseTable,
    offers: Offers,
    /// Addresses that a message has released or declined, and that are probed.
    releases: BTreeMap<Ipv4Addr, PendingRelease>,
    counters: Counters,
    /// Leases cannot be stored, and stored ones may be unknown: only clients whose address is certain are served.
    is_withholding: bool,
    /// Changes of names or of their addresses.
    names_generation: u64,
}

/// Effects of messages and of time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Leases to store.
    pub leases: Vec<Lease>,
    /// Replies to send at once.
    pub replies: Vec<Reply>,
    /// Replies to send after the leases are durable.
    pub stored_replies: Vec<Reply>,
    pub probes: Vec<Probe>,
    /// Other servers that clients have chosen, by the index of the interface.
    pub foreign_servers: Vec<(u32, Ipv4Addr)>,
}

/// Probe of an address that a message gave up. If its client answers, the message was not its own.
#[derive(Clone, Copy, Debug)]
struct PendingRelease {
    until: Timestamp,
    /// The client found another host that uses the address (DHCPDECLINE). That host answers.
    is_declined: bool,
}

/// Address to probe. Its user answers through [`Server::handle_probe_answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    pub address: Ipv4Addr,
    /// Index of the interface.
    pub interface: u32,
    /// Address of the gateway on the interface.
    pub server: Ipv4Addr,
    /// The address is on the link: ARP finds its user. Behind a relay only an echo request does.
    pub on_link: bool,
}

impl Server {
    /// Creates a server with stored leases. It serves nothing until it is configured.
    pub fn new(leases: impl IntoIterator<Item = Lease>) -> Server {
        let mut server = Server::default();
        leases.into_iter().for_each(|lease| server.leases.insert(lease));
        server
    }

    /// Takes over a configuration. Leases stay.
    pub fn configure(&mut self, config: ServerConfig, now: Timestamp) {
        if config == self.config {
            return;
        }
        self.names_generation += 1;
        self.reserved =
            config.reservations.iter().map(|(mac, reservation)| (reservation.address, *mac)).collect();
        let is_reserved = |address| self.reserved.contains_key(&address);
        self.pools = config.scopes.iter().map(|scope| Pool::new(scope, is_reserved)).collect();
        // Scopes have other indexes. Clients ask again.
        self.offers = Offers::default();
        self.config = config;
        let now = now.as_second();
        for pool in &mut self.pools {
            self.leases.iter().for_each(|lease| pool.set(lease.address, use_of(lease, now)));
        }
    }

    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Forgets all leases and offers.
    pub fn erase(&mut self, now: Timestamp) {
        self.leases = LeaseTable::default();
        let config = std::mem::take(&mut self.config);
        self.configure(config, now);
        self.names_generation += 1;
    }

    /// Handles a request that arrived on the interface with this index.
    pub fn handle(&mut self, request: Request, interface: u32, now: Timestamp, output: &mut Output) {
        *self.counters.requests.entry(request.kind).or_default() += 1;
        let Some(scope) = self.scope_of(&request, interface) else {
            self.counters.ignored += 1;
            return;
        };
        match request.kind {
            RequestKind::Discover => self.discover(request, scope, now, output),
            RequestKind::Request => self.request(&request, scope, now, output),
            RequestKind::Inform => self.inform(&request, scope, output),
            RequestKind::Release => self.release(&request, scope, now, output),
            RequestKind::Decline => self.decline(&request, scope, now, output),
        }
    }

    /// Handles the answer of a host that uses a probed address.
    pub fn handle_probe_answer(
        &mut self,
        address: Ipv4Addr,
        mac: Option<MacAddr>,
        now: Timestamp,
        output: &mut Output,
    ) {
        let released = self.releases.get(&address).copied().zip(self.leases.get(address));
        match released {
            Some((_, lease)) if mac == Some(lease.mac) => {
                self.releases.remove(&address);
                self.counters.ignored += 1;
            }
            Some((PendingRelease { is_declined: true, .. }, _)) => {
                self.quarantine(address, mac.unwrap_or(MacAddr([0; 6])), now, output);
            }
            _ => {}
        }
        let is_probed = |request: &Request| mac != Some(request.mac);
        let offer =
            self.offers.get(address).filter(|offer| offer.probed_for.as_deref().is_some_and(is_probed));
        if offer.is_none() {
            return;
        }
        let offer = self.offers.remove(address).expect("it was just found");
        self.quarantine(address, mac.unwrap_or(MacAddr([0; 6])), now, output);
        if let Some(mut request) = offer.probed_for {
            request.requested = None;
            self.discover(*request, offer.scope, now, output);
        }
    }

    /// Ends offers, probes and leases whose time is over.
    pub fn poll(&mut self, now: Timestamp, output: &mut Output) {
        while let Some((address, offer)) = self.offers.take_ended(now) {
            match offer.probed_for {
                Some(request) => self.offer(&request, offer.client, offer.scope, address, now, output),
                None => self.refresh(address, now.as_second()),
            }
        }
        self.end_releases(now, output);
        while let Some(address) = self.leases.take_ended(now.as_second()) {
            self.names_generation += 1;
            self.refresh(address, now.as_second());
        }
    }

    /// Returns the time at which [`Server::poll`] has something to do.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let lease = self.leases.next_end().and_then(|end| Timestamp::from_second(end).ok());
        self.offers
            .next_end()
            .into_iter()
            .chain(lease)
            .chain(self.releases.values().map(|release| release.until).min())
            .min()
    }

    /// Returns the leases with their states, by address.
    pub fn leases(&self, now: Timestamp) -> impl Iterator<Item = (&Lease, LeaseStatus)> {
        let now = now.as_second();
        self.leases.iter().filter_map(move |lease| Some((lease, lease.status(now)?)))
    }

    /// Returns all leases, for the compaction of the journal.
    pub fn stored(&self) -> impl Iterator<Item = &Lease> {
        self.leases.iter()
    }

    pub fn len(&self) -> usize {
        self.leases.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reports whether the lease is the one of a reservation.
    pub fn is_reserved(&self, lease: &Lease) -> bool {
        self.reserved.get(&lease.address) == Some(&lease.mac)
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// Changes whenever a name, or an address of one, may have changed.
    pub fn names_generation(&self) -> u64 {
        self.names_generation
    }

    /// Returns the use of each pool.
    pub fn pools(&self) -> Vec<PoolUsage> {
        let usage = |(scope, pool): (&Scope, &Pool)| PoolUsage {
            name: scope.name.clone(),
            interface: scope.interface.clone(),
            size: pool.size(),
            active: pool.active(),
            offered: pool.offered(),
            declined: pool.declined(),
            free: pool.free(),
        };
        self.config.scopes.iter().zip(&self.pools).map(usage).collect()
    }

    /// Returns the scope of a request: by the network that its relay names, else by the interface.
    fn scope_of(&self, request: &Request, interface: u32) -> Option<usize> {
        let mut scopes = self.config.scopes.iter().enumerate().filter(|(_, scope)| scope.index == interface);
        if let Some(network) = request.relay {
            let selected = request.link_selection.unwrap_or(network);
            return scopes.find(|(_, scope)| scope.network.contains(&selected)).map(|(index, _)| index);
        }
        // A client behind a relay renews its lease without the relay.
        let own = request.client_address;
        let all: Vec<_> = scopes.collect();
        let of_client = all.iter().find(|(_, scope)| own.is_some_and(|own| scope.network.contains(&own)));
        of_client.or_else(|| all.iter().find(|(_, scope)| scope.on_link)).map(|(index, _)| *index)
    }

    /// Reports whether there is room for another lease, or for one of an address that has one.
    fn has_room(&self, address: Ipv4Addr) -> bool {
        self.leases.len() < MAX_LEASES || self.leases.get(address).is_some()
    }

    /// Returns the reservation of a client in a network.
    fn reservation(&self, mac: MacAddr, scope: usize) -> Option<&Reservation> {
        let scope = &self.config.scopes[scope];
        self.config.reservations.get(&mac).filter(|reservation| scope.has_host(reservation.address))
    }

    /// Returns the key of a client. The one of a reservation is its MAC address.
    fn key_of(&self, request: &Request, scope: usize) -> ClientKey {
        match self.reservation(request.mac, scope) {
            Some(_) => ClientKey::of_mac(request.mac),
            None => request.key(),
        }
    }

    /// Reports whether a lease is the one of the client.
    fn is_of(&self, lease: &Lease, request: &Request) -> bool {
        if self.is_reserved(lease) { lease.mac == request.mac } else { lease.key() == request.key() }
    }

    /// Stores a lease.
    fn put(&mut self, lease: Lease, now: i64, output: &mut Output) {
        let before = self.leases.get(lease.address);
        let is_same_name = before.is_some_and(|before| {
            before.is_active(now) == lease.is_active(now) && before.hostname == lease.hostname
        });
        if !is_same_name {
            self.names_generation += 1;
        }
        let address = lease.address;
        // Who renews it has not released it, and an ended one needs no release.
        self.releases.remove(&address);
        output.leases.push(lease.clone());
        self.leases.insert(lease);
        self.refresh(address, now);
    }

    /// Keeps an address from clients for a time.
    fn quarantine(&mut self, address: Ipv4Addr, mac: MacAddr, now: Timestamp, output: &mut Output) {
        self.counters.conflicts += 1;
        let now = now.as_second();
        let lease = Lease {
            address,
            mac,
            client_id: None,
            hostname: None,
            vendor_class: None,
            starts: now,
            ends: now + QUARANTINE_SEC,
            state: LeaseState::Declined,
        };
        self.put(lease, now, output);
    }

    /// Updates the use of an address in its pool.
    fn refresh(&mut self, address: Ipv4Addr, now: i64) {
        let lease = self.leases.get(address).map_or(AddressUse::Unused, |lease| use_of(lease, now));
        let is_offered = self.offers.get(address).is_some() && lease != AddressUse::Active;
        let now_used = if is_offered { AddressUse::Offered } else { lease };
        self.pools.iter_mut().for_each(|pool| pool.set(address, now_used));
    }

    fn reply(&mut self, request: &Request, scope: usize, terms: Terms<'_>) -> Reply {
        self.counters.note_reply(terms.kind);
        self.config.scopes[scope].reply(request, terms)
    }

    fn refuse(&mut self, request: &Request, scope: usize, message: &str, output: &mut Output) {
        let terms = Terms { kind: ReplyKind::Nak, address: None, lease_sec: None, hostname: None, message };
        let reply = self.reply(request, scope, terms);
        output.replies.push(reply);
    }
}

fn use_of(lease: &Lease, now: i64) -> AddressUse {
    match lease.status(now) {
        Some(LeaseStatus::Active) => AddressUse::Active,
        Some(LeaseStatus::Declined) => AddressUse::Declined,
        Some(LeaseStatus::Expired | LeaseStatus::Released) => AddressUse::Ended(lease.ends),
        None => AddressUse::Unused,
    }
}
