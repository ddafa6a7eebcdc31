//! Pages of records, newest first.

use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;

use crate::format::{Format, Summary, View};
use crate::recent::Chunk;
use crate::seal::SealingKey;
use crate::segment::{Block, Segment};

/// Records as they were at one instant.
#[derive(Debug)]
pub struct Pages<F: Format> {
    /// Newest first.
    pub(crate) recent: Vec<Arc<Chunk>>,
    pub(crate) segments: Vec<Arc<Segment<F>>>,
    pub(crate) key: Option<Arc<SealingKey>>,
    pub(crate) next: u64,
}

/// Search in a journal.
#[derive(Debug)]
pub struct Query<'a, F> {
    pub filter: &'a F,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Only records before this one.
    pub before: Option<PageStart>,
    /// Maximum number of rows.
    pub limit: usize,
    /// Maximum number of bytes that are read from files; at least one block is read.
    pub budget: u64,
}

/// Record before which a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageStart {
    Id(u64),
    Time(Timestamp),
}

/// Page of rows, with its cost.
#[derive(Debug)]
pub struct Page<T> {
    pub rows: Vec<T>,
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

/// Rows that were found so far.
struct Found<'a, F: Format, T, R> {
    query: Query<'a, F::Filter>,
    since: i64,
    until: i64,
    row: R,
    rows: Vec<T>,
}

impl<F: Format, T, R: FnMut(&F::View<'_>, u64) -> Option<T>> Found<'_, F, T, R> {
    /// Takes the matches among records with consecutive IDs from `first` to before `floor`, the newest first. Returns
    /// whether the page is full.
    fn take(&mut self, first: u64, floor: u64, records: &[u8]) -> bool {
        let count = usize::try_from(floor.saturating_sub(first)).unwrap_or(usize::MAX);
        let views: Vec<F::View<'_>> = F::views(records).take(count).collect();
        let ids = first..first + views.len() as u64;
        for (id, view) in ids.rev().zip(views.iter().rev()) {
            let time = view.time();
            if time < self.until && time >= self.since && F::is_match(view, self.query.filter) {
                self.rows.extend((self.row)(view, id));
                if self.rows.len() >= self.query.limit {
                    break;
                }
            }
        }
        self.rows.len() >= self.query.limit
    }
}

/// Conditions on blocks of a search.
pub(crate) struct Bounds<'a, F> {
    pub filter: &'a F,
    /// Nanoseconds since 1970.
    pub since: i64,
    pub until: i64,
    /// Ids of records that are left out, in order.
    pub except: &'a [Range<u64>],
}

impl<F> Bounds<'_, F> {
    /// Reports whether a block may have a record that is wanted, before this id.
    pub(crate) fn may_have<S: Summary<Filter = F>>(&self, block: &Block<S>, floor: u64) -> bool {
        let is_in_time = block.oldest < self.until && block.newest >= self.since;
        let is_left_out = has_all(self.except, block.first..block.end());
        block.first < floor && is_in_time && !is_left_out && block.summary.may_match(self.filter, block.first)
    }
}

impl<F: Format> Pages<F> {
    /// Returns the id and the time of the oldest records. `None` without records.
    pub fn oldest(&self) -> Option<(u64, Timestamp)> {
        let of_file = self.segments.iter().flat_map(|segment| &segment.blocks).next();
        let (id, time) = match (of_file, self.recent.last()) {
            (Some(block), _) => (block.first, block.oldest),
            (None, Some(chunk)) => (chunk.first, F::views(&chunk.bytes).map(|view| view.time()).min()?),
            (None, None) => return None,
        };
        Some((id, Timestamp::from_nanosecond(time.into()).ok()?))
    }

    /// Returns the newest matches. `row` makes a row of a record with its ID.
    pub fn read<T>(
        &self,
        query: Query<'_, F::Filter>,
        row: impl FnMut(&F::View<'_>, u64) -> Option<T>,
    ) -> Page<T> {
        let mut read = 0;
        // Time of the last block that was searched.
        let mut searched = i64::MAX;
        let (mut floor, before) = match query.before {
            Some(PageStart::Id(id)) => (id.min(self.next), i64::MAX),
            Some(PageStart::Time(time)) => (self.next, nanoseconds(time)),
            None => (self.next, i64::MAX),
        };
        let until = before.min(query.until.map_or(i64::MAX, nanoseconds));
        let since = query.since.map_or(i64::MIN, nanoseconds);
        let budget = query.budget;
        let bounds = Bounds { filter: query.filter, since, until, except: &[] };
        let mut found = Found::<F, T, _> { query, since, until, row, rows: Vec::new() };
        for chunk in &self.recent {
            if chunk.first < floor && found.take(chunk.first, floor, &chunk.bytes) {
                return Page { rows: found.rows, read, ended_at: None };
            }
            floor = floor.min(chunk.first);
        }
        for segment in self.segments.iter().rev() {
            for block in segment.blocks.iter().rev() {
                if !bounds.may_have(block, floor) {
                    continue;
                }
                if read > 0 && read + block.bytes() > budget {
                    let time = Timestamp::from_nanosecond(searched.into()).unwrap_or(Timestamp::MIN);
                    let ended_at = Some(SearchEnd { id: floor, time });
                    return Page { rows: found.rows, read, ended_at };
                }
                let records = segment.read(block, self.key.as_deref()).unwrap_or_default();
                read += block.bytes();
                searched = block.oldest;
                if found.take(block.first, floor, &records) {
                    return Page { rows: found.rows, read, ended_at: None };
                }
                floor = block.first;
            }
        }
        Page { rows: found.rows, read, ended_at: None }
    }
}

/// Reports whether one of these ranges, which are in order, has all of another one.
pub(crate) fn has_all(ranges: &[Range<u64>], of: Range<u64>) -> bool {
    let at = ranges.partition_point(|range| range.end <= of.start);
    ranges.get(at).is_some_and(|range| range.start <= of.start && of.end <= range.end)
}

pub(crate) fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}
