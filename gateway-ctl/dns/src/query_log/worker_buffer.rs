//! Where those who answer leave their records.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gateway_core::dns::Cause;
use gateway_model::Id;
use jiff::Timestamp;

use super::record::{self, Told};
use super::stats::{Hits, RuleHits};
use crate::hooks::Logged;
use crate::serve::{Status, Trace};

/// Bytes that a lane holds between two visits.
const ROOM: usize = 4 << 20;

/// What a lane held.
#[derive(Debug, Default)]
pub struct Taken {
    pub bytes: Vec<u8>,
    pub queries: u64,
    pub blocked: u64,
    pub cached: u64,
    pub lost: u64,
    /// By the id of the filter rule that decided.
    pub hits: RuleHits,
}

#[derive(Debug, Default)]
pub struct Lane(Mutex<Taken>);

impl Lane {
    /// To write several records.
    pub fn open(&self) -> Pen<'_> {
        Pen(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn take(&self) -> Taken {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A lane that is written to.
pub struct Pen<'a>(MutexGuard<'a, Taken>);

impl Pen<'_> {
    /// A record that nobody can write any more.
    pub fn lose(&mut self) {
        self.0.lost += 1;
    }

    /// Everything is counted; what the client's privacy lets be written is.
    pub fn write(&mut self, told: &Told<'_>) {
        self.count(told.trace.status, rule(told.trace).map(|rule| (rule, told.time)));
        if told.client.logged != Logged::Off && self.has_room() {
            record::encode(&mut self.0.bytes, told);
        }
    }

    /// The same as if it were told once more, at that time: nanoseconds since 1970.
    pub fn write_again(&mut self, draft: &Draft, nanoseconds: i64) {
        let time = || Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or_default();
        self.count(draft.status, draft.rule.map(|rule| (rule, time())));
        if !draft.record.is_empty() && self.has_room() {
            let start = self.0.bytes.len();
            self.0.bytes.extend_from_slice(&draft.record);
            record::set_time(&mut self.0.bytes[start..], nanoseconds);
        }
    }

    fn count(&mut self, status: Status, hit: Option<(Id, Timestamp)>) {
        let taken = &mut *self.0;
        taken.queries += 1;
        match status {
            Status::Blocked => taken.blocked += 1,
            Status::Cached => taken.cached += 1,
            _ => {}
        }
        if let Some((rule, last)) = hit {
            taken.hits.entry(rule).or_default().add(Hits { count: 1, last });
        }
    }

    fn has_room(&mut self) -> bool {
        let room = self.0.bytes.len() <= ROOM;
        self.0.lost += u64::from(!room);
        room
    }
}

/// The filter rule that decided.
fn rule(trace: &Trace) -> Option<Id> {
    trace.because.as_ref().filter(|because| because.cause == Cause::Rule)?.id
}

/// What is told again and again, at other times and under other ids of the message.
#[derive(Debug)]
pub struct Draft {
    /// Empty where nothing may be written.
    record: Box<[u8]>,
    /// All of the message is in it.
    whole: bool,
    status: Status,
    rule: Option<Id>,
}

impl Draft {
    pub fn of(told: &Told<'_>) -> Draft {
        let mut record = Vec::new();
        if told.client.logged != Logged::Off {
            record::encode(&mut record, told);
            record::set_time(&mut record, 0);
            record::clear_id(&mut record, told.message.len());
        }
        let whole = !record.is_empty() && told.message.len() <= record::ANSWER;
        Draft { record: record.into(), whole, status: told.trace.status, rule: rule(told.trace) }
    }

    /// Certainly the same was told to the same.
    pub fn is_same(&self, other: &Draft) -> bool {
        self.whole && other.whole && self.rule == other.rule && self.record == other.record
    }
}
