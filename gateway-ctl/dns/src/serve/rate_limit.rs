//! How many questions by UDP those of one network may ask: a bucket of tokens for each /24 and each /56.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;

use super::settings::Rate;

/// What is done with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    Answer,
    /// Only told to come again by TCP.
    Slip,
    Drop,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Thousandths of a question that may still be asked.
    tokens: u64,
    filled_at: u64,
    over: bool,
}

/// So many networks are counted in each shard; then those that are full again leave, or all.
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
    /// Takes a question of this address at `now` in milliseconds.
    pub fn take(&self, rate: Rate, address: IpAddr, now: u64) -> Allowance {
        self.take_of(rate, address, network(address), now)
    }

    /// The same for a host of the LAN, which is counted by its address alone.
    pub fn take_client(&self, rate: Rate, address: IpAddr, now: u64) -> Allowance {
        self.take_of(rate, address, host(address), now)
    }

    fn take_of(&self, rate: Rate, address: IpAddr, network: u64, now: u64) -> Allowance {
        if rate.per_second == 0 || address.is_loopback() {
            return Allowance::Answer;
        }
        let most = u64::from(rate.per_second) * u64::from(rate.burst.max(1)) * 1000;
        let shard = &self.shards[(network ^ network >> 16 ^ network >> 32) as usize % SHARDS];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        // As many thousandths come back each millisecond as questions are allowed each second.
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

/// A /24 or a /56 as a number; those of both families differ in the highest byte, which a /56 leaves free.
fn network(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => u64::from(u32::from(address) >> 8) | 1 << 56,
        IpAddr::V6(address) => (u128::from(address) >> 72) as u64,
    }
}

/// An address as a number: a digest of an IPv6 address, whose interface identifier is of 64 bits by itself.
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
    fn a_network_may_ask_in_bursts_and_then_at_its_rate() {
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
        let counted: usize = limit.shards.iter().map(|shard| shard.lock().expect("a lock").len()).sum();
        assert!(counted <= NETWORKS * SHARDS, "{counted}");
    }
}
