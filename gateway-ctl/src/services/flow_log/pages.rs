//! Pages of the flow log: the flows that go on, then those that have ended, the newest first.

use std::time::Duration;

use gateway_core::flow_log::{FlowFilter, FlowId, FlowRecord};
use gateway_journal::{Page, PageStart, Query, SearchEnd};

use super::FlowLog;

/// Bytes of files that one request searches at most: some 500 000 records, less than a second.
const SEARCHED_BYTES: u64 = 16 << 20;
/// An observation for a request is not repeated within this time.
pub(super) const REFRESH: Duration = Duration::from_millis(200);

/// Begin of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowPageStart {
    /// Flows that go on and that began before this one, then those that have ended.
    Active(FlowId),
    /// Records that have ended.
    Ended(PageStart),
}

/// Record with its id in the journal. A flow that goes on has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRow {
    pub id: Option<u64>,
    pub record: FlowRecord,
}

/// Page of records.
#[derive(Debug)]
pub struct FlowPage {
    pub rows: Vec<FlowRow>,
    /// End of the search, if it ended before all records were searched.
    pub ended_at: Option<SearchEnd>,
}

impl FlowLog {
    /// Returns at most `limit` records that match. `active`: true for flows that go on only, false for the others only.
    /// Blocks on the kernel and on files.
    pub fn read(
        &self,
        filter: &FlowFilter,
        active: Option<bool>,
        before: Option<FlowPageStart>,
        limit: usize,
    ) -> FlowPage {
        self.observe(REFRESH);
        let mut rows = Vec::new();
        if active != Some(false) && !matches!(before, Some(FlowPageStart::Ended(_))) {
            rows = self.active(filter, before);
            rows.truncate(limit);
        }
        if active == Some(true) || rows.len() >= limit {
            return FlowPage { rows, ended_at: None };
        }
        let before = match before {
            Some(FlowPageStart::Ended(start)) => Some(start),
            Some(FlowPageStart::Active(_)) | None => None,
        };
        let view = self.0.journal.lock().view();
        let query = Query {
            filter,
            since: filter.since,
            // A record is written at the end of its flow.
            until: None,
            before,
            limit: limit - rows.len(),
            budget: SEARCHED_BYTES,
        };
        let ended: Page<FlowRow> =
            view.read(query, |flow, id| Some(FlowRow { id: Some(id), record: flow.0.record()? }));
        tracing::debug!(rows = ended.rows.len(), bytes = ended.read, "read the flow log");
        rows.extend(ended.rows);
        FlowPage { rows, ended_at: ended.ended_at }
    }

    /// Returns the flows that go on, the newest first.
    fn active(&self, filter: &FlowFilter, before: Option<FlowPageStart>) -> Vec<FlowRow> {
        let following = self.0.following.lock();
        let is_before = |record: &FlowRecord| match before {
            Some(FlowPageStart::Active(id)) => record.flow_id < id,
            Some(FlowPageStart::Ended(_)) | None => true,
        };
        let found = following.tracker.active().filter(|record| is_before(record) && filter.is_match(record));
        let mut rows: Vec<FlowRow> =
            found.map(|record| FlowRow { id: None, record: record.clone() }).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.record.flow_id));
        rows
    }
}
