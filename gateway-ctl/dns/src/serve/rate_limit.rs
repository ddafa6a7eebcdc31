//! Rate limit of UDP queries per network: a token bucket for each /24 and each /56.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::settings::Rate;

/// Decision of the rate limit about a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    Answer,
    /// Gets a truncated answer, so that the client retries over TCP.
    Slip,
    Drop,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Remaining queries, in thousandths.
    tokens: u64,
    filled_at: u64,
    over: bool,
}

/// Maximum number of networks per shard. A full shard drops the buckets that are full again, or else all of them.
const NETWORKS: usize = 4096;
const SHARDS: usize = 16;

#[derive(Debug)]
pub struct Limit {
    shards: [Mutex<HashMap<u64, Bucket, rapidhash::fast::RandomState>>; SHARDS],
    dropped: AtomicU64,
}

impl Default for Limit {
    fn default() -> Limit {
        Limit { shards: std::array::from_fn(|_| Mutex::default()), dropped: AtomicU64::new(0) }
    }
}

impl Limit {
    /// Takes a token from the network of this address. `now` is in milliseconds.
    pub fn take(&self, rate: Rate, address: IpAddr, now: u64) -> Allowance {
        self.take_from(rate, address, network(address), now)
    }

    /// Takes a token from a host of the LAN, which has its own bucket. `now` is in milliseconds.
    pub fn take_client(&self, rate: Rate, address: IpAddr, now: u64) -> Allowance {
        self.take_from(rate, address, host(address), now)
    }

    fn take_from(&self, rate: Rate, address: IpAddr, network: u64, now: u64) -> Allowance {
        if rate.per_second == 0 || address.is_loopback() {
            return Allowance::Answer;
        }
        let most = u64::from(rate.per_second) * u64::from(rate.burst.max(1)) * 1000;
        let shard = &self.shards[(network ^ network >> 16 ^ network >> 32) as usize % SHARDS];
        let mut shard = shard.lock();
        // Each millisecond refills `per_second` thousandths of a query.
        let filled = |bucket: &Bucket| {
            let passed = now.saturating_sub(bucket.filled_at);
            bucket.tokens.saturating_add(passed.saturating_mul(u64::from(rate.per_second))).min(most)
        };
        if shard.len() >= NETWORKS && !shard.contains_key(&network) {
            shard.retain(|_, bucket| filled(bucket) < most);
            if shard.len() >= NETWORKS {
                shard.clear();
            }
        }
        let bucket = shard.entry(network).or_insert(Bucket { tokens: most, filled_at: now, over: false });
        bucket.tokens = filled(bucket);
        bucket.filled_at = bucket.filled_at.max(now);
        if bucket.tokens >= 1000 {
            bucket.tokens -= 1000;
            return Allowance::Answer;
        }
        bucket.over = !bucket.over;
        if bucket.over {
            return Allowance::Slip;
        }
        self.dropped.fetch_add(1, Ordering::Relaxed);
        Allowance::Drop
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Returns a /24 or a /56 as a number. The highest byte, which a /56 leaves free, distinguishes the address families.
fn network(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => u64::from(u32::from(address) >> 8) | 1 << 56,
        IpAddr::V6(address) => (u128::from(address) >> 72) as u64,
    }
}

/// Returns an address as a number. An IPv6 address is hashed, because its interface identifier alone has 64 bits.
fn host(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            (bits as u64) ^ ((bits >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_may_burst_and_is_then_limited_to_its_rate() {
        let (limit, rate) = (Limit::default(), Rate { per_second: 20, burst: 2 });
        let ask = |address: &str, now| limit.take(rate, address.parse().expect("an address"), now);
        for host in 0..40 {
            assert_eq!(ask(&format!("192.0.2.{host}"), 0), Allowance::Answer);
        }
        assert_eq!(ask("192.0.2.1", 0), Allowance::Slip);
        assert_eq!(ask("192.0.2.2", 0), Allowance::Drop);
        assert_eq!(ask("192.0.3.2", 0), Allowance::Answer);
        assert_eq!(ask("192.0.2.2", 49), Allowance::Slip);
        assert_eq!(ask("192.0.2.2", 50), Allowance::Answer);
        assert_eq!(ask("192.0.2.2", 50), Allowance::Drop);
        assert_eq!(ask("2001:db8:0:100::1", 0), Allowance::Answer);
        assert_eq!(limit.dropped(), 2);
        assert_ne!(
            network("2001:db8::".parse().expect("v6")),
            network("2001:db8:0:100::".parse().expect("v6"))
        );
        assert_eq!(
            network("2001:db8::".parse().expect("v6")),
            network("2001:db8:0:ff::".parse().expect("v6"))
        );
    }

    #[test]
    fn hosts_of_the_lan_are_counted_one_by_one() {
        let (limit, rate) = (Limit::default(), Rate { per_second: 1, burst: 1 });
        let ask = |address: &str| limit.take_client(rate, address.parse().expect("an address"), 0);
        for address in ["192.168.10.1", "192.168.10.2", "fd00::1", "fd00::2"] {
            assert_eq!(ask(address), Allowance::Answer, "{address}");
            assert_eq!(ask(address), Allowance::Slip, "{address}");
        }
    }

    #[test]
    fn no_limit_and_the_gateway_itself_are_not_counted() {
        let limit = Limit::default();
        for _ in 0..1000 {
            let none = Rate { per_second: 0, burst: 1 };
            assert_eq!(limit.take(none, "192.0.2.1".parse().expect("v4"), 0), Allowance::Answer);
            assert_eq!(limit.take(Rate::default(), "::1".parse().expect("v6"), 0), Allowance::Answer);
        }
    }

    #[test]
    fn many_networks_do_not_fill_the_memory() {
        let limit = Limit::default();
        for network in 0..200_000u32 {
            limit.take(Rate::default(), std::net::Ipv4Addr::from(network << 8).into(), 0);
        }
        let counted: usize = limit.shards.iter().map(|shard| shard.lock().len()).sum();
        assert!(counted <= NETWORKS * SHARDS, "{counted}");
    }
}
