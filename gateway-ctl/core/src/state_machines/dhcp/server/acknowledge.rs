//! Requests for an address that the client has or was offered, and its return (RFC 2131, sections 4.3.2 to 4.3.5).

use std::net::Ipv4Addr;

use jiff::Timestamp;

use super::super::client_key::ClientKey;
use super::super::lease::{Lease, LeaseState, LeaseStatus};
use super::super::message::Request;
use super::super::reply::{ReplyKind, Terms};
use super::{Output, PROBE_TIME, PendingRelease, Probe, Server};

/// Share of a pool, as its divisor, that messages of clients can take out of it if its addresses are not probed.
const DECLINED_SHARE: u32 = 4;

/// Answer to a request for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Grant,
    Refuse(&'static str),
    /// The address is none of this server's business.
    Silence,
    /// Stored leases are not at hand: another client may have the address.
    Withhold,
}

/// Reports whether a lease stays as it is: nothing of it changes, and at most a quarter of its time is over. A client renews
/// after half of it (RFC 2131, section 4.4.5). One that renews all the time causes no writes to the disk then.
fn is_kept(before: &Lease, new: &Lease, now: i64) -> bool {
    let (left, full) = (before.ends - now, new.ends - now);
    left <= full && left >= full - full / 4 && Lease { ends: before.ends, ..new.clone() } == *before
}

impl Server {
    pub(super) fn request(&mut self, request: &Request, scope: usize, now: Timestamp, output: &mut Output) {
        let is_selecting = request.server.is_some();
        if let Some(server) = request.server.filter(|server| !self.is_own(*server)) {
            self.forget_offer(request, scope, now);
            output.foreign_servers.push((self.config.scopes[scope].index, server));
            self.counters.ignored += 1;
            return;
        }
        let Some(address) = request.requested.or(request.client_address) else {
            self.counters.ignored += 1;
            return;
        };
        match self.answer(request, address, is_selecting, scope, now.as_second()) {
            Answer::Grant => self.grant(request, address, scope, now, output),
            Answer::Refuse(reason) => {
                self.forget_offer(request, scope, now);
                self.refuse(request, scope, reason, output);
            }
            Answer::Silence => self.counters.ignored += 1,
            Answer::Withhold => self.counters.withheld += 1,
        }
    }

    fn is_own(&self, server: Ipv4Addr) -> bool {
        self.config.scopes.iter().any(|scope| scope.server == server)
    }

    fn forget_offer(&mut self, request: &Request, scope: usize, now: Timestamp) {
        let key = self.key_of(request, scope);
        if let Some(address) = self.offers.of_client(&key, scope) {
            self.offers.remove(address);
            self.refresh(address, now.as_second());
        }
    }

    fn answer(
        &self,
        request: &Request,
        address: Ipv4Addr,
        is_selecting: bool,
        scope: usize,
        now: i64,
    ) -> Answer {
        let of_scope = &self.config.scopes[scope];
        // A server that is not the only one cannot know what others have given out.
        let refuse = |reason| match of_scope.authoritative || is_selecting {
            true => Answer::Refuse(reason),
            false => Answer::Silence,
        };
        if !of_scope.network.contains(&address) {
            return refuse("the address is of another network");
        }
        let holder =
            self.leases.get(address).filter(|lease| lease.status(now).is_some_and(LeaseStatus::is_in_use));
        if let Some(reservation) = self.reservation(request.mac, scope)
            && reservation.address != address
            && self.is_reserved_address_free(reservation.address, request, now)
        {
            return Answer::Refuse("another address is reserved for the client");
        }
        if self.reserved.get(&address).is_some_and(|mac| *mac != request.mac) {
            return Answer::Refuse("the address is reserved for another client");
        }
        let is_reserved = self.reserved.get(&address) == Some(&request.mac);
        match holder {
            Some(lease) if lease.state == LeaseState::Declined => {
                return Answer::Refuse("the address is in use by another host");
            }
            Some(lease) if !self.is_of(lease, request) => {
                return Answer::Refuse("the address is leased to another client");
            }
            Some(_) if self.may_keep(address, request, scope) => return Answer::Grant,
            Some(_) => return Answer::Refuse("the address is not given out any more"),
            None => {}
        }
        if is_reserved && of_scope.has_host(address) {
            // The one who had the address before its reservation may have it still. An offer was probed, and who renews it
            // has it.
            let is_certain = is_selecting || request.client_address == Some(address);
            return if self.is_withholding && !is_certain { Answer::Withhold } else { Answer::Grant };
        }
        if self.is_withholding {
            return Answer::Withhold;
        }
        if !self.pools[scope].contains(address) || !self.has_room(address) {
            return refuse("the address is not given out");
        }
        let key = self.key_of(request, scope);
        let is_of_other = self.offers.get(address).is_some_and(|offer| offer.client != key);
        let had_it = self.leases.get(address).is_some_and(|lease| self.is_of(lease, request));
        match (is_of_other, is_selecting) {
            // The client was offered the address, and lost it to one that has not requested it.
            (_, true) | (false, false) if is_selecting || had_it || of_scope.authoritative => Answer::Grant,
            (true, false) => refuse("the address is offered to another client"),
            _ => Answer::Silence,
        }
    }

    fn grant(
        &mut self,
        request: &Request,
        address: Ipv4Addr,
        scope: usize,
        now: Timestamp,
        output: &mut Output,
    ) {
        let seconds = now.as_second();
        // The client counts from the answer, so the lease ends with the second in which its time does.
        let answered = seconds + i64::from(now.subsec_nanosecond() > 0);
        let (network, lease_sec) = (self.config.scopes[scope].network, self.config.scopes[scope].lease_sec);
        self.forget_offer(request, scope, now);
        self.evict(address, seconds);
        // A client has one address in a network. One with a reservation may have had another by its identifier.
        let keys =
            [Some(request.key()), Some(ClientKey::of_mac(request.mac)).filter(|key| *key != request.key())];
        let others: Vec<Lease> = keys
            .iter()
            .flatten()
            .filter(|key| **key == request.key() || self.reservation(request.mac, scope).is_some())
            .flat_map(|key| self.leases.of_client(key))
            .filter(|lease| {
                lease.address != address && network.contains(&lease.address) && lease.is_active(seconds)
            })
            .cloned()
            .collect();
        for other in others {
            self.put(Lease { state: LeaseState::Released, ends: seconds, ..other }, seconds, output);
        }
        let before =
            self.leases.get(address).filter(|lease| lease.is_active(seconds) && self.is_of(lease, request));
        let hostname = self.hostname_of(request, scope).map(Into::into);
        let lease = Lease {
            address,
            mac: request.mac,
            client_id: request.client_id.clone(),
            hostname: hostname.or_else(|| before.and_then(|before| before.hostname.clone())),
            vendor_class: request.vendor_class.as_deref().map(Into::into),
            starts: before.map_or(seconds, |before| before.starts),
            ends: answered + i64::from(lease_sec),
            state: LeaseState::Active,
        };
        let kept = before.filter(|before| is_kept(before, &lease, answered));
        let left = kept.and_then(|before| u32::try_from(before.ends - answered).ok());
        let terms = Terms {
            kind: ReplyKind::Ack,
            address: Some(address),
            lease_sec: left.or(Some(lease_sec)),
            hostname: lease.hostname.as_deref(),
            message: "",
        };
        self.counters.note_reply(terms.kind);
        output.stored_replies.push(self.config.scopes[scope].reply(request, terms));
        match left {
            // Also without a change: the client has the address, so the release was not its own.
            Some(_) => drop(self.releases.remove(&address)),
            None => self.put(lease, seconds, output),
        }
    }

    /// Answers a client that has configured its address by itself.
    pub(super) fn inform(&mut self, request: &Request, scope: usize, output: &mut Output) {
        let network = self.config.scopes[scope].network;
        if request.client_address.is_none_or(|address| !network.contains(&address)) {
            self.counters.ignored += 1;
            return;
        }
        let terms =
            Terms { kind: ReplyKind::Ack, address: None, lease_sec: None, hostname: None, message: "" };
        let reply = self.reply(request, scope, terms);
        output.replies.push(reply);
    }

    pub(super) fn release(&mut self, request: &Request, scope: usize, now: Timestamp, output: &mut Output) {
        let seconds = now.as_second();
        self.forget_offer(request, scope, now);
        let lease = request.client_address.and_then(|address| self.leases.get(address));
        let own = lease.filter(|lease| lease.is_active(seconds) && self.is_of(lease, request)).cloned();
        let of_scope = &self.config.scopes[scope];
        match own {
            // Any host of the link can write such a message. A client that released its address does not answer for it.
            Some(lease) if of_scope.probes && of_scope.on_link => {
                self.probe_release(lease.address, scope, false, now, output);
            }
            Some(lease) => self.end_lease(lease, seconds, output),
            None => self.counters.ignored += 1,
        }
    }

    /// Probes the address of a lease that a message has given up.
    fn probe_release(
        &mut self,
        address: Ipv4Addr,
        scope: usize,
        is_declined: bool,
        now: Timestamp,
        output: &mut Output,
    ) {
        let of_scope = &self.config.scopes[scope];
        output.probes.push(Probe {
            address,
            interface: of_scope.index,
            server: of_scope.server,
            on_link: true,
        });
        self.releases.insert(address, PendingRelease { until: now + PROBE_TIME, is_declined });
    }

    /// Ends the leases of released and declined addresses that no host has answered for.
    pub(super) fn end_releases(&mut self, now: Timestamp, output: &mut Output) {
        let seconds = now.as_second();
        let ended: Vec<Ipv4Addr> =
            self.releases.extract_if(.., |_, release| release.until <= now).map(|(at, _)| at).collect();
        for address in ended {
            let lease = self.leases.get(address).filter(|lease| lease.is_active(seconds)).cloned();
            if let Some(lease) = lease {
                self.end_lease(lease, seconds, output);
            }
        }
    }

    fn end_lease(&mut self, lease: Lease, seconds: i64, output: &mut Output) {
        self.put(Lease { state: LeaseState::Released, ends: seconds, ..lease }, seconds, output);
    }

    pub(super) fn decline(&mut self, request: &Request, scope: usize, now: Timestamp, output: &mut Output) {
        let seconds = now.as_second();
        let is_own_server = request.server.is_none_or(|server| self.is_own(server));
        let address = request.requested.or(request.client_address).filter(|_| is_own_server);
        let key = self.key_of(request, scope);
        let has_it = |address: &Ipv4Addr| {
            self.leases
                .get(*address)
                .is_some_and(|lease| lease.is_active(seconds) && self.is_of(lease, request))
                || self.offers.get(*address).is_some_and(|offer| offer.client == key)
        };
        let Some(address) = address.filter(has_it) else {
            self.counters.ignored += 1;
            return;
        };
        let lease = self.leases.get(address).filter(|lease| lease.is_active(seconds)).cloned();
        let is_probed = self.config.scopes[scope].probes && self.config.scopes[scope].on_link;
        // Made-up clients must not use up the pool.
        let pool = &self.pools[scope];
        let is_share_used = pool.declined() >= (pool.size() / DECLINED_SHARE).max(1);
        match lease {
            // Any host of the link can write such a message. Who uses the address answers for it.
            Some(_) if is_probed => self.probe_release(address, scope, true, now, output),
            // It was probed before it was offered.
            None if is_probed => {
                self.counters.ignored += 1;
                self.forget_offer(request, scope, now);
            }
            Some(lease) if is_share_used => self.end_lease(lease, seconds, output),
            None if is_share_used => self.forget_offer(request, scope, now),
            _ => {
                self.offers.remove(address);
                self.quarantine(address, request.mac, now, output);
            }
        }
    }
}
