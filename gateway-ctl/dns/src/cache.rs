//! Cache of answers in wire format.
//!
//! The key includes the cache partition of the query route. Clients of one route never get answers that came over
//! another.

pub(crate) mod entry;
mod glob;
mod key;
mod limits;
mod shard;

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

pub(crate) use entry::{Entry, Freshness};
pub(crate) use glob::Glob;
pub(crate) use key::Key;
pub(crate) use limits::Limits;
pub(crate) use shard::CacheStats;
use shard::Shard;

const SHARDS: usize = 64;

#[derive(Debug)]
pub struct Cache {
    shards: Box<[Mutex<Shard>]>,
    hasher: rapidhash::quality::RandomState,
    limit: AtomicUsize,
}

impl Cache {
    pub fn new(bytes: usize) -> Cache {
        Cache {
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::default())).collect(),
            hasher: rapidhash::quality::RandomState::new(),
            limit: AtomicUsize::new(bytes),
        }
    }

    /// Sets the memory limit in bytes. The next inserts evict the excess.
    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    fn hash(&self, key: &Key<'_>) -> u64 {
        let flags = u64::from(key.dnssec_ok) | u64::from(key.checking_disabled) << 1;
        let numbers = u64::from(key.partition) << 32 | u64::from(key.qtype) << 8 | flags;
        self.hasher.hash_one((numbers, key.name.wire()))
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The hash table uses the highest and the lowest bits.
        self.shards[(hash >> 40) as usize % SHARDS].lock()
    }

    /// Returns the entry, fresh or stale. `now` and all other times of the cache are milliseconds of one monotonic
    /// clock.
    pub fn get(&self, key: &Key<'_>, now: u64) -> Option<Arc<Entry>> {
        let hash = self.hash(key);
        self.shard(hash).get(hash, key, now)
    }

    /// Returns the entry without counting a hit and without protecting it from eviction.
    pub fn peek(&self, key: &Key<'_>) -> Option<Arc<Entry>> {
        let hash = self.hash(key);
        self.shard(hash).peek(hash, key)
    }

    /// Inserts an entry, and replaces one with the same key.
    pub fn insert(&self, entry: Arc<Entry>) {
        let hash = self.hash(&entry.key());
        let limit = self.limit.load(Ordering::Relaxed) / SHARDS;
        self.shard(hash).insert(hash, entry, limit);
    }

    pub fn figures(&self) -> CacheStats {
        let mut sum = CacheStats::default();
        for shard in &self.shards {
            let figures = shard.lock().figures();
            sum.entries += figures.entries;
            sum.bytes += figures.bytes;
            sum.hits += figures.hits;
            sum.misses += figures.misses;
            sum.evicted += figures.evicted;
        }
        sum
    }

    /// Returns at most `limit` entries whose names match, sorted by name.
    pub fn list(&self, pattern: &Glob, limit: usize) -> Vec<Arc<Entry>> {
        let mut found = Vec::new();
        for shard in &self.shards {
            found
                .extend(shard.lock().entries().filter(|entry| pattern.matches(entry.name.as_ref())).cloned());
        }
        found.sort_by(|a, b| (&a.name, a.qtype, a.partition).cmp(&(&b.name, b.qtype, b.partition)));
        found.truncate(limit);
        found
    }

    /// Removes the entries whose names match. Returns their number.
    pub fn flush(&self, pattern: &Glob) -> usize {
        self.retain(|entry| !pattern.matches(entry.name.as_ref()))
    }

    /// Removes the entries of a partition, whose route has changed. Returns their number.
    pub fn flush_partition(&self, partition: u16) -> usize {
        self.retain(|entry| entry.partition != partition)
    }

    fn retain(&self, keep: impl Fn(&Entry) -> bool) -> usize {
        self.shards.iter().map(|shard| shard.lock().retain(&keep)).sum()
    }
}

#[cfg(test)]
mod tests;
