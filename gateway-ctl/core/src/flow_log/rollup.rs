//! Totals of consecutive records by each property, so that a request for a week need not read every record.
//!
//! A rollup has the records of one hour at most. It says which ones by their ids in the journal: a record is in one
//! rollup or in none, and those in none are read one by one.

use std::ops::Range;

use jiff::Timestamp;

use gateway_model::Id;

use super::bytes::{Reader, put_number, put_text};
use super::record::{FlowRecord, Traffic};
use super::top::{MAX_VALUES, TopKey, TopTable, TopValue, Totals};
use super::usage::hour_of;
use crate::countries::Countries;

/// Maximum number of records of a rollup, so that few records are read at the begin and the end of a time.
const MAX_RECORDS: u64 = 32_768;
/// Every value of a rollup is distinguished.
const _: () = assert!(MAX_RECORDS <= MAX_VALUES as u64);
/// Fixed part: newest and oldest time, first id, id behind the last one, flags.
const FIXED: usize = 8 + 8 + 8 + 8 + 1;
/// Flag: the countries of all records were looked up in a database.
const HAS_COUNTRIES: u8 = 1;

/// Kinds of values.
mod kind {
    pub(super) const ABSENT: u8 = 0;
    pub(super) const ID: u8 = 1;
    pub(super) const TEXT: u8 = 2;
}

/// Records that a rollup is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollupSpan {
    /// Ids of the records in the journal. Some of them may be of records that could not be read.
    pub ids: Range<u64>,
    /// Times of the oldest and the newest record, in nanoseconds since 1970.
    pub oldest: i64,
    pub newest: i64,
    /// The countries of all records were looked up in a database.
    pub has_countries: bool,
}

/// Totals of consecutive records by each property.
#[derive(Debug)]
pub struct Rollup {
    span: RollupSpan,
    /// In the order of [`TopKey::ALL`].
    tables: Vec<TopTable>,
}

impl Rollup {
    /// Returns a rollup without records. The first one has this id, or a later one.
    pub fn new(first: u64) -> Rollup {
        let (oldest, newest) = (i64::MAX, i64::MIN);
        Rollup {
            span: RollupSpan { ids: first..first, oldest, newest, has_countries: true },
            tables: TopKey::ALL.iter().map(|by| TopTable::new(*by)).collect(),
        }
    }

    /// Returns the records that are in it. Without one, `oldest` is behind `newest`.
    pub fn span(&self) -> &RollupSpan {
        &self.span
    }

    /// Reports whether a record belongs to the next rollup.
    pub fn is_over(&self, record: &FlowRecord) -> bool {
        let RollupSpan { ids, oldest, newest, .. } = &self.span;
        let is_other_hour = Timestamp::from_nanosecond((*oldest).into())
            .is_ok_and(|oldest| hour_of(oldest) != hour_of(record.written_at));
        oldest <= newest && (is_other_hour || ids.end - ids.start >= MAX_RECORDS)
    }

    /// Adds the record with this id. `countries` is none if no database is open.
    pub fn add(&mut self, id: u64, record: &FlowRecord, countries: Option<&dyn Countries>) {
        let time = i64::try_from(record.written_at.as_nanosecond()).unwrap_or(i64::MAX);
        let span = &mut self.span;
        if span.oldest > span.newest {
            span.ids.start = id;
        }
        span.ids.end = id + 1;
        span.oldest = span.oldest.min(time);
        span.newest = span.newest.max(time);
        span.has_countries &= countries.is_some();
        self.tables.iter_mut().for_each(|table| table.add(record, countries.unwrap_or(&())));
    }

    /// Passes a record that cannot be read.
    pub fn skip(&mut self, id: u64) {
        self.span.ids.end = id + 1;
    }

    /// Adds its totals to a table.
    pub fn add_to(&self, to: &mut TopTable) {
        let table = self.tables.iter().find(|table| table.by() == to.by());
        let values = table.into_iter().flat_map(TopTable::values);
        values.for_each(|(value, totals)| to.add_totals(value, totals));
    }

    /// Adds the totals of one device to a table by device. Returns whether it has records.
    pub fn add_device_to(&self, device: Id, to: Option<&mut TopTable>) -> bool {
        let table = self.tables.iter().find(|table| table.by() == TopKey::Device);
        let totals = table.map(|table| table.totals_of_id(device)).unwrap_or_default();
        add_row(TopValue::Id(device), totals, to)
    }

    /// Appends it, encoded.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let RollupSpan { ids, oldest, newest, has_countries } = &self.span;
        out.extend([0; 4]);
        out.extend(newest.to_le_bytes());
        out.extend(oldest.to_le_bytes());
        out.extend(ids.start.to_le_bytes());
        out.extend(ids.end.to_le_bytes());
        out.push(if *has_countries { HAS_COUNTRIES } else { 0 });
        for table in &self.tables {
            let begin = out.len();
            out.extend([0; 4]);
            table.values().for_each(|(value, totals)| put_row(out, value, &totals));
            close(out, begin);
        }
        close(out, start);
    }
}

/// Writes the length of what follows four bytes at this offset. Nothing of a rollup reaches 4 GiB.
fn close(out: &mut [u8], begin: usize) {
    let length = u32::try_from(out.len() - begin - 4).unwrap_or(u32::MAX);
    out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

fn put_row(out: &mut Vec<u8>, value: TopValue<'_>, totals: &Totals) {
    match value {
        TopValue::Absent => out.push(kind::ABSENT),
        TopValue::Id(id) => {
            out.push(kind::ID);
            out.extend(id.as_bytes());
        }
        TopValue::Text(text) => {
            out.push(kind::TEXT);
            put_text(out, text);
        }
    }
    let Totals { records, flows, uncounted, denied, sent, received } = totals;
    let counts = [records, flows, uncounted, denied];
    let traffic = [sent, received].into_iter().flat_map(|traffic| [&traffic.packets, &traffic.bytes]);
    counts.into_iter().chain(traffic).for_each(|number| put_number(out, *number));
}

/// Encoded rollup, read in place.
#[derive(Clone, Copy, Debug)]
pub struct RollupView<'a>(&'a [u8]);

/// Splits bytes into rollups. Ends before bytes that are none.
pub fn rollup_views(bytes: &[u8]) -> impl Iterator<Item = RollupView<'_>> {
    let mut rest = Reader(bytes);
    std::iter::from_fn(move || {
        let length = usize::try_from(u32::from_le_bytes(rest.array()?)).ok()?;
        rest.take(length).filter(|rollup| rollup.len() >= FIXED).map(RollupView)
    })
}

impl<'a> RollupView<'a> {
    /// Time of the newest record, in nanoseconds since 1970.
    pub fn time(&self) -> i64 {
        Reader(self.0).array().map_or(0, i64::from_le_bytes)
    }

    pub fn length(&self) -> usize {
        4 + self.0.len()
    }

    /// Returns the records that are in it. `None` if the bytes are no rollup.
    pub fn span(&self) -> Option<RollupSpan> {
        let mut from = Reader(self.0);
        let (newest, oldest) = (i64::from_le_bytes(from.array()?), i64::from_le_bytes(from.array()?));
        let (first, end) = (u64::from_le_bytes(from.array()?), u64::from_le_bytes(from.array()?));
        let flags = from.byte()?;
        (first < end && oldest <= newest && flags & !HAS_COUNTRIES == 0).then_some(RollupSpan {
            ids: first..end,
            oldest,
            newest,
            has_countries: flags & HAS_COUNTRIES != 0,
        })
    }

    /// Adds its totals to a table. Adds nothing and returns `None` if the bytes are no rollup.
    pub fn add_to(&self, to: &mut TopTable) -> Option<()> {
        let rows = self.rows(to.by())?;
        rows.into_iter().for_each(|(value, totals)| to.add_totals(value, totals));
        Some(())
    }

    /// Adds the totals of one device to a table by device. Returns whether it has records; `None` if the bytes are no rollup.
    pub fn add_device_to(&self, device: Id, to: Option<&mut TopTable>) -> Option<bool> {
        let wanted = TopValue::Id(device);
        let found = self.rows(TopKey::Device)?.into_iter().find(|(value, _)| *value == wanted);
        Some(add_row(wanted, found.map(|(_, totals)| totals).unwrap_or_default(), to))
    }

    /// Returns the rows of a property.
    fn rows(&self, wanted: TopKey) -> Option<Vec<(TopValue<'a>, Totals)>> {
        let mut from = Reader(self.0.get(FIXED..)?);
        for by in TopKey::ALL {
            let length = usize::try_from(u32::from_le_bytes(from.array()?)).ok()?;
            let mut rows = Reader(from.take(length)?);
            if *by == wanted {
                let mut all = Vec::new();
                while !rows.0.is_empty() {
                    all.push(row(&mut rows)?);
                }
                return Some(all);
            }
        }
        None
    }
}

/// Adds the totals of a value to a table, if there are any.
fn add_row(value: TopValue<'_>, totals: Totals, to: Option<&mut TopTable>) -> bool {
    let has_records = totals.records > 0;
    if let Some(to) = to.filter(|_| has_records) {
        to.add_totals(value, totals);
    }
    has_records
}

fn row<'a>(from: &mut Reader<'a>) -> Option<(TopValue<'a>, Totals)> {
    let value = match from.byte()? {
        kind::ABSENT => TopValue::Absent,
        kind::ID => TopValue::Id(Id::from_bytes(from.array()?)),
        kind::TEXT => TopValue::Text(from.text()?),
        _ => return None,
    };
    let mut number = || from.number();
    let totals = Totals {
        records: number()?,
        flows: number()?,
        uncounted: number()?,
        denied: number()?,
        sent: Traffic { packets: number()?, bytes: number()? },
        received: Traffic { packets: number()?, bytes: number()? },
    };
    Some((value, totals))
}
