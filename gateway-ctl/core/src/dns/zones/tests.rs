//! Tests of answers, by section of the RFC that specifies them.

use gateway_model::State;
use gateway_model::kinds::dns_zone::Soa;
use gateway_model::kinds::{DnsForwarder, DnsRecord, DnsZone};
use gateway_model::record::RecordType;
use jiff::Timestamp;
use proptest::prelude::*;

use super::answer::{NXDOMAIN, SERVFAIL, YXDOMAIN};
use super::*;
use crate::dns::decision::{Local, Question, Record};
use crate::dns::name::{Name, NameRef};
use crate::dns::rtype;

mod copies;

fn name(text: &str) -> Name {
    hosts::from_text(text).expect("a name")
}

struct World {
    state: State,
    hosts: Vec<Host>,
    copies: BTreeMap<Id, Copy>,
    signer: Option<Arc<dyn Sign>>,
}

impl World {
    fn new(zones: &[&str]) -> World {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().expect("a time");
        let mut state = State::new(now).begin(now);
        for zone in zones {
            let soa =
                Soa { minimum: 60, rname: Some("host.master@example".to_owned()), ..Default::default() };
            let zone = DnsZone { name: zone.parse().expect("a name"), soa, ..Default::default() };
            state.create(zone).expect("a zone");
        }
        World { state, hosts: Vec::new(), copies: BTreeMap::new(), signer: None }
    }

    /// Adds records `name type value` to the zone.
    fn records(mut self, zone: &str, records: &[&str]) -> World {
        for text in records {
            let mut parts = text.splitn(3, ' ');
            let mut part = || parts.next().expect("three parts").to_owned();
            let record = DnsRecord {
                zone: zone.to_owned(),
                name: part(),
                r#type: part().parse().expect("a type"),
                value: part(),
                ..Default::default()
            };
            self.state.create(record).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        }
        self
    }

    fn host(mut self, name: &str, addresses: &[&str]) -> World {
        let addresses = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        self.hosts.push(Host { name: name.to_owned(), addresses });
        self
    }

    fn zones(&self) -> Zones {
        let options = Options {
            key: Key::new(5),
            domain: "lan".parse().expect("a name"),
            hosts: self.hosts.clone(),
            host_ttl: 10,
            mesh: None,
            copies: self.copies.clone(),
            signer: self.signer.clone(),
        };
        Zones::new(&self.state, &options)
    }

    fn ask(&self, asked: &str, qtype: u16) -> Option<Local> {
        self.zones().answer(Question { name: name(asked).as_ref(), qtype }, false)
    }

    fn shown(&self, asked: &str, qtype: u16) -> String {
        self.ask(asked, qtype).map_or_else(|| "elsewhere".to_owned(), |local| show(&local))
    }
}

/// Formats as `rcode aa | answers | authorities | additionals`, each record with owner and type, and its address or
/// name.
fn show(local: &Local) -> String {
    let record = |record: &Record| {
        let data = match record.rtype {
            rtype::A => record.rdata.iter().map(u8::to_string).collect::<Vec<_>>().join("."),
            rtype::CNAME | rtype::PTR | rtype::NS => NameRef::new(&record.rdata).expect("a name").to_string(),
            _ => String::new(),
        };
        format!("{} {} {data}", record.name, rtype::text(record.rtype)).trim_end().to_owned()
    };
    let section = |records: &[Record]| records.iter().map(record).collect::<Vec<_>>().join(", ");
    let rcode = match local.rcode {
        0 => "ok",
        2 => "servfail",
        3 => "nxdomain",
        _ => "other",
    };
    let onward = local.goes_on.as_ref().map(|name| format!(" -> {name}")).unwrap_or_default();
    format!(
        "{rcode}{} | {} | {} | {}{onward}",
        if local.authoritative { " aa" } else { "" },
        section(&local.answers),
        section(&local.authorities),
        section(&local.additionals)
    )
}

#[test]
fn rfc_1034_section_4_3_2() {
    let world = World::new(&["example"]).records(
        "example",
        &[
            "www A 192.0.2.1",
            "www A 192.0.2.2",
            "alias CNAME www.example",
            "far CNAME www.example.org",
            "gone CNAME nothing.example",
            "@ MX 10 www.example",
            "_sip._tcp SRV 1 2 5060 www.example",
        ],
    );
    assert_eq!(
        world.shown("www.example", rtype::A),
        "ok aa | www.example A 192.0.2.1, www.example A 192.0.2.2 |  | "
    );
    assert_eq!(
        world.shown("alias.example", rtype::A),
        "ok aa | alias.example CNAME www.example, www.example A 192.0.2.1, www.example A 192.0.2.2 |  | "
    );
    assert_eq!(world.shown("alias.example", rtype::CNAME), "ok aa | alias.example CNAME www.example |  | ");
    assert_eq!(
        world.shown("far.example", rtype::A),
        "ok aa | far.example CNAME www.example.org |  |  -> www.example.org"
    );
    assert_eq!(
        world.shown("example", rtype::MX),
        "ok aa | example MX |  | www.example A 192.0.2.1, www.example A 192.0.2.2"
    );
    assert_eq!(
        world.shown("_sip._tcp.example", rtype::SRV),
        "ok aa | _sip._tcp.example SRV |  | www.example A 192.0.2.1, www.example A 192.0.2.2"
    );
    assert_eq!(world.shown("www.example.org", rtype::A), "elsewhere");
    assert_eq!(
        world.shown("gone.example", rtype::A),
        "nxdomain aa | gone.example CNAME nothing.example | example SOA | ",
        "RFC 6604: the code is that of the last name"
    );
}

#[test]
fn rfc_1034_section_5_2_2_aliases_in_a_circle() {
    let world = World::new(&["example"]).records("example", &["a CNAME b.example", "b CNAME a.example"]);
    assert_eq!(world.shown("a.example", rtype::A), "servfail |  |  | ");
}

#[test]
fn rfc_2308_negative_answers() {
    let world = World::new(&["example"]).records("example", &["www A 192.0.2.1"]);
    assert_eq!(world.shown("www.example", rtype::AAAA), "ok aa |  | example SOA | ");
    assert_eq!(world.shown("nothing.example", rtype::A), "nxdomain aa |  | example SOA | ");
    let local = world.ask("nothing.example", rtype::A).expect("it is answered here");
    assert_eq!(local.authorities[0].ttl, 60, "the last field is less than the TTL");
    let soa = world.ask("example", rtype::SOA).expect("it is answered here");
    assert_eq!(soa.answers[0].ttl, 300);
    let rname = b"\x0bhost.master\x07example\0";
    assert!(soa.answers[0].rdata.windows(rname.len()).any(|window| window == rname), "RFC 1035, section 8");
}

#[test]
fn rfc_4592_section_2_2_1() {
    let world = World::new(&["example"]).records(
        "example",
        &[
            "* TXT this is a wildcard",
            "* MX 10 host1.example",
            "host1 A 192.0.2.1",
            "_ssh._tcp.host1 SRV 0 0 22 host1.example",
            "_ssh._tcp.host2 SRV 0 0 22 host1.example",
            "subdel NS ns.example.com",
        ],
    );
    let cases = [
        ("host3.example", rtype::MX, "ok aa | host3.example MX |  | host1.example A 192.0.2.1"),
        ("host3.example", rtype::A, "ok aa |  | example SOA | "),
        ("foo.bar.example", rtype::TXT, "ok aa | foo.bar.example TXT |  | "),
        ("host1.example", rtype::MX, "ok aa |  | example SOA | "),
        ("_telnet._tcp.host1.example", rtype::SRV, "nxdomain aa |  | example SOA | "),
        ("host.subdel.example", rtype::A, "ok |  | subdel.example NS ns.example.com | "),
        ("ghost.*.example", rtype::MX, "nxdomain aa |  | example SOA | "),
    ];
    for (asked, qtype, want) in cases {
        assert_eq!(world.shown(asked, qtype), want, "{asked} {qtype}");
    }
    assert_eq!(
        world.shown("_tcp.host2.example", rtype::A),
        "ok aa |  | example SOA | ",
        "section 2.2.2: it exists by what is below it"
    );
}

#[test]
fn a_wildcard_can_be_an_alias() {
    let world = World::new(&["example"]).records("example", &["* CNAME www.example", "www A 192.0.2.1"]);
    assert_eq!(
        world.shown("x.example", rtype::A),
        "ok aa | x.example CNAME www.example, www.example A 192.0.2.1 |  | "
    );
    assert_eq!(world.shown("www.example", rtype::AAAA), "ok aa |  | example SOA | ");
}

#[test]
fn delegations_lead_to_their_servers_with_glue() {
    let world = World::new(&["example"])
        .records("example", &["sub NS ns.sub.example", "ns.sub A 192.0.2.53", "in.sub A 192.0.2.54"]);
    let referral = "ok |  | sub.example NS ns.sub.example | ns.sub.example A 192.0.2.53";
    assert_eq!(world.shown("sub.example", rtype::A), referral);
    assert_eq!(world.shown("a.in.sub.example", rtype::A), referral, "what is below the cut is not ours");
    assert_eq!(world.shown("sub.example", rtype::NS), referral);
    assert_eq!(
        world.shown("sub.example", rtype::DS),
        "ok aa |  | example SOA | ",
        "RFC 4035, section 3.1.4.1: it belongs to the parent"
    );
}

#[test]
fn rfc_8482_section_4_1() {
    let world = World::new(&["example"])
        .records("example", &["www A 192.0.2.1", "www TXT hi", "a CNAME www.example"]);
    let local = world.ask("www.example", rtype::ANY).expect("it is answered here");
    assert_eq!((local.answers.len(), local.rcode), (1, 0));
    assert_eq!(world.shown("a.example", rtype::ANY), "ok aa | a.example CNAME www.example |  | ");
}

#[test]
fn rfc_2181_section_5_2_one_set_has_one_ttl() {
    let mut world = World::new(&["example"]).records("example", &["www A 192.0.2.1"]);
    let record = DnsRecord {
        zone: "example".to_owned(),
        name: "www".to_owned(),
        r#type: RecordType::A,
        value: "192.0.2.2".to_owned(),
        ttl: 30,
        ..Default::default()
    };
    world.state.create(record).expect("a record");
    let local = world.ask("www.example", rtype::A).expect("it is answered here");
    assert_eq!(local.answers.iter().map(|record| record.ttl).collect::<Vec<_>>(), [30, 30]);
}

#[test]
fn machines_have_names_forward_and_reverse() {
    let world = World::new(&[])
        .host("NAS", &["192.168.1.9", "fd00::9", "2001:db8:1::9", "fe80::9"])
        .host("nas", &["192.168.1.66"])
        .host("thief", &["192.168.1.9"]);
    assert_eq!(
        world.shown("nas.lan", rtype::A),
        "ok aa | nas.lan A 192.168.1.9 |  | ",
        "the first has the name"
    );
    assert_eq!(world.ask("nas.lan", rtype::AAAA).expect("it is answered here").answers.len(), 2);
    assert_eq!(world.shown("nas.lan", rtype::HTTPS), "ok aa |  | lan SOA | ");
    assert_eq!(
        world.shown("other.lan", rtype::A),
        "nxdomain aa |  | lan SOA | ",
        "it does not leave the network"
    );
    assert_eq!(
        world.shown("9.1.168.192.in-addr.arpa", rtype::PTR),
        "ok aa | 9.1.168.192.in-addr.arpa PTR nas.lan |  | "
    );
    assert_eq!(world.shown("1.168.192.in-addr.arpa", rtype::PTR), "ok aa |  | 168.192.in-addr.arpa SOA | ");
    assert_eq!(
        world.shown("8.1.168.192.in-addr.arpa", rtype::PTR),
        "nxdomain aa |  | 168.192.in-addr.arpa SOA | "
    );
    let global = pointer("2001:db8:1::9".parse().expect("an address")).to_string();
    assert!(world.shown(&global, rtype::PTR).contains("PTR nas.lan"));
    let world = World::new(&[]).host("nas", &["198.18.0.9"]);
    assert_eq!(
        world.shown("9.0.18.198.in-addr.arpa", rtype::PTR),
        "ok aa | 9.0.18.198.in-addr.arpa PTR nas.lan |  | ",
        "of an address of the world only what is ours"
    );
    assert_eq!(world.shown("0.18.198.in-addr.arpa", rtype::PTR), "elsewhere");
    assert_eq!(world.shown("8.0.18.198.in-addr.arpa", rtype::PTR), "elsewhere");
}

#[test]
fn stored_records_precede_host_records() {
    let world = World::new(&["lan"])
        .records("lan", &["nas A 192.0.2.1", "tv TXT hi", "* A 192.0.2.7"])
        .host("nas", &["192.168.1.9", "fd00::9"])
        .host("tv", &["192.168.1.8"]);
    assert_eq!(world.shown("nas.lan", rtype::A), "ok aa | nas.lan A 192.0.2.1 |  | ");
    assert_eq!(
        world.shown("nas.lan", rtype::AAAA),
        "ok aa |  | lan SOA | ",
        "addresses of the two are not mixed"
    );
    assert_eq!(world.shown("tv.lan", rtype::A), "ok aa | tv.lan A 192.168.1.8 |  | ");
    assert_eq!(world.shown("x.lan", rtype::A), "ok aa | x.lan A 192.0.2.7 |  | ");
}

#[test]
fn rfc_6761_and_rfc_6303_names_do_not_leave() {
    let world = World::new(&[]);
    assert_eq!(world.shown("localhost", rtype::A), "ok aa | localhost A 127.0.0.1 |  | ");
    assert_eq!(world.shown("a.localhost", rtype::A), "ok aa | a.localhost A 127.0.0.1 |  | ");
    assert_eq!(
        world.shown("1.0.0.127.in-addr.arpa", rtype::PTR),
        "ok aa | 1.0.0.127.in-addr.arpa PTR localhost |  | "
    );
    for asked in [
        "a.test",
        "a.invalid",
        "printer.local",
        "x.onion",
        "x.home.arpa",
        "x.alt",
        "4.3.2.10.in-addr.arpa",
        "1.1.20.172.in-addr.arpa",
        "1.1.64.100.in-addr.arpa",
        "1.0.d.f.ip6.arpa",
        "1.8.e.f.ip6.arpa",
    ] {
        assert!(world.shown(asked, rtype::PTR).starts_with("nxdomain aa"), "{asked}");
    }
    for asked in
        ["1.1.32.172.in-addr.arpa", "1.1.63.100.in-addr.arpa", "8.8.8.8.in-addr.arpa", "example.com", "arpa"]
    {
        assert_eq!(world.shown(asked, rtype::PTR), "elsewhere", "{asked}");
    }
}

#[test]
fn forwarders_of_a_domain_are_queried() {
    let mut world = World::new(&["example"]).records("example", &["www A 192.0.2.1"]);
    for domain in ["corp.example", "10.in-addr.arpa", "example"] {
        let forwarder = DnsForwarder {
            domain: domain.parse().expect("a name"),
            upstreams: vec!["192.0.2.53".to_owned()],
            ..Default::default()
        };
        world.state.create(forwarder).expect("a forwarder");
    }
    assert_eq!(world.shown("a.corp.example", rtype::A), "elsewhere");
    assert_eq!(world.shown("1.2.3.10.in-addr.arpa", rtype::PTR), "elsewhere");
    assert_eq!(
        world.shown("www.example", rtype::A),
        "ok aa | www.example A 192.0.2.1 |  | ",
        "the zone is stored"
    );
}

#[test]
fn addresses_of_names_of_one_label_are_not_forwarded() {
    let mut world = World::new(&["zone"]).records("zone", &["@ A 192.0.2.1"]);
    let forwarder = DnsForwarder {
        domain: "corp".parse().expect("a name"),
        upstreams: vec!["192.0.2.53".to_owned()],
        ..Default::default()
    };
    world.state.create(forwarder).expect("a forwarder");
    for qtype in [rtype::A, rtype::AAAA, rtype::HTTPS, rtype::SVCB] {
        assert_eq!(world.shown("nas", qtype), "ok |  | nas SOA | ", "{qtype}");
        assert_eq!(world.shown("corp", qtype), "elsewhere", "a forwarder knows it");
        assert_eq!(world.shown("nas.example", qtype), "elsewhere");
    }
    for qtype in [rtype::DS, rtype::NS, rtype::SOA, rtype::DNSKEY, rtype::TXT, rtype::MX] {
        assert_eq!(world.shown("com", qtype), "elsewhere", "top-level domains have records of this type");
    }
    assert_eq!(world.shown("zone", rtype::A), "ok aa | zone A 192.0.2.1 |  | ");
}

#[test]
fn disabled_zones_and_records_are_not_there() {
    let mut world = World::new(&["example"]).records("example", &["www A 192.0.2.1"]);
    let record = world.state.dns_records.iter().next().expect("a record").meta.id;
    world.state.update::<DnsRecord>(record, None, |record| record.enabled = false).expect("a record");
    assert!(world.shown("www.example", rtype::A).starts_with("nxdomain"));
    let zone = world.state.dns_zones.iter().next().expect("a zone").meta.id;
    world.state.update::<DnsZone>(zone, None, |zone| zone.enabled = false).expect("a zone");
    assert_eq!(world.shown("www.example", rtype::A), "elsewhere");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Checks any query to any zone: the answer is complete, and every record can be encoded.
    #[test]
    fn any_query_is_answered_or_passed_on(
        records in prop::collection::vec(("(\\*|[ab])(\\.[ab]){0,2}", 0usize..6), 0..12),
        asked in prop::collection::vec("(([abc]|\\*)\\.){0,4}(example|lan|test)", 1..8),
        qtype in prop::sample::select(vec![rtype::A, rtype::AAAA, rtype::CNAME, rtype::NS, rtype::MX, rtype::TXT, rtype::ANY, rtype::DS, rtype::SOA]),
    ) {
        let mut world = World::new(&["example"]).host("a", &["192.0.2.1"]);
        for (owner, kind) in records {
            let (r#type, value) = [
                (RecordType::A, "192.0.2.1"),
                (RecordType::Aaaa, "2001:db8::1"),
                (RecordType::Cname, "a.b.example"),
                (RecordType::Cname, "b.example.org"),
                (RecordType::Ns, "a.example"),
                (RecordType::Mx, "10 b.example"),
            ][kind];
            let record = DnsRecord { zone: "example".to_owned(), name: owner, r#type, value: value.to_owned(), ..Default::default() };
            // Some records conflict, which the model refuses.
            let _ = world.state.create(record);
        }
        let zones = world.zones();
        for asked in asked {
            let asked = name(&asked);
            let local = zones.answer(Question { name: asked.as_ref(), qtype }, true).expect("all of these are ours");
            prop_assert!(matches!(local.rcode, 0 | NXDOMAIN | SERVFAIL));
            if let Some(first) = local.answers.first() {
                prop_assert_eq!(&first.name, &asked);
            } else {
                prop_assert!(local.rcode == SERVFAIL || !local.authorities.is_empty());
            }
            for record in local.answers.iter().chain(&local.authorities).chain(&local.additionals) {
                prop_assert!(NameRef::new(record.name.as_ref().wire()).is_some() && record.rdata.len() <= 65_535);
            }
            if local.goes_on.is_some() {
                prop_assert!(local.answers.last().is_some_and(|last| last.rtype == rtype::CNAME));
            }
            // Names that exist, also as empty non-terminals, are never answered with NXDOMAIN.
            if local.rcode == NXDOMAIN && local.answers.is_empty() {
                let below = |record: &DnsRecord| name(&record.full_name()).as_ref().is_within(asked.as_ref());
                let cut = |record: &DnsRecord| record.r#type == RecordType::Ns;
                prop_assert!(!world.state.dns_records.iter().any(|record| below(record) && !cut(record)));
            }
        }
    }
}
