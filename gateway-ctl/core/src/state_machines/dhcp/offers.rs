//! Addresses that are offered to clients and not yet requested, and those that are probed before.
//!
//! Their number is limited. Beyond it the oldest goes first, so clients that only discover occupy nothing for long.
//!
//! Random MAC addresses would else take a whole pool with one packet each. A client that requests an address of this
//! server gets it unless another client has a lease of it, even if its offer was withdrawn, so clients that complete an
//! exchange within a flood get an address. Offers are not stored.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use jiff::Timestamp;

use super::client_key::ClientKey;
use super::message::Request;

/// Most offers at once.
pub(super) const MAX_OFFERS: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Offer {
    pub client: ClientKey,
    /// Request to answer when the probe is over. `None`: the offer was sent.
    pub probed_for: Option<Box<Request>>,
    /// Scope of the address.
    pub scope: usize,
    /// End of the probe or of the offer.
    pub until: Timestamp,
}

/// Offers by address, by client and by time. A client has one in each scope.
#[derive(Debug, Default)]
pub(super) struct Offers {
    by_address: BTreeMap<Ipv4Addr, Offer>,
    by_client: BTreeMap<(ClientKey, usize), Ipv4Addr>,
    by_time: BTreeSet<(Timestamp, Ipv4Addr)>,
}

impl Offers {
    pub(super) fn is_full(&self) -> bool {
        self.by_address.len() >= MAX_OFFERS
    }

    pub(super) fn get(&self, address: Ipv4Addr) -> Option<&Offer> {
        self.by_address.get(&address)
    }

    pub(super) fn get_mut(&mut self, address: Ipv4Addr) -> Option<&mut Offer> {
        self.by_address.get_mut(&address)
    }

    pub(super) fn of_client(&self, client: &ClientKey, scope: usize) -> Option<Ipv4Addr> {
        self.by_client.get(&(client.clone(), scope)).copied()
    }

    pub(super) fn insert(&mut self, address: Ipv4Addr, offer: Offer) {
        self.remove(address);
        self.by_client.insert((offer.client.clone(), offer.scope), address);
        self.by_time.insert((offer.until, address));
        self.by_address.insert(address, offer);
    }

    pub(super) fn remove(&mut self, address: Ipv4Addr) -> Option<Offer> {
        let offer = self.by_address.remove(&address)?;
        self.by_client.remove(&(offer.client.clone(), offer.scope));
        self.by_time.remove(&(offer.until, address));
        Some(offer)
    }

    /// Returns the address whose offer or probe ends first, among those of a scope.
    pub(super) fn oldest(&self, scope: Option<usize>) -> Option<Ipv4Addr> {
        let is_of_scope =
            |address: &Ipv4Addr| scope.is_none_or(|scope| self.by_address[address].scope == scope);
        self.by_time.iter().map(|(_, address)| *address).find(is_of_scope)
    }

    pub(super) fn next_end(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(until, _)| *until)
    }

    /// Removes an offer or a probe that is over.
    pub(super) fn take_ended(&mut self, now: Timestamp) -> Option<(Ipv4Addr, Offer)> {
        let (until, address) = *self.by_time.first()?;
        if until > now {
            return None;
        }
        self.remove(address).map(|offer| (address, offer))
    }
}
