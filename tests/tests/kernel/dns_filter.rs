//! Answers of the ingress program from the DNS filter: the first query for a blocked name is answered, and no other.

use std::net::IpAddr;

use gateway_common::dns_filter::{FilterKind, answer_index};
use gateway_common::wire::{
    Address, FILTER_HEAD, FILTER_TAIL, FilterAnswer, FilterBucket, FilterClient, FilterClientKey, FilterHit,
    Mac, NameKey,
};
use gateway_core::dns::filter::CertainName;
use gateway_dns::serve::kernel_cache::Dataplane as _;
use gateway_dns::serve::kernel_filter::table;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::answers::{EPOCH, Ends, GOES_ON, SECOND, SENT_BACK, Testbed, now, read};

const KEY: NameKey = NameKey::new(0x5eed);
pub(super) const SERIAL: u64 = 8;
/// Kinds of the names below.
pub(super) const ADS: FilterKind = FilterKind(2);
pub(super) const EXACT: FilterKind = FilterKind(9);

fn wire(name: &str) -> Vec<u8> {
    let mut wire = Vec::new();
    for label in name.split('.') {
        wire.push(u8::try_from(label.len()).expect("a label"));
        wire.extend_from_slice(label.as_bytes());
    }
    wire.push(0);
    wire
}

pub(super) fn certain(name: &str, itself: u32, below: u32) -> CertainName {
    CertainName { hash: KEY.hash(&wire(name)), itself, below }
}

pub(super) fn table(names: &[CertainName], serial: u64) -> Vec<FilterBucket> {
    table::build(|| names.iter().copied(), &KEY, serial)
}

/// Returns an answer whose bytes show its index. Its length has any parity.
pub(super) fn answer(kind: FilterKind, variant: u32) -> (u32, FilterAnswer) {
    let index = answer_index(SERIAL, kind, variant);
    let length = (index % 60) as u16;
    let mut tail = [0; FILTER_TAIL];
    for (number, byte) in (0u8..).zip(&mut tail[..usize::from(length)]) {
        *byte = number.wrapping_mul(7).wrapping_add(index as u8);
    }
    let head: [u8; FILTER_HEAD] = [0x80, 0x80 | kind.0 as u8, 0, 1, 0, variant as u8, 0, 1, 0, 0];
    (index, FilterAnswer { serial: SERIAL, head, length, _pad: 0, tail })
}

/// Returns a testbed with a table of some names among many others, and one client in each family.
fn testbed() -> Testbed {
    let testbed = Testbed::new();
    let undecided = FilterKind::UNDECIDED.0;
    let mut names = vec![
        certain("ads.example", ADS.0, ADS.0),
        certain("exact.example", EXACT.0, 0),
        certain("below.example", 0, ADS.0),
        certain("allowed.ads.example", undecided, undecided),
        certain("other.ads.example", EXACT.0, 0),
    ];
    names.extend((0..50_000).map(|number| certain(&format!("n{number}.test"), ADS.0, ADS.0)));
    let answers: Vec<_> =
        [ADS, EXACT].into_iter().flat_map(|kind| (0..9).map(move |variant| answer(kind, variant))).collect();
    testbed.dns_cache.put_table(&table(&names, SERIAL), &answers).expect("a table");
    for ends in [Ends::new(false, 2), Ends::new(true, 2)] {
        testbed.dns_cache.put_client(&client_key(ends), &client());
    }
    testbed
}

fn client_key(ends: Ends) -> FilterClientKey {
    let host = Mac::new(ends.host().mac().expect("it has one"));
    FilterClientKey { client: ends.client.into(), server: ends.server.into(), interface: 1, host, _pad: 0 }
}

pub(super) fn client() -> FilterClient {
    let until = now() + 600 * SECOND;
    FilterClient { epoch: EPOCH, until, serial: SERIAL, kinds: ADS.bit() | EXACT.bit(), budget: u32::MAX }
}

/// Returns a query. `edns`: the flags of its OPT record, and whether it has a cookie.
pub(super) fn query(name: &str, qtype: u16, flags: u16, edns: Option<(u16, bool)>) -> Vec<u8> {
    let mut message = vec![7, 9];
    message.extend_from_slice(&flags.to_be_bytes());
    message.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, u8::from(edns.is_some())]);
    message.extend_from_slice(&wire(name));
    message.extend_from_slice(&qtype.to_be_bytes());
    message.extend_from_slice(&[0, 1]);
    if let Some((flags, cookie)) = edns {
        message.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0]);
        message.extend_from_slice(&flags.to_be_bytes());
        message.extend_from_slice(if cookie {
            &[0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]
        } else {
            &[0, 0]
        });
    }
    message
}

/// Returns the message that answers a query.
pub(super) fn reply(query: &[u8], name: &str, kind: FilterKind, variant: u32) -> Vec<u8> {
    let (_, answer) = answer(kind, variant);
    let mut reply = query[..12 + wire(name).len() + 4].to_vec();
    let copied = [query[2] & 1, query[3] & 0x10];
    reply[2..12].copy_from_slice(&answer.head);
    reply[2] |= copied[0];
    reply[3] |= copied[1];
    reply.extend_from_slice(&answer.tail[..usize::from(answer.length)]);
    reply
}

fn take_hits(testbed: &Testbed) -> Vec<FilterHit> {
    let mut hits = Vec::new();
    testbed.dns_cache.take_filter_hits(&mut |hit| hits.push(hit));
    hits
}

#[test]
fn first_queries_for_blocked_names_are_answered() {
    let mut testbed = testbed();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, b"blocked names are asked one time");
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    let names = prop_oneof![
        "([a-zA-Z0-9]{1,9}\\.){0,4}[aA]ds\\.example".prop_map(|name| (name, ADS)),
        "([a-z]{1,9}\\.){1,3}beLow\\.example".prop_map(|name| (name, ADS)),
        "EXACT\\.example".prop_map(|name| (name, EXACT)),
        (0..50_000).prop_map(|number| (format!("www.n{number}.test"), ADS)),
    ];
    let types = prop_oneof![Just((1, 0)), Just((28, 3)), Just((65, 6)), Just((257, 6))];
    let flags = prop_oneof![Just(0), Just(0x0100u16), Just(0x0120), Just(0x0110)];
    let edns = prop_oneof![
        Just((None, 0)),
        any::<bool>().prop_map(|cookie| (Some((0u16, cookie)), 1)),
        any::<bool>().prop_map(|cookie| (Some((0x8000, cookie)), 2)),
    ];
    let cases = (names, types, flags, edns, any::<bool>());
    for round in 0..2000 {
        let ((name, kind), (qtype, class), flags, (edns, edns_class), ipv6) =
            cases.new_tree(&mut runner).expect("a case").current();
        let (ends, asked) = (Ends::new(ipv6, 2), query(&name, qtype, flags, edns));
        if asked.len() > 90 {
            continue;
        }
        let (action, out) = testbed.run(&ends.frame(&asked));
        assert_eq!(action, SENT_BACK, "round {round}: {name} {qtype} {flags:#x} {edns:?}");
        assert_eq!(read(&out, ends), reply(&asked, &name, kind, class + edns_class), "round {round}: {name}");
        let [hit] = take_hits(&testbed)[..] else { panic!("one hit") };
        assert_eq!(IpAddr::from(hit.query.client), ends.client);
        assert_eq!(&hit.query.question[..hit.query.length as usize], &asked[2..]);
        assert_eq!(hit.answer, answer_index(SERIAL, kind, class + edns_class));
    }
}

#[test]
fn other_queries_go_on_unchanged() {
    let mut testbed = testbed();
    let ends = Ends::new(false, 2);
    let plain = query("ads.example", 1, 0x0100, Some((0, false)));
    assert_eq!(testbed.run(&ends.frame(&plain)).0, SENT_BACK);
    take_hits(&testbed);
    let changed = |at: usize, value: u8| {
        let mut message = plain.clone();
        message[at] = value;
        message
    };
    let end = plain.len();
    let ask = |name: &str| query(name, 1, 0x0100, None);
    let others = [
        ("a name that is not listed", ask("bads.example")),
        ("a parent of a listed name", ask("example")),
        ("the root", [&plain[..12], &[0, 0, 1, 0, 1]].concat()),
        ("a subdomain of an exact name", ask("www.exact.example")),
        ("the parent of blocked subdomains", ask("below.example")),
        ("an allowed name", ask("allowed.ads.example")),
        ("a subdomain of an allowed name", ask("www.allowed.ads.example")),
        ("a name with two kinds", ask("other.ads.example")),
        ("too many labels", ask(&format!("{}ads.example", "a.".repeat(15)))),
        ("a long name", ask(&format!("{}.ads.example", "a".repeat(63)))),
        ("a pointer", changed(12, 0xc0)),
        ("a label beyond the query", changed(12, 60)),
        ("a response", changed(2, 0x81)),
        ("another opcode", changed(2, 0x21)),
        ("an unknown flag", changed(3, 0x40)),
        ("two questions", changed(5, 2)),
        ("an answer", changed(7, 1)),
        ("no additional record", changed(11, 0)),
        ("another class", changed(end - 12, 3)),
        ("EDNS version 1", changed(end - 5, 1)),
        ("an unknown EDNS flag", changed(end - 3, 1)),
        ("more behind it", [&plain[..], &[0]].concat()),
        ("all types", query("ads.example", 255, 0x0100, None)),
    ];
    for (what, message) in others {
        let frame = ends.frame(&message);
        assert_eq!(testbed.run(&frame), (GOES_ON, frame), "{what}");
    }
    assert!(take_hits(&testbed).is_empty());
}

#[test]
fn only_a_valid_client_is_answered() {
    let mut testbed = testbed();
    let ends = Ends::new(false, 2);
    let frame = ends.frame(&query("ads.example", 1, 0x0100, None));
    let valid = client();
    let over = now() - SECOND;
    let cases = [
        ("another epoch", FilterClient { epoch: EPOCH + 1, ..valid }),
        ("its time is over", FilterClient { until: over, ..valid }),
        ("another table", FilterClient { serial: SERIAL + 1, ..valid }),
        ("no such answer for it", FilterClient { kinds: EXACT.bit(), ..valid }),
        ("no budget", FilterClient { budget: 0, ..valid }),
    ];
    for (what, value) in cases {
        testbed.dns_cache.put_client(&client_key(ends), &value);
        assert_eq!(testbed.run(&frame).0, GOES_ON, "{what}");
    }
    testbed.dns_cache.put_client(&client_key(ends), &FilterClient { budget: 2, ..valid });
    assert_eq!([(); 3].map(|()| testbed.run(&frame).0), [SENT_BACK, SENT_BACK, GOES_ON], "the budget ends");
    testbed.dns_cache.put_client(&client_key(ends), &valid);
    assert_eq!(testbed.run(&Ends::new(false, 3).frame(&query("ads.example", 1, 0x0100, None))).0, GOES_ON);
    // The server is local, so the query is not redirected.
    let redirected = FilterClientKey { server: Address([0; 4]), ..client_key(Ends::new(false, 3)) };
    testbed.dns_cache.put_client(&redirected, &valid);
    assert_eq!(testbed.run(&Ends::new(false, 3).frame(&query("ads.example", 1, 0x0100, None))).0, GOES_ON);
    // Another table takes the place of the first one, at once.
    let answers =
        [answer(ADS, 0)].map(|(index, answer)| (index, FilterAnswer { serial: SERIAL + 2, ..answer }));
    let other = table(&[certain("new.example", ADS.0, 0)], SERIAL + 2);
    testbed.dns_cache.put_table(&other, &answers).expect("a table");
    assert_eq!(testbed.run(&frame).0, GOES_ON, "the client is of the table before");
    testbed.dns_cache.put_client(&client_key(ends), &FilterClient { serial: SERIAL + 2, ..valid });
    assert_eq!(testbed.run(&frame).0, GOES_ON, "the name is not in it");
    assert_eq!(testbed.run(&ends.frame(&query("new.example", 1, 0x0100, None))).0, SENT_BACK);
}

#[test]
fn no_query_is_answered_without_a_log_record() {
    let mut testbed = testbed();
    let frame = Ends::new(false, 2).frame(&query("ads.example", 1, 0x0100, None));
    let mut answered = 0;
    while testbed.run(&frame).0 == SENT_BACK {
        answered += 1;
        assert!(answered < 20_000, "the ring is never full");
    }
    assert_eq!(take_hits(&testbed).len(), answered);
    assert_eq!(testbed.run(&frame).0, SENT_BACK, "there is room again");
}

#[test]
fn a_datagram_without_a_checksum_is_answered_without_one() {
    let mut testbed = testbed();
    let mut frame = Ends::new(false, 2).frame(&query("ads.example", 1, 0x0100, None));
    frame[40..42].fill(0);
    let (action, out) = testbed.run(&frame);
    assert_eq!((action, &out[40..42]), (SENT_BACK, &[0, 0][..]));
}
