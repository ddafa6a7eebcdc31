//! In-kernel packet cache of whole DNS answers.
//!
//! The dataplane answers a query that the same client sent before with the same bytes. An entry lives a few seconds and
//! never survives a change of an input of answers. This module fills the cache, and logs and counts its hits.
//!
//! Decision 0048 says why.

pub mod entry;
mod index;
mod run;

#[cfg(test)]
mod tests;

use std::hash::{BuildHasher as _, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use gateway_common::wire::{
    DnsCacheKey, DnsCacheValue, DnsHit, FilterAnswer, FilterBucket, FilterClient, FilterClientKey, FilterHit,
};
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

pub use entry::CachePolicy;
use entry::{EntryLifetime, key, value};
use index::CacheIndex;

use crate::hooks::{Client, Host};
use crate::query_log::{QueryLog, QueryRecord, RecordTemplate};
use crate::serve::settings::Blocking;
use crate::serve::{Now, Trace, Transport};

/// Kernel side of the cache and of the filter.
pub trait Dataplane: Send + Sync + 'static {
    /// Invalidates the entries of other epochs before it returns.
    fn set_epoch(&self, epoch: u64);
    fn put(&self, key: &DnsCacheKey, value: &DnsCacheValue);
    fn remove(&self, keys: &[DnsCacheKey]);
    /// Reports the hits since the last call.
    fn take_hits(&self, tell: &mut dyn FnMut(DnsHit));
    /// Replaces the names of the filter, with their answers by index. Clients of other tables are not answered.
    fn put_table(&self, table: &[FilterBucket], answers: &[(u32, FilterAnswer)]) -> std::io::Result<()>;
    /// Adds a client to the filter, or renews it.
    fn put_client(&self, key: &FilterClientKey, client: &FilterClient);
    /// Reports the hits of the filter since the last call.
    fn take_filter_hits(&self, report: &mut dyn FnMut(FilterHit));
}

/// Longest lifetime of an entry.
const MAX_LIFETIME: Duration = Duration::from_secs(10);
/// Shortest lifetime that is worth an entry.
const MIN_LIFETIME: Duration = Duration::from_millis(200);

pub struct KernelCache {
    dataplane: Option<Arc<dyn Dataplane>>,
    epoch: AtomicU64,
    index: Mutex<CacheIndex>,
    log: Arc<QueryLog>,
    buffer: usize,
    hits: AtomicU64,
    ended: AtomicBool,
}

/// Answer that may enter the kernel cache.
pub struct CacheCandidate<'a> {
    pub host: &'a Host,
    /// Address of the resolver that received the query.
    pub server: IpAddr,
    pub interface: u32,
    pub question: &'a [u8],
    pub answer: &'a [u8],
    pub client: &'a Arc<Client>,
    pub trace: &'a Trace,
    pub policy: CachePolicy,
    /// Epoch of the cache, read before the answer was composed.
    pub epoch: u64,
}

impl KernelCache {
    /// Creates a cache that logs its hits to the log buffer with index `buffer`. Without a dataplane the cache stays
    /// empty.
    pub fn new(dataplane: Option<Box<dyn Dataplane>>, log: Arc<QueryLog>, buffer: usize) -> KernelCache {
        let (index, hits, ended) = Default::default();
        let dataplane = dataplane.map(Arc::from);
        let kernel_cache =
            KernelCache { dataplane, epoch: AtomicU64::new(0), index, log, buffer, hits, ended };
        kernel_cache.invalidate();
        kernel_cache
    }

    /// Returns the dataplane for the filter.
    pub fn dataplane(&self) -> Option<Arc<dyn Dataplane>> {
        self.dataplane.clone()
    }

    /// Returns the index of the log buffer for hits.
    pub const fn buffer(&self) -> usize {
        self.buffer
    }

    pub fn works(&self) -> bool {
        self.dataplane.is_some()
    }

    /// Returns the epoch. Callers must read it before they read the inputs of an answer.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Invalidates all entries before it returns. Callers must call it after a change of an input of answers.
    pub fn invalidate(&self) {
        let _alone = self.lock();
        let epoch = self.epoch.fetch_add(1, Ordering::AcqRel) + 1;
        if let Some(dataplane) = &self.dataplane {
            dataplane.set_epoch(epoch);
        }
    }

    /// Returns the number of answers from the kernel cache since the start.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    pub fn offer(&self, offer: &CacheCandidate<'_>, blocking: &Blocking, now: Now) {
        let Some(dataplane) = &self.dataplane else { return };
        let mono = monotonic();
        let Some(span) = span(offer.policy, blocking, now, mono) else { return };
        let Some(key) = key(offer.host, offer.server, offer.interface, offer.question) else { return };
        let Some(mut value) = value(&key, offer.answer, span) else { return };
        value.epoch = offer.epoch;
        let (time, elapsed, transport) = (Timestamp::UNIX_EPOCH, Duration::ZERO, Transport::Udp);
        let CacheCandidate { host: &Host { address: from, .. }, client, trace, answer: message, .. } = *offer;
        let template =
            RecordTemplate::of(&QueryRecord { time, elapsed, from, client, transport, trace, message });
        if self.lock().add(&key, &mut value, template).is_some() {
            dataplane.put(&key, &value);
        }
    }

    /// Logs and counts the hits since the last call. Returns their number.
    pub fn collect(&self) -> usize {
        let Some(dataplane) = &self.dataplane else { return 0 };
        let (index, mut writer) = (self.lock(), self.log.buffer(self.buffer).open());
        let since_boot = i128::from(monotonic());
        let boot = i64::try_from(self.log.wall().now().as_nanosecond() - since_boot).unwrap_or(0);
        let mut hits = 0;
        dataplane.take_hits(&mut |given| {
            hits += 1;
            match index.find(given.id) {
                Some(entry) => {
                    writer.write_template(&entry.template, boot.saturating_add_unsigned(given.time))
                }
                None => writer.lose(),
            }
        });
        self.hits.fetch_add(hits as u64, Ordering::Relaxed);
        hits
    }

    /// Removes expired entries.
    pub fn sweep(&self) {
        let Some(dataplane) = &self.dataplane else { return };
        let gone = self.lock().sweep(monotonic());
        dataplane.remove(&gone);
    }

    /// Stops the cache and makes [`Shared::run_kernel_cache`](super::Shared::run_kernel_cache) return.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.invalidate();
    }

    fn lock(&self) -> MutexGuard<'_, CacheIndex> {
        self.index.lock()
    }
}

/// Returns the lifetime of an answer. None: it is too short for an entry. It ends at the next full minute at the
/// latest, because schedules change then, and at the end of a pause of blocking.
fn span(policy: CachePolicy, blocking: &Blocking, now: Now, mono: u64) -> Option<EntryLifetime> {
    let nanos = |ms: u64| ms.saturating_mul(1_000_000);
    let (since, left) = match policy {
        CachePolicy::Never => return None,
        CachePolicy::UntilInvalidated => (None, MAX_LIFETIME),
        CachePolicy::Ttl { since, until } => {
            let since = mono.saturating_sub(nanos(now.ms.saturating_sub(since)));
            (Some(since), MAX_LIFETIME.min(Duration::from_millis(until.saturating_sub(now.ms))))
        }
    };
    let second = u64::try_from(now.wall.as_second().rem_euclid(60)).ok()?;
    let passed = Duration::from_nanos(u64::try_from(now.wall.subsec_nanosecond()).unwrap_or(0));
    let minute = Duration::from_secs(60 - second).saturating_sub(passed);
    let pause = blocking.paused_until.map(|until| until.duration_since(now.wall)).filter(|d| d.is_positive());
    let pause = pause.and_then(|left| Duration::try_from(left).ok()).unwrap_or(MAX_LIFETIME);
    let left = left.min(minute).min(pause);
    let until = mono.saturating_add(u64::try_from(left.as_nanos()).ok()?);
    (left >= MIN_LIFETIME).then_some(EntryLifetime { since, now: mono, until })
}

/// Returns `CLOCK_MONOTONIC` in nanoseconds, the clock of the dataplane.
pub fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.unsigned_abs().saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.unsigned_abs())
}

/// Per-worker admission filter for the kernel cache. A query is offered for caching only if the same client already
/// sent the same bytes in the current 8-second window.
pub struct AdmissionFilter {
    /// Tags by set, newest first. The 4-way sets keep two colliding queries from evicting each other.
    marks: Box<[[u32; WAYS]]>,
    hasher: rapidhash::fast::RandomState,
}

const ADMISSION_SETS: usize = 1 << 14;
const WAYS: usize = 4;
/// Window of the filter, in milliseconds.
const ADMISSION_WINDOW_MS: u64 = 8192;

impl Default for AdmissionFilter {
    fn default() -> AdmissionFilter {
        AdmissionFilter { marks: vec![[0; WAYS]; ADMISSION_SETS].into(), hasher: Default::default() }
    }
}

impl AdmissionFilter {
    pub fn is_repeated(&mut self, host: &Host, message: &[u8], now: Now) -> bool {
        let mut hasher = self.hasher.build_hasher();
        host.hash(&mut hasher);
        hasher.write(message.get(2..).unwrap_or_default());
        hasher.write_u64(now.ms / ADMISSION_WINDOW_MS);
        let hash = hasher.finish();
        let marks = &mut self.marks[hash as usize % ADMISSION_SETS];
        // The low bits select the set.
        let tag = (hash >> 32) as u32;
        let before = marks.contains(&tag);
        if !before {
            marks.rotate_right(1);
            marks[0] = tag;
        }
        before
    }
}
