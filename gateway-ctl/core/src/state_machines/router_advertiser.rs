//! Router of one link: when it announces itself, and what it takes back (RFC 4861, section 6.2; RFC 9096).
//!
//! A prefix or resolver that is no longer part of the content is announced with a lifetime of 0 for as long as hosts may
//! still use it. Times are of a clock that is never set; its zero is arbitrary.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

use ipnet::Ipv6Net;

use crate::router_advertisement::{PrefixInformation, Resolvers, RouterAdvertisement};

/// Number of announcements after a change, and the longest pause between them.
const INITIAL_ANNOUNCEMENTS: u8 = 3;
const MAX_INITIAL_INTERVAL: Duration = Duration::from_secs(16);
/// Shortest pause between announcements to all hosts.
const MIN_DELAY: Duration = Duration::from_secs(3);
/// Longest delay of the answer to a solicitation.
const MAX_ANSWER_DELAY: Duration = Duration::from_millis(500);
/// Longest interval of announcements, whatever the lifetime.
const MAX_INTERVAL: Duration = Duration::from_secs(600);
/// Announcements within a lifetime, so that hosts may miss some.
const ANNOUNCEMENTS_PER_LIFETIME: u32 = 3;
/// Time for which hosts keep addresses of a prefix whose valid lifetime ends early (RFC 4862, section 5.5.3).
pub const MAX_STALE: Duration = Duration::from_secs(2 * 3600);
/// Stale prefixes and resolvers that are kept. The oldest leave first.
const MAX_STALE_ENTRIES: usize = 8;

/// Announced properties of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkContent {
    /// Link-local address of the gateway.
    pub source: Ipv6Addr,
    pub mac: Option<[u8; 6]>,
    /// Hosts use the gateway for the internet.
    pub is_router: bool,
    pub other_configuration: bool,
    pub mtu: Option<u32>,
    pub prefixes: BTreeMap<Ipv6Net, LinkPrefix>,
    pub resolvers: Vec<Ipv6Addr>,
    pub domains: Vec<String>,
    /// Lifetime of the router, the resolvers and the prefixes. Addresses stay valid for twice as long.
    pub lifetime: Duration,
}

/// Prefix of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPrefix {
    /// Hosts begin connections from addresses of the prefix.
    pub is_preferred: bool,
    /// Ends of its lifetimes. `None`: it has no end.
    pub preferred_until: Option<Duration>,
    pub valid_until: Option<Duration>,
}

impl LinkContent {
    /// Reports whether hosts need not learn of the difference at once. The ends of lifetimes are in every announcement.
    fn is_like(&self, other: &LinkContent) -> bool {
        let without_ends = |content: &LinkContent| {
            let mut content = content.clone();
            for prefix in content.prefixes.values_mut() {
                (prefix.preferred_until, prefix.valid_until) = (None, None);
            }
            content
        };
        without_ends(self) == without_ends(other)
    }

    fn offers(&self, net: &Ipv6Net, now: Duration) -> bool {
        self.prefixes.get(net).is_some_and(|prefix| prefix.valid_until.is_none_or(|end| end > now))
    }
}

/// Announcer of one link.
#[derive(Clone, Debug, Default)]
pub struct RouterAdvertiser {
    content: Option<LinkContent>,
    /// Prefixes and resolvers that hosts may use, and until when.
    announced: BTreeMap<Ipv6Net, Duration>,
    announced_resolvers: BTreeMap<Ipv6Addr, Duration>,
    next: Option<Duration>,
    last: Option<Duration>,
    initial_left: u8,
    /// The gateway is no router on the link, and takes back what it has announced.
    is_ending: bool,
}

impl RouterAdvertiser {
    /// Creates the announcer of a link on which these prefixes were announced before a restart. They are taken back for
    /// this long, unless they are part of the content.
    pub fn new(earlier: impl IntoIterator<Item = (Ipv6Net, Duration)>, now: Duration) -> RouterAdvertiser {
        let mut advertiser = RouterAdvertiser::default();
        for (net, left) in earlier {
            advertiser.announced.insert(net, now + left.min(MAX_STALE));
        }
        advertiser
    }

    /// Takes the present properties of the link. `None` if the gateway is no router there.
    pub fn handle_content(&mut self, content: Option<LinkContent>, now: Duration) {
        self.is_ending = content.is_none();
        // The address of the link is needed to take the rest back.
        let content = content.or_else(|| self.content.clone().map(without_services));
        let is_like = match (&self.content, &content) {
            (Some(before), Some(after)) => before.is_like(after),
            (before, after) => before.is_none() == after.is_none(),
        };
        self.content = content;
        if is_like {
            return;
        }
        self.forget(now);
        self.initial_left = INITIAL_ANNOUNCEMENTS;
        self.next = Some(self.earliest(now));
    }

    /// Takes the solicitation of a host. `random` is from 0 to 1.
    pub fn handle_solicitation(&mut self, random: f64, now: Duration) {
        if self.content.is_some() {
            let answer = self.earliest(now + MAX_ANSWER_DELAY.mul_f64(random.clamp(0.0, 1.0)));
            self.next = Some(self.next.map_or(answer, |next| next.min(answer)));
        }
    }

    /// Returns the time of the next announcement.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.content.as_ref().and(self.next)
    }

    /// Returns the announcement that is due. `random` is from 0 to 1.
    pub fn poll_transmit(&mut self, random: f64, now: Duration) -> Option<RouterAdvertisement> {
        let content = self.content.clone().filter(|_| self.next.is_some_and(|next| next <= now))?;
        self.forget(now);
        let announcement = self.announcement(&content, now);
        self.last = Some(now);
        self.initial_left = self.initial_left.saturating_sub(1);
        let ends_soon = content.prefixes.values().filter_map(|prefix| prefix.valid_until).min();
        let mut pause = interval(content.lifetime).mul_f64(0.33 + 0.67 * random.clamp(0.0, 1.0));
        if self.initial_left > 0 {
            pause = pause.min(MAX_INITIAL_INTERVAL);
        }
        let next = ends_soon.map_or(now + pause, |end| end.clamp(now, now + pause));
        self.next = Some(next.max(now + MIN_DELAY));
        for prefix in announcement.prefixes.iter().filter(|prefix| prefix.valid > 0) {
            self.announced.insert(prefix.net, now + seconds(prefix.valid));
        }
        for group in announcement.resolvers.iter().filter(|group| group.lifetime > 0) {
            let end = now + seconds(group.lifetime);
            self.announced_resolvers.extend(group.addresses.iter().map(|address| (*address, end)));
        }
        let is_done =
            self.initial_left == 0 && self.announced.is_empty() && self.announced_resolvers.is_empty();
        if self.is_ending && is_done {
            self.content = None;
        }
        Some(announcement)
    }

    /// Returns the last announcement at the end of the daemon: hosts use the gateway no longer for the internet. Their
    /// addresses stay. `None` if they did not use it.
    pub fn withdraw(&self, now: Duration) -> Option<RouterAdvertisement> {
        let content = self.content.as_ref().filter(|content| content.is_router && self.last.is_some())?;
        Some(RouterAdvertisement { lifetime: 0, ..self.announcement(content, now) })
    }

    /// Returns the prefixes that hosts may use, and for how long.
    pub fn announced(&self, now: Duration) -> impl Iterator<Item = (Ipv6Net, Duration)> + use<'_> {
        let all = self.announced.iter().map(move |(net, end)| (*net, end.saturating_sub(now)));
        all.filter(|(_, left)| !left.is_zero())
    }

    fn earliest(&self, time: Duration) -> Duration {
        self.last.map_or(time, |last| time.max(last + MIN_DELAY))
    }

    /// Forgets prefixes and resolvers that hosts use no longer. What has left the content does not outlive
    /// [`MAX_STALE`].
    fn forget(&mut self, now: Duration) {
        let Some(content) = &self.content else { return };
        for (net, end) in &mut self.announced {
            if !content.offers(net, now) {
                *end = (*end).min(now + MAX_STALE);
            }
        }
        self.announced.retain(|_, end| *end > now);
        self.announced_resolvers.retain(|_, end| *end > now);
        keep_newest(&mut self.announced, |net| content.offers(net, now));
        keep_newest(&mut self.announced_resolvers, |address| content.resolvers.contains(address));
    }

    fn announcement(&self, content: &LinkContent, now: Duration) -> RouterAdvertisement {
        let LinkContent { source, mac, is_router, other_configuration, mtu, lifetime, .. } = content;
        let lifetime_seconds = whole_seconds(*lifetime);
        let left = |end: Option<Duration>, most: u32| {
            end.map_or(most, |end| whole_seconds(end.saturating_sub(now)).min(most))
        };
        let present = content.prefixes.iter().filter(|(net, _)| content.offers(net, now));
        let present = present.map(|(net, prefix)| {
            let valid = left(prefix.valid_until, lifetime_seconds.saturating_mul(2));
            let preferred = left(prefix.preferred_until, lifetime_seconds).min(valid);
            let preferred = if prefix.is_preferred { preferred } else { 0 };
            PrefixInformation { net: *net, on_link: true, autonomous: true, valid, preferred }
        });
        let stale = self.announced.keys().filter(|net| !content.offers(net, now)).map(|net| {
            PrefixInformation { net: *net, on_link: true, autonomous: true, valid: 0, preferred: 0 }
        });
        let stale_resolvers = self.announced_resolvers.keys().copied();
        let stale_resolvers =
            stale_resolvers.filter(|address| !content.resolvers.contains(address)).collect();
        let mut resolvers = Vec::new();
        for (lifetime, addresses) in [(lifetime_seconds, content.resolvers.clone()), (0, stale_resolvers)] {
            if !addresses.is_empty() {
                resolvers.push(Resolvers { lifetime, addresses });
            }
        }
        let domains = (lifetime_seconds, content.domains.clone());
        RouterAdvertisement {
            source: *source,
            lifetime: if *is_router { u16::try_from(lifetime_seconds).unwrap_or(u16::MAX) } else { 0 },
            other_configuration: *other_configuration,
            mac: *mac,
            mtu: *mtu,
            prefixes: present.chain(stale).collect(),
            resolvers,
            domains: Some(domains).filter(|(_, domains)| !domains.is_empty()).into_iter().collect(),
        }
    }
}

/// Returns the content of a link on which the gateway is a router no longer.
fn without_services(content: LinkContent) -> LinkContent {
    LinkContent {
        is_router: false,
        other_configuration: false,
        mtu: None,
        prefixes: BTreeMap::new(),
        resolvers: Vec::new(),
        domains: Vec::new(),
        ..content
    }
}

/// Longest interval of announcements with this lifetime.
fn interval(lifetime: Duration) -> Duration {
    (lifetime / ANNOUNCEMENTS_PER_LIFETIME).clamp(MIN_DELAY, MAX_INTERVAL)
}

/// Leaves the newest of the entries that are not kept.
fn keep_newest<K: Ord + Copy>(entries: &mut BTreeMap<K, Duration>, is_kept: impl Fn(&K) -> bool) {
    let mut stale: Vec<(Duration, K)> =
        entries.iter().filter(|(key, _)| !is_kept(key)).map(|(key, end)| (*end, *key)).collect();
    stale.sort_unstable();
    for (_, key) in stale.iter().rev().skip(MAX_STALE_ENTRIES) {
        entries.remove(key);
    }
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

fn whole_seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
