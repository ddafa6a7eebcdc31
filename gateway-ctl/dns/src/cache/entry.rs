//! Cache entry: one answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use gateway_core::dns::{Name, Question};

use super::key::Key;
use super::limits::Limits;
use crate::wire::stored::{AnswerAge, Bounds};
use crate::wire::{Answer, StoredAnswer, rcode};

#[derive(Debug)]
pub struct Entry {
    pub partition: u16,
    pub dnssec_ok: bool,
    pub checking_disabled: bool,
    pub qtype: u16,
    pub name: Name,
    pub stored: StoredAnswer,
    pub rcode: u16,
    /// DNSSEC result: true is secure, false is insecure or bogus (RFC 4035, section 4.3). None: not validated.
    pub secure: Option<bool>,
    pub upstream: Arc<str>,
    /// Display name of the egress of the query; empty if none was sent.
    pub egress: Arc<str>,
    /// Extended DNS error (RFC 8914): code and text.
    pub ede: Option<(u16, Arc<str>)>,
    /// Cached failure: no answer, or an RCODE other than NOERROR and NXDOMAIN.
    pub failed: bool,
    /// No query was sent, because the route of the client is blocked.
    pub blocked: bool,
    /// Time of insertion. It and the next two times are milliseconds of the cache clock.
    pub stored_at: u64,
    pub expires_at: u64,
    pub gone_at: u64,
    stale_ttl: u32,
    /// End of the time in which a stale answer is sent at once, because upstreams failed a short time ago.
    stale_until: AtomicU64,
    pub(super) visited: AtomicBool,
    renewing: AtomicBool,
    hits: AtomicU32,
}

/// State of an entry (RFC 8767, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    Fresh(AnswerAge),
    /// Stale, and upstreams failed a short time ago: answered without an upstream query.
    StaleRecheckPending(AnswerAge),
    /// Answered only if no upstream answers soon.
    Stale(AnswerAge),
    Expired,
}

/// Minimum number of hits of an entry that is refreshed before it expires.
const HOT: u32 = 2;

/// Time in which a stale answer is sent without another upstream query: the failure recheck timer (RFC 8767, section
/// 5).
pub(crate) const RECHECK_MS: u64 = 30_000;

impl Entry {
    pub fn answer(
        key: &Key<'_>,
        answer: &Answer,
        upstream: Arc<str>,
        secure: Option<bool>,
        limits: &Limits,
        now: u64,
    ) -> Option<Entry> {
        let bounds =
            Bounds { least: limits.ttl_least, most: limits.ttl_most, most_negative: limits.negative_most };
        let stored = StoredAnswer::new(Question { name: key.name, qtype: key.qtype }, answer, bounds)?;
        let failed = !matches!(answer.rcode, rcode::NOERROR | rcode::NXDOMAIN);
        let ttl = match (failed, answer.ttl, stored.ttl()) {
            (false, Some(_), Some(ttl)) => ttl,
            // The answer does not say how long it is valid.
            _ => limits.failure,
        };
        let mut entry = Entry::new(key, stored, upstream, limits, now, ttl);
        entry.rcode = answer.rcode;
        entry.secure = secure;
        entry.ede = answer.ede.clone().map(|(code, text)| (code, text.into()));
        entry.failed = failed;
        if failed || answer.ttl.is_none() {
            entry.gone_at = entry.expires_at;
        }
        Some(entry)
    }

    /// Creates the entry of a failure, which is cached for a short time (RFC 2308, section 7.1).
    pub fn failure(
        key: &Key<'_>,
        ede: (u16, String),
        upstream: Arc<str>,
        limits: &Limits,
        now: u64,
    ) -> Entry {
        let stored = StoredAnswer::bare(Question { name: key.name, qtype: key.qtype });
        let mut entry = Entry::new(key, stored, upstream, limits, now, limits.failure);
        entry.rcode = rcode::SERVFAIL;
        entry.ede = Some((ede.0, ede.1.into()));
        entry.failed = true;
        entry.gone_at = entry.expires_at;
        entry
    }

    /// Sets the egress of the query.
    #[must_use]
    pub fn sent_by(mut self, egress: Arc<str>) -> Entry {
        self.egress = egress;
        self
    }

    fn new(
        key: &Key<'_>,
        stored: StoredAnswer,
        upstream: Arc<str>,
        limits: &Limits,
        now: u64,
        ttl: u32,
    ) -> Entry {
        let expires_at = now + u64::from(ttl) * 1000;
        Entry {
            partition: key.partition,
            dnssec_ok: key.dnssec_ok,
            checking_disabled: key.checking_disabled,
            qtype: key.qtype,
            name: key.name.to_owned(),
            stored,
            rcode: rcode::NOERROR,
            secure: None,
            upstream,
            egress: Arc::default(),
            ede: None,
            failed: false,
            blocked: false,
            stored_at: now,
            expires_at,
            gone_at: expires_at + u64::from(limits.stale_keep) * 1000,
            stale_ttl: limits.stale_ttl,
            stale_until: AtomicU64::new(0),
            visited: AtomicBool::new(false),
            renewing: AtomicBool::new(false),
            hits: AtomicU32::new(0),
        }
    }

    pub fn key(&self) -> Key<'_> {
        Key {
            partition: self.partition,
            dnssec_ok: self.dnssec_ok,
            checking_disabled: self.checking_disabled,
            qtype: self.qtype,
            name: self.name.as_ref(),
        }
    }

    /// Reports whether the entry has this key. The name is compared in the stored message, because the caller reads
    /// that next.
    pub fn is_of(&self, key: &Key<'_>) -> bool {
        self.qtype == key.qtype
            && self.partition == key.partition
            && self.dnssec_ok == key.dnssec_ok
            && self.checking_disabled == key.checking_disabled
            && self.stored.asked() == key.name.wire()
    }

    pub fn freshness(&self, now: u64) -> Freshness {
        if now < self.expires_at {
            return Freshness::Fresh(AnswerAge::Fresh((now.saturating_sub(self.stored_at) / 1000) as u32));
        }
        let stale = AnswerAge::Stale(self.stale_ttl);
        if now >= self.gone_at {
            Freshness::Expired
        } else if now < self.stale_until.load(Ordering::Relaxed) {
            Freshness::StaleRecheckPending(stale)
        } else {
            Freshness::Stale(stale)
        }
    }

    /// Returns the remaining TTL, in seconds.
    pub fn ttl_left(&self, now: u64) -> u32 {
        (self.expires_at.saturating_sub(now) / 1000) as u32
    }

    /// Allows stale answers without waiting for an upstream for the next `RECHECK_MS`. Callers call it when no upstream
    /// answered.
    pub fn keep_stale(&self, now: u64) {
        self.stale_until.store(now + RECHECK_MS, Ordering::Relaxed);
    }

    /// Returns the time from which a hot entry is refreshed.
    pub fn renewable_at(&self) -> u64 {
        self.expires_at - (self.expires_at - self.stored_at) / 10
    }

    /// Counts a hit. Returns true to one caller when the entry is hot and only the last tenth of its lifetime is left:
    /// that caller refreshes it.
    pub fn used(&self, now: u64) -> bool {
        let hits = self.hits.load(Ordering::Relaxed).saturating_add(1);
        self.hits.store(hits, Ordering::Relaxed);
        hits >= HOT
            && !self.failed
            && now < self.expires_at
            && now >= self.renewable_at()
            && !self.renewing.swap(true, Ordering::Relaxed)
    }

    /// Returns the memory of the entry, in bytes.
    pub fn weight(&self) -> usize {
        let ede = self.ede.as_ref().map_or(0, |(_, text)| text.len());
        // The constant covers the node in the shard and the reference counters.
        size_of::<Entry>() + 64 + self.name.as_ref().wire().len() + self.stored.weight() + ede
    }
}
