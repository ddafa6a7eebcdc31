//! Totals of flows over any time: from rollups where they have the totals of a time, else from the blocks of records that may
//! match, by columns.

use std::time::Duration;

use gateway_core::countries::Countries;
use gateway_core::flow_log::{FlowFilter, RecordSelection, TopKey, TopRow, TopTable, add_columns, views};
use gateway_journal::{Scan, Scanned, ScannedBlock, SearchEnd};
use jiff::Timestamp;

use super::pages::REFRESH;
use super::rollups::{Wanted, WantedTotals};
use super::{FlowLog, format};

/// Bytes of files whose records are added up for a request at most: those of the largest log by default.
const TOTALLED_BYTES: u64 = 1 << 30;

/// Totals by one property.
#[derive(Debug, PartialEq, Eq)]
pub struct FlowTotals {
    pub rows: Vec<TopRow>,
    /// Number of records that are in no row.
    pub others: u64,
    /// End of the search, if it ended early.
    pub ended_at: Option<SearchEnd>,
}

impl FlowLog {
    /// Adds up the records that are in no rollup yet, for so long at most. `countries` is none if no database is open.
    /// Blocks on files.
    pub fn add_up(&self, time: Duration, countries: Option<&dyn Countries>, now: Timestamp) {
        let mut rollups = self.0.rollups.lock();
        let records = self.0.journal.lock().view();
        rollups.retire(records.oldest().map(|(_, time)| time));
        let complete = rollups.add_up(&records, time, countries);
        let Some(first) = complete.first() else { return };
        // A rollup never outlives a crash that its records do not: other records would get their ids.
        let on_disk = {
            let mut journal = self.0.journal.lock();
            journal.flush(now);
            let synced = journal.sync_from(first.span().ids.start);
            synced.is_ok() && journal.error().is_none()
        };
        if on_disk {
            rollups.write(&complete, now);
        }
    }

    /// Returns the totals of the matching records by a property. A record counts in the time of its end; flows that go on
    /// count if the time lasts until now. Blocks like [`FlowLog::read`].
    pub fn top(
        &self,
        filter: &FlowFilter,
        by: TopKey,
        limit: usize,
        countries: Option<&dyn Countries>,
    ) -> FlowTotals {
        self.top_of(filter, by, limit, countries, Self::wanted_totals(filter, by))
    }

    /// Returns the totals of rollups that answer a request.
    fn wanted_totals(filter: &FlowFilter, by: TopKey) -> WantedTotals {
        match filter.device() {
            Some(device) if by == TopKey::Device && filter.is_of_client_only() => {
                WantedTotals::OfDevice(device)
            }
            Some(device) => WantedTotals::NoneOf(device),
            None if filter.is_of_time_only() => WantedTotals::All,
            None => WantedTotals::Unknown,
        }
    }

    /// Like [`FlowLog::top`], with these totals of rollups.
    pub(super) fn top_of(
        &self,
        filter: &FlowFilter,
        by: TopKey,
        limit: usize,
        countries: Option<&dyn Countries>,
        totals: WantedTotals,
    ) -> FlowTotals {
        self.observe(REFRESH);
        let (since, until) = (filter.since, filter.until);
        // The time is a condition on the end of a record.
        let filter = FlowFilter { since: None, until: None, ..filter.clone() };
        let known = countries.unwrap_or(&());
        let mut table = TopTable::new(by);
        let (records, written) = {
            let following = self.0.following.lock();
            let now = self.0.kernel.get().map(|kernel| kernel.clock.now());
            if until.is_none_or(|until| now.is_some_and(|now| until >= now)) {
                let active = following.tracker.active().filter(|record| filter.is_match(record));
                active.for_each(|record| table.add(record, known));
            }
            let rollups = self.0.rollups.lock();
            let records = self.0.journal.lock().view();
            let first = records.oldest().map_or(u64::MAX, |(id, _)| id);
            let needs_countries = by == TopKey::Country && countries.is_some();
            let wanted = Wanted { totals, since, until, first, needs_countries };
            (records, rollups.add_to(&mut table, wanted))
        };
        let added = written.add_to(&mut table);
        let scan = Scan { filter: &filter, since, until, except: &added, budget: TOTALLED_BYTES };
        let Scanned { read, ended_at } =
            records.scan(&scan, |block| add_block(block, &filter, known, &mut table));
        tracing::debug!(bytes = read, rollups = added.len(), "added up flows");
        let (rows, others) = table.rows(limit);
        FlowTotals { rows, others, ended_at }
    }
}

/// Adds the records of a block that match to a table. Of a block that cannot be read, there are none.
fn add_block(block: &ScannedBlock<'_>, filter: &FlowFilter, countries: &dyn Countries, table: &mut TopTable) {
    if block.is_packed {
        let is_wanted = |index: u64, time: i64| block.is_wanted(index, time);
        let selection = RecordSelection { filter, is_wanted: &is_wanted, countries };
        if let Some(columns) = format::columns(block.bytes) {
            add_columns(&columns, selection, table);
        }
        return;
    }
    for (index, view) in (0..).zip(views(block.bytes)) {
        if block.is_wanted(index, view.time())
            && let Some(record) = view.record().filter(|record| filter.is_match(record))
        {
            table.add(&record, countries);
        }
    }
}
