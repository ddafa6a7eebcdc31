//! Client of prefix delegation at one uplink (RFC 8415, section 18.2): solicit, request, renew, rebind, release.
//!
//! Times are of a clock that is never set; its zero is arbitrary. Random numbers are from 0 to 1.
//!
//! Decision 0117 says why.

mod retransmission;

use std::time::Duration;

use ipnet::Ipv6Net;

use crate::dhcp6::{IdentityAssociation, Kind, Message, PrefixOption, option, status};
use retransmission::{Retransmission, Schedule};

/// Identity association of the client. An uplink has one.
const ASSOCIATION: u32 = 1;
/// Server whose offer is taken at once.
const MAX_PREFERENCE: u8 = 255;
/// Shortest time to a renewal, whatever the server says.
const MIN_RENEWAL: Duration = Duration::from_secs(5);
/// Bounds of the longest interval of solicitations that a server may set (RFC 8415, section 21.24).
const MAX_SOLICIT_INTERVALS: std::ops::RangeInclusive<u32> = 60..=86_400;
/// Length of the prefix that is asked for. Servers delegate what they have.
const WANTED_LENGTH: u8 = 56;
/// Lengths of prefixes that are taken. A shorter one is an error of the server.
const LENGTHS: std::ops::RangeInclusive<u8> = 24..=64;

/// A delegated prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub net: Ipv6Net,
    /// Identifier of the server.
    pub server: Vec<u8>,
    pub preferred_until: Duration,
    pub valid_until: Duration,
    renew_at: Duration,
    rebind_at: Duration,
}

impl Lease {
    /// Returns a lease from before a restart. It has to be verified before anything else.
    pub fn stored(net: Ipv6Net, server: Vec<u8>, preferred_until: Duration, valid_until: Duration) -> Lease {
        let (renew_at, rebind_at) = (Duration::ZERO, Duration::ZERO);
        Lease { net, server, preferred_until, valid_until, renew_at, rebind_at }
    }

    fn hint(&self) -> PrefixOption {
        PrefixOption { net: self.net, preferred: 0, valid: 0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Soliciting,
    Requesting,
    /// The prefix may have changed: the client was off, or its link was.
    Verifying,
    Bound,
    Renewing,
    Rebinding,
}

/// Client of one uplink.
#[derive(Clone, Debug)]
pub struct PrefixDelegation {
    duid: Vec<u8>,
    phase: Phase,
    lease: Option<Lease>,
    /// Last prefix, which is asked for again.
    last: Option<Ipv6Net>,
    /// Best offer: preference, server and prefix.
    offer: Option<(u8, Vec<u8>, PrefixOption)>,
    transaction: u32,
    retransmission: Retransmission,
    max_solicit_interval: Duration,
}

impl PrefixDelegation {
    /// Creates the client. A lease from before a restart is verified, and counts meanwhile.
    pub fn new(duid: Vec<u8>, lease: Option<Lease>, now: Duration) -> PrefixDelegation {
        let lease = lease.filter(|lease| lease.valid_until > now);
        let mut client = PrefixDelegation {
            duid,
            phase: Phase::Soliciting,
            last: lease.as_ref().map(|lease| lease.net),
            lease,
            offer: None,
            transaction: 0,
            retransmission: Retransmission::new(Schedule::SOLICIT, now),
            max_solicit_interval: Schedule::SOLICIT.longest,
        };
        client.handle_link_up(now);
        client
    }

    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Verifies the lease after the link was down, as another network may be behind it.
    pub fn handle_link_up(&mut self, now: Duration) {
        match &self.lease {
            Some(_) => self.enter(Phase::Verifying, now),
            None => self.enter(Phase::Soliciting, now),
        }
    }

    /// Returns the time of the next call of [`PrefixDelegation::poll_transmit`].
    pub fn poll_timeout(&self) -> Duration {
        let next = match (self.phase, &self.lease) {
            (Phase::Bound, Some(lease)) => lease.renew_at,
            (Phase::Renewing, Some(lease)) => self.retransmission.next().min(lease.rebind_at),
            _ => self.retransmission.next(),
        };
        self.lease.as_ref().map_or(next, |lease| next.min(lease.valid_until))
    }

    /// Returns the message that is due. The client changes its phase when its time has ended.
    pub fn poll_transmit(&mut self, mut random: impl FnMut() -> f64, now: Duration) -> Option<Vec<u8>> {
        self.advance(now);
        if self.phase == Phase::Bound || self.retransmission.next() > now {
            return None;
        }
        if self.retransmission.is_first() {
            self.transaction = (random() * f64::from(0x00ff_ffff)) as u32;
        }
        self.retransmission.advance(random(), now);
        Some(self.message(now).bytes())
    }

    /// Takes a datagram of a server. Returns whether the lease has changed.
    pub fn handle_datagram(&mut self, datagram: &[u8], now: Duration) -> bool {
        let Some(message) = Message::parse(datagram) else { return false };
        let options = &message.options;
        let is_ours = message.transaction == self.transaction
            && options.duid(option::CLIENT_ID) == Some(&self.duid)
            && !self.retransmission.is_first();
        let Some(server) = options.duid(option::SERVER_ID).filter(|_| is_ours).map(<[u8]>::to_vec) else {
            return false;
        };
        if let Some(seconds) = options.number(option::MAX_SOLICIT_INTERVAL)
            && MAX_SOLICIT_INTERVALS.contains(&seconds)
        {
            self.max_solicit_interval = Duration::from_secs(seconds.into());
        }
        match (message.kind, self.phase) {
            (Kind::Advertise, Phase::Soliciting) => {
                self.handle_offer(&message, server, now);
                false
            }
            (Kind::Reply, Phase::Requesting | Phase::Verifying | Phase::Renewing | Phase::Rebinding) => {
                let before = self.lease.clone();
                self.handle_reply(&message, server, now);
                self.lease != before
            }
            _ => false,
        }
    }

    /// Ends the lease. Returns the message that tells the server.
    pub fn release(&mut self, random: f64, now: Duration) -> Option<Vec<u8>> {
        let lease = self.lease.take()?;
        self.last = None;
        self.enter(Phase::Soliciting, now);
        let mut message = Message::new(Kind::Release, (random * f64::from(0x00ff_ffff)) as u32);
        message.options.push(option::CLIENT_ID, self.duid.clone());
        message.options.push(option::SERVER_ID, lease.server.clone());
        message.options.push(option::ELAPSED, [0, 0]);
        message.options.push_prefixes(ASSOCIATION, &[lease.hint()]);
        Some(message.bytes())
    }

    fn enter(&mut self, phase: Phase, now: Duration) {
        self.phase = phase;
        self.offer = None;
        let schedule = match phase {
            Phase::Soliciting => Schedule { longest: self.max_solicit_interval, ..Schedule::SOLICIT },
            Phase::Requesting => Schedule::REQUEST,
            Phase::Verifying => Schedule::VERIFY,
            Phase::Bound | Phase::Renewing => Schedule::RENEW,
            Phase::Rebinding => Schedule::REBIND,
        };
        self.retransmission = Retransmission::new(schedule, now);
    }

    /// Changes the phase if its time has ended.
    fn advance(&mut self, now: Duration) {
        if self.lease.as_ref().is_some_and(|lease| lease.valid_until <= now) {
            return self.lose_lease(now);
        }
        let lease = self.lease.as_ref();
        let (renew_at, rebind_at) =
            lease.map_or_else(Default::default, |lease| (lease.renew_at, lease.rebind_at));
        match self.phase {
            Phase::Bound if now >= renew_at => self.enter(Phase::Renewing, now),
            Phase::Renewing if now >= rebind_at => self.enter(Phase::Rebinding, now),
            Phase::Verifying if self.retransmission.has_ended(now) => self.lose_lease(now),
            Phase::Requesting if self.retransmission.has_ended(now) => self.enter(Phase::Soliciting, now),
            Phase::Soliciting if self.retransmission.next() <= now && self.offer.is_some() => {
                self.request(now);
            }
            _ => {}
        }
    }

    fn lose_lease(&mut self, now: Duration) {
        self.lease = None;
        self.enter(Phase::Soliciting, now);
    }

    fn request(&mut self, now: Duration) {
        let offer = self.offer.take();
        self.enter(Phase::Requesting, now);
        self.offer = offer;
    }

    fn handle_offer(&mut self, message: &Message, server: Vec<u8>, now: Duration) {
        let Some(association) = usable(message) else { return };
        let Some(prefix) = self.choose(&association) else { return };
        let preference = message.options.one(option::PREFERENCE).and_then(|bytes| bytes.first().copied());
        let offer = (preference.unwrap_or(0), server, prefix);
        if self.offer.as_ref().is_none_or(|best| best.0 < offer.0) {
            self.offer = Some(offer);
        }
        // Other servers have the first interval for their offers.
        let is_late = self.retransmission.count() > 1;
        if is_late || preference == Some(MAX_PREFERENCE) {
            self.request(now);
        }
    }

    fn handle_reply(&mut self, message: &Message, server: Vec<u8>, now: Duration) {
        let association = message.options.prefixes(ASSOCIATION);
        let statuses = (message.options.status(), association.as_ref().map(|association| association.status));
        match statuses {
            (status::SUCCESS, Some(status::SUCCESS)) => {}
            (status::NO_BINDING | status::NO_PREFIX, _)
            | (_, Some(status::NO_BINDING | status::NO_PREFIX)) => {
                return self.lose_lease(now);
            }
            // Other failures pass.
            _ => return,
        }
        let Some(association) = association else { return };
        let Some(prefix) = self.choose(&association) else {
            // The server has ended it.
            return self.lose_lease(now);
        };
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        let or_share = |given: u32, share: f64| match given {
            0 => seconds(prefix.preferred).mul_f64(share),
            _ => seconds(given),
        };
        let valid = seconds(prefix.valid);
        let rebind_after = or_share(association.rebind_after, 0.8).clamp(MIN_RENEWAL, valid.max(MIN_RENEWAL));
        let renew_after = or_share(association.renew_after, 0.5).clamp(MIN_RENEWAL, rebind_after);
        self.last = Some(prefix.net);
        self.lease = Some(Lease {
            net: prefix.net,
            server,
            preferred_until: now + seconds(prefix.preferred),
            valid_until: now + valid,
            renew_at: now + renew_after,
            rebind_at: now + rebind_after,
        });
        self.enter(Phase::Bound, now);
    }

    /// Returns the prefix to use: the present one if the server continues it, else the shortest.
    fn choose(&self, association: &IdentityAssociation) -> Option<PrefixOption> {
        let usable = association.prefixes.iter().filter(|prefix| is_usable(prefix));
        usable.min_by_key(|prefix| (Some(prefix.net) != self.last, prefix.net.prefix_len())).copied()
    }

    fn message(&self, now: Duration) -> Message {
        let kind = match self.phase {
            Phase::Soliciting => Kind::Solicit,
            Phase::Requesting => Kind::Request,
            Phase::Bound | Phase::Renewing => Kind::Renew,
            Phase::Verifying | Phase::Rebinding => Kind::Rebind,
        };
        let mut message = Message::new(kind, self.transaction);
        let options = &mut message.options;
        options.push(option::CLIENT_ID, self.duid.clone());
        let server = match kind {
            Kind::Request => self.offer.as_ref().map(|(_, server, _)| server),
            Kind::Renew => self.lease.as_ref().map(|lease| &lease.server),
            _ => None,
        };
        if let Some(server) = server {
            options.push(option::SERVER_ID, server.clone());
        }
        options.push(option::ELAPSED, self.retransmission.elapsed(now).to_be_bytes());
        options.push(option::REQUESTED, option::MAX_SOLICIT_INTERVAL.to_be_bytes());
        let any = Ipv6Net::new(std::net::Ipv6Addr::UNSPECIFIED, WANTED_LENGTH).expect("a valid length");
        let net = match (kind, &self.offer) {
            (Kind::Request, Some((_, _, prefix))) => prefix.net,
            _ => self.last.unwrap_or(any),
        };
        options.push_prefixes(ASSOCIATION, &[PrefixOption { net, preferred: 0, valid: 0 }]);
        message
    }
}

fn usable(message: &Message) -> Option<IdentityAssociation> {
    let association = message.options.prefixes(ASSOCIATION)?;
    let is_success = message.options.status() == status::SUCCESS && association.status == status::SUCCESS;
    is_success.then_some(association)
}

/// Reports whether hosts can have addresses of a prefix: a global or a unique local one, for some time.
fn is_usable(prefix: &PrefixOption) -> bool {
    let address = prefix.net.addr();
    let is_for_hosts = address.segments()[0] >> 13 == 1 || address.is_unique_local();
    prefix.valid > 0 && is_for_hosts && LENGTHS.contains(&prefix.net.prefix_len())
}

#[cfg(test)]
mod tests;
