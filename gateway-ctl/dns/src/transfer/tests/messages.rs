//! Transfers as messages: valid and invalid ones.

use gateway_core::dns::Question;
use proptest::prelude::*;

use super::super::reader::{RECORDS, Reader, TransferFault};
use super::*;

const ID: u16 = 0x1234;

fn whole() -> Vec<Record> {
    let mut records = zone(5);
    records.push(soa(5, USUAL));
    records
}

fn axfr(records: &[Record]) -> Vec<u8> {
    message(ID, rtype::AXFR, records)
}

/// The records of the messages, or why they are none.
fn read(messages: &[Vec<u8>]) -> Result<Vec<Record>, TransferFault> {
    let mut reader = Reader::new(name("example"), ID);
    for message in messages {
        reader.push(message)?;
    }
    reader.finish().ok_or(TransferFault::MalformedMessage)
}

#[test]
fn a_transfer_has_any_number_of_messages() {
    let records = whole();
    assert_eq!(read(&[axfr(&records)]).unwrap(), records[..5]);
    for at in 1..records.len() {
        // Only the first message needs a question (RFC 5936, section 2.2.1).
        for second in [axfr(&records[at..]), bare(&records[at..])] {
            assert_eq!(read(&[axfr(&records[..at]), second]).unwrap(), records[..5], "{at}");
        }
    }
}

/// Message without a question.
fn bare(records: &[Record]) -> Vec<u8> {
    let mut out = ID.to_be_bytes().to_vec();
    out.extend_from_slice(&[0x84, 0, 0, 0, 0, records.len() as u8, 0, 0, 0, 0]);
    for record in records {
        out.extend_from_slice(record.name.as_ref().wire());
        out.extend_from_slice(&record.rtype.to_be_bytes());
        out.extend_from_slice(&[0, 1]);
        out.extend_from_slice(&record.ttl.to_be_bytes());
        out.extend_from_slice(&(record.rdata.len() as u16).to_be_bytes());
        out.extend_from_slice(&record.rdata);
    }
    out
}

#[test]
fn records_outside_of_the_zone_are_ignored() {
    let mut records = whole();
    records.insert(2, record("www.example.org", rtype::A, &[192, 0, 2, 66]));
    records.insert(3, record("xexample", rtype::A, &[192, 0, 2, 66]));
    let mut reader = Reader::new(name("example"), ID);
    assert!(reader.push(&axfr(&records)).unwrap());
    assert_eq!(reader.strangers, 2);
    assert_eq!(reader.finish().unwrap(), whole()[..5]);
}

#[test]
fn invalid_transfers_are_refused() {
    let records = whole();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut message = axfr(&records);
        change(&mut message);
        vec![message]
    };
    let with = |at: usize, record: Record| {
        let mut records = records.clone();
        records.insert(at, record);
        vec![axfr(&records)]
    };
    let class = |message: &mut Vec<u8>| {
        let at = skip(message, HEADER).unwrap() + 4;
        let at = skip(message, at).unwrap();
        message[at + 3] = 3;
    };
    let cases: [(&str, Vec<Vec<u8>>, TransferFault); 17] = [
        ("another id", changed(&|m| m[0] ^= 1), TransferFault::Stranger),
        ("a question", changed(&|m| m[2] &= 0x7f), TransferFault::Stranger),
        ("another opcode", changed(&|m| m[2] |= 0x20), TransferFault::Stranger),
        ("another name", changed(&|m| m[HEADER + 1] = b'f'), TransferFault::Stranger),
        ("another type", vec![message(ID, rtype::SOA, &records)], TransferFault::Stranger),
        ("a refusal", changed(&|m| m[3] |= 5), TransferFault::Code(5)),
        ("cut off", changed(&|m| m[2] |= 2), TransferFault::Truncated),
        ("no question at first", vec![bare(&records)], TransferFault::Stranger),
        ("no SOA record", vec![axfr(&records[1..])], TransferFault::Start),
        ("another end", vec![axfr(&[&records[..5], &[soa(6, USUAL)]].concat())], TransferFault::Changed),
        (
            "a start below",
            with(2, Record { name: name("b.example"), ..soa(5, USUAL) }),
            TransferFault::Changed,
        ),
        ("data after the end", with(6, records[3].clone()), TransferFault::Surplus),
        ("a message behind the end", vec![axfr(&records), axfr(&records)], TransferFault::Surplus),
        ("nothing", vec![axfr(&[])], TransferFault::Empty),
        ("a type of questions", with(2, record("example", rtype::ANY, b"")), TransferFault::Meta),
        ("another class", changed(&class), TransferFault::Meta),
        ("no end", vec![axfr(&records[..5])], TransferFault::MalformedMessage),
    ];
    for (what, messages, want) in cases {
        assert_eq!(read(&messages), Err(want), "{what}");
    }
    let mut short = bare(&[record("a.example", rtype::A, &[192, 0, 2])]);
    assert_eq!(read(&[axfr(&records[..1]), short.clone()]), Err(TransferFault::Data));
    short.pop();
    assert_eq!(read(&[axfr(&records[..1]), short]), Err(TransferFault::MalformedMessage));
}

#[test]
fn a_transfer_without_an_end_ends() {
    let mut reader = Reader::new(name("example"), ID);
    reader.push(&axfr(&whole()[..1])).unwrap();
    let piece: Vec<Record> = (0..2000).map(|_| record("a.example", rtype::A, &[192, 0, 2, 1])).collect();
    let piece = axfr(&piece);
    let refused = (0..RECORDS).find_map(|_| reader.push(&piece).err());
    assert_eq!(refused, Some(TransferFault::TooLarge));
    let mut reader = Reader::new(name("example"), ID);
    reader.push(&axfr(&whole()[..1])).unwrap();
    let strangers = axfr(&[record("a.example.org", 65_280, &[0; 60_000])]);
    let refused = (0..RECORDS).find_map(|_| reader.push(&strangers).err());
    assert_eq!(refused, Some(TransferFault::TooLarge), "what is left out counts too");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// For any input: an accepted zone is valid, and can be served.
    #[test]
    fn any_messages_are_a_zone_or_refused(
        cuts in prop::collection::vec(1usize..6, 0..3),
        spoils in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        junk in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..2),
    ) {
        let records = whole();
        let mut places: Vec<usize> = cuts.into_iter().chain([0, records.len()]).collect();
        places.sort_unstable();
        places.dedup();
        let mut messages: Vec<Vec<u8>> = places.windows(2).map(|pair| axfr(&records[pair[0]..pair[1]])).collect();
        let total: usize = messages.iter().map(Vec::len).sum();
        for (at, value) in &spoils {
            let mut at = at.index(total);
            for message in &mut messages {
                if at < message.len() {
                    message[at] = *value;
                    break;
                }
                at -= message.len();
            }
        }
        let untouched = spoils.is_empty() && junk.is_empty();
        messages.extend(junk);
        let mut reader = Reader::new(name("example"), ID);
        for message in &messages {
            match reader.push(message) {
                Ok(false) => {}
                Ok(true) | Err(_) => break,
            }
        }
        let read = reader.finish();
        prop_assert!(!untouched || read.as_ref().is_some_and(|read| *read == records[..5]));
        if let Some(read) = read {
            let apex = name("example");
            prop_assert!(read.iter().all(|record| record.name.as_ref().is_within(apex.as_ref())));
            let asked: Vec<(Name, u16)> = read.iter().map(|record| (record.name.clone(), record.rtype)).collect();
            let zones = answered(Copy::new(&apex, read, KEY).unwrap());
            for (name, qtype) in asked {
                let local = zones.answer(Question { name: name.as_ref(), qtype }, true);
                prop_assert!(local.is_some());
            }
        }
    }
}
