//! Tests of the order of precedence and of each kind of entry, and a comparison with a plain search through all rules.

use std::net::IpAddr;

use gateway_model::domain::DomainName;
use gateway_model::kinds::dns::Scope;
use gateway_model::kinds::dns_filter_rule::{FilterAction, Schedule};
use gateway_model::kinds::{
    DnsAllow, DnsBlock, DnsFilterRule, DnsRewrite, DnsZone, PrivacyClass, ThreatFeed,
};
use gateway_model::pattern::{Match, Pattern};
use gateway_model::settings::groups::{BlockScope, HostBlocks};
use gateway_model::{Device, DeviceGroup};
use proptest::prelude::*;

use super::*;
use crate::dns::domain_set::Key;
use crate::dns::lists::Reader;
use crate::dns::name::Name;
use crate::dns::rtype;

mod protections;

struct World {
    state: State,
    lists: Lists,
    now: Timestamp,
}

fn name(text: &str) -> Name {
    Name::from(&DomainName::parse(text).expect("a name"))
}

impl World {
    fn new() -> World {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().expect("a time");
        World { state: State::new(now).begin(now), lists: Lists::new(Key::new(3)), now }
    }

    fn rule(&mut self, r#match: Match, pattern: &str, action: FilterAction) -> Id {
        self.put_rule(DnsFilterRule { r#match, pattern: pattern.to_owned(), action, ..Default::default() })
    }

    fn put_rule(&mut self, rule: DnsFilterRule) -> Id {
        self.state.create(rule).expect("a rule").0.meta.id
    }

    fn allow(&mut self, domain: &str) -> Id {
        let domain = DomainName::parse(domain).ok();
        self.state.create(DnsAllow { domain, ..Default::default() }).expect("an entry").0.meta.id
    }

    fn block(&mut self, domain: &str) -> Id {
        let domain = DomainName::parse(domain).ok();
        self.state.create(DnsBlock { domain, ..Default::default() }).expect("an entry").0.meta.id
    }

    fn rewrite(&mut self, domain: &str, answer: &str) -> Id {
        let rewrite = DnsRewrite {
            domain: domain.to_owned(),
            answer: answer.to_owned(),
            enabled: true,
            ..Default::default()
        };
        self.state.create(rewrite).expect("a rewrite").0.meta.id
    }

    fn blocklist(&mut self, text: &str) -> Id {
        let number = self.lists.ids().count();
        let list = DnsBlock {
            name: Some(format!("list {number}")),
            url: Some(format!("https://lists.example/{number}")),
            ..Default::default()
        };
        let id = self.state.create(list).expect("a list").0.meta.id;
        self.load(id, None, text)
    }

    fn feed(&mut self, format: Format, text: &str) -> Id {
        let number = self.lists.ids().count();
        let feed = ThreatFeed {
            name: format!("feed {number}"),
            url: format!("https://feeds.example/{number}"),
            ..Default::default()
        };
        let id = self.state.create(feed).expect("a feed").0.meta.id;
        self.load(id, Some(format), text)
    }

    fn load(&mut self, id: Id, format: Option<Format>, text: &str) -> Id {
        let list = Reader::read(format, self.lists.key(), text.as_bytes());
        self.lists.put(id, list).expect("there is room");
        id
    }

    fn options(&self) -> Options {
        Options { zone: TimeZone::UTC, canaries: Canaries::default() }
    }

    fn filter(&self) -> Filter {
        Filter::new(&self.state, &self.lists, self.options())
    }

    fn decide_for(&self, asker: &ClientIdentity, asked: &str, qtype: u16) -> Decision {
        let asked = name(asked);
        self.filter().decide(asker, Question { name: asked.as_ref(), qtype }, self.now)
    }

    fn decide(&self, asked: &str, qtype: u16) -> Decision {
        self.decide_for(&ClientIdentity::default(), asked, qtype)
    }

    fn action(&self, asked: &str) -> Action {
        self.decide(asked, rtype::A).action
    }

    /// Returns the id of the deciding entry, and its text.
    fn because(&self, asked: &str) -> (Option<Id>, String) {
        let because = self.decide(asked, rtype::A).because.expect("something decided");
        (because.id, because.rule.to_string())
    }
}

#[test]
fn unmatched_names_are_resolved() {
    let mut world = World::new();
    world.blocklist("||ads.example^\n");
    assert_eq!(world.decide("www.example", rtype::A), Decision::PASS);
    assert_eq!(world.decide("notads.example", rtype::A), Decision::PASS);
}

#[test]
fn a_blocked_name_says_which_entry_of_which_list_blocks_it() {
    let mut world = World::new();
    let adblock =
        world.blocklist("||ads.example^\n||hard.example^$important\n|exact.example^\n/^track[0-9]+\\./\n");
    let hosts = world.blocklist("0.0.0.0 host.example\n0.0.0.0 two.example\n");
    let feed =
        world.feed(Format::Rpz, "bad.example CNAME .\n*.bad.example CNAME .\nwall.example A 192.0.2.9\n");
    assert_eq!(world.because("www.ads.example"), (Some(adblock), "||ads.example^".to_owned()));
    assert_eq!(world.because("hard.example"), (Some(adblock), "||hard.example^$important".to_owned()));
    assert_eq!(world.because("exact.example"), (Some(adblock), "|exact.example^".to_owned()));
    assert_eq!(world.because("track7.example"), (Some(adblock), "/^track[0-9]+\\./".to_owned()));
    assert_eq!(world.because("host.example"), (Some(hosts), "host.example".to_owned()));
    assert_eq!(world.action("www.host.example"), Action::Pass);
    assert_eq!(world.because("x.bad.example"), (Some(feed), "bad.example".to_owned()));
    assert_eq!(world.action("bad.example"), Action::Nxdomain);
    let walled = world.decide("wall.example", rtype::A);
    assert_eq!(walled.action, Action::Addresses(vec!["192.0.2.9".parse().expect("an address")]));
    assert_eq!(walled.because.map(|because| because.cause), Some(Cause::Feed));
    assert_eq!(world.decide("wall.example", rtype::MX).action, Action::Addresses(Vec::new()));
}

#[test]
fn a_blocked_name_is_blocked_for_https_too() {
    let mut world = World::new();
    world.blocklist("ads.example\n");
    world.put_rule(DnsFilterRule {
        pattern: "four.example".to_owned(),
        qtypes: vec!["A".parse().expect("a type")],
        ..Default::default()
    });
    for qtype in [rtype::A, rtype::AAAA, rtype::HTTPS, rtype::SVCB, rtype::TXT, rtype::ANY] {
        assert_eq!(world.decide("ads.example", qtype).action, Action::Block, "{qtype}");
    }
    assert_eq!(world.action("four.example"), Action::Block);
    assert_eq!(world.decide("four.example", rtype::AAAA).action, Action::Pass);
    for qtype in [rtype::HTTPS, rtype::SVCB, rtype::ANY] {
        assert_eq!(world.decide("four.example", qtype).action, Action::NoData, "its hints lead there");
    }
}

#[test]
fn allow_beats_block_and_important_beats_both() {
    let mut world = World::new();
    world.rule(Match::Suffix, "a.example", FilterAction::Block);
    let allow = world.rule(Match::Exact, "www.a.example", FilterAction::Allow);
    assert_eq!(world.action("b.a.example"), Action::Block);
    assert_eq!(
        (world.action("www.a.example"), world.because("www.a.example").0),
        (Action::Pass, Some(allow))
    );
    world.rule(Match::Adblock, "||www.a.example^$important", FilterAction::Refuse);
    assert_eq!(world.action("www.a.example"), Action::Refuse);
    world.rule(Match::Adblock, "@@||www.a.example^$important", FilterAction::Allow);
    assert_eq!(world.action("www.a.example"), Action::Pass);
    world.allow("c.a.example");
    assert_eq!(world.action("x.c.a.example"), Action::Pass, "the allowlist wins over rules that block");
}

#[test]
fn the_allowlist_wins_over_blocklist_and_feeds() {
    let mut world = World::new();
    world.block("a.example");
    world.feed(Format::Domains, "b.example\n");
    world.blocklist("||c.example^$important\n");
    for domain in ["a.example", "b.example", "c.example"] {
        assert_eq!(world.action(domain), Action::Block);
        world.allow(domain);
        assert_eq!(world.action(domain), Action::Pass);
    }
}

#[test]
fn an_exception_of_a_list_counts_against_lists_of_its_kind_only() {
    let mut world = World::new();
    world.blocklist("||a.example^\n||hard.example^$important\n||b.example^\n");
    world.blocklist("@@||www.a.example^\n@@||hard.example^\n@@||bad.example^\n@@||own.example^\n");
    world.feed(Format::Domains, "bad.example\n");
    world.block("own.example");
    assert_eq!(world.action("www.a.example"), Action::Pass);
    assert_eq!(world.action("a.example"), Action::Block);
    assert_eq!(world.action("hard.example"), Action::Block);
    assert_eq!(world.action("bad.example"), Action::Block, "a blocklist does not open what a feed closes");
    assert_eq!(world.action("own.example"), Action::Block, "nor what stands on the blocklist itself");
}

#[test]
fn the_longest_name_of_a_response_policy_zone_decides() {
    let mut world = World::new();
    world.feed(
        Format::Rpz,
        "*.a.example CNAME rpz-passthru.\nbad.a.example CNAME .\n*.b.example CNAME .\ngood.b.example CNAME rpz-passthru.\n",
    );
    assert_eq!(world.action("bad.a.example"), Action::Nxdomain);
    assert_eq!(world.action("x.a.example"), Action::Pass);
    assert_eq!(world.action("good.b.example"), Action::Pass);
    assert_eq!(world.action("x.b.example"), Action::Nxdomain);
}

#[test]
fn a_rule_for_a_device_comes_before_one_for_its_group_class_and_everyone() {
    let mut world = World::new();
    let device =
        |name: &str, mac: &str| Device { name: name.to_owned(), mac: mac.parse().ok(), ..Default::default() };
    let tv = world.state.create(device("tv", "02:00:00:00:00:01")).expect("a device").0.meta.id;
    let phone = world.state.create(device("phone", "02:00:00:00:00:02")).expect("a device").0.meta.id;
    let group = DeviceGroup { name: "kids".to_owned(), members: vec![tv, phone], ..Default::default() };
    let kids = world.state.create(group).expect("a group").0.meta.id;
    let class = PrivacyClass { name: "shy".to_owned(), ..Default::default() };
    let shy = world.state.create(class).expect("a class").0.meta.id;
    let scopes = [
        (FilterAction::Block, Scope::default()),
        (FilterAction::Nxdomain, Scope { privacy_class: Some("shy".to_owned()), ..Default::default() }),
        (FilterAction::Refuse, Scope { groups: vec![kids], ..Default::default() }),
        (FilterAction::Rewrite, Scope { devices: vec![tv], ..Default::default() }),
    ];
    for (action, scope) in scopes {
        let answer = (action == FilterAction::Rewrite).then(|| "192.0.2.1".to_owned());
        world.put_rule(DnsFilterRule {
            pattern: "a.example".to_owned(),
            action,
            scope,
            answer,
            ..Default::default()
        });
    }
    let asker = |device, group: bool, class| ClientIdentity {
        device,
        groups: if group { vec![kids] } else { Vec::new() },
        privacy_class: class,
        address: None,
    };
    let action = |asker: ClientIdentity| world.decide_for(&asker, "a.example", rtype::A).action;
    assert_eq!(
        action(asker(Some(tv), true, Some(shy))),
        Action::Addresses(vec!["192.0.2.1".parse().expect("an address")])
    );
    assert_eq!(action(asker(Some(phone), true, Some(shy))), Action::Refuse);
    assert_eq!(action(asker(Some(phone), false, Some(shy))), Action::Nxdomain);
    assert_eq!(action(asker(None, false, None)), Action::Block);
}

#[test]
fn a_rule_can_be_for_clients_by_address_and_name() {
    let mut world = World::new();
    let device =
        Device { name: "tv".to_owned(), mac: "02:00:00:00:00:01".parse().ok(), ..Default::default() };
    let tv = world.state.create(device).expect("a device").0.meta.id;
    world.rule(Match::Adblock, "||a.example^$client=192.0.2.0/24|TV", FilterAction::Block);
    world.rule(Match::Adblock, "||b.example^$client=~192.0.2.7", FilterAction::Block);
    let from = |text: &str| ClientIdentity { address: text.parse().ok(), ..Default::default() };
    let named = ClientIdentity { device: Some(tv), ..Default::default() };
    let action = |asker: &ClientIdentity, asked: &str| world.decide_for(asker, asked, rtype::A).action;
    assert_eq!(action(&from("192.0.2.9"), "a.example"), Action::Block);
    assert_eq!(action(&from("::ffff:192.0.2.9"), "a.example"), Action::Block);
    assert_eq!(action(&named, "a.example"), Action::Block);
    assert_eq!(action(&from("198.51.100.1"), "a.example"), Action::Pass);
    assert_eq!(action(&from("192.0.2.7"), "b.example"), Action::Pass);
    assert_eq!(action(&from("192.0.2.8"), "b.example"), Action::Block);
}

#[test]
fn a_schedule_is_read_in_the_zone_of_the_machine() {
    let mut world = World::new();
    let schedule = Some(Schedule { days: Vec::new(), start: "13:00".to_owned(), end: "15:00".to_owned() });
    world.put_rule(DnsFilterRule { pattern: "a.example".to_owned(), schedule, ..Default::default() });
    assert_eq!(world.action("a.example"), Action::Pass, "it is noon");
    let options = Options { zone: TimeZone::fixed(jiff::tz::offset(1)), canaries: Canaries::default() };
    let filter = Filter::new(&world.state, &world.lists, options);
    let asked = name("a.example");
    let asked = Question { name: asked.as_ref(), qtype: rtype::A };
    assert_eq!(filter.decide(&ClientIdentity::default(), asked, world.now).action, Action::Block);
}

#[test]
fn rewrites_answer_together_and_the_closest_one_decides() {
    let mut world = World::new();
    let first = world.rewrite("nas.example", "192.0.2.1");
    world.rewrite("nas.example", "192.0.2.2");
    world.rewrite("*.wild.example", "192.0.2.3");
    world.rewrite("*.wild.example", "2001:db8::3");
    world.rewrite("kept.wild.example", "A");
    world.rewrite("*.alias.example", "www.alias.example");
    world.allow("nas.example");
    world.blocklist("nas.example\n");
    let addresses =
        |texts: &[&str]| Action::Addresses(texts.iter().map(|t| t.parse().expect("an address")).collect());
    assert_eq!(world.action("nas.example"), addresses(&["192.0.2.1", "192.0.2.2"]));
    assert_eq!(world.because("nas.example").0, Some(first));
    assert_eq!(world.decide("nas.example", rtype::AAAA).action, addresses(&[]));
    assert_eq!(world.decide("nas.example", rtype::HTTPS).action, addresses(&[]));
    assert_eq!(world.decide("nas.example", rtype::MX).action, Action::LocalOnly);
    assert_eq!(world.decide("a.wild.example", rtype::AAAA).action, addresses(&["2001:db8::3"]));
    assert_eq!(world.action("wild.example"), Action::Pass);
    assert_eq!(world.action("kept.wild.example"), Action::Pass);
    assert_eq!(world.decide("kept.wild.example", rtype::AAAA).action, addresses(&[]));
    assert_eq!(world.decide("kept.wild.example", rtype::MX).action, Action::Pass, "as are its other records");
    assert_eq!(world.action("x.alias.example"), Action::Name(name("www.alias.example")));
    assert_eq!(world.action("www.alias.example"), Action::Pass, "an alias of itself would never end");
    world.rule(Match::Exact, "nas.example", FilterAction::Block);
    assert_eq!(
        world.action("nas.example"),
        addresses(&["192.0.2.1", "192.0.2.2"]),
        "it is allowed, so the rule does not act"
    );
    world.rule(Match::Exact, "a.wild.example", FilterAction::Block);
    assert_eq!(world.action("a.wild.example"), Action::Block);
}

#[test]
fn canaries_are_switches_and_can_be_allowed() {
    let mut world = World::new();
    assert_eq!(world.action("use-application-dns.net"), Action::Nxdomain);
    assert_eq!(world.action("mask.icloud.com"), Action::Nxdomain);
    assert_eq!(world.action("mask-h2.icloud.com"), Action::Nxdomain);
    assert_eq!(world.decide("_dns.resolver.arpa", rtype::SVCB).action, Action::NoData);
    let options = Options {
        zone: TimeZone::UTC,
        canaries: Canaries { application_dns: false, private_relay: true, designated_resolvers: true },
    };
    let filter = Filter::new(&world.state, &world.lists, options);
    let asked = name("use-application-dns.net");
    let asked = Question { name: asked.as_ref(), qtype: rtype::A };
    assert_eq!(filter.decide(&ClientIdentity::default(), asked, world.now), Decision::PASS);
    world.allow("mask.icloud.com");
    assert_eq!(world.action("mask.icloud.com"), Action::Pass);
}

#[test]
fn names_and_addresses_of_an_answer_are_filtered() {
    let mut world = World::new();
    let list = world.blocklist("||tracker.example^\n");
    let feed = world.feed(Format::Ip, "203.0.113.0/24\n2001:db8:bad::/48\n");
    world.rewrite("tracker2.example", "192.0.2.1");
    let filter = world.filter();
    let (asked, target, plain) =
        (name("www.shop.example"), name("x.tracker.example"), name("tracker2.example"));
    let asked = Question { name: asked.as_ref(), qtype: rtype::A };
    let who = ClientIdentity::default();
    let decision = filter.inspect_name(&who, asked, target.as_ref(), world.now);
    let because = decision.because.expect("a reason");
    assert_eq!((decision.action, because.id), (Action::Block, Some(list)));
    assert_eq!(because.through.as_deref(), Some("x.tracker.example"));
    assert_eq!(filter.inspect_name(&who, asked, plain.as_ref(), world.now), Decision::PASS);
    let address = |text: &str| {
        filter.inspect_address(&who, asked, text.parse::<IpAddr>().expect("an address"), world.now)
    };
    let because = address("203.0.113.9").because.expect("a reason");
    assert_eq!(
        (because.id, &*because.rule, because.through.as_deref()),
        (Some(feed), "203.0.113.0/24", Some("203.0.113.9"))
    );
    assert_eq!(address("2001:db8:bad::1").action, Action::Block);
    assert_eq!(address("198.51.100.1"), Decision::PASS);
    world.allow("shop.example");
    let filter = world.filter();
    assert_eq!(
        filter.inspect_name(&who, asked, target.as_ref(), world.now),
        Decision::PASS,
        "it was allowed as a whole"
    );
    let address = "203.0.113.9".parse().expect("an address");
    assert_eq!(filter.inspect_address(&who, asked, address, world.now), Decision::PASS);
}

#[test]
fn a_list_counts_while_its_object_is_enabled() {
    let mut world = World::new();
    let id = world.blocklist("a.example\n");
    assert_eq!(world.action("a.example"), Action::Block);
    world.state.update::<DnsBlock>(id, None, |list| list.enabled = false).expect("a list");
    assert_eq!(world.action("a.example"), Action::Pass);
    world.state.update::<DnsBlock>(id, None, |list| list.enabled = true).expect("a list");
    world.load(id, None, "b.example\n");
    assert_eq!((world.action("a.example"), world.action("b.example")), (Action::Pass, Action::Block));
    world.lists.take(id);
    assert_eq!((world.action("b.example"), world.lists.names()), (Action::Pass, 0));
}

#[test]
fn list_that_a_privacy_class_names_is_for_its_devices() {
    let mut world = World::new();
    let id = world.blocklist("||tv.example^\n||ads.example^$important\n/^metrics[0-9]/\n");
    world.state.update::<DnsBlock>(id, None, |list| list.enabled = false).expect("a list");
    let telemetry_lists = vec!["list 0".to_owned()];
    let class = PrivacyClass { name: "quiet".to_owned(), telemetry_lists, ..Default::default() };
    world.state.create(class).expect("a class");
    let device = Device {
        name: "tv".to_owned(),
        mac: "02:00:00:00:00:01".parse().ok(),
        privacy_class: Some("quiet".to_owned()),
        ..Default::default()
    };
    let device = world.state.create(device).expect("a device").0.meta.id;
    let tv = ClientIdentity { device: Some(device), ..ClientIdentity::default() };
    let asked = ["tv.example", "www.ads.example", "metrics7.example"];
    let of_tv = |world: &World| asked.map(|name| world.decide_for(&tv, name, rtype::A).action);
    let of_others = |world: &World| asked.map(|name| world.action(name));
    let (blocked, passed) = ([(); 3].map(|()| Action::Block), [(); 3].map(|()| Action::Pass));
    assert_eq!((of_tv(&world), of_others(&world)), (blocked.clone(), passed.clone()));
    world.state.update::<DnsBlock>(id, None, |list| list.enabled = true).expect("a list");
    assert_eq!((of_tv(&world), of_others(&world)), (blocked.clone(), blocked), "enabled for all");
    world.state.update::<DnsBlock>(id, None, |list| list.enabled = false).expect("a list");
    world.state.update::<Device>(device, None, |device| device.privacy_class = None).expect("a device");
    assert_eq!(of_tv(&world), passed, "without the class");
}

#[test]
fn device_without_local_names_gets_none() {
    let mut world = World::new();
    let zone = DnsZone { name: DomainName::parse("corp.example").expect("a name"), ..Default::default() };
    world.state.create(zone).expect("a zone");
    let device = Device {
        name: "camera".to_owned(),
        mac: "02:00:00:00:00:01".parse().ok(),
        trust_class: Some("quarantine".to_owned()),
        ..Default::default()
    };
    let device = world.state.create(device).expect("a device").0.meta.id;
    let camera = ClientIdentity { device: Some(device), ..ClientIdentity::default() };
    for local in ["nas.lan", "www.corp.example", "7.1.168.192.in-addr.arpa"] {
        assert_eq!(world.decide_for(&camera, local, rtype::A).action, Action::Nxdomain, "{local}");
        assert_eq!(world.action(local), Action::Pass, "{local} of another client");
    }
    assert_eq!(world.decide_for(&camera, "www.example", rtype::A), Decision::PASS);
}

#[test]
fn blocks_hold_without_filtering() {
    let mut world = World::new();
    world.block("ads.example");
    world.blocklist("||tracker.example^\n");
    let blocks = HostBlocks { block_doh: true, ..HostBlocks::default() };
    world.state.set_blocks_at(BlockScope::All, blocks).expect("set");
    let filter = Filter::of_blocks(
        &world.state,
        &world.lists,
        Options { zone: TimeZone::UTC, canaries: Canaries::default() },
    );
    let action = |text: &str| {
        let asked = name(text);
        let question = Question { name: asked.as_ref(), qtype: rtype::A };
        filter.decide(&ClientIdentity::default(), question, world.now).action
    };
    assert_eq!(action("dns.google"), Action::Nxdomain);
    assert_eq!([action("ads.example"), action("tracker.example")], [Action::Pass, Action::Pass]);
}

#[test]
fn everything_that_matches_is_explained_in_order() {
    let mut world = World::new();
    let note = world.rule(Match::Suffix, "example", FilterAction::Log);
    let block = world.rule(Match::Wildcard, "ads*.example", FilterAction::Block);
    let list = world.blocklist("||ads1.example^\n");
    let allow = world.allow("ads1.example");
    let asked = name("ads1.example");
    let asked = Question { name: asked.as_ref(), qtype: rtype::A };
    let all = world.filter().explain(&ClientIdentity::default(), asked, world.now);
    let ids: Vec<Id> = all.iter().filter_map(|decision| decision.because.as_ref()?.id).collect();
    assert_eq!(ids, [allow, block, list, note]);
    assert_eq!(all[0], world.decide("ads1.example", rtype::A));
    assert_eq!(world.because("x.example").0, Some(note), "what is noted only is resolved");
    assert_eq!(world.action("x.example"), Action::Pass);
}

const MATCHES: [Match; 4] = [Match::Exact, Match::Suffix, Match::Wildcard, Match::Adblock];
const ACTIONS: [FilterAction; 4] =
    [FilterAction::Block, FilterAction::Allow, FilterAction::Refuse, FilterAction::Nxdomain];

/// Returns the first rule that a search through all of them finds.
fn reference(rules: &[DnsFilterRule], asker: &ClientIdentity, qname: &DomainName, qtype: u16) -> Option<Id> {
    let mut found: Vec<((bool, u8, usize, usize), Id)> = Vec::new();
    for (age, rule) in rules.iter().enumerate() {
        let pattern = Pattern::parse(rule.r#match, &rule.pattern).expect("it was stored");
        let types: Vec<u16> = rule.qtypes.iter().filter_map(rtype::of_query).collect();
        let level = match &rule.scope {
            scope if *scope == Scope::default() => 3,
            scope if asker.device.is_some_and(|device| scope.devices.contains(&device)) => 0,
            scope if asker.groups.iter().any(|group| scope.groups.contains(group)) => 1,
            _ => continue,
        };
        if !pattern.matches(qname) || !(types.is_empty() || types.contains(&qtype)) {
            continue;
        }
        let labels = qname.as_str().split('.').count();
        let looseness = match &pattern {
            Pattern::Exact(_) => 0,
            Pattern::Suffix(name) => 200 - name.as_str().split('.').count(),
            Pattern::Wildcard(_) => 300,
            Pattern::Adblock(_) if rule.pattern.contains('*') => 300,
            Pattern::Adblock(_) if rule.pattern.trim_start_matches("@@").starts_with("||") => {
                let name = rule.pattern.trim_matches(|c| "@|^".contains(c));
                200 - name.split('.').count().min(labels)
            }
            _ => 0,
        };
        found.push(((rule.action != FilterAction::Allow, level, looseness, age), rule.meta.id));
    }
    found.into_iter().min().map(|(_, id)| id)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn decisions_agree_with_a_linear_search_of_rules(
        rules in prop::collection::vec((0usize..4, "[ab](\\.[ab]){0,2}", 0usize..4, 0u8..4, 0u8..3), 0..12),
        asked in prop::collection::vec("[abc](\\.[ab]){0,3}", 1..12),
    ) {
        let mut world = World::new();
        let device = |name: &str, mac: &str| Device { name: name.to_owned(), mac: mac.parse().ok(), ..Default::default() };
        let tv = world.state.create(device("tv", "02:00:00:00:00:01")).expect("a device").0.meta.id;
        let group = DeviceGroup { name: "kids".to_owned(), members: vec![tv], ..Default::default() };
        let kids = world.state.create(group).expect("a group").0.meta.id;
        for (kind, domain, action, scope, types) in rules {
            let (kind, action) = (MATCHES[kind], ACTIONS[action]);
            let allow = if action == FilterAction::Allow { "@@" } else { "" };
            let pattern = match kind {
                Match::Wildcard => format!("*{domain}"),
                Match::Adblock if scope == 3 => format!("{allow}||{domain}*^"),
                Match::Adblock => format!("{allow}||{domain}^"),
                _ => domain,
            };
            let scope = match scope {
                0 => Scope { devices: vec![tv], ..Default::default() },
                1 => Scope { groups: vec![kids], ..Default::default() },
                _ => Scope::default(),
            };
            let qtypes = if types == 0 { vec!["TXT".parse().expect("a type")] } else { Vec::new() };
            // A duplicate is refused.
            let rule = DnsFilterRule { pattern, r#match: kind, action, scope, qtypes, ..Default::default() };
            let _ = world.state.create(rule);
        }
        let rules: Vec<DnsFilterRule> = world.state.dns_filter_rules.iter().cloned().collect();
        let filter = world.filter();
        let askers = [
            ClientIdentity::default(),
            ClientIdentity { groups: vec![kids], ..Default::default() },
            ClientIdentity { device: Some(tv), groups: vec![kids], ..Default::default() },
        ];
        for (asker, asked, qtype) in askers.iter().flat_map(|asker| {
            asked.iter().flat_map(move |asked| [(asker, asked, rtype::A), (asker, asked, rtype::TXT)])
        }) {
            let domain = DomainName::parse(asked).expect("a name");
            let wire = name(asked);
            let decision = filter.decide(asker, Question { name: wire.as_ref(), qtype }, world.now);
            let want = reference(&rules, asker, &domain, qtype);
            prop_assert_eq!(decision.because.and_then(|because| because.id), want, "{} {}", asked, qtype);
        }
    }

    /// Any bytes as labels are handled without a panic.
    #[test]
    fn any_name_is_decided(labels in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..12)) {
        let mut world = World::new();
        world.rule(Match::Regex, "^a.*z$", FilterAction::Block);
        world.rule(Match::Wildcard, "a*b*", FilterAction::Block);
        world.blocklist("||a*.example^\n/x{3}/\nads.example\n");
        let mut wire: Vec<u8> = labels.iter().flat_map(|label| [vec![label.len() as u8], label.to_ascii_lowercase()].concat()).collect();
        wire.push(0);
        if let Some(name) = NameRef::new(&wire) {
            let asked = Question { name, qtype: rtype::A };
            let filter = world.filter();
            let decision = filter.decide(&ClientIdentity::default(), asked, world.now);
            let explained = filter.explain(&ClientIdentity::default(), asked, world.now);
            prop_assert_eq!(explained.first().cloned().unwrap_or(Decision::PASS), decision);
        }
    }
}
