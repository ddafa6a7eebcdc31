//! Journal of the query log, with the figures that are counted beside it.

use std::io;

use gateway_core::dns::NameRef;
use gateway_core::history::MinuteRing;
use gateway_journal::{Block, PageStart, Query, Settings};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::answered::AnswerObserver;
use super::bloom::BloomSummary;
use super::format::QueryFormat;
use super::record::{RecordView, views};
use super::stats::{ClientStats, QueryCounts, RuleCounters, Totals};
use super::worker_buffer::Batch;
use super::{Filter, Page};
use crate::serve::Status;
use crate::wire::NameBuf;

#[derive(Debug)]
pub(super) struct Journal {
    records: gateway_journal::Journal<QueryFormat>,
    counts: QueryCounts,
    today: Totals,
    /// The totals of today include those of the files.
    has_read_today: bool,
    /// Queries by minute since the start.
    history: MinuteRing<Totals>,
    tomorrow: Timestamp,
    lost: u64,
    rebinding: u64,
    observer: Option<AnswerObserver>,
}

impl Journal {
    pub(super) fn new(settings: Settings, now: Timestamp) -> Journal {
        let has_read_today = settings.directory.is_some();
        let mut journal = Journal {
            records: gateway_journal::Journal::new(settings, now),
            counts: QueryCounts::default(),
            today: Totals::default(),
            has_read_today,
            history: MinuteRing::default(),
            tomorrow: day(now).1,
            lost: 0,
            rebinding: 0,
            observer: None,
        };
        journal.today = journal.written_today(now);
        journal
    }

    /// Returns the totals of today from the files. Reads blocks that began yesterday.
    fn written_today(&self, now: Timestamp) -> Totals {
        let midnight = i64::try_from(day(now).0.as_nanosecond()).unwrap_or(i64::MAX);
        let mut totals = Totals::default();
        for (block, records) in self.records.blocks().filter(|(block, _)| block.newest >= midnight) {
            if block.oldest >= midnight {
                let [blocked, cached] = block.figures.map(u64::from);
                totals.queries += u64::from(block.count);
                totals.blocked += blocked;
                totals.cached += cached;
                continue;
            }
            for view in views(&records().unwrap_or_default()).filter(|view| view.time() >= midnight) {
                totals.queries += 1;
                totals.blocked += u64::from(view.status() == Some(Status::Blocked));
                totals.cached += u64::from(view.status() == Some(Status::Cached));
            }
        }
        totals
    }

    pub(super) fn add(&mut self, batch: Batch, now: Timestamp) {
        if now >= self.tomorrow {
            self.today = Totals::default();
            self.tomorrow = day(now).1;
        }
        for totals in [&mut self.today, self.history.slot(now)] {
            totals.queries += batch.queries;
            totals.blocked += batch.blocked;
            totals.cached += batch.cached;
        }
        self.lost += batch.lost;
        self.rebinding += batch.rebinding;
        self.counts.hit(batch.hits);
        self.records.add(batch.bytes, now, |view, block| {
            let name = view.name();
            let name = name.as_ref().and_then(NameBuf::as_ref);
            self.counts.add(view, name);
            // Records of anonymous clients name none, and blocked answers have addresses of no server.
            if let (Some(observer), Some(name)) = (&self.observer, name)
                && view.named()
                && view.status() != Some(Status::Blocked)
            {
                observer.report(view.client(), name, view.message().unwrap_or_default());
            }
            note(view, name, block);
        });
    }

    /// Takes other settings. Records that no file could take before are written now.
    pub(super) fn set(&mut self, settings: Settings, now: Timestamp) {
        let gains_files = settings.directory.is_some();
        let unstored = if gains_files { self.records.take_unstored() } else { Vec::new() };
        self.records.set(settings, now);
        if gains_files && !std::mem::replace(&mut self.has_read_today, true) {
            let stored = self.written_today(now);
            self.today.queries += stored.queries;
            self.today.blocked += stored.blocked;
            self.today.cached += stored.cached;
        }
        self.records.add(unstored, now, |view, block| {
            let name = view.name();
            note(view, name.as_ref().and_then(NameBuf::as_ref), block);
        });
    }

    /// Passes the addresses of further records on.
    pub(super) fn observe(&mut self, observer: AnswerObserver) {
        self.observer = Some(observer);
    }

    /// Writes pending records. Those that cannot be written stay in memory only.
    pub(super) fn flush(&mut self, now: Timestamp) {
        self.records.flush(now);
    }

    /// Forgets all records, in memory and in files. Figures stay.
    pub(super) fn clear(&mut self) {
        self.records.clear();
    }

    /// Returns the reason for which nothing is written to files.
    pub(super) fn error(&self) -> Option<String> {
        self.records.error().map(str::to_owned)
    }

    pub(super) fn view(&self) -> Pages {
        Pages(self.records.view())
    }

    pub(super) fn tick(&mut self, now: Timestamp) {
        // A minute without queries is no gap.
        self.history.slot(now);
        self.records.tick(now);
    }

    /// Forgets records and counts. Every file of the folder goes, those that could not be read included.
    pub(super) fn erase(&mut self) -> io::Result<()> {
        (self.counts, self.today) = (QueryCounts::default(), Totals::default());
        self.history = MinuteRing::default();
        self.records.erase()
    }

    pub(super) fn today(&self) -> Totals {
        self.today
    }

    /// Returns the totals of the last minutes with the begin of each, oldest first.
    pub(super) fn history(&self, now: Timestamp, minutes: usize) -> Vec<(Timestamp, Totals)> {
        self.history.last(now, minutes).map(|(begin, totals)| (begin, *totals)).collect()
    }

    pub(super) fn clients(&self) -> Vec<ClientStats> {
        self.counts.clients()
    }

    pub(super) fn hits(&self) -> RuleCounters {
        self.counts.hits()
    }

    pub(super) fn rebinding(&self) -> u64 {
        self.rebinding
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

/// Notes a record in its block.
fn note(view: &RecordView<'_>, name: Option<NameRef<'_>>, block: &mut Block<BloomSummary>) {
    let [blocked, cached] = &mut block.figures;
    *blocked += u32::from(view.status() == Some(Status::Blocked));
    *cached += u32::from(view.status() == Some(Status::Cached));
    block.summary.add(view, name, block.first);
}

/// Records as they were at one instant.
#[derive(Debug)]
pub(super) struct Pages(gateway_journal::Pages<QueryFormat>);

impl Pages {
    /// Returns the newest matches, at most `limit`. Reads at most `budget` bytes from files, but at least one block.
    pub(super) fn read(&self, filter: &Filter, before: Option<PageStart>, limit: usize, budget: u64) -> Page {
        let query = Query { filter, since: filter.since, until: filter.until, before, limit, budget };
        self.0.read(query, |view, id| view.row(id))
    }
}

/// Begin and end of the day.
fn day(now: Timestamp) -> (Timestamp, Timestamp) {
    let zoned = now.to_zoned(TimeZone::system());
    let begin = zoned.start_of_day().map_or(now, |begin| begin.timestamp());
    let end = zoned.tomorrow().and_then(|tomorrow| tomorrow.start_of_day());
    (begin, end.map_or(Timestamp::MAX, |end| end.timestamp()))
}
