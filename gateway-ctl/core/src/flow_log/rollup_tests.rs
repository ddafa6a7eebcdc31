//! Totals of rollups are those of their records, encoded or not.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::tests::{OneCountry, record};
use super::*;
use crate::countries::Countries;

/// Groups records into rollups, with ids from 1.
fn rollups(records: &[FlowRecord], countries: Option<&dyn Countries>) -> Vec<Rollup> {
    let mut all = vec![Rollup::new(1)];
    for (id, record) in (1..).zip(records) {
        if all.last().is_some_and(|open| open.is_over(record)) {
            all.push(Rollup::new(id));
        }
        let open = all.last_mut().expect("a rollup");
        open.add(id, record, countries);
    }
    all
}

fn table_of(by: TopKey, records: &[FlowRecord], countries: &dyn Countries) -> Vec<TopRow> {
    let mut table = TopTable::new(by);
    records.iter().for_each(|record| table.add(record, countries));
    table.rows(usize::MAX).0
}

proptest! {
    #[test]
    fn totals_of_rollups_are_those_of_their_records(
        records in proptest::collection::vec((record(), 0..5i64), 1..30),
        has_countries in any::<bool>(),
    ) {
        let start = Timestamp::from_second(1_800_000_000).expect("a time");
        let later = |hours| start + SignedDuration::from_hours(hours);
        let records: Vec<FlowRecord> =
            records.into_iter().map(|(record, hours)| FlowRecord { written_at: later(hours), ..record }).collect();
        let countries = OneCountry("DE".parse().expect("a code"));
        let known: Option<&dyn Countries> = has_countries.then_some(&countries);
        let all = rollups(&records, known);
        let mut bytes = Vec::new();
        all.iter().for_each(|rollup| rollup.encode(&mut bytes));
        let views: Vec<RollupView<'_>> = rollup_views(&bytes).collect();
        prop_assert_eq!(views.iter().map(RollupView::length).sum::<usize>(), bytes.len());
        for by in TopKey::ALL {
            let (mut direct, mut read) = (TopTable::new(*by), TopTable::new(*by));
            all.iter().for_each(|rollup| rollup.add_to(&mut direct));
            views.iter().for_each(|view| assert_eq!(view.add_to(&mut read), Some(())));
            let expected = table_of(*by, &records, known.unwrap_or(&()));
            prop_assert_eq!(direct.rows(usize::MAX), (expected.clone(), 0));
            prop_assert_eq!(read.rows(usize::MAX), (expected, 0));
        }
        let mut next = 1;
        for (rollup, view) in all.iter().zip(&views) {
            let span = view.span().expect("a span");
            prop_assert_eq!(&span, rollup.span());
            prop_assert_eq!((span.ids.start, span.newest), (next, view.time()));
            prop_assert_eq!(span.has_countries, has_countries);
            next = span.ids.end;
        }
        prop_assert_eq!(next, records.len() as u64 + 1);
    }

    #[test]
    fn a_rollup_that_is_cut_adds_nothing(records in proptest::collection::vec(record(), 1..5), part in 0.0..1.0) {
        let mut bytes = Vec::new();
        rollups(&records, None)[0].encode(&mut bytes);
        let length = (bytes.len() as f64 * part) as usize;
        prop_assert_eq!(rollup_views(&bytes[..length]).count(), 0);
        // Nor does one whose length is that of a part.
        let mut short = bytes[..length].to_vec();
        if let (Some(head), Ok(length)) = (short.first_chunk_mut(), u32::try_from(length.saturating_sub(4))) {
            *head = length.to_le_bytes();
        }
        // The table of countries is the last one.
        let mut table = TopTable::new(TopKey::Country);
        prop_assert!(rollup_views(&short).all(|view| view.add_to(&mut table).is_none()));
        prop_assert_eq!(table.rows(1), (Vec::new(), 0));
    }
}
