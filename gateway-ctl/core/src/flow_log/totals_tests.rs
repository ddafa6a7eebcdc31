//! Totals over columns are those over the same records, whatever the conditions.

use std::sync::Arc;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::tests::{OneCountry, record};
use super::*;

/// Conditions that one of the records meets, each of them set or not.
fn conditions(record: &FlowRecord, set: u16) -> FlowFilter {
    let is_set = |bit: u16| set & 1 << bit != 0;
    let client = record.client.as_ref();
    let last = record.path();
    let of_client = match (client, set % 3) {
        (Some(client), 0) => client.device.map(ClientCondition::Device),
        (Some(client), 1) => Some(ClientCondition::Mac(client.mac)),
        (Some(client), _) => Some(ClientCondition::Address(client.address)),
        (None, _) => None,
    };
    let country = CountryCondition {
        code: "DE".parse().expect("a code"),
        countries: Arc::new(OneCountry("DE".parse().expect("a code"))),
    };
    let start = record.flow_id.start();
    FlowFilter {
        flow_id: is_set(0).then_some(record.flow_id),
        client: of_client.filter(|_| is_set(1)),
        destination: is_set(2).then_some(record.destination),
        port: is_set(3).then_some(record.destination_port),
        protocol: is_set(4).then_some(record.protocol),
        domain: record.names.first().filter(|_| is_set(5)).map(|name| DomainCondition::Within(name.clone())),
        country: is_set(6).then_some(country),
        policy: record.paths[0].policy.filter(|_| is_set(7)),
        egress: record.paths[0].egress.clone().filter(|_| is_set(8)),
        decision: last.map(|path| path.decision).filter(|_| is_set(9)),
        reason: last.map(|path| path.reason).filter(|_| is_set(10)),
        min_bytes: record.bytes().filter(|_| is_set(11)),
        since: None,
        begun_since: is_set(12).then_some(start),
        until: is_set(13).then(|| start + SignedDuration::from_millis(1)),
    }
}

proptest! {
    #[test]
    fn totals_over_columns_are_those_over_records(
        records in proptest::collection::vec(record(), 1..12),
        repeats in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        of in any::<proptest::sample::Index>(),
        // Few conditions, so that some records meet all.
        set in (0..14u16, 0..14u16).prop_map(|(a, b)| 1 << a | 1 << b),
        has_condition in any::<bool>(),
        every in 1..4u64,
    ) {
        // Records with what others have.
        let repeated: Vec<FlowRecord> = repeats.iter().map(|index| index.get(&records).clone()).collect();
        let records = [records, repeated].concat();
        let filter = if has_condition { conditions(of.get(&records), set) } else { FlowFilter::default() };
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode(&mut bytes, record));
        let columns = to_columns(&bytes).expect("records");
        let countries = OneCountry("DE".parse().expect("a code"));
        let is_wanted = |index: u64, _: i64| index.is_multiple_of(every);
        for by in TopKey::ALL {
            let (mut quick, mut slow) = (TopTable::new(*by), TopTable::new(*by));
            let selection = RecordSelection { filter: &filter, is_wanted: &is_wanted, countries: &countries };
            prop_assert_eq!(add_columns(&columns, selection, &mut quick), Some(()));
            let wanted = (0..).zip(&records).filter(|(index, _)| is_wanted(*index, 0));
            let matching = wanted.filter(|(_, record)| filter.is_match(record));
            matching.for_each(|(_, record)| slow.add(record, &countries));
            prop_assert_eq!(quick.rows(usize::MAX), slow.rows(usize::MAX), "by {}", by);
        }
    }

    #[test]
    fn columns_that_are_cut_add_nothing(records in proptest::collection::vec(record(), 1..5), part in 0.0..1.0) {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode(&mut bytes, record));
        let columns = to_columns(&bytes).expect("records");
        let length = (columns.len() as f64 * part) as usize;
        let mut table = TopTable::new(TopKey::Egress);
        let selection =
            RecordSelection { filter: &FlowFilter::default(), is_wanted: &|_, _| true, countries: &() };
        prop_assert_eq!(add_columns(&columns[..length], selection, &mut table), None);
        prop_assert_eq!(table.rows(usize::MAX), (Vec::new(), 0));
    }
}
