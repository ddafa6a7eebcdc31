//! Query log.
//!
//! Workers write into [`WorkerBuffer`]s and never wait: a full buffer counts the records that it drops. One thread
//! empties them every few seconds, counts, keeps the newest records in memory and appends all of them to files.

mod answered;
mod bloom;
mod filter;
mod format;
mod journal;
pub(crate) mod record;
pub(crate) mod stats;
pub(crate) mod worker_buffer;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Condvar, Mutex};

pub use answered::{AnswerObserver, AnsweredAddresses};
pub use filter::{ClientFilter, DomainFilter, Filter};
pub use gateway_journal::{PageStart, SearchEnd, Settings};
use journal::Journal;
pub use record::{DisplayRecord, QueryRecord};
pub use stats::{ClientStats, RuleCounter, RuleCounters, Totals};
pub use worker_buffer::{RecordTemplate, WorkerBuffer, last_probe};

use crate::WallClock;

/// Page of records, with its cost.
pub type Page = gateway_journal::Page<DisplayRecord>;

/// Lanes are emptied this often.
const TICK: Duration = Duration::from_millis(50);

/// Bytes of files that one request searches at most: less than a second on a memory card.
const SEARCHED_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub struct QueryLog {
    buffers: Box<[WorkerBuffer]>,
    journal: Mutex<Journal>,
    stop: AtomicBool,
    wake: (Mutex<()>, Condvar),
    wall: WallClock,
}

impl QueryLog {
    /// Creates a log with a number of buffers. Opens the files of `settings`. If that fails, it uses memory only, and
    /// [`QueryLog::error`] has the reason. [`QueryLog::run`] writes the log.
    pub fn new(settings: Settings, buffers: usize, wall: WallClock) -> Arc<QueryLog> {
        Arc::new(QueryLog {
            buffers: (0..buffers.max(1)).map(|_| WorkerBuffer::default()).collect(),
            journal: Mutex::new(Journal::new(settings, wall.now())),
            stop: AtomicBool::new(false),
            wake: Default::default(),
            wall,
        })
    }

    /// The clock of the times in it.
    pub fn wall(&self) -> &WallClock {
        &self.wall
    }

    /// Empties the buffers until the log ends, and writes the rest. For a thread of its own.
    pub fn run(&self) {
        crate::lower_priority();
        while !self.stop.load(Ordering::Acquire) {
            self.wake.1.wait_for(&mut self.wake.0.lock(), TICK);
            self.collect(self.wall.now());
        }
        let now = self.wall.now();
        self.collect(now);
        self.journal.lock().flush(now);
    }

    /// Takes the content of the buffers.
    fn collect(&self, now: Timestamp) {
        for buffer in &self.buffers {
            let batch = buffer.take();
            self.journal.lock().add(batch, now);
        }
        self.journal.lock().tick(now);
    }

    /// A lane; numbers that are too high share the last one.
    pub fn buffer(&self, number: usize) -> &WorkerBuffer {
        &self.buffers[number.min(self.buffers.len() - 1)]
    }

    pub fn set(&self, settings: Settings) {
        self.journal.lock().set(settings, self.wall.now());
    }

    /// Returns the reason for which nothing is written to files.
    pub fn error(&self) -> Option<String> {
        self.journal.lock().error()
    }

    /// Newest first, at most `limit`. What is not in memory is read from files block by block, so this may take a
    /// while: not to be called where nothing may wait. Blocks without any of the client, the outcome or the domain that
    /// is looked for are left out; a text within names may be anywhere. The search ends after 64 MiB.
    pub fn read(&self, filter: &Filter, before: Option<PageStart>, limit: usize) -> Page {
        self.collect(self.wall.now());
        let view = self.journal.lock().view();
        let page = view.read(filter, before, limit, SEARCHED_BYTES);
        tracing::debug!(rows = page.rows.len(), bytes = page.read, "read the DNS query log");
        page
    }

    /// Returns how often filter rules have decided since the start, and the last time. Rules that never decided are
    /// left out.
    pub fn hits(&self) -> RuleCounters {
        self.collect(self.wall.now());
        self.journal.lock().hits()
    }

    /// Makes the log pass the addresses in its records on, except those of anonymous clients.
    pub fn observe(&self, observer: AnswerObserver) {
        self.journal.lock().observe(observer);
    }

    /// Forgets all records, in memory and files. Figures stay.
    pub fn clear(&self) {
        self.collect(self.wall.now());
        self.journal.lock().clear();
    }

    /// Forgets all records and all counts, in memory and in files, whose bytes are overwritten.
    pub fn erase(&self) -> std::io::Result<()> {
        let now = self.wall.now();
        self.collect(now);
        self.journal.lock().erase()
    }

    /// Since midnight (of the system's time zone).
    pub fn today(&self) -> Totals {
        self.collect(self.wall.now());
        self.journal.lock().today()
    }

    /// Returns the totals of the last minutes with the begin of each, oldest first. Minutes before the start are missing.
    pub fn history(&self, minutes: usize) -> Vec<(Timestamp, Totals)> {
        let now = self.wall.now();
        self.collect(now);
        self.journal.lock().history(now, minutes)
    }

    /// Returns the counters since the start, by number of queries. Clients that are not logged by name are left out.
    pub fn clients(&self) -> Vec<ClientStats> {
        self.collect(self.wall.now());
        self.journal.lock().clients()
    }

    /// Answers withheld since the start because a public name had a local address.
    pub fn rebinding(&self) -> u64 {
        self.journal.lock().rebinding()
    }

    /// Records that were lost since the start because their buffer was not emptied in time.
    pub fn lost(&self) -> u64 {
        self.journal.lock().lost()
    }

    /// Makes the thread write the rest and end, without waiting for it.
    pub fn end(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake.1.notify_all();
    }
}
