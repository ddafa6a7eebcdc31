//! Format of the journal of plans.

use gateway_core::plan_history::PlanRecord;
use gateway_journal::{Format, NoSummary, View};

/// Records of plans, one after the other. The index in memory has the header of each.
#[derive(Debug)]
pub(super) struct PlanFormat;

/// Record in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordView<'a>(pub PlanRecord<'a>);

impl Format for PlanFormat {
    const VERSIONS: &'static [([u8; 4], usize)] = &[(*b"gpl\x01", 0)];
    const SUFFIX: &'static str = "plans";
    const NAME: &'static str = "history of plans";

    type View<'a> = RecordView<'a>;
    type Filter = ();
    type Summary = NoSummary;

    fn views(bytes: &[u8]) -> impl Iterator<Item = RecordView<'_>> {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            let record = PlanRecord::decode(rest)?;
            rest = rest.get(record.length()..).unwrap_or_default();
            Some(RecordView(record))
        })
    }

    fn is_match(_: &RecordView<'_>, (): &()) -> bool {
        true
    }
}

impl View for RecordView<'_> {
    fn time(&self) -> i64 {
        i64::try_from(self.0.header.at.as_nanosecond()).unwrap_or(i64::MAX)
    }

    fn length(&self) -> usize {
        self.0.length()
    }
}
