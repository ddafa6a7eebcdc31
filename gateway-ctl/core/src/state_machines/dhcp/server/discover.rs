//! Offers (RFC 2131, section 4.3.1).

use std::net::Ipv4Addr;

use jiff::Timestamp;

use super::super::client_key::ClientKey;
use super::super::message::Request;
use super::super::offers::Offer;
use super::super::reply::{ReplyKind, Terms};
use super::{OFFER_HOLD, Output, PROBE_TIME, Probe, Server};

impl Server {
    pub(super) fn discover(&mut self, request: Request, scope: usize, now: Timestamp, output: &mut Output) {
        let key = self.key_of(&request, scope);
        let Some(address) = self.allocate(&request, &key, scope, now) else {
            match self.is_withholding {
                true => self.counters.withheld += 1,
                false => self.counters.without_address += 1,
            }
            return;
        };
        let before = self.offers.of_client(&key, scope);
        if before == Some(address)
            && let Some(Offer { probed_for: probed_for @ Some(_), .. }) = self.offers.get_mut(address)
        {
            // The client repeats itself while its address is probed.
            *probed_for = Some(Box::new(request));
            return;
        }
        let is_probed = before == Some(address);
        if let Some(before) = before.filter(|before| *before != address) {
            self.offers.remove(before);
            self.refresh(before, now.as_second());
        }
        let has_it = self.has_lease(address, &request, now.as_second());
        let of_scope = &self.config.scopes[scope];
        let needs_probe = of_scope.probes || self.is_withholding;
        if !needs_probe || is_probed || has_it {
            self.offer(&request, key, scope, address, now, output);
            return;
        }
        output.probes.push(Probe {
            address,
            interface: of_scope.index,
            server: of_scope.server,
            on_link: of_scope.on_link,
        });
        let until = now + PROBE_TIME;
        self.hold(address, Offer { client: key, probed_for: Some(Box::new(request)), scope, until }, now);
    }

    /// Sends an offer, and keeps the address for the client for a short time.
    pub(super) fn offer(
        &mut self,
        request: &Request,
        client: ClientKey,
        scope: usize,
        address: Ipv4Addr,
        now: Timestamp,
        output: &mut Output,
    ) {
        self.hold(address, Offer { client, probed_for: None, scope, until: now + OFFER_HOLD }, now);
        let hostname = self.hostname_of(request, scope);
        let terms = Terms {
            kind: ReplyKind::Offer,
            address: Some(address),
            lease_sec: Some(self.config.scopes[scope].lease_sec),
            hostname: hostname.as_deref(),
            message: "",
        };
        // A client without an address has none that the offer could go to.
        let request = Request { client_address: None, ..request.clone() };
        let reply = self.reply(&request, scope, terms);
        output.replies.push(reply);
    }

    fn hold(&mut self, address: Ipv4Addr, offer: Offer, now: Timestamp) {
        if self.offers.is_full()
            && let Some(oldest) = self.offers.oldest(None)
        {
            self.evict(oldest, now.as_second());
        }
        self.offers.insert(address, offer);
        self.refresh(address, now.as_second());
    }

    /// Returns the host name for a client: the one of its reservation, else its own.
    pub(super) fn hostname_of(&self, request: &Request, scope: usize) -> Option<String> {
        let reserved =
            self.reservation(request.mac, scope).and_then(|reservation| reservation.hostname.clone());
        reserved.or_else(|| request.hostname.clone())
    }
}
