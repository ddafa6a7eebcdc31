//! Journal of rollups: totals of the records of each hour, so that a request for a week reads few records.
//!
//! Records are added up behind the flow log, in their order. A rollup is written once its records are on disk, so after a
//! crash records are added up from the end of the last one. What is in no rollup is read from the records.
//!
//! Decision 0208 says why.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use gateway_core::countries::Countries;
use gateway_core::flow_log::{Rollup, RollupSpan, RollupView, TopTable, rollup_views};
use gateway_journal::{Format, Journal, NoSummary, Pages, Query, Settings, View};
use gateway_model::Id;
use jiff::Timestamp;

use super::format::FlowFormat;

/// Folder of the rollups, in that of all records.
const FOLDER: &str = "flow-rollups";

/// Rollups have no properties by which blocks are skipped but their time.
#[derive(Debug)]
pub(super) struct RollupFormat;

/// View of a rollup in the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredRollup<'a>(RollupView<'a>);

impl Format for RollupFormat {
    const VERSIONS: &'static [([u8; 4], usize)] = &[(*b"gfr\x01", 0)];
    const SUFFIX: &'static str = "rollup";
    const NAME: &'static str = "rollups of flows";
    const MAX_FILE_SPAN: Duration = Duration::from_secs(86_400);

    type View<'a> = StoredRollup<'a>;
    type Filter = ();
    type Summary = NoSummary;

    fn views(bytes: &[u8]) -> impl Iterator<Item = StoredRollup<'_>> {
        rollup_views(bytes).map(StoredRollup)
    }

    fn is_match(_: &StoredRollup<'_>, (): &()) -> bool {
        true
    }
}

impl View for StoredRollup<'_> {
    fn time(&self) -> i64 {
        self.0.time()
    }

    fn length(&self) -> usize {
        self.0.length()
    }
}

/// Records that a request is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub totals: WantedTotals,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Id of the oldest record that the log has.
    pub first: u64,
    /// Rollups without countries do not answer the request.
    pub needs_countries: bool,
}

/// Totals of a rollup that answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedTotals {
    /// Those of all values: there is no condition but the time.
    All,
    /// Those of one device, by device: there is no other condition.
    OfDevice(Id),
    /// None. A rollup without records of the device shows that its records need not be read.
    NoneOf(Id),
    /// Rollups do not answer it.
    Unknown,
}

impl WantedTotals {
    /// Adds the totals of a rollup to a table. Returns whether they answer for its records; `None` if it cannot be read.
    fn take(self, rollup: &RollupView<'_>, table: &mut TopTable) -> Option<bool> {
        match self {
            WantedTotals::All => rollup.add_to(table).map(|()| true),
            WantedTotals::OfDevice(device) => rollup.add_device_to(device, Some(table)).map(|_| true),
            WantedTotals::NoneOf(device) => {
                rollup.add_device_to(device, None).map(|has_records| !has_records)
            }
            WantedTotals::Unknown => Some(false),
        }
    }
}

impl Wanted {
    /// Reports whether all records of a rollup are wanted, and in the log.
    fn has_all(&self, span: &RollupSpan) -> bool {
        let is_since = |since: Timestamp| i128::from(span.oldest) >= since.as_nanosecond();
        let is_until = |until: Timestamp| i128::from(span.newest) < until.as_nanosecond();
        span.oldest <= span.newest
            && span.ids.start >= self.first
            && self.since.is_none_or(is_since)
            && self.until.is_none_or(is_until)
            && (span.has_countries || !self.needs_countries)
    }
}

/// Rollups on disk, and the one to which records are added.
#[derive(Debug)]
pub(super) struct Rollups {
    journal: Journal<RollupFormat>,
    open: Rollup,
}

impl Rollups {
    /// Opens the journal. `next` is the id that the next record of the flow log gets.
    /// Without a base, they are in memory only.
    pub(super) fn open(base: Option<&Path>, next: u64, now: Timestamp) -> Rollups {
        let settings = match base {
            Some(base) => Settings::unbounded(base.join(FOLDER), 0),
            None => Settings { directory: None, recent: 0, ..Settings::default() },
        };
        let mut journal: Journal<RollupFormat> = Journal::new(settings, now);
        let last = Query { limit: 1, ..everything() };
        let newest = journal.view().read(last, |rollup, _| rollup.0.span()).rows.pop();
        let end = newest.map_or(1, |span| span.ids.end);
        if end <= next {
            return Rollups { journal, open: Rollup::new(end) };
        }
        // The records of some were removed by another program: their ids will be given to other records.
        tracing::warn!(end, next, "removed rollups of flows that the flow log does not have");
        if let Err(error) = journal.erase() {
            tracing::warn!(%error, "failed to remove rollups of flows");
        }
        Rollups { journal, open: Rollup::new(1) }
    }

    /// Adds up records from where it ended, for so long at most. Returns the rollups that are complete.
    pub(super) fn add_up(
        &mut self,
        records: &Pages<FlowFormat>,
        time: Duration,
        countries: Option<&dyn Countries>,
    ) -> Vec<Rollup> {
        let (begun, mut complete) = (Instant::now(), Vec::new());
        records.forward(self.open.span().ids.end, |flow, id| {
            match flow.0.record() {
                Some(record) => {
                    if self.open.is_over(&record) {
                        complete.push(std::mem::replace(&mut self.open, Rollup::new(id)));
                    }
                    self.open.add(id, &record, countries);
                }
                None => self.open.skip(id),
            }
            begun.elapsed() < time
        });
        complete
    }

    /// Writes rollups whose records are on disk.
    pub(super) fn write(&mut self, complete: &[Rollup], now: Timestamp) {
        for rollup in complete {
            let mut bytes = Vec::new();
            rollup.encode(&mut bytes);
            self.journal.add(bytes, now, |_, _| {});
            self.journal.flush(now);
        }
    }

    /// Removes the rollups of records that retention has removed. `oldest` is the time of the oldest record.
    pub(super) fn retire(&mut self, oldest: Option<Timestamp>) {
        self.journal.remove_before(oldest.unwrap_or(Timestamp::MAX));
    }

    /// Erases all. `next` is the id that the next record gets.
    pub(super) fn erase(&mut self, next: u64) -> io::Result<()> {
        self.open = Rollup::new(next);
        self.journal.erase()
    }

    /// Adds the totals of the records that are not written yet, if all of them are wanted. What is written is added by
    /// [`Written::add_to`], without a lock.
    pub(super) fn add_to(&self, table: &mut TopTable, wanted: Wanted) -> Written {
        let mut ids = Vec::new();
        let is_answered = wanted.has_all(self.open.span())
            && match wanted.totals {
                WantedTotals::All => {
                    self.open.add_to(table);
                    true
                }
                WantedTotals::OfDevice(device) => {
                    self.open.add_device_to(device, Some(table));
                    true
                }
                WantedTotals::NoneOf(device) => !self.open.add_device_to(device, None),
                WantedTotals::Unknown => false,
            };
        if is_answered {
            ids.push(self.open.span().ids.clone());
        }
        Written { pages: self.journal.view(), wanted, ids }
    }
}

/// Rollups that were written, as they were at one instant.
#[derive(Debug)]
pub(super) struct Written {
    pages: Pages<RollupFormat>,
    wanted: Wanted,
    /// Ids of the records that are in the table.
    ids: Vec<Range<u64>>,
}

impl Written {
    /// Adds the totals of the rollups whose records are all wanted. Returns the ids of all records that were added, in
    /// order.
    pub(super) fn add_to(self, table: &mut TopTable) -> Vec<Range<u64>> {
        let Written { pages, wanted, mut ids } = self;
        if wanted.totals == WantedTotals::Unknown {
            return ids;
        }
        // Rollups have the time of their newest record.
        let query = Query { since: wanted.since, until: wanted.until, ..everything() };
        pages.read::<()>(query, |rollup, _| {
            let span = rollup.0.span().filter(|span| wanted.has_all(span))?;
            // The newest come first.
            let is_next = ids.last().is_none_or(|later: &Range<u64>| span.ids.end <= later.start);
            if is_next && wanted.totals.take(&rollup.0, table)? {
                ids.push(span.ids);
            }
            None
        });
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ids.into_iter().rev() {
            match joined.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                Some(_) | None => joined.push(range),
            }
        }
        joined
    }
}

fn everything() -> Query<'static, ()> {
    Query { filter: &(), since: None, until: None, before: None, limit: usize::MAX, budget: u64::MAX }
}
