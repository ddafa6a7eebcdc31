//! All records in order: new ones go to memory and, block by block, to files; old ones are removed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::history::MinuteRing;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::recent::{Chunk, Recent};
use super::record::{DisplayRecord, RecordView, views};
use super::segment::{Block, OpenBlock, Segment};
use super::stats::{ClientStats, QueryCounts, RuleCounters, Totals};
use super::worker_buffer::Batch;
use super::{Filter, PageStart, Settings};
use crate::erase::erase_files_of;
use crate::room;
use crate::serve::Status;
use crate::wire::NameBuf;

/// A block is written when it has so many bytes, or its oldest record is that old.
const BLOCK: usize = 64 << 10;
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// A file is closed at this size. Retention removes whole files.
const FILE: u64 = 16 << 20;

/// The block that is next to be written.
#[derive(Debug)]
struct PendingBlock {
    block: OpenBlock,
    since: Timestamp,
}

#[derive(Debug)]
pub struct Journal {
    settings: Settings,
    segments: Vec<Arc<Segment>>,
    /// True if this run wrote the last file, and may append to it.
    open: bool,
    error: Option<String>,
    recent: Recent,
    pending: Option<PendingBlock>,
    /// Records before the last block.
    carried: Vec<u8>,
    next: u64,
    counts: QueryCounts,
    today: Totals,
    /// Queries by minute since the start.
    history: MinuteRing<Totals>,
    tomorrow: Timestamp,
    lost: u64,
    rebinding: u64,
}

impl Journal {
    pub fn new(settings: Settings, now: Timestamp) -> Journal {
        let mut journal = Journal {
            settings,
            segments: Vec::new(),
            open: false,
            error: None,
            recent: Recent::default(),
            pending: None,
            carried: Vec::new(),
            next: 1,
            counts: QueryCounts::default(),
            today: Totals::default(),
            history: MinuteRing::default(),
            tomorrow: day(now).1,
            lost: 0,
            rebinding: 0,
        };
        journal.open(now);
        journal.today = journal.written_today(now);
        journal
    }

    fn open(&mut self, now: Timestamp) {
        (self.segments, self.open, self.error) = (Vec::new(), false, None);
        let Some(directory) = &self.settings.directory else { return };
        let opened = std::fs::create_dir_all(directory).and_then(|()| Segment::open_all(directory));
        match opened {
            Ok(segments) => self.segments = segments,
            Err(error) => self.failed(&error),
        }
        let next = self.segments.iter().filter_map(|segment| segment.next()).max();
        self.next = self.next.max(next.unwrap_or(1));
        self.retire(now);
    }

    fn failed(&mut self, error: &io::Error) {
        let directory = self.settings.directory.clone().unwrap_or_default();
        let message = format!("{}: {error}", directory.display());
        if self.error.as_ref() != Some(&message) {
            tracing::warn!(%error, directory = %directory.display(), "failed to write the DNS query log");
        }
        self.error = Some(message);
    }

    /// Returns the totals of today from the files. Reads blocks that began yesterday.
    fn written_today(&self, now: Timestamp) -> Totals {
        let midnight = i64::try_from(day(now).0.as_nanosecond()).unwrap_or(i64::MAX);
        let mut totals = Totals::default();
        for segment in self.segments.iter().filter(|segment| segment.newest() >= midnight) {
            for block in segment.blocks.iter().filter(|block| block.newest >= midnight) {
                if block.oldest >= midnight {
                    totals.queries += u64::from(block.count);
                    totals.blocked += u64::from(block.blocked);
                    totals.cached += u64::from(block.cached);
                    continue;
                }
                let records = segment.read(block).unwrap_or_default();
                for view in views(&records).filter(|view| view.time() >= midnight) {
                    totals.queries += 1;
                    totals.blocked += u64::from(view.status() == Some(Status::Blocked));
                    totals.cached += u64::from(view.status() == Some(Status::Cached));
                }
            }
        }
        totals
    }

    pub fn set(&mut self, settings: Settings, now: Timestamp) {
        self.flush(now);
        let moved = settings.directory != self.settings.directory;
        self.settings = settings;
        if moved {
            self.open(now);
        }
    }

    pub fn add(&mut self, batch: Batch, now: Timestamp) {
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
        if batch.bytes.is_empty() {
            return;
        }
        let (first, mut from, mut at) = (self.next, 0, 0);
        for view in views(&batch.bytes) {
            let name = view.name();
            let name = name.as_ref().and_then(NameBuf::as_ref);
            self.counts.add(&view, name);
            let new = || PendingBlock { block: OpenBlock::new(self.next), since: now };
            self.pending.get_or_insert_with(new).block.add(&view, name);
            self.next += 1;
            at += view.length();
            if self.carried.len() + at - from >= BLOCK {
                self.write(&batch.bytes[from..at], now);
                from = at;
            }
        }
        if self.pending.is_some() {
            self.carried.extend_from_slice(&batch.bytes[from..at]);
        }
        let count = (self.next - first) as usize;
        let pending = self.pending.as_ref().filter(|_| self.settings.directory.is_some());
        let unwritten = self.next - pending.map_or(0, |pending| pending.block.count());
        self.recent.push(Chunk { first, count, bytes: batch.bytes }, self.settings.recent, unwritten);
    }

    pub fn tick(&mut self, now: Timestamp) {
        // A minute without queries is no gap.
        self.history.slot(now);
        let old = |pending: &PendingBlock| now.duration_since(pending.since).unsigned_abs() >= RETRY_INTERVAL;
        if self.pending.as_ref().is_some_and(old) {
            self.flush(now);
        }
    }

    /// Writes pending records. Those that cannot be written stay in memory only.
    pub fn flush(&mut self, now: Timestamp) {
        self.write(&[], now);
    }

    /// Writes the pending block, completed by these records.
    fn write(&mut self, records: &[u8], now: Timestamp) {
        let Some(pending) = self.pending.take() else { return };
        let mut carried = std::mem::take(&mut self.carried);
        if self.settings.directory.is_none() {
            return;
        }
        let records = if carried.is_empty() {
            records
        } else {
            carried.extend_from_slice(records);
            &carried
        };
        match self.append(records, pending.block.done(records)) {
            Ok(()) => self.error = None,
            Err(error) => self.failed(&error),
        }
        carried.clear();
        self.carried = carried;
        self.retire(now);
    }

    fn append(&mut self, records: &[u8], block: Block) -> io::Result<()> {
        if let Some(directory) = &self.settings.directory {
            room::check(directory)?;
        }
        let full = self.segments.last().is_none_or(|segment| segment.bytes >= FILE);
        if (full || !self.open)
            && let Some(directory) = &self.settings.directory
        {
            self.segments.push(Arc::new(Segment::create(directory, block.first)?));
            self.open = true;
        }
        match self.segments.last_mut() {
            // A view that is being read keeps the blocks that it knows.
            Some(segment) => Arc::make_mut(segment).append(records, block),
            None => Ok(()),
        }
    }

    /// Files whose records are all too old, and the oldest while there are too many bytes.
    fn retire(&mut self, now: Timestamp) {
        let keep = jiff::SignedDuration::try_from(self.settings.keep).unwrap_or(jiff::SignedDuration::MAX);
        let limit = now.checked_sub(keep).unwrap_or(Timestamp::MIN).as_nanosecond();
        let mut bytes: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        let spared = usize::from(self.open);
        while self.segments.len() > spared
            && (bytes > self.settings.bytes || i128::from(self.segments[0].newest()) < limit)
        {
            let segment = self.segments.remove(0);
            bytes -= segment.bytes;
            self.remove(&segment);
        }
    }

    fn remove(&mut self, segment: &Segment) {
        if let Err(error) = std::fs::remove_file(&segment.path) {
            self.failed(&error);
        }
    }

    pub fn clear(&mut self) {
        (self.pending, self.carried) = (None, Vec::new());
        self.recent.clear();
        self.open = false;
        for segment in std::mem::take(&mut self.segments) {
            self.remove(&segment);
        }
    }

    /// Forgets records and counts. Every file of the folder goes, those that could not be read included.
    pub fn erase(&mut self) -> io::Result<()> {
        (self.pending, self.carried) = (None, Vec::new());
        self.recent.clear();
        self.open = false;
        self.segments.clear();
        (self.counts, self.today) = (QueryCounts::default(), Totals::default());
        self.history = MinuteRing::default();
        match &self.settings.directory {
            Some(directory) => erase_files_of(directory),
            None => Ok(()),
        }
    }

    pub fn view(&self) -> Pages {
        Pages { recent: self.recent.chunks(), segments: self.segments.clone(), next: self.next }
    }

    pub fn today(&self) -> Totals {
        self.today
    }

    /// Returns the totals of the last minutes with the begin of each, oldest first.
    pub fn history(&self, now: Timestamp, minutes: usize) -> Vec<(Timestamp, Totals)> {
        self.history.last(now, minutes).map(|(begin, totals)| (begin, *totals)).collect()
    }

    pub fn clients(&self) -> Vec<ClientStats> {
        self.counts.clients()
    }

    pub fn hits(&self) -> RuleCounters {
        self.counts.hits()
    }

    pub fn rebinding(&self) -> u64 {
        self.rebinding
    }

    pub fn lost(&self) -> u64 {
        self.lost
    }

    pub fn error(&self) -> Option<String> {
        self.error.clone()
    }
}

fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}

/// Begin and end of the day.
fn day(now: Timestamp) -> (Timestamp, Timestamp) {
    let zoned = now.to_zoned(TimeZone::system());
    let begin = zoned.start_of_day().map_or(now, |begin| begin.timestamp());
    let end = zoned.tomorrow().and_then(|tomorrow| tomorrow.start_of_day());
    (begin, end.map_or(Timestamp::MAX, |end| end.timestamp()))
}

/// The records as they were at one instant.
#[derive(Debug)]
pub struct Pages {
    /// Newest first.
    recent: Vec<Arc<Chunk>>,
    segments: Vec<Arc<Segment>>,
    next: u64,
}

/// Page of records, with its cost.
#[derive(Debug, Default)]
pub struct Page {
    pub rows: Vec<DisplayRecord>,
    /// Bytes that were read from files.
    pub read: u64,
    /// End of the search, if it ended before all records were searched.
    pub ended_at: Option<SearchEnd>,
}

/// Record at which a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchEnd {
    /// The search goes on before this id.
    pub id: u64,
    /// Time of the oldest record that was searched.
    pub time: Timestamp,
}

impl Pages {
    /// Returns the newest matches, at most `limit`. Reads at most `budget` bytes from files, but at least one block.
    pub fn read(&self, filter: &Filter, before: Option<PageStart>, limit: usize, budget: u64) -> Page {
        let (mut rows, mut read) = (Vec::new(), 0);
        // Of the last block that was searched.
        let mut searched = i64::MAX;
        let mut floor = match before {
            Some(PageStart::Id(id)) => id.min(self.next),
            _ => self.next,
        };
        let time = match before {
            Some(PageStart::Time(time)) => nanoseconds(time),
            _ => i64::MAX,
        };
        let time = time.min(filter.until.map_or(i64::MAX, nanoseconds));
        let since = filter.since.map_or(i64::MIN, nanoseconds);
        let wanted =
            |view: &RecordView<'_>| view.time() < time && view.time() >= since && view.matches(filter);
        let mut take = |first: u64, floor: u64, records: &[u8]| {
            let views: Vec<RecordView<'_>> =
                views(records).take(floor.saturating_sub(first) as usize).collect();
            let ids = (first..).take(views.len()).collect::<Vec<_>>();
            let found = ids.into_iter().zip(views).rev().filter(|(_, view)| wanted(view));
            rows.extend(found.filter_map(|(id, view)| view.row(id)).take(limit - rows.len()));
            rows.len() >= limit
        };
        for chunk in &self.recent {
            if chunk.first < floor && take(chunk.first, floor, &chunk.bytes) {
                return Page { rows, read, ended_at: None };
            }
            floor = floor.min(chunk.first);
        }
        for segment in self.segments.iter().rev() {
            for block in segment.blocks.iter().rev() {
                let is_in_time = block.oldest < time && block.newest >= since;
                if block.first >= floor || !is_in_time || !block.may_match(filter) {
                    continue;
                }
                if read > 0 && read + u64::from(block.length) > budget {
                    let time = Timestamp::from_nanosecond(searched.into()).unwrap_or(Timestamp::MIN);
                    return Page { rows, read, ended_at: Some(SearchEnd { id: floor, time }) };
                }
                let records = segment.read(block).unwrap_or_default();
                read += u64::from(block.length);
                searched = block.oldest;
                if take(block.first, floor, &records) {
                    return Page { rows, read, ended_at: None };
                }
                floor = block.first;
            }
        }
        Page { rows, read, ended_at: None }
    }
}
