//! Totals of flows over any time: from rollups where they have all of a time, else from the records.

use std::time::Duration;

use gateway_core::countries::Countries;
use gateway_core::flow_log::{FlowFilter, TopKey, TopRow, TopTable};
use gateway_journal::{Page, Query, SearchEnd};
use jiff::Timestamp;

use super::FlowLog;
use super::pages::REFRESH;
use super::rollups::Wanted;

/// Bytes of files whose records are added up for a request at most.
const TOTALLED_BYTES: u64 = 128 << 20;

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
        self.top_of(filter, by, limit, countries, filter.is_of_time_only())
    }

    /// Like [`FlowLog::top`], with rollups or without them.
    pub(super) fn top_of(
        &self,
        filter: &FlowFilter,
        by: TopKey,
        limit: usize,
        countries: Option<&dyn Countries>,
        has_rollups: bool,
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
            let wanted = Wanted { since, until, first, needs_countries };
            let written = has_rollups.then(|| rollups.add_to(&mut table, wanted));
            (records, written)
        };
        let added = written.map_or_else(Vec::new, |written| written.add_to(&mut table));
        let query =
            Query { filter: &filter, since, until, before: None, limit: usize::MAX, budget: TOTALLED_BYTES };
        let page: Page<()> = records.read_except(query, &added, |flow, _| {
            if let Some(record) = flow.0.record() {
                table.add(&record, known);
            }
            None
        });
        tracing::debug!(bytes = page.read, rollups = added.len(), "added up flows");
        let (rows, others) = table.rows(limit);
        FlowTotals { rows, others, ended_at: page.ended_at }
    }
}
