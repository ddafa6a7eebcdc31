//! Traffic by the default route over several uplinks: failover, fail-back, balancing, and what the host sends.

use std::collections::{BTreeMap, BTreeSet};

use gateway_common::classify::{Classified, IpPacket, TCP, UDP};
use gateway_common::decide::decide;
use gateway_common::guard::DISABLED_LEG;
use gateway_common::verdict::{Reason, Verdict};
use gateway_common::wire::{Mac, Mark};
use gateway_core::compile::Underlay;
use gateway_core::evaluate::{Decision, Request, evaluate};
use gateway_core::facts::UplinkFacts;
use gateway_core::indexes::LegId;
use gateway_core::network::UplinkSettings;
use gateway_core::plan::{Family, RuleAction, RuleKey, RuleValue, names};
use gateway_core::plan_maps::PlanMaps;

use crate::fixture::{Fixture, leg};

/// A gateway with a second uplink, of which one is active.
fn fixture(active: u8) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.network.uplinks.push(UplinkSettings {
        number: leg(2),
        interface: "wan1".into(),
        failover_states: true,
        balances: true,
        weight: 1,
        ..UplinkSettings::default()
    });
    let first = &mut fixture.network.uplinks[0];
    (first.failover_states, first.balances, first.weight) = (true, true, 3);
    fixture.link("wan1", 4).address("wan1", "198.51.101.2/24").default_route("wan1", "198.51.101.1");
    fixture.default_route("wan1", "2001:db8:fffe::1");
    fixture.facts.uplinks = UplinkFacts {
        active: LegId::new(active),
        balanced: BTreeSet::from([leg(1), leg(2)]),
        failed: BTreeMap::new(),
    };
    fixture
}

fn packet(port: u16, opening: bool) -> IpPacket {
    IpPacket {
        source: std::net::IpAddr::from([192, 168, 1, 7]).into(),
        destination: std::net::IpAddr::from([203, 0, 113, 9]).into(),
        interface: 2,
        mac: Mac::new([2, 0, 0, 0, 0, 1]),
        protocol: TCP,
        source_port: port,
        destination_port: 443,
        opening,
        ..IpPacket::default()
    }
}

/// Evaluates a packet under the plan of another generation, with the flow table of the one before.
fn verdict(maps: &PlanMaps<'_>, packet: IpPacket) -> Verdict {
    decide(&Ok(Classified::Ip(packet)), maps)
}

#[test]
fn traffic_without_a_policy_leaves_by_the_active_uplink() {
    for active in [1, 2] {
        let compiled = fixture(active).compiled();
        let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
        let verdict = verdict(&maps, packet(40_000, true));
        assert_eq!(
            (verdict.reason, verdict.mark, verdict.leg),
            (Reason::NoPolicy, Mark::leg(active).0, active)
        );
    }
    let mut alone = fixture(1);
    alone.facts.uplinks = UplinkFacts::default();
    let compiled = alone.compiled();
    let verdict = verdict(&PlanMaps::new(Some(&compiled.plan.dataplane)), packet(40_000, true));
    assert_eq!(verdict.mark, Mark::DIRECT.0, "without a selection the main routing table decides");
}

#[test]
fn connection_of_the_uplink_that_failed_is_reset() {
    let before = fixture(1);
    let mut after = fixture(2);
    after.facts.uplinks.failed.insert(leg(1), "it is offline".to_owned());
    let (first, second) = (before.compiled(), after.compiled());
    let maps = PlanMaps::new(Some(&first.plan.dataplane));
    assert_eq!(verdict(&maps, packet(40_000, true)).leg, 1);
    assert_eq!(verdict(&maps, packet(40_000, false)).leg, 1);
    let maps = PlanMaps { flows: maps.flows, ..PlanMaps::new(Some(&second.plan.dataplane)) };
    maps.generation.set(2);
    assert_eq!(verdict(&maps, packet(40_000, false)).reason, Reason::PolicyReset);
    assert_eq!(verdict(&maps, packet(41_000, true)).leg, 2);
    let datagram = IpPacket { protocol: UDP, ..packet(42_000, false) };
    assert_eq!(verdict(&maps, datagram).leg, 2);
}

#[test]
fn connection_stays_on_its_uplink_after_fail_back_unless_it_is_set_otherwise() {
    for (ends, expected) in [(false, Reason::NoPolicy), (true, Reason::PolicyReset)] {
        let before = fixture(2);
        let mut after = fixture(1);
        after.network.uplinks[1].failback_states = ends;
        let (first, second) = (before.compiled(), after.compiled());
        let maps = PlanMaps::new(Some(&first.plan.dataplane));
        verdict(&maps, packet(40_000, true));
        assert_eq!(verdict(&maps, packet(40_000, false)).leg, 2);
        let maps = PlanMaps { flows: maps.flows, ..PlanMaps::new(Some(&second.plan.dataplane)) };
        maps.generation.set(2);
        let kept = verdict(&maps, packet(40_000, false));
        assert_eq!((kept.reason, kept.leg), (expected, 2));
        assert_eq!(verdict(&maps, packet(41_000, true)).leg, 1);
    }
}

#[test]
fn new_flows_are_balanced_by_weight() {
    let mut fixture = fixture(1);
    fixture.network.balances = true;
    let compiled = fixture.compiled();
    let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
    let legs = (0..400).map(|n| verdict(&maps, packet(10_000 + n, true)).leg);
    let by_first = legs.filter(|leg| *leg == 1).count();
    assert_eq!(by_first, 300);
    fixture.facts.uplinks.balanced = BTreeSet::from([leg(1)]);
    let compiled = fixture.compiled();
    let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
    assert!((0..40).all(|n| verdict(&maps, packet(10_000 + n, true)).leg == 1));
}

#[test]
fn host_and_tunnels_follow_the_active_uplink() {
    let mut fixture = fixture(2);
    fixture.tunnel("a");
    let compiled = fixture.compiled();
    assert_eq!(compiled.legs.tunnel("a").expect("a leg").underlay, Underlay::Leg(leg(2)));
    let of_host = compiled.plan.rules.iter().filter(|(key, value)| {
        key.family == Family::V4
            && value.fwmark.is_none()
            && value.input_interface.as_deref() == Some("lo")
            && value.source.is_none()
    });
    let actions: Vec<(&RuleAction, Option<u32>)> =
        of_host.map(|(_, value)| (&value.action, value.suppress_prefix_length)).collect();
    let by_second = RuleAction::Table(names::TABLE_BASE + 2);
    assert_eq!(actions, [(&RuleAction::Table(254), Some(0)), (&by_second, None)]);
    fixture.facts.uplinks = UplinkFacts::default();
    assert_eq!(fixture.compiled().legs.tunnel("a").expect("a leg").underlay, Underlay::Default);
}

#[test]
fn uplink_that_failed_is_no_hop_and_is_explained() {
    let mut fixture = fixture(2);
    fixture.facts.uplinks.failed.insert(leg(1), "it is offline".to_owned());
    let laptop = fixture.device("laptop", "02:00:00:00:00:01");
    fixture.policy(serde_json::json!({
        "name": "fibre", "source_type": "device", "source_value": laptop.to_string(),
        "hops": [{"type": "interface", "target": "wan0"}]
    }));
    fixture.apply();
    let request = Request { device_id: Some(laptop), ..Request::default() };
    let answer = evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer");
    assert_eq!(answer.decision, Decision::Block);
    assert!(answer.sentence.contains("offline"), "{}", answer.sentence);
    let other =
        Request { mac: Some("02:00:00:00:00:09".parse().expect("a MAC address")), ..Request::default() };
    let answer = evaluate(&fixture.input(), &fixture.compiled(), &other).expect("an answer");
    assert_eq!(answer.decision, Decision::Direct);
}

/// The main routing table leads to an uplink that is disabled, and the manager has selected nothing yet.
#[test]
fn only_enabled_uplink_is_used_whatever_the_main_table_says() {
    let mut fixture = fixture(2);
    fixture.facts.uplinks = UplinkFacts::default();
    fixture.network.uplinks.retain(|uplink| uplink.number == leg(2));
    fixture.network.disabled_uplinks = vec!["wan0".into()];
    fixture.tunnel("a");
    let compiled = fixture.compiled();
    let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
    assert_eq!(verdict(&maps, packet(1, true)).mark, Mark::leg(2).0);
    assert_eq!(compiled.legs.tunnel("a").expect("a leg").underlay, Underlay::Leg(leg(2)));
    let by_second = RuleAction::Table(names::TABLE_BASE + 2);
    for mark in [0, Mark::OWN.0] {
        assert_eq!(default_action(&compiled.plan.rules, mark), by_second, "mark {mark:#x}");
    }
    let index = |name: &str| fixture.facts.links[name].index;
    assert_eq!(compiled.plan.dataplane.egress_legs.get(&index("wan0")), Some(&DISABLED_LEG));
    assert!(compiled.plan.dataplane.authorised.keys().all(|key| key.index != index("wan0")));
}

#[test]
fn without_an_enabled_uplink_everything_is_rejected() {
    let mut fixture = fixture(2);
    fixture.facts.uplinks = UplinkFacts::default();
    fixture.network.uplinks.clear();
    fixture.network.disabled_uplinks = vec!["wan0".into(), "wan1".into()];
    let compiled = fixture.compiled();
    let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
    assert_eq!(verdict(&maps, packet(1, true)).mark, Mark::REJECT.0);
    for mark in [0, Mark::OWN.0] {
        assert_eq!(default_action(&compiled.plan.rules, mark), RuleAction::Unreachable, "mark {mark:#x}");
    }
    let laptop = fixture.device("laptop", "02:00:00:00:00:01");
    let request = Request { device_id: Some(laptop), ..Request::default() };
    let answer = evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer");
    assert_eq!(answer.decision, Decision::Block, "{}", answer.sentence);
}

/// Returns the action on what this host sends with a mark to the internet.
fn default_action(rules: &BTreeMap<RuleKey, RuleValue>, mark: u32) -> RuleAction {
    let applies = |rule: &&RuleValue| {
        rule.suppress_prefix_length.is_none()
            && rule.source.is_none()
            && rule.input_interface.as_deref().is_none_or(|interface| interface == "lo")
            && rule.fwmark.is_none_or(|(value, mask)| mark & mask == value & mask)
            && rule.action != RuleAction::Table(names::TABLE_LAN)
    };
    let of_family = rules.iter().filter(|(key, _)| key.family == Family::V4).map(|(_, rule)| rule);
    let mut found = of_family.filter(applies).map(|rule| rule.action.clone());
    found.next().expect("a rule")
}

#[test]
fn uplink_may_be_called_by_its_name() {
    let mut fixture = fixture(1);
    fixture.network.uplinks[1].name = "cable".into();
    let laptop = fixture.device("laptop", "02:00:00:00:00:01");
    fixture.policy(serde_json::json!({
        "name": "cable", "source_type": "device", "source_value": laptop.to_string(),
        "hops": [{"type": "interface", "target": "cable"}]
    }));
    fixture.apply();
    let compiled = fixture.compiled();
    let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
    assert_eq!(verdict(&maps, packet(1, true)).mark, Mark::leg(2).0);
    // An interface with that name would go before it.
    fixture.network.uplinks[0].name = "wan1".into();
    assert_eq!(fixture.compiled().legs.uplink("wan1").expect("an uplink").number, leg(2));
}

/// Returns the leg of a new flow to an address, with the first uplink active and without balancing.
fn leg_to(fixture: &mut Fixture, address: [u8; 4]) -> u8 {
    fixture.facts.uplinks.balanced.clear();
    let compiled = fixture.compiled();
    let to = IpPacket { destination: std::net::IpAddr::from(address).into(), ..packet(40_000, true) };
    verdict(&PlanMaps::new(Some(&compiled.plan.dataplane)), to).leg
}

#[test]
fn neighbours_of_an_uplink_are_reached_by_its_leg() {
    assert_eq!(leg_to(&mut fixture(1), [198, 51, 101, 9]), 2, "the modem of the other uplink");
    assert_eq!(leg_to(&mut fixture(1), [198, 51, 102, 9]), 1, "the internet");
    let mut failed = fixture(1);
    failed.facts.uplinks.failed.insert(leg(2), "it is offline".to_owned());
    assert_eq!(leg_to(&mut failed, [198, 51, 101, 9]), 2, "the modem answers while its line is dead");
    let mut twins = fixture(1);
    twins.address("wan0", "192.168.100.2/24").address("wan1", "192.168.100.3/24");
    assert_eq!(leg_to(&mut twins, [192, 168, 100, 1]), 1, "a network of two uplinks identifies none");
    let mut huge = fixture(1);
    huge.address("wan1", "198.51.101.2/2");
    assert_eq!(leg_to(&mut huge, [203, 0, 113, 9]), 1, "a part of the internet is no network of an uplink");
    let mut inside = fixture(1);
    inside.address("wan1", "192.168.1.129/25");
    assert_eq!(leg_to(&mut inside, [192, 168, 1, 200]), 0, "the LAN comes first");
}

#[test]
fn connections_to_neighbours_of_an_uplink_outlive_a_failover() {
    let (before, mut after) = (fixture(1), fixture(1));
    let to =
        IpPacket { destination: std::net::IpAddr::from([198, 51, 101, 9]).into(), ..packet(40_000, true) };
    after.facts.uplinks.active = Some(leg(2));
    let (first, second) = (before.compiled(), after.compiled());
    let maps = PlanMaps::new(Some(&first.plan.dataplane));
    assert_eq!(verdict(&maps, to).leg, 2);
    let maps = PlanMaps { flows: maps.flows, ..PlanMaps::new(Some(&second.plan.dataplane)) };
    maps.generation.set(2);
    let kept = verdict(&maps, IpPacket { opening: false, ..to });
    assert_eq!((kept.reason, kept.leg), (Reason::NoPolicy, 2));
}
