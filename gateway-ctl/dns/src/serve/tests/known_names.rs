//! Names that have an answer here, by each source of answers: every type of such a name is answered here, too.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::dns::domain_set::Key;
use gateway_core::dns::filter::{Canaries, Filter, Lists, Options as FilterOptions};
use gateway_core::dns::lists::{Format, Reader};
use gateway_core::dns::rebinding::Rebinding;
use gateway_core::dns::zones::{Copy, Host, Options as ZoneOptions, Zones};
use gateway_core::dns::{ClientIdentity, Decision, Local, NameRef, Question, Record};
use gateway_model::State as Stored;
use gateway_model::kinds::dns_filter_rule::FilterAction;
use gateway_model::kinds::dns_zone::ZoneType;
use gateway_model::kinds::{
    DnsBlock, DnsFilterRule, DnsForwarder, DnsRecord, DnsRewrite, DnsZone, ThreatFeed,
};
use gateway_model::pattern::Match;
use hickory_proto::op::{Message, ResponseCode};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{code, extended, lines};
use crate::hooks::LocalAnswers;
use crate::serve::settings::Blocking;
use crate::serve::test_doubles::*;
use crate::serve::{QueryContext, QueryOutcome, Settings, State, Transport};
use crate::wire::{Request, rtype};

/// Filter and zones, as the daemon puts them together.
struct FilterAndZones {
    filter: Filter,
    zones: Zones,
}

impl LocalAnswers for FilterAndZones {
    fn decide(&self, asker: &ClientIdentity, question: Question<'_>, now: Timestamp) -> Decision {
        self.filter.decide(asker, question, now)
    }

    fn inspect_name(
        &self,
        asker: &ClientIdentity,
        question: Question<'_>,
        target: NameRef<'_>,
        now: Timestamp,
    ) -> Decision {
        self.filter.inspect_name(asker, question, target, now)
    }

    fn inspect_address(
        &self,
        a: &ClientIdentity,
        q: Question<'_>,
        address: IpAddr,
        now: Timestamp,
    ) -> Decision {
        self.filter.inspect_address(a, q, address, now)
    }

    fn local(&self, question: Question<'_>, proved: bool) -> Option<Local> {
        self.zones.answer(question, proved)
    }

    fn notified(&self, _: NameRef<'_>, _: IpAddr) -> bool {
        false
    }
}

/// Name that has an answer here, with the types that it has records of.
struct KnownName {
    source: &'static str,
    name: &'static str,
    types: &'static [u16],
    /// The name does not exist, and that is known here.
    missing: bool,
    /// Blocks are no answers while blocking is paused.
    is_block: bool,
}

const fn known(source: &'static str, name: &'static str, types: &'static [u16]) -> KnownName {
    KnownName { source, name, types, missing: false, is_block: false }
}

const fn denied(source: &'static str, name: &'static str) -> KnownName {
    KnownName { missing: true, ..known(source, name, &[]) }
}

const A: &[u16] = &[rtype::A];
const BOTH: &[u16] = &[rtype::A, rtype::AAAA];
const PTR: &[u16] = &[rtype::PTR];

/// All sources of answers. Names of the zones that have a forwarder in one of the worlds end with `home.example`.
const NAMES: &[KnownName] = &[
    known("device or reservation", "nas.home.example", A),
    known("lease", "tablet.home.example", BOTH),
    known("reverse, private", "5.1.168.192.in-addr.arpa", PTR),
    known("reverse, public", "7.4.8.8.in-addr.arpa", PTR),
    known("reverse, IPv6", "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.f.f.0.0.0.0.a.2.ip6.arpa", PTR),
    known("localhost", "localhost", BOTH),
    known("below localhost", "app.localhost", BOTH),
    known("record", "www.zone.example", A),
    known("alias record", "alias.zone.example", &[rtype::A, rtype::CNAME]),
    known("wildcard record", "any.wild.zone.example", &[rtype::TXT]),
    known("empty non-terminal", "wild.zone.example", &[]),
    denied("zone without the name", "none.zone.example"),
    known("secondary zone", "www.copy.example", A),
    known("rewrite to an address", "rewritten.home.example", A),
    known("rewrite to both families", "both.home.example", BOTH),
    known("wildcard rewrite", "a.many.home.example", A),
    known("rewrite to a name", "moved.home.example", &[rtype::A, rtype::CNAME]),
    known("rewrite of a host", "printer.home.example", &[rtype::A]),
    known("rewrite of a record", "mail.zone.example", &[rtype::A, rtype::MX]),
    known("filter rule that rewrites", "ruled.home.example", A),
    KnownName { is_block: true, ..known("local data of RPZ", "walled.home.example", A) },
    KnownName { is_block: true, ..known("alias of RPZ", "garden.home.example", &[rtype::A, rtype::CNAME]) },
    denied("canary", "use-application-dns.net"),
    known("canary of resolvers", "_dns.resolver.arpa", &[]),
    KnownName { is_block: true, ..known("blocked", "ads.home.example", BOTH) },
    denied("special use", "a.test"),
    denied("special use", "a.onion"),
    denied("reverse without a host", "1.0.0.10.in-addr.arpa"),
];

const FORWARDED: &[&str] = &[
    "example",
    "home.example",
    "zone.example",
    "copy.example",
    "localhost",
    "168.192.in-addr.arpa",
    "in-addr.arpa",
    "ip6.arpa",
];

fn domain(text: &str) -> gateway_model::domain::DomainName {
    text.parse().expect("a name")
}

fn local_answers(forwarded: &[&str]) -> FilterAndZones {
    let now = Timestamp::now();
    let (mut state, mut lists) = (Stored::new(now).begin(now), Lists::new(Key::new(3)));
    for name in forwarded {
        let upstreams = vec!["192.0.2.53".to_owned()];
        let forwarder = DnsForwarder { domain: domain(name), upstreams, ..Default::default() };
        state.create(forwarder).expect("a forwarder");
    }
    let zone = DnsZone { name: domain("zone.example"), ..Default::default() };
    state.create(zone).expect("a zone");
    for (name, r#type, value) in [
        ("www", "A", "192.0.2.1"),
        ("alias", "CNAME", "www.zone.example"),
        ("*.wild", "TXT", "text"),
        ("mail", "A", "192.0.2.2"),
        ("mail", "MX", "10 www.zone.example"),
        ("walled", "A", "192.0.2.7"),
        ("to-walled", "CNAME", "walled.zone.example"),
        ("garden", "A", "192.0.2.8"),
        ("to-garden", "CNAME", "garden.zone.example"),
        ("blocked", "A", "192.0.2.9"),
        ("to-blocked", "CNAME", "blocked.zone.example"),
        ("two-to-blocked", "CNAME", "to-blocked.zone.example"),
        ("middle", "CNAME", "www.other.example"),
        ("to-middle", "CNAME", "middle.zone.example"),
    ] {
        let (zone, name, value) = ("zone.example".to_owned(), name.to_owned(), value.to_owned());
        let record =
            DnsRecord { zone, name, r#type: r#type.parse().expect("a type"), value, ..Default::default() };
        state.create(record).expect("a record");
    }
    let copied = DnsZone {
        name: domain("copy.example"),
        r#type: ZoneType::Secondary,
        upstreams: vec!["192.0.2.53".to_owned()],
        ..Default::default()
    };
    let copied = state.create(copied).expect("a zone").0.meta.id;
    let copy: Vec<Record> = vec![soa("copy.example", 300, 60), a("www.copy.example", 300, [192, 0, 2, 3])];
    let copy = Copy::new(&name("copy.example"), copy, Key::new(5)).expect("a zone");
    for (domain, answer) in [
        ("rewritten.home.example", "192.168.1.9"),
        ("both.home.example", "192.168.1.9"),
        ("both.home.example", "fd00::9"),
        ("*.many.home.example", "192.168.1.9"),
        ("moved.home.example", "nas.home.example"),
        ("printer.home.example", "192.168.1.9"),
        ("mail.zone.example", "192.168.1.9"),
    ] {
        let (domain, answer) = (domain.to_owned(), answer.to_owned());
        state.create(DnsRewrite { domain, answer, ..Default::default() }).expect("a rewrite");
    }
    let (pattern, answer) = ("ruled.home.example".to_owned(), Some("192.168.1.9".to_owned()));
    let (r#match, action) = (Match::Exact, FilterAction::Rewrite);
    state.create(DnsFilterRule { r#match, pattern, action, answer, ..Default::default() }).expect("a rule");
    for blocked in ["ads.home.example", "blocked.zone.example", "middle.zone.example"] {
        state.create(DnsBlock { domain: Some(domain(blocked)), ..Default::default() }).expect("a block");
    }
    let feed = ThreatFeed {
        name: "zone".to_owned(),
        url: "https://feeds.example/".to_owned(),
        ..Default::default()
    };
    let feed = state.create(feed).expect("a feed").0.meta.id;
    let zone = "$ORIGIN rpz.\n@ SOA . . 1 1 1 1 1\nwalled.home.example A 192.168.1.9\ngarden.home.example CNAME nas.home.example.\n\
        walled.zone.example A 192.168.1.9\ngarden.zone.example CNAME nas.home.example.\n";
    lists.put(feed, Reader::read(Some(Format::Rpz), lists.key(), zone.as_bytes())).expect("there is room");
    let host = |name: &str, addresses: &[&str]| Host {
        name: name.to_owned(),
        addresses: addresses.iter().map(|text| text.parse().expect("an address")).collect(),
    };
    let options = ZoneOptions {
        key: Key::new(5),
        domain: domain("home.example"),
        hosts: vec![
            host("nas", &["192.168.1.5"]),
            host("tablet", &["8.8.4.7", "2a00:ff::7"]),
            host("printer", &["192.168.1.6"]),
        ],
        host_ttl: 10,
        mesh: None,
        copies: BTreeMap::from([(copied, copy)]),
        signer: None,
    };
    let filter_options = FilterOptions { zone: TimeZone::UTC, canaries: Canaries::default() };
    let allowed = [domain("plex.direct")];
    let rebinding = Rebinding::new(&state, &allowed, ["8.8.8.53".parse().expect("an address")].into_iter());
    let filter = Filter::new(&state, &lists, filter_options).with_rebinding(Some(rebinding));
    FilterAndZones { filter, zones: Zones::new(&state, &options) }
}

/// Returns the types with a mnemonic, and some without, that the resolver serves.
fn all_types() -> impl Iterator<Item = u16> {
    let unserved = |qtype: &u16| matches!(*qtype, rtype::OPT | 249..=254);
    (1..=262).chain([32768, 32769, 65280]).filter(move |qtype| !unserved(qtype))
}

/// Returns the answer of the fast path, or else that of the slow path.
async fn answer(world: &Fixture, name: &str, qtype: u16) -> [Message; 2] {
    let message = question(name, qtype);
    let state = world.shared.state.load_full();
    let from: IpAddr = "192.0.2.9".parse().expect("an address");
    let client = state.clients.client(&from.into());
    let request = Request::read(&message).expect("a query");
    let query = QueryContext::new(&state, &request, &client, Transport::Udp, world.shared.clock.now());
    let slow = world.send_query(&message).await;
    let mut fast = Vec::new();
    if world.shared.answer_fast(&query, &mut fast).is_none() {
        fast.clone_from(&slow);
    }
    [fast, slow].map(|answer| Message::from_vec(&answer).expect("a message"))
}

async fn check(world: &Fixture, known: &KnownName, context: &str) {
    for qtype in all_types() {
        let before = world.upstream.times();
        for reply in answer(world, known.name, qtype).await {
            let at = format!("{context}, {} {} type {qtype}: {reply}", known.source, known.name);
            assert_eq!(world.upstream.times(), before, "forwarded: {at}");
            let want = if known.missing { ResponseCode::NXDomain } else { ResponseCode::NoError };
            assert_eq!(code(&reply), want, "{at}");
            if known.types.contains(&qtype) {
                assert!(reply.answers.iter().any(|record| u16::from(record.record_type()) == qtype), "{at}");
            } else if qtype != rtype::ANY && reply.answers.is_empty() {
                assert!(!reply.authorities.is_empty(), "no SOA record, so it cannot be cached: {at}");
            }
        }
    }
}

#[tokio::test]
async fn known_name_is_answered_here_for_every_type_with_and_without_a_forwarder() {
    for forwarded in std::iter::once(&[][..]).chain(FORWARDED.iter().map(std::slice::from_ref)) {
        let world = Fixture::with_dataplane(
            Arc::new(local_answers(forwarded)),
            FakeFqdnPolicy::default(),
            Settings::default(),
            None,
        );
        for known in NAMES {
            // A forwarder for reverse names takes over those without a host.
            if known.source == "reverse without a host" && !forwarded.is_empty() {
                continue;
            }
            check(&world, known, &format!("{forwarded:?}")).await;
        }
        world.upstream.knows(
            "www.other.example",
            rtype::A,
            vec![a("www.other.example", 60, [192, 0, 2, 66])],
        );
        let reply = world.reply("www.other.example", rtype::A).await;
        assert_eq!((reply.answers.len(), world.upstream.times()), (1, 1), "other names are forwarded");
    }
}

#[tokio::test]
async fn known_name_is_answered_here_while_blocking_is_paused() {
    let world = Fixture::with_dataplane(
        Arc::new(local_answers(&["home.example"])),
        FakeFqdnPolicy::default(),
        Settings::default(),
        None,
    );
    let until = Some(Timestamp::now() + jiff::SignedDuration::from_hours(1));
    let state = State::clone(&world.shared.state.load());
    let blocking = Blocking { paused_until: until, ..Blocking::default() };
    let settings = Settings { blocking, ..Settings::clone(&state.settings) };
    world.shared.state.store(Arc::new(State { settings: Arc::new(settings), ..state }));
    for known in NAMES.iter().filter(|known| !known.is_block) {
        check(&world, known, "paused").await;
    }
    for blocked in NAMES.iter().filter(|known| known.is_block) {
        let before = world.upstream.times();
        assert_eq!(
            code(&world.reply(blocked.name, rtype::A).await),
            ResponseCode::NXDomain,
            "{}",
            blocked.name
        );
        assert_eq!(world.upstream.times(), before + 1, "{} is resolved as usual", blocked.name);
    }
}

fn world(forwarded: &[&str]) -> Fixture {
    let local_answers = Arc::new(local_answers(forwarded));
    Fixture::with_dataplane(local_answers, FakeFqdnPolicy::default(), Settings::default(), None)
}

#[tokio::test]
async fn query_for_an_alias_is_not_chased() {
    let world = world(&[]);
    for (asked, target) in
        [("moved.home.example", "nas.home.example"), ("garden.home.example", "nas.home.example")]
    {
        for reply in answer(&world, asked, rtype::CNAME).await {
            assert_eq!(lines(&reply), [format!("{asked}. 60 IN CNAME {target}.")]);
        }
    }
    assert_eq!(world.upstream.times(), 0);
}

#[tokio::test]
async fn local_data_of_a_response_policy_zone_replaces_a_chain_that_leads_to_its_name() {
    let world = world(&[]);
    let chain = |target: &str| {
        vec![
            cname("shop.other.example", "x.other.example"),
            cname("x.other.example", target),
            a(target, 60, [192, 0, 2, 66]),
        ]
    };
    for (target, want) in [
        ("walled.home.example", vec!["shop.other.example. 60 IN A 192.168.1.9"]),
        (
            "garden.home.example",
            vec![
                "shop.other.example. 60 IN CNAME nas.home.example.",
                "nas.home.example. 10 IN A 192.168.1.5",
            ],
        ),
    ] {
        world.upstream.knows("shop.other.example", rtype::A, chain(target));
        world.shared.cache.flush_partition(0);
        // The first answer comes from the upstream, the others from the cache.
        for reply in [
            answer(&world, "shop.other.example", rtype::A).await,
            answer(&world, "shop.other.example", rtype::A).await,
        ]
        .concat()
        {
            assert_eq!(lines(&reply), want, "{target}");
        }
    }
}

#[tokio::test]
async fn alias_of_a_local_zone_is_evaluated_by_each_name_that_it_leads_to() {
    let world = world(&[]);
    let public = a("www.other.example", 60, [192, 0, 2, 66]);
    world.upstream.knows("www.other.example", rtype::A, vec![public]);
    let answers = async |name: &str| answer(&world, &format!("{name}.zone.example"), rtype::A).await;
    for reply in answers("to-walled").await {
        assert_eq!(lines(&reply), ["to-walled.zone.example. 60 IN A 192.168.1.9"]);
    }
    for reply in answers("to-garden").await {
        let want = [
            "to-garden.zone.example. 60 IN CNAME nas.home.example.",
            "nas.home.example. 10 IN A 192.168.1.5",
        ];
        assert_eq!(lines(&reply), want);
    }
    for (alias, blocked) in
        [("to-blocked", "blocked"), ("two-to-blocked", "blocked"), ("to-middle", "middle")]
    {
        let [want, _] = answers(blocked).await;
        for reply in answers(alias).await {
            assert_eq!(code(&reply), code(&want), "{alias}: {reply}");
            let renamed: Vec<String> = lines(&want)
                .iter()
                .map(|line| line.replace(&format!("{blocked}."), &format!("{alias}.")))
                .collect();
            assert_eq!(lines(&reply), renamed, "{alias}");
        }
    }
    assert_eq!(world.upstream.times(), 0, "nothing is asked elsewhere");
    for reply in answers("alias").await {
        assert!(lines(&reply).iter().any(|line| line.contains("192.0.2.1")), "others are answered: {reply}");
    }
    let reply = world
        .shared
        .dry_run("192.0.2.9".parse().expect("an address"), Some(name("to-blocked.zone.example").as_ref()));
    assert!(matches!(reply, QueryOutcome::Decided(_)), "{reply:?}");
}

#[tokio::test]
async fn public_name_with_a_local_address_is_answered_with_no_records() {
    let world = world(&["corp.example"]);
    let aaaa = |name: &str, address: &str| Record {
        name: crate::serve::test_doubles::name(name),
        rtype: rtype::AAAA,
        ttl: 60,
        rdata: address.parse::<std::net::Ipv6Addr>().expect("an address").octets().into(),
    };
    let mut hint = b"\0\x01\0\0\x04\0\x04".to_vec();
    hint.extend_from_slice(&[192, 168, 1, 1]);
    let https = |name: &str| Record {
        name: crate::serve::test_doubles::name(name),
        rtype: rtype::HTTPS,
        ttl: 60,
        rdata: hint.clone().into(),
    };
    let upstream = &world.upstream;
    for owner in ["evil.example", "host.corp.example", "a-b.plex.direct"] {
        let public = a(owner, 60, [198, 51, 100, 1]);
        upstream.knows(owner, rtype::A, vec![public, a(owner, 60, [192, 168, 1, 1])]);
        upstream.knows(owner, rtype::AAAA, vec![aaaa(owner, "64:ff9b::c0a8:101")]);
        upstream.knows(owner, rtype::HTTPS, vec![https(owner)]);
    }
    upstream.knows("own.example", rtype::A, vec![a("own.example", 60, [8, 8, 8, 53])]);
    upstream.knows("mapped.example", rtype::AAAA, vec![aaaa("mapped.example", "::ffff:127.0.0.1")]);
    upstream.knows("fine.example", rtype::A, vec![a("fine.example", 60, [198, 51, 100, 1])]);
    let withheld = [
        ("evil.example", rtype::A),
        ("evil.example", rtype::AAAA),
        ("evil.example", rtype::HTTPS),
        ("own.example", rtype::A),
        ("mapped.example", rtype::AAAA),
    ];
    for (name, qtype) in withheld {
        for reply in [answer(&world, name, qtype).await, answer(&world, name, qtype).await].concat() {
            assert_eq!(
                (code(&reply), reply.answers.len(), reply.authorities.len()),
                (ResponseCode::NoError, 0, 1)
            );
            assert_eq!(extended(&reply), Some((17, "rebinding protection".into())), "{name} {qtype}");
        }
    }
    for owner in ["host.corp.example", "a-b.plex.direct"] {
        for qtype in [rtype::A, rtype::AAAA, rtype::HTTPS] {
            assert!(!world.reply(owner, qtype).await.answers.is_empty(), "{owner} {qtype}");
        }
    }
    assert_eq!(world.reply("fine.example", rtype::A).await.answers.len(), 1);
    assert_eq!(world.shared.log.today().blocked, 10, "one record for each answer of the slow path");
    assert_eq!(world.shared.log.rebinding(), 10);
}
