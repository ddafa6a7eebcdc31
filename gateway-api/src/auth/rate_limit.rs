//! Rate limits: token buckets in bounded memory.
//!
//! A caller with a credential has its own bucket. All others share one per address, or per /64 of IPv6, because a host
//! owns its whole /64. Reads of a person who may read have a bucket of their own, which fits the dashboard in several
//! tabs, so that reading uses up nothing of sign-ins and changes. Full buckets carry no information and are dropped first
//! when the table is full. A flood of addresses then evicts the longest unused buckets; memory stays bounded.
//!
//! A page of the dashboard sends up to 60 reads at once, and a reload in six tabs was refused 372 times with one
//! bucket. Keys and callers without a proof keep the one bucket. Pages outside `/api/v1` are not counted. The audit
//! entries of refused changes are limited as well, because callers without a credential could fill the disk with them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use gateway_model::Id;
use parking_lot::Mutex;
use uuid::Uuid;

/// Sustained rate per second, and burst size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub per_second: f64,
    pub burst: u32,
}

/// Rate of a caller with a credential.
pub(crate) const CREDENTIAL: Rate = Rate { per_second: 20.0, burst: 60 };
/// Rate of all callers at one address without a credential.
pub(crate) const ADDRESS: Rate = Rate { per_second: 5.0, burst: 20 };
/// Rate of reads of a session, of the local network without one, and of an address while sign-in is off. A page of the
/// dashboard sends up to 60 requests at once, and a browser restores several tabs together.
pub(crate) const READS: Rate = Rate { per_second: 40.0, burst: 480 };
/// Rate of audit entries about refused requests of one caller.
const DENIALS_OF_ONE: Rate = Rate { per_second: 0.1, burst: 500 };
/// Rate of audit entries about refused requests of all callers. A distributed flood writes at most 43 MB a day.
const DENIALS_OF_ALL: Rate = Rate { per_second: 1.0, burst: 5000 };

/// Maximum number of buckets in a table. An entry takes about 60 bytes.
const CAPACITY: usize = 16_384;

/// Owner of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuotaOwner {
    Session(Uuid),
    Key(Id),
    /// Index in the configuration.
    ConfiguredKey(usize),
    Address(IpAddr),
}

impl QuotaOwner {
    /// Returns the payer of an address, with IPv6 cut to the /64.
    pub fn address(address: IpAddr) -> Self {
        QuotaOwner::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        })
    }

    fn rate(self, usage: QuotaUse) -> Rate {
        match self {
            _ if usage == QuotaUse::Read => READS,
            QuotaOwner::Session(_) | QuotaOwner::Key(_) | QuotaOwner::ConfiguredKey(_) => CREDENTIAL,
            QuotaOwner::Address(_) => ADDRESS,
        }
    }
}

/// Quota of its owner that a request uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuotaUse {
    /// Reads of a caller who may read in a browser.
    Read,
    /// All else: sign-ins, changes, API keys, callers without a proof.
    Other,
}

/// Remaining quota, for the `RateLimit-*` headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub limit: u32,
    pub remaining: u32,
    /// Seconds until the quota is full again.
    pub reset: u32,
}

/// Error of a request over the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    pub quota: Quota,
    /// Seconds until the next request is accepted.
    pub retry_after: u32,
}

/// Rate limits of the daemon. All times are of the boot clock.
#[derive(Debug)]
pub struct Limits {
    credentials: Mutex<Buckets<(QuotaOwner, QuotaUse)>>,
    addresses: Mutex<Buckets<(QuotaOwner, QuotaUse)>>,
    denials: Mutex<Denials>,
}

#[derive(Debug)]
struct Denials {
    each: Buckets<QuotaOwner>,
    all: Buckets<()>,
    unrecorded: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            credentials: Mutex::new(Buckets::new(CAPACITY)),
            addresses: Mutex::new(Buckets::new(CAPACITY)),
            denials: Mutex::new(Denials {
                each: Buckets::new(CAPACITY),
                all: Buckets::new(1),
                unrecorded: 0,
            }),
        }
    }
}

impl Limits {
    /// Takes one request from the bucket of the payer.
    pub fn take(&self, payer: QuotaOwner, usage: QuotaUse, now: Duration) -> Result<Quota, Exceeded> {
        // Separate tables, so that a flood without credentials does not evict callers with one.
        let buckets = match payer {
            QuotaOwner::Address(_) => &self.addresses,
            QuotaOwner::Session(_) | QuotaOwner::Key(_) | QuotaOwner::ConfiguredKey(_) => &self.credentials,
        };
        buckets.lock().take((payer, usage), payer.rate(usage), now)
    }

    /// Returns the number of unrecorded refusals before this one, if this one may be recorded.
    pub fn may_record_denial(&self, payer: Option<QuotaOwner>, now: Duration) -> Option<u64> {
        let mut denials = self.denials.lock();
        let one = payer.is_none_or(|payer| denials.each.take(payer, DENIALS_OF_ONE, now).is_ok());
        if one && denials.all.take((), DENIALS_OF_ALL, now).is_ok() {
            return Some(std::mem::take(&mut denials.unrecorded));
        }
        denials.unrecorded += 1;
        None
    }
}

#[derive(Debug)]
struct Buckets<K> {
    capacity: usize,
    buckets: BTreeMap<K, Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Duration,
    full_at: Duration,
}

impl<K: Ord + Copy> Buckets<K> {
    fn new(capacity: usize) -> Self {
        Self { capacity, buckets: BTreeMap::new() }
    }

    fn take(&mut self, key: K, rate: Rate, now: Duration) -> Result<Quota, Exceeded> {
        let burst = f64::from(rate.burst);
        if !self.buckets.contains_key(&key) && self.buckets.len() >= self.capacity {
            self.make_room(now);
        }
        let bucket = self.buckets.entry(key).or_insert(Bucket { tokens: burst, at: now, full_at: now });
        let passed = now.saturating_sub(bucket.at).as_secs_f64();
        bucket.tokens = (bucket.tokens + passed * rate.per_second).min(burst);
        bucket.at = now;
        let allowed = bucket.tokens >= 1.0;
        if allowed {
            bucket.tokens -= 1.0;
        }
        let until_full = (burst - bucket.tokens) / rate.per_second;
        bucket.full_at = now + Duration::from_secs_f64(until_full);
        let quota = Quota {
            limit: rate.burst,
            remaining: whole(bucket.tokens.floor()),
            reset: whole(until_full.ceil()),
        };
        if allowed {
            return Ok(quota);
        }
        let wait = (1.0 - bucket.tokens) / rate.per_second;
        Err(Exceeded { quota, retry_after: whole(wait.ceil()).max(1) })
    }

    /// Drops full buckets. If that is not enough, drops the half that was unused the longest.
    fn make_room(&mut self, now: Duration) {
        self.buckets.retain(|_, bucket| bucket.full_at > now);
        if self.buckets.len() < self.capacity {
            return;
        }
        let mut uses: Vec<Duration> = self.buckets.values().map(|bucket| bucket.at).collect();
        uses.sort_unstable();
        let middle = uses[uses.len() / 2];
        self.buckets.retain(|_, bucket| bucket.at > middle);
    }
}

/// Converts a small non-negative number.
fn whole(value: f64) -> u32 {
    // The cast saturates at both ends.
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> QuotaOwner {
        QuotaOwner::address(text.parse().expect("an address"))
    }

    const T0: Duration = Duration::from_secs(1000);

    #[test]
    fn an_address_has_a_burst_of_twenty_and_then_five_a_second() {
        let limits = Limits::default();
        let payer = ip("192.0.2.1");
        for left in (0..20).rev() {
            assert_eq!(limits.take(payer, QuotaUse::Other, T0).expect("within the burst").remaining, left);
        }
        let refused = limits.take(payer, QuotaUse::Other, T0).expect_err("the burst is used up");
        assert_eq!(refused.retry_after, 1);
        assert_eq!(refused.quota, Quota { limit: 20, remaining: 0, reset: 4 });
        let later = T0 + Duration::from_secs(1);
        assert_eq!((0..10).filter(|_| limits.take(payer, QuotaUse::Other, later).is_ok()).count(), 5);
        assert!(limits.take(ip("192.0.2.2"), QuotaUse::Other, T0).is_ok(), "another address has its own");
    }

    #[test]
    fn a_credential_has_sixty_and_then_twenty_a_second() {
        let limits = Limits::default();
        let payer = QuotaOwner::ConfiguredKey(0);
        assert_eq!((0..100).filter(|_| limits.take(payer, QuotaUse::Other, T0).is_ok()).count(), 60);
        let later = T0 + Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| limits.take(payer, QuotaUse::Other, later).is_ok()).count(), 20);
    }

    #[test]
    fn reads_fit_six_tabs_and_leave_the_quota_of_sign_ins_alone() {
        let limits = Limits::default();
        for payer in [ip("192.0.2.1"), QuotaOwner::Session(Uuid::nil())] {
            let reads = |now| (0..600).filter(|_| limits.take(payer, QuotaUse::Read, now).is_ok()).count();
            assert_eq!(reads(T0), 480);
            assert_eq!(reads(T0 + Duration::from_secs(1)), 40);
            let other = limits.take(payer, QuotaUse::Other, T0).expect("a bucket of its own");
            assert_eq!(other.remaining + 1, payer.rate(QuotaUse::Other).burst);
        }
    }

    #[test]
    fn addresses_of_one_ipv6_network_share_and_mapped_ones_are_ipv4() {
        assert_eq!(ip("2001:db8:1:2::1"), ip("2001:db8:1:2:ffff::9"));
        assert_ne!(ip("2001:db8:1:2::1"), ip("2001:db8:1:3::1"));
        assert_eq!(ip("::ffff:192.0.2.1"), ip("192.0.2.1"));
    }

    #[test]
    fn a_flood_of_addresses_takes_no_more_memory_and_the_newest_are_remembered() {
        let mut buckets = Buckets::new(100);
        for n in 0..10_000_u32 {
            let now = T0 + Duration::from_micros(u64::from(n));
            let _ = buckets.take(n, ADDRESS, now);
            assert!(buckets.buckets.len() <= 100);
        }
        let now = T0 + Duration::from_micros(10_000);
        assert_eq!(buckets.take(9_999, ADDRESS, now).expect("one").remaining, 18, "its bucket was kept");
        let long_after = T0 + Duration::from_secs(60);
        for n in 20_000..20_100 {
            let _ = buckets.take(n, ADDRESS, long_after);
        }
        assert!(buckets.buckets.keys().all(|n| *n >= 20_000), "full buckets go first");
    }

    #[test]
    fn refusals_are_written_down_up_to_a_measure_and_the_rest_is_counted() {
        let limits = Limits::default();
        let payer = Some(ip("192.0.2.1"));
        let recorded = (0..700).filter(|_| limits.may_record_denial(payer, T0).is_some()).count();
        assert_eq!(recorded, 500);
        assert_eq!(limits.may_record_denial(Some(ip("192.0.2.2")), T0), Some(200));
        assert_eq!(limits.may_record_denial(payer, T0), None);
        assert_eq!(limits.may_record_denial(payer, T0 + Duration::from_secs(10)), Some(1));
    }
}
