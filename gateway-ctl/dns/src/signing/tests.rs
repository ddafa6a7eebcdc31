//! Tests of signed zones. Each signature is verified with the key.

use std::collections::BTreeSet;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use gateway_core::dns::domain_set;
use gateway_core::dns::zones::{Host, Options, Zones};
use gateway_core::dns::{Local, Name, NameRef, Question, Record};
use gateway_model::domain::DomainName;
use gateway_model::kinds::DnsRecord;

use super::*;
use crate::wire::{rtype, u16_at, u32_at};

struct Fixture {
    state: State,
    made: Signatures,
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

const NOON: &str = "2026-11-22T12:00:00Z";

impl Fixture {
    fn new(records: &[&str]) -> Fixture {
        let mut state = State::new(at(NOON)).begin(at(NOON));
        for name in ["example", "signed.example", "plain.example"] {
            let name: DomainName = name.parse().expect("a name");
            let dnssec = !name.as_str().starts_with("plain");
            state.create(DnsZone { name, dnssec, ..Default::default() }).expect("a zone");
        }
        let mut world = Fixture { state, made: Signatures::default() };
        records.iter().for_each(|text| world.add(text));
        world
    }

    fn add(&mut self, text: &str) {
        let mut parts = text.splitn(3, ' ');
        let mut part = || parts.next().expect("three parts").to_owned();
        let record = DnsRecord {
            zone: "example".to_owned(),
            name: part(),
            r#type: part().parse().expect("a type"),
            value: part(),
            ..Default::default()
        };
        self.state.create(record).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    }

    fn zones(&self, now: &str) -> Zones {
        let host = |name: &str, address: &str| Host {
            name: name.to_owned(),
            addresses: vec![address.parse().expect("an address")],
        };
        let options = Options {
            key: domain_set::Key::new(5),
            domain: "example".parse().expect("a name"),
            hosts: vec![host("nas", "192.168.1.9"), host("www", "192.168.1.8")],
            host_ttl: 10,
            mesh: None,
            copies: BTreeMap::new(),
            signer: Some(Arc::new(self.made.signer(&self.state, at(now)))),
        };
        Zones::new(&self.state, &options)
    }
}

const RECORDS: [&str; 8] = [
    "www A 192.0.2.1",
    "*.wild TXT any",
    "alias CNAME x.wild.example",
    "sub NS ns.sub.example",
    "ns.sub A 192.0.2.53",
    "safe NS ns.sub.example",
    "safe DS 60485 13 2 B4C8C1FE2E7477127B27115656AD6256F424625BF5C1E2770CE6D6E37DF61D17",
    "a.b.c A 192.0.2.2",
];

fn name(text: &str) -> Name {
    let wire: Vec<u8> =
        text.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    NameRef::new(&[&wire[..], &[0]].concat()).expect("a name").to_owned()
}

fn send_query(zones: &Zones, asked: &str, qtype: u16) -> Local {
    zones.answer(Question { name: name(asked).as_ref(), qtype }, true).expect("it is answered here")
}

/// Verifies every RRset of a section with its signature, like a validator. Returns the signed RRsets.
fn proved(zones: &Zones, records: &[Record]) -> BTreeSet<(String, u16)> {
    let mut proved = BTreeSet::new();
    for signature in records.iter().filter(|record| record.rtype == rtype::RRSIG) {
        let wire = &signature.rdata;
        let covered = u16_at(wire, 0).expect("a type");
        let set: Vec<&Record> =
            records.iter().filter(|one| one.rtype == covered && one.name == signature.name).collect();
        assert!(!set.is_empty(), "a signature of nothing");
        let end = crate::wire::name::skip(wire, 18).expect("a name");
        let apex = NameRef::new(&wire[18..end]).expect("a name");
        let key = send_query(zones, &apex.to_string(), rtype::DNSKEY).answers[0].rdata.clone();
        assert_eq!(u16_at(wire, 16), Some(zone_key::tag(&key)));
        // RFC 4035, section 5.3.2: for records from a wildcard, the signature covers the wildcard.
        let labels = usize::from(wire[3]);
        let count = signature.name.as_ref().labels().count();
        let end_of = signature.name.as_ref().suffixes().nth(count - labels).expect("labels");
        let owner = match count - labels {
            0 => signature.name.as_ref().wire().to_vec(),
            _ => [b"\x01*", end_of.wire()].concat(),
        };
        let mut data: Vec<&[u8]> = set.iter().map(|one| one.rdata.as_ref()).collect();
        data.sort_unstable();
        let mut signed = wire[..end].to_vec();
        for data in data {
            signed.extend_from_slice(&owner);
            signed.extend_from_slice(&covered.to_be_bytes());
            signed.extend_from_slice(&[0, 1]);
            signed.extend_from_slice(&wire[4..8]);
            signed.extend_from_slice(&(data.len() as u16).to_be_bytes());
            signed.extend_from_slice(data);
        }
        let point = [&[4], &key[4..]].concat();
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        key.verify(&signed, &wire[end..]).expect("a signature that holds");
        proved.insert((signature.name.to_string(), covered));
    }
    proved
}

/// Returns the signed RRsets of the answer and authority sections, as `name TYPE`.
fn shown(zones: &Zones, asked: &str, qtype: u16) -> [String; 2] {
    let local = send_query(zones, asked, qtype);
    let text = |records: &[Record]| {
        let proved = proved(zones, records);
        let all = proved.into_iter().map(|(name, covered)| format!("{name} {}", rtype::text(covered)));
        all.collect::<Vec<_>>().join(", ")
    };
    [text(&local.answers), text(&local.authorities)]
}

#[test]
fn rfc_4035_section_3_1_answers_prove_themselves() {
    let world = Fixture::new(&RECORDS);
    let zones = world.zones(NOON);
    let soa = "example SOA";
    let cases = [
        ("www.example", rtype::A, "www.example A", String::new()),
        ("example", rtype::DNSKEY, "example DNSKEY", String::new()),
        ("example", rtype::SOA, soa, String::new()),
        // No such type, no such name, and a name that only has others below it.
        ("www.example", rtype::MX, "", format!("{soa}, www.example NSEC")),
        ("none.example", rtype::A, "", format!("{soa}, example NSEC, nas.example NSEC")),
        ("b.c.example", rtype::A, "", format!("alias.example NSEC, {soa}")),
        // Wildcards.
        ("x.wild.example", rtype::TXT, "x.wild.example TXT", "*.wild.example NSEC".to_owned()),
        ("x.wild.example", rtype::A, "", format!("*.wild.example NSEC, {soa}")),
        (
            "alias.example",
            rtype::TXT,
            "alias.example CNAME, x.wild.example TXT",
            "*.wild.example NSEC".to_owned(),
        ),
        // Delegations without and with a key, and their keys.
        ("x.sub.example", rtype::A, "", "sub.example NSEC".to_owned()),
        ("x.safe.example", rtype::A, "", "safe.example DS".to_owned()),
        ("safe.example", rtype::DS, "safe.example DS", String::new()),
        ("sub.example", rtype::DS, "", format!("{soa}, sub.example NSEC")),
        // Child zones that are local too.
        ("signed.example", rtype::DS, "signed.example DS", String::new()),
        ("signed.example", rtype::SOA, "signed.example SOA", String::new()),
        ("plain.example", rtype::DS, "", format!("{soa}, plain.example NSEC")),
        ("plain.example", rtype::SOA, "", String::new()),
        // Names of hosts are part of the zone; stored records come first.
        ("nas.example", rtype::A, "nas.example A", String::new()),
        ("nas.example", rtype::AAAA, "", format!("{soa}, nas.example NSEC")),
    ];
    for (asked, qtype, answers, authorities) in cases {
        assert_eq!(shown(&zones, asked, qtype), [answers.to_owned(), authorities], "{asked} {qtype}");
    }
    assert_eq!(send_query(&zones, "www.example", rtype::A).answers[0].rdata.as_ref(), [192, 0, 2, 1]);
    let signed = |local: &Local| {
        let all = local.answers.iter().chain(&local.authorities).chain(&local.additionals);
        all.into_iter().any(|record| matches!(record.rtype, rtype::RRSIG | rtype::NSEC | rtype::DS))
    };
    for asked in ["www.example", "none.example", "x.safe.example", "x.wild.example"] {
        let question = name(asked);
        let question = Question { name: question.as_ref(), qtype: rtype::TXT };
        assert!(!signed(&zones.answer(question, false).expect("an answer")), "nobody asked for it");
        assert!(signed(&zones.answer(question, true).expect("an answer")));
    }
}

/// Follows the NSEC chain: it contains each name of the zone once.
#[test]
fn rfc_4034_section_4_the_chain_is_closed() {
    let world = Fixture::new(&RECORDS);
    let zones = world.zones(NOON);
    let mut names = Vec::new();
    let mut at = name("example");
    loop {
        names.push(at.to_string());
        // A delegation answers with NS records. Its NSEC record is in the referral for a name below, unless it has DS
        // records.
        let local = send_query(&zones, &at.to_string(), rtype::NSEC);
        let nsec = local.answers.iter().chain(&local.authorities).find(|one| one.rtype == rtype::NSEC);
        let nsec = nsec.cloned().or_else(|| {
            let local = send_query(&zones, &format!("0.{at}"), rtype::NSEC);
            local.authorities.into_iter().find(|one| one.rtype == rtype::NSEC && one.name == at)
        });
        let Some(nsec) = nsec else { break };
        let end = crate::wire::name::skip(&nsec.rdata, 0).expect("a name");
        at = NameRef::new(&nsec.rdata[..end]).expect("a name").to_owned();
        if at == name("example") {
            break;
        }
    }
    assert_eq!(names[..5], ["example", "alias.example", "a.b.c.example", "nas.example", "plain.example"]);
}

#[test]
fn unchanged_records_are_signed_again_only_before_their_expiry() {
    let mut world = Fixture::new(&RECORDS);
    let signature = |zones: &Zones, asked: &str| {
        let local = send_query(zones, asked, rtype::A);
        local.answers.iter().find(|record| record.rtype == rtype::RRSIG).expect("a signature").rdata.clone()
    };
    let zones = world.zones(NOON);
    let first = signature(&zones, "www.example");
    world.add("new A 192.0.2.9");
    assert_eq!(signature(&world.zones("2026-11-29T12:00:00Z"), "www.example"), first);
    assert!(!world.made.are_due(at("2026-11-30T12:00:00Z")));
    assert!(world.made.are_due(at("2026-12-03T12:00:00Z")));
    let again = signature(&world.zones("2026-12-03T12:00:00Z"), "www.example");
    assert_ne!(again, first);
    assert!(!world.made.are_due(at("2026-12-03T12:00:00Z")), "all are new");
    let ends = |wire: &[u8]| i64::from(u32_at(wire, 8).expect("a time"));
    let now = at("2026-12-03T12:00:00Z").as_second();
    assert!((now + VALIDITY..now + VALIDITY + EXPIRY_SPREAD_SECONDS).contains(&ends(&again)));
    assert!(world.made.are_due(at(NOON)), "a clock that was set back");
    assert_ne!(signature(&world.zones(NOON), "www.example"), again);
    let ends: BTreeSet<i64> = ["www.example", "nas.example", "new.example"]
        .map(|asked| ends(&signature(&world.zones(NOON), asked)))
        .into();
    assert_eq!(ends.len(), 3, "they do not end together");
}

#[test]
fn another_key_signs_again_and_a_zone_that_is_not_signed_has_none() {
    let mut world = Fixture::new(&RECORDS);
    let key = |zones: &Zones| {
        send_query(zones, "example", rtype::DNSKEY).answers.first().map(|key| key.rdata.clone())
    };
    let first = key(&world.zones(NOON)).expect("a key");
    let zone =
        world.state.dns_zones.iter().find(|zone| zone.name.as_str() == "example").expect("a zone").meta.id;
    let other = zone_key::generate().expect("a key");
    world.state.update::<DnsZone>(zone, None, |zone| zone.signing_key = other).expect("a zone");
    let zones = world.zones(NOON);
    assert_ne!(key(&zones), Some(first));
    assert_eq!(shown(&zones, "www.example", rtype::A)[0], "www.example A");
    world.state.update::<DnsZone>(zone, None, |zone| zone.dnssec = false).expect("a zone");
    let zones = world.zones(NOON);
    assert_eq!(key(&zones), None);
    assert_eq!(shown(&zones, "none.example", rtype::A), ["", ""]);
}
