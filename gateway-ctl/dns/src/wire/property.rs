//! Messages of all kinds, with hickory as a second opinion.

use gateway_core::dns::{Name, NameRef, Question, Record};
use hickory_proto::op::Message;
use hickory_proto::serialize::binary::BinEncodable;
use proptest::prelude::*;

use super::stored::{AnswerAge, Bounds};
use super::*;

const UNBOUND: Bounds = Bounds { least: 0, most: i32::MAX as u32, most_negative: i32::MAX as u32 };

fn label() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::sample::select(vec![b"www".to_vec(), b"example".to_vec(), b"com".to_vec(), b"a".to_vec()]),
        prop::collection::vec(prop_oneof![b'a'..=b'z', b'0'..=b'9', Just(b'-'), Just(b'_')], 1..64),
    ]
}

fn name() -> impl Strategy<Value = Name> {
    prop::collection::vec(label(), 0..6).prop_filter_map("at most 255 bytes", |labels| {
        let mut wire: Vec<u8> =
            labels.iter().flat_map(|label| [&[label.len() as u8], label.as_slice()].concat()).collect();
        wire.push(0);
        NameRef::new(&wire).map(NameRef::to_owned)
    })
}

/// Type and data.
fn data() -> impl Strategy<Value = (u16, Box<[u8]>)> {
    let wire = |name: Name| name.as_ref().wire().to_vec();
    prop_oneof![
        any::<[u8; 4]>().prop_map(|address| (rtype::A, address.into())),
        any::<[u8; 16]>().prop_map(|address| (rtype::AAAA, address.into())),
        name().prop_map(move |target| (rtype::PTR, wire(target).into())),
        name().prop_map(move |target| (rtype::NS, wire(target).into())),
        (any::<u16>(), name())
            .prop_map(move |(n, target)| (rtype::MX, [&n.to_be_bytes()[..], &wire(target)].concat().into())),
        (any::<[u8; 6]>(), name())
            .prop_map(move |(n, target)| (rtype::SRV, [&n[..], &wire(target)].concat().into())),
        prop::collection::vec(any::<u8>(), 0..200)
            .prop_map(|text| (rtype::TXT, [&[text.len() as u8], text.as_slice()].concat().into())),
    ]
}

prop_compose! {
    fn answer()(
        owner in name(),
        rdata in data(),
        more in prop::collection::vec(data(), 0..6),
        ttl in 0..=i32::MAX as u32,
    ) -> (Name, u16, Answer) {
        let rtype = rdata.0;
        let same = std::iter::once(rdata).chain(more).filter(|(other, _)| *other == rtype);
        let mut answers: Vec<Record> = Vec::new();
        for (rtype, rdata) in same {
            let record = Record { name: owner.clone(), rtype, ttl, rdata };
            if !answers.contains(&record) {
                answers.push(record);
            }
        }
        (owner, rtype, Answer { answers, ttl: Some(ttl), ..Answer::default() })
    }
}

fn query(name: &Name, qtype: u16, mask: u64, edns: bool) -> Vec<u8> {
    let mut message = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(edns)];
    // Any case, as RFC 1035, section 2.3.3 has it.
    let cased = name.as_ref().wire().iter().enumerate().map(|(at, byte)| match mask >> (at % 64) & 1 {
        1 => byte.to_ascii_uppercase(),
        _ => *byte,
    });
    message.extend(cased);
    message.extend_from_slice(&qtype.to_be_bytes());
    message.extend_from_slice(&[0, 1]);
    if edns {
        message.extend_from_slice(&[0, 0, 41, 0xff, 0xff, 0, 0, 0x80, 0, 0, 0]);
    }
    message
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange_to_be_read(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(request) = Request::read(&bytes) {
            prop_assert_eq!(request.question.len(), request.name().wire().len() + 4);
        }
        let _ = Answer::read(&bytes, Question { name: NameRef::ROOT, qtype: 1 }, true);
    }

    #[test]
    fn queries_agree_with_hickory(
        name in name(), qtype in 1u16..300, mask in any::<u64>(), edns in any::<bool>(),
    ) {
        prop_assume!(qtype != rtype::OPT);
        let bytes = query(&name, qtype, mask, edns);
        let (ours, theirs) = (Request::read(&bytes).expect("a query"), Message::from_vec(&bytes).expect("a query"));
        prop_assert_eq!(ours.name(), name.as_ref());
        prop_assert_eq!(ours.qtype, u16::from(theirs.queries[0].query_type()));
        prop_assert_eq!(ours.id, theirs.metadata.id);
        prop_assert_eq!(ours.opt.is_some(), theirs.edns.is_some());
        prop_assert_eq!(ours.dnssec_ok(), edns);
    }

    #[test]
    fn a_stored_answer_is_returned_unchanged_and_hickory_reads_it(
        (owner, qtype, answer) in answer(), mask in any::<u64>(), edns in any::<bool>(), age in 0u32..1000,
    ) {
        let asked = Question { name: owner.as_ref(), qtype };
        let stored = StoredAnswer::new(asked, &answer, UNBOUND).expect("short enough");
        let bytes = query(&owner, qtype, mask, edns);
        let request = Request::read(&bytes).expect("a query");
        let mut out = Vec::new();
        let envelope = Envelope { limit: 65_535, ..Envelope::default() };
        envelope.stored(&mut out, &request, &stored, AnswerAge::Fresh(age));
        prop_assert_eq!(&out[12..12 + request.question.len()], request.question);
        let mut again = Vec::new();
        let aged: Vec<Record> =
            answer.answers.iter().map(|r| Record { ttl: r.ttl.saturating_sub(age), ..r.clone() }).collect();
        envelope.records(&mut again, &request, [&aged, &[], &[]]);
        prop_assert_eq!(&out, &again, "copied and written anew are the same");
        let theirs = Message::from_vec(&out).expect("hickory reads it");
        prop_assert_eq!(theirs.answers.len(), answer.answers.len());
        prop_assert_eq!(theirs.edns.is_some(), edns);
        // Messages that hickory encodes are parsed as the same; names that point to the question have its case.
        let bytes = query(&owner, qtype, 0, edns);
        let request = Request::read(&bytes).expect("a query");
        envelope.stored(&mut out, &request, &stored, AnswerAge::Fresh(age));
        let theirs = Message::from_vec(&out).expect("hickory reads it");
        let written = theirs.to_bytes().expect("hickory writes it");
        let read = Answer::read(&written, asked, true).expect("an answer");
        prop_assert_eq!(read.answers, aged);
        let [answers, _] = stored.unpack(AnswerAge::Fresh(0));
        prop_assert_eq!(answers, answer.answers);
    }

    #[test]
    fn long_messages_are_truncated_to_the_question(
        (owner, qtype, answer) in answer(), limit in 512usize..600, edns in any::<bool>(),
    ) {
        let stored = StoredAnswer::new(Question { name: owner.as_ref(), qtype }, &answer, UNBOUND).expect("short enough");
        let bytes = query(&owner, qtype, 0, edns);
        let request = Request::read(&bytes).expect("a query");
        let mut out = Vec::new();
        let text = "x".repeat(500);
        let ede = Some(Ede { code: 3, text: &text });
        Envelope { limit, ede, ..Envelope::default() }.stored(&mut out, &request, &stored, AnswerAge::Fresh(0));
        prop_assert!(out.len() <= limit);
        let theirs = Message::from_vec(&out).expect("hickory reads it");
        prop_assert!(theirs.metadata.truncation == theirs.answers.is_empty());
    }

    #[test]
    fn an_answer_that_was_meddled_with_does_no_harm(
        (owner, qtype, answer) in answer(), at in any::<prop::sample::Index>(), value in any::<u8>(),
    ) {
        let asked = Question { name: owner.as_ref(), qtype };
        let mut message = crate::serve::test_doubles::message(asked, &answer);
        let at = at.index(message.len());
        message[at] = value;
        if let Ok(read) = Answer::read(&message, asked, false) {
            let stored = StoredAnswer::new(asked, &read, UNBOUND).expect("short enough");
            prop_assert_eq!(stored.counts()[0] as usize, read.answers.len());
        }
    }
}
