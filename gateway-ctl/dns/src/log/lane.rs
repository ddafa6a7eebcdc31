//! Where those who answer leave their records.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gateway_core::dns::Cause;
use jiff::Timestamp;

use super::counts::{Hits, RuleHits};
use super::record;
use crate::seam::{Client, Logged};
use crate::serve::{Status, Trace, Transport};

/// What was told to whom.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    pub time: Timestamp,
    pub elapsed: Duration,
    pub from: IpAddr,
    pub client: &'a Client,
    pub transport: Transport,
    pub trace: &'a Trace,
    /// The answer as it was sent.
    pub message: &'a [u8],
}

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
        let taken = &mut *self.0;
        taken.queries += 1;
        match told.trace.status {
            Status::Blocked => taken.blocked += 1,
            Status::Cached => taken.cached += 1,
            _ => {}
        }
        let rule = told.trace.because.as_ref().filter(|because| because.cause == Cause::Rule);
        if let Some(id) = rule.and_then(|rule| rule.id) {
            taken.hits.entry(id).or_default().add(Hits { count: 1, last: told.time });
        }
        if told.client.logged == Logged::Off {
            return;
        }
        if taken.bytes.len() > ROOM {
            taken.lost += 1;
            return;
        }
        record::encode(&mut taken.bytes, told);
    }
}
