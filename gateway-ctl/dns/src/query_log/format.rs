//! Format of the query log's journal.

use gateway_journal::{Format, View};

use super::Filter;
use super::bloom::{self, BloomSummary};
use super::record::{self, RecordView};

/// Records of answered queries. The first version of a block had no summary.
#[derive(Debug)]
pub(super) struct QueryFormat;

impl Format for QueryFormat {
    const VERSIONS: &'static [([u8; 4], usize)] = &[(*b"gdl\x01", 0), (*b"gdl\x02", bloom::LENGTH)];
    const SUFFIX: &'static str = "dnslog";
    const NAME: &'static str = "DNS query log";

    type View<'a> = RecordView<'a>;
    type Filter = Filter;
    type Summary = BloomSummary;

    fn views(bytes: &[u8]) -> impl Iterator<Item = RecordView<'_>> {
        record::views(bytes)
    }

    fn is_match(view: &RecordView<'_>, filter: &Filter) -> bool {
        view.matches(filter)
    }
}

impl View for RecordView<'_> {
    fn time(&self) -> i64 {
        RecordView::time(self)
    }

    fn length(&self) -> usize {
        RecordView::length(self)
    }
}
