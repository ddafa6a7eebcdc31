//! Tests of secondary zones, with and without a valid transfer.

use gateway_model::kinds::dns_zone::ZoneType;

use super::super::denial::hash;
use super::*;

fn wire(text: &str) -> Vec<u8> {
    name(text).as_ref().wire().to_vec()
}

fn record(owner: &str, rtype: u16, rdata: &[u8]) -> Record {
    Record { name: name(owner), rtype, ttl: 300, rdata: rdata.into() }
}

fn start() -> Record {
    record(
        "copy",
        rtype::SOA,
        &[&wire("ns.copy")[..], &wire("admin.copy"), &[0, 0, 0, 60].repeat(5)].concat(),
    )
}

/// Adds a secondary zone `copy` to the fixture.
fn with_copy(mut world: World, records: Option<Vec<Record>>) -> World {
    let zone = DnsZone {
        name: "copy".parse().expect("a name"),
        r#type: ZoneType::Secondary,
        upstreams: vec!["192.0.2.53".to_owned()],
        ..Default::default()
    };
    let (zone, _) = world.state.create(zone).expect("a zone");
    if let Some(mut records) = records {
        records.push(start());
        let copy = Copy::new(&name("copy"), records, Key::new(5)).expect("a zone");
        world.copies.insert(zone.meta.id, copy);
    }
    world
}

#[test]
fn a_copy_is_answered_like_any_zone() {
    let records = vec![
        record("copy", rtype::NS, &wire("ns.copy")),
        record("ns.copy", rtype::A, &[192, 0, 2, 53]),
        record("www.copy", rtype::A, &[192, 0, 2, 1]),
        record("*.w.copy", rtype::CNAME, b"\x03WWW\x04Copy\0"),
        record("sub.copy", rtype::NS, &wire("ns.sub.copy")),
        record("ns.sub.copy", rtype::A, &[192, 0, 2, 54]),
        record("odd.copy", 65_280, b"\x01\x02"),
    ];
    let world = with_copy(World::new(&[]), Some(records));
    let cases = [
        ("www.copy", rtype::A, "ok aa | www.copy A 192.0.2.1 |  | "),
        ("www.copy", rtype::AAAA, "ok aa |  | copy SOA | "),
        ("none.copy", rtype::A, "nxdomain aa |  | copy SOA | "),
        ("w.copy", rtype::A, "ok aa |  | copy SOA | "),
        ("a.sub.copy", rtype::A, "ok |  | sub.copy NS ns.sub.copy | ns.sub.copy A 192.0.2.54"),
        ("odd.copy", 65_280, "ok aa | odd.copy TYPE65280 |  | "),
        ("copy", rtype::NS, "ok aa | copy NS ns.copy |  | ns.copy A 192.0.2.53"),
    ];
    for (asked, qtype, want) in cases {
        assert_eq!(world.shown(asked, qtype), want, "{asked}");
    }
    let local = world.ask("x.w.copy", rtype::A).expect("it is answered here");
    assert_eq!(local.answers[1].rdata.as_ref(), [192, 0, 2, 1], "names are the same in any case");
    assert_eq!(local.answers[0].rdata.as_ref(), b"\x03WWW\x04Copy\0", "and kept in theirs");
}

#[test]
fn an_expired_secondary_zone_answers_servfail_without_a_query() {
    let world =
        World::new(&["example"]).records("example", &["to CNAME www.copy"]).host("copy", &["192.0.2.9"]);
    let world = with_copy(world, None);
    for asked in ["copy", "www.copy", "a.b.copy", "to.example"] {
        let local = world.ask(asked, rtype::A).expect("it is answered here");
        let empty = local.answers.is_empty() && local.authorities.is_empty() && local.goes_on.is_none();
        assert!(local.rcode == SERVFAIL && !local.authoritative && empty, "{asked}");
        assert_eq!(local.ede.map(|(code, _)| code), Some(24), "RFC 8914, section 4.25");
    }
    assert_eq!(Copy::new(&name("copy"), Vec::new(), Key::new(5)).err(), Some(MissingSoa));
}

#[test]
fn rfc_6672_section_3_all_below_has_another_name() {
    let long = ["a".repeat(63), "b".repeat(63), "c".repeat(63)].join(".");
    let records = vec![
        record("old.copy", rtype::DNAME, &wire("new.copy")),
        record("old.copy", rtype::A, &[192, 0, 2, 9]),
        record("hidden.old.copy", rtype::A, &[192, 0, 2, 8]),
        record("a.new.copy", rtype::A, &[192, 0, 2, 1]),
        record("out.copy", rtype::DNAME, &wire("example.org")),
        record("long.copy", rtype::DNAME, &wire(&long)),
        record("round.copy", rtype::DNAME, &wire("round.copy")),
    ];
    let world = with_copy(World::new(&[]), Some(records));
    let cases = [
        ("old.copy", "ok aa | old.copy A 192.0.2.9 |  | "),
        ("a.old.copy", "ok aa | old.copy DNAME, a.old.copy CNAME a.new.copy, a.new.copy A 192.0.2.1 |  | "),
        (
            "hidden.old.copy",
            "nxdomain aa | old.copy DNAME, hidden.old.copy CNAME hidden.new.copy | copy SOA | ",
        ),
        ("a.out.copy", "ok aa | out.copy DNAME, a.out.copy CNAME a.example.org |  |  -> a.example.org"),
        ("a.round.copy", "servfail |  |  | "),
    ];
    for (asked, want) in cases {
        assert_eq!(world.shown(asked, rtype::A), want, "{asked}");
    }
    let local = world.ask(&format!("{}.long.copy", "d".repeat(63)), rtype::A).expect("it is answered here");
    assert_eq!((local.rcode, local.answers.len()), (YXDOMAIN, 1), "section 2.2: the name would be too long");
}

fn base32(hash: [u8; 20]) -> String {
    let letter = |bits: u64| char::from(b"0123456789abcdefghijklmnopqrstuv"[(bits & 31) as usize]);
    let fives =
        hash.chunks_exact(5).map(|five| five.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte)));
    fives.flat_map(|word| (0..8).rev().map(move |at| letter(word >> (at * 5)))).collect()
}

/// Checks the NSEC3 records of each proof by the names whose hashes they match or cover (RFC 5155, section 7.2).
#[test]
fn rfc_5155_section_7_2() {
    let names = ["copy", "a.copy", "*.w.copy", "w.copy", "sub.copy", "b.c.copy", "c.copy"];
    let mut hashes = names.map(|text| (hash(name(text).as_ref(), b"\xab", 3), text));
    hashes.sort();
    let owner = |hash: [u8; 20]| format!("{}.copy", base32(hash));
    let mut records = vec![
        record("copy", rtype::NSEC3PARAM, b"\x01\0\0\x03\x01\xab"),
        record("a.copy", rtype::A, &[192, 0, 2, 1]),
        record("*.w.copy", rtype::A, &[192, 0, 2, 2]),
        record("sub.copy", rtype::NS, &wire("ns.sub.copy")),
        record("b.c.copy", rtype::A, &[192, 0, 2, 3]),
    ];
    let proof = |covered: u16| [&covered.to_be_bytes()[..], b"rest"].concat();
    for (hash, _) in hashes {
        records.push(record(&owner(hash), rtype::NSEC3, b"data"));
        records.push(record(&owner(hash), rtype::RRSIG, &proof(rtype::NSEC3)));
    }
    records.push(record("a.copy", rtype::RRSIG, &proof(rtype::A)));
    records.push(record("copy", rtype::RRSIG, &proof(rtype::SOA)));
    let world = with_copy(World::new(&[]), Some(records));
    let covering = |text: &str| {
        let hash = hash(name(text).as_ref(), b"\xab", 3);
        let after = hashes.partition_point(|(have, _)| *have <= hash);
        hashes[after.checked_sub(1).unwrap_or(hashes.len() - 1)].1
    };
    let proved = |asked: &str, qtype: u16| {
        let name = name(asked);
        let local = world.zones().answer(Question { name: name.as_ref(), qtype }, true).expect("an answer");
        let records = local.authorities.iter().filter(|record| record.rtype == rtype::NSEC3);
        let mut records: Vec<&str> = records
            .map(|record| {
                hashes.iter().find(|(hash, _)| owner(*hash) == record.name.to_string()).expect("one").1
            })
            .collect();
        records.sort_unstable();
        records
    };
    let set = |mut names: Vec<&'static str>| {
        names.sort_unstable();
        names.dedup();
        names
    };
    assert_eq!(proved("a.copy", rtype::A), [""; 0]);
    assert_eq!(proved("a.copy", rtype::MX), ["a.copy"], "7.2.3");
    assert_eq!(proved("c.copy", rtype::A), ["c.copy"], "7.2.3, a name that only has others below it");
    let denied = set(vec!["copy", covering("x.copy"), covering("*.copy")]);
    assert_eq!(proved("y.x.copy", rtype::A), denied, "7.2.2");
    assert_eq!(proved("x.w.copy", rtype::A), [covering("x.w.copy")], "7.2.6");
    let denied = set(vec!["w.copy", covering("x.w.copy"), "*.w.copy"]);
    assert_eq!(proved("x.w.copy", rtype::MX), denied, "7.2.5");
    assert_eq!(proved("x.sub.copy", rtype::A), ["sub.copy"], "7.2.7");
    let hashed = owner(hashes[0].0);
    assert!(world.shown(&hashed, rtype::NSEC3).starts_with("nxdomain"), "7.2.8: the hash is no name");
    let asked = name("a.copy");
    let question = Question { name: asked.as_ref(), qtype: rtype::RRSIG };
    assert_eq!(world.zones().answer(question, false).expect("an answer").answers.len(), 1);
}
