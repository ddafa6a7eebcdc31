//! Records and index of the history of plans. `tests/core/plan_history.rs` has the inputs.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_800_000_000 + second)
}

fn header(content: Content, generation: u32, second: i64) -> RecordHeader {
    RecordHeader { content, generation, at: at(second), compiled_at: at(second), revision: 7, digest: 9 }
}

fn timeline(records: &[(Content, u32, i64)]) -> Timeline {
    let mut timeline = Timeline::default();
    for (id, (content, generation, second)) in (1..).zip(records) {
        timeline.push(Entry { id, header: header(*content, *generation, *second) });
    }
    timeline
}

const HISTORY: &[(Content, u32, i64)] = &[
    (Content::Whole, 4, 10),
    (Content::Change, 4, 20),
    (Content::Change, 5, 30),
    (Content::Unknown, 0, 40),
    (Content::Whole, 4097, 50),
    (Content::Change, 4098, 60),
];

#[test]
fn plan_of_a_time_is_the_last_one_before_it_with_the_span_of_its_generation() {
    let timeline = timeline(HISTORY);
    let found = |second| {
        timeline.at(at(second)).map(|found| (found.entry.id, found.records, found.from, found.until))
    };
    assert_eq!(found(10), Ok((1, 1, at(10), Some(at(30)))));
    assert_eq!(found(29), Ok((2, 2, at(10), Some(at(30)))));
    assert_eq!(found(30), Ok((3, 3, at(30), Some(at(40)))));
    assert_eq!(found(55), Ok((5, 1, at(50), Some(at(60)))));
    assert_eq!(found(1000), Ok((6, 2, at(60), None)));
    assert_eq!(found(9), Err(NotKept::Before { oldest: at(10) }));
    assert_eq!(found(45), Err(NotKept::Unknown { from: at(40), until: Some(at(50)) }));
    assert_eq!(Timeline::default().at(at(0)), Err(NotKept::Nothing));
}

#[test]
fn plan_of_a_generation_has_the_inputs_of_the_time() {
    let timeline = timeline(HISTORY);
    let found =
        |generation, second| timeline.of_generation(generation, at(second)).map(|found| found.entry.id);
    assert_eq!((found(4, 15), found(4, 25), found(4, 500)), (Ok(1), Ok(2), Ok(2)));
    assert_eq!(found(4098, 59), Ok(6), "decided before the record was made");
    assert_eq!(found(6, 30), Err(NotKept::Generation(6)));
    assert_eq!(found(0, 45), Err(NotKept::Generation(0)), "a gap is no plan");
}

#[test]
fn what_is_left_begins_with_a_whole_record() {
    let mut timeline = timeline(HISTORY);
    timeline.trim(6, 1);
    assert_eq!(timeline.len(), 6);
    timeline.trim(5, 1);
    assert_eq!((timeline.len(), timeline.first().map(|entry| entry.id)), (2, Some(5)));
    timeline.trim(5, 6);
    assert!(timeline.is_empty());
    timeline.push(Entry { id: 7, header: header(Content::Change, 9, 70) });
    assert!(timeline.is_empty(), "changes of nothing");
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![Just(Content::Whole), Just(Content::Change), Just(Content::Unknown)]
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = ("[a-z/:0-9]{0,40}", prop::option::of(prop::collection::vec(any::<u8>(), 0..60)));
    prop::collection::vec(part.prop_map(|(key, value)| Part { key, value }), 0..20)
}

fn encoded(parts: &[Part]) -> Vec<u8> {
    parts.iter().flat_map(|part| encode_part(part).expect("short")).collect()
}

proptest! {
    #[test]
    fn record_is_read_as_it_was_written(
        content in content(), generation: u32, second in 0..4_000_000_000i64, revision: u64, digest: u64,
        payload in prop::collection::vec(any::<u8>(), 0..200), more in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let time = Timestamp::from_second(second).expect("a time");
        let header = RecordHeader { content, generation, at: time, compiled_at: at(0), revision, digest };
        let record = PlanRecord { header, payload: &payload };
        let mut bytes = record.encode().expect("short");
        let length = bytes.len();
        prop_assert_eq!(length, record.length());
        for cut in 0..length {
            prop_assert_eq!(PlanRecord::decode(&bytes[..cut]), None);
        }
        bytes.extend(more);
        prop_assert_eq!(PlanRecord::decode(&bytes), Some(record));
    }

    #[test]
    fn header_with_a_changed_bit_is_none(bit in 0..44 * 8usize) {
        let header = header(Content::Whole, 4, 10);
        let mut bytes = PlanRecord { header, payload: b"parts" }.encode().expect("short");
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(PlanRecord::decode(&bytes), None);
    }

    #[test]
    fn parts_are_read_as_they_were_written(parts in parts()) {
        let bytes = encoded(&parts);
        prop_assert_eq!(decode_parts(&bytes), Some(parts));
    }

    #[test]
    fn any_bytes_are_parts_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = PlanRecord::decode(&bytes);
        if let Some(parts) = decode_parts(&bytes) {
            prop_assert_eq!(encoded(&parts), bytes);
        }
    }

    #[test]
    fn index_agrees_with_a_search_of_all_records(
        records in prop::collection::vec((content(), 0..4u32, 0..5i64), 0..30), second in -1..80i64,
    ) {
        let mut now = 0;
        let records: Vec<_> = records.into_iter().map(|(content, generation, step)| {
            now += step;
            (content, generation, now)
        }).collect();
        let timeline = timeline(&records);
        let first = records.iter().position(|(content, ..)| *content == Content::Whole);
        let kept = first.map_or(&[][..], |first| &records[first..]);
        let expected = kept.iter().rposition(|(.., at)| *at <= second);
        match (timeline.at(at(second)), expected) {
            (Ok(found), Some(index)) => {
                prop_assert_eq!(found.entry.header, header(kept[index].0, kept[index].1, kept[index].2));
                let whole = kept[..=index].iter().rposition(|(content, ..)| *content == Content::Whole);
                prop_assert_eq!(found.records, index + 1 - whole.expect("the first one is whole"));
                prop_assert!(found.from <= at(second) && found.until.is_none_or(|until| until > at(second)));
            }
            (Err(NotKept::Unknown { .. }), Some(index)) => prop_assert_eq!(kept[index].0, Content::Unknown),
            (Err(_), expected) => prop_assert_eq!(expected, None),
            (Ok(found), None) => prop_assert!(false, "{found:?}"),
        }
    }
}
