//! Per-worker buffers of the query log.

use std::sync::atomic::{AtomicU64, Ordering};

use gateway_core::dns::Cause;
use gateway_core::dns_probe;
use gateway_model::Id;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

use super::record::{self, QueryRecord};
use super::stats::{RuleCounter, RuleCounters};
use crate::hooks::Logged;
use crate::serve::{Status, Trace};

/// Capacity of a buffer between two collections.
const CAPACITY_BYTES: usize = 4 << 20;

/// Content of a buffer.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub bytes: Vec<u8>,
    pub queries: u64,
    pub blocked: u64,
    pub cached: u64,
    pub lost: u64,
    /// Answers withheld because a public name had a local address.
    pub rebinding: u64,
    /// Counters of the filter rules that decided, by rule id.
    pub hits: RuleCounters,
}

#[derive(Debug, Default)]
pub struct WorkerBuffer(Mutex<Batch>);

impl WorkerBuffer {
    /// Locks the buffer to write several records.
    pub fn open(&self) -> BufferWriter<'_> {
        BufferWriter(self.0.lock())
    }

    pub(super) fn take(&self) -> Batch {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Token of the last health probe that was answered. A process has one resolver, apart from tests.
static LAST_PROBE: AtomicU64 = AtomicU64::new(0);

/// Returns the token of the last health probe that was answered.
pub fn last_probe() -> u64 {
    LAST_PROBE.load(Ordering::Acquire)
}

/// Writer of a locked buffer.
pub struct BufferWriter<'a>(MutexGuard<'a, Batch>);

impl BufferWriter<'_> {
    /// Counts a record that is lost.
    pub fn lose(&mut self) {
        self.0.lost += 1;
    }

    /// Counts a query, and writes its record unless the client is not logged.
    pub fn write(&mut self, query: &QueryRecord<'_>) {
        // Not a query of a host.
        if let Some(token) = dns_probe::token(query.message) {
            LAST_PROBE.store(token, Ordering::Release);
            return;
        }
        self.count(query.trace.status, rule(query.trace).map(|rule| (rule, query.time)));
        let because = query.trace.because.as_ref();
        self.0.rebinding += u64::from(because.is_some_and(|because| because.cause == Cause::Rebinding));
        if query.client.logged != Logged::Off && self.has_room() {
            record::encode(&mut self.0.bytes, query);
        }
    }

    /// Counts and writes a template as a query at that time, in nanoseconds since 1970.
    pub fn write_template(&mut self, template: &RecordTemplate, nanoseconds: i64) {
        let time = || Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or_default();
        self.count(template.status, template.rule.map(|rule| (rule, time())));
        if !template.record.is_empty() && self.has_room() {
            let start = self.0.bytes.len();
            self.0.bytes.extend_from_slice(&template.record);
            record::set_time(&mut self.0.bytes[start..], nanoseconds);
        }
    }

    fn count(&mut self, status: Status, hit: Option<(Id, Timestamp)>) {
        let batch = &mut *self.0;
        batch.queries += 1;
        match status {
            Status::Blocked => batch.blocked += 1,
            Status::Cached => batch.cached += 1,
            _ => {}
        }
        if let Some((rule, last)) = hit {
            batch.hits.entry(rule).or_default().add(RuleCounter { count: 1, last });
        }
    }

    fn has_room(&mut self) -> bool {
        let room = self.0.bytes.len() <= CAPACITY_BYTES;
        self.0.lost += u64::from(!room);
        room
    }
}

/// The filter rule that decided.
fn rule(trace: &Trace) -> Option<Id> {
    trace.because.as_ref().filter(|because| because.cause == Cause::Rule)?.id
}

/// Prebuilt record of an answer that is repeated, without time and message id.
#[derive(Debug)]
pub struct RecordTemplate {
    /// Empty where nothing may be written.
    record: Box<[u8]>,
    /// All of the message is in it.
    whole: bool,
    status: Status,
    rule: Option<Id>,
}

impl RecordTemplate {
    pub fn of(query: &QueryRecord<'_>) -> RecordTemplate {
        let mut record = Vec::new();
        if query.client.logged != Logged::Off {
            record::encode(&mut record, query);
            record::set_time(&mut record, 0);
            record::clear_id(&mut record, query.message.len());
        }
        let whole = !record.is_empty() && query.message.len() <= record::ANSWER;
        RecordTemplate { record: record.into(), whole, status: query.trace.status, rule: rule(query.trace) }
    }

    /// Returns true only if client and answer are certainly the same.
    pub fn is_same(&self, other: &RecordTemplate) -> bool {
        self.whole && other.whole && self.rule == other.rule && self.record == other.record
    }
}
