//! Conflicts among stored policies.

use gateway_core::conflicts::{Conflict, ConflictKind, Severity, conflicts};
use serde_json::{Value, json};

use crate::fixture::Fixture;

fn found(fixture: &Fixture) -> Vec<Conflict> {
    conflicts(&fixture.input(), &fixture.compiled())
}

/// Kinds with the names of the policies.
fn named(fixture: &Fixture) -> Vec<(ConflictKind, Vec<String>)> {
    let name =
        |id: &gateway_model::Id| fixture.state.routing_policies.get(*id).expect("a policy").name.clone();
    found(fixture)
        .iter()
        .map(|conflict| (conflict.kind, conflict.policies.iter().map(name).collect()))
        .collect()
}

fn policy(fixture: &mut Fixture, name: &str, priority: i64, source: (&str, &str), more: Value) {
    let mut input =
        json!({"name": name, "priority": priority, "source_type": source.0, "source_value": source.1});
    input.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    fixture.policy(input);
}

fn shadowed(by: &[&str], policy: &str) -> (ConflictKind, Vec<String>) {
    (ConflictKind::Shadowed, std::iter::once(&policy).chain(by).map(|name| (*name).to_owned()).collect())
}

fn open() -> Value {
    json!({"fail_policy": "fail-open"})
}

#[test]
fn a_policy_for_everything_shadows_what_comes_after_it_and_nothing_before() {
    let mut fixture = Fixture::new();
    policy(&mut fixture, "before", 1, ("vlan", "10"), open());
    policy(&mut fixture, "all", 5, ("all", ""), json!({}));
    policy(&mut fixture, "after", 10, ("subnet", "10.0.0.0/8"), open());
    policy(&mut fixture, "last", 20, ("all", ""), open());
    assert_eq!(named(&fixture), [shadowed(&["all"], "after"), shadowed(&["all"], "last")]);
    assert_eq!(found(&fixture)[0].severity, Severity::Warning);
}

#[test]
fn a_network_is_shadowed_by_one_around_it_and_not_by_one_inside_it() {
    let mut fixture = Fixture::new();
    policy(&mut fixture, "inside", 1, ("subnet", "10.1.0.0/16"), json!({}));
    policy(&mut fixture, "around", 2, ("subnet", "10.0.0.0/8"), open());
    policy(&mut fixture, "narrow", 3, ("subnet", "10.2.3.0/24,10.1.2.0/24"), json!({}));
    policy(&mut fixture, "beside", 4, ("subnet", "10.2.3.0/24,11.0.0.0/8"), json!({}));
    policy(&mut fixture, "destination", 5, ("destination", "10.2.3.0/24"), json!({}));
    // The first policy that has it is named for each element.
    assert_eq!(named(&fixture), [shadowed(&["inside", "around"], "narrow")]);
}

#[test]
fn ports_are_shadowed_by_the_whole_destination_and_by_the_same_port_around() {
    let mut fixture = Fixture::new();
    policy(&mut fixture, "web", 1, ("destination", "203.0.113.0/24:443"), json!({}));
    policy(&mut fixture, "web-host", 2, ("destination", "203.0.113.7:443"), open());
    policy(&mut fixture, "other-port", 3, ("destination", "203.0.113.7:80"), open());
    policy(&mut fixture, "host", 4, ("destination", "203.0.113.7"), open());
    policy(&mut fixture, "late-port", 5, ("destination", "203.0.113.7:25"), json!({}));
    assert_eq!(named(&fixture), [shadowed(&["web"], "web-host"), shadowed(&["host"], "late-port")]);
}

#[test]
fn a_group_shadows_its_members_and_members_together_shadow_a_group() {
    let mut fixture = Fixture::new();
    let one = fixture.device("one", "02:00:00:00:00:01");
    let two = fixture.device("two", "02:00:00:00:00:02");
    let group = |fixture: &mut Fixture, name: &str, members: &[gateway_model::Id]| {
        let members: Vec<String> = members.iter().map(ToString::to_string).collect();
        fixture
            .create("device_group", json!({"name": name, "members": members}))
            .expect("a group")
            .to_string()
    };
    let both = group(&mut fixture, "both", &[one, two]);
    let first = group(&mut fixture, "first", &[one]);
    policy(&mut fixture, "p-one", 1, ("device", &one.to_string()), json!({}));
    policy(&mut fixture, "p-both-early", 2, ("device_group", &both), open());
    policy(&mut fixture, "p-two", 3, ("device", &two.to_string()), json!({}));
    policy(&mut fixture, "p-first", 4, ("device_group", &first), open());
    policy(&mut fixture, "p-both-late", 5, ("device_group", &both), json!({}));
    assert_eq!(
        named(&fixture),
        [
            shadowed(&["p-both-early"], "p-two"),
            shadowed(&["p-one"], "p-first"),
            shadowed(&["p-both-early"], "p-both-late"),
        ]
    );
}

#[test]
fn a_network_for_each_family_together_shadow_everything() {
    let mut fixture = Fixture::new();
    policy(&mut fixture, "four", 1, ("subnet", "0.0.0.0/0"), json!({}));
    policy(&mut fixture, "vlan", 2, ("vlan", "7"), open());
    policy(&mut fixture, "six", 3, ("destination", "::/0"), json!({}));
    policy(&mut fixture, "device", 4, ("vlan", "8"), open());
    policy(&mut fixture, "six-host", 5, ("subnet", "fd00::7"), open());
    assert_eq!(
        named(&fixture),
        [shadowed(&["four", "six"], "device"), shadowed(&["four", "six"], "six-host")]
    );
}

#[test]
fn an_interface_that_is_a_vlan_is_shadowed_by_the_vlan() {
    let mut fixture = Fixture::new();
    fixture.network.lan.push("lan0.20".into());
    fixture.vlan_link("lan0.20", 20, "lan0", 20);
    policy(&mut fixture, "tag", 1, ("vlan", "20"), json!({}));
    policy(&mut fixture, "interface", 2, ("interface", "lan0.20"), open());
    policy(&mut fixture, "parent", 3, ("interface", "lan0"), open());
    assert_eq!(named(&fixture), [shadowed(&["tag"], "interface")]);
}

#[test]
fn the_same_twice_is_a_duplicate() {
    let mut fixture = Fixture::new();
    policy(&mut fixture, "one", 1, ("vlan", "10,20"), json!({}));
    policy(&mut fixture, "two", 2, ("vlan", "20,10"), json!({}));
    policy(&mut fixture, "part", 3, ("vlan", "10"), json!({}));
    let conflicts = found(&fixture);
    assert_eq!(
        conflicts.iter().map(|c| c.kind).collect::<Vec<_>>(),
        [ConflictKind::Duplicate, ConflictKind::Shadowed]
    );
    assert!(conflicts.iter().all(|conflict| conflict.severity == Severity::Info));
}

#[test]
fn disabled_and_ended_policies_conflict_with_none() {
    let mut fixture = Fixture::new();
    policy(&mut fixture, "off", 1, ("all", ""), json!({"enabled": false}));
    policy(&mut fixture, "ended", 2, ("all", ""), json!({"expires_at": "2026-11-20T11:00:00Z"}));
    policy(&mut fixture, "vlan", 3, ("vlan", "10"), json!({}));
    assert_eq!(found(&fixture), []);
}

/// Conflicts that the model refuses can still occur: after an end was put off, or in rows of an older version.
#[test]
fn the_same_source_and_priority_with_two_egresses_is_contradictory() {
    let mut fixture = Fixture::new();
    policy(&mut fixture, "one", 7, ("vlan", "10"), json!({"expires_at": "2026-11-20T12:00:00Z"}));
    policy(&mut fixture, "two", 7, ("vlan", "10,11"), open());
    fixture.now = "2026-11-20T11:59:59Z".parse().expect("a time");
    let conflicts = found(&fixture);
    assert_eq!(named(&fixture), [(ConflictKind::Contradictory, vec!["two".into(), "one".into()])]);
    assert_eq!(conflicts[0].severity, Severity::Error);
}

#[test]
fn tunnels_with_two_underlays_and_tunnels_inside_themselves_are_found() {
    let mut fixture = Fixture::new();
    for name in ["a", "b", "c"] {
        fixture.tunnel(name);
    }
    let path = |hops: &[&str], end: Option<&str>| {
        let hops: Vec<Value> = hops.iter().map(|name| json!({"type": "vpn", "target": name})).collect();
        json!({"hops": hops, "expires_at": end})
    };
    let past = Some("2026-11-20T12:00:00Z");
    policy(&mut fixture, "a-b", 1, ("vlan", "1"), path(&["a", "b"], past));
    policy(&mut fixture, "b-a", 2, ("vlan", "2"), path(&["b", "a"], None));
    policy(&mut fixture, "c-b", 3, ("vlan", "3"), path(&["c", "b"], past));
    assert_eq!(named(&fixture), []);
    fixture.now = "2026-11-20T11:59:59Z".parse().expect("a time");
    assert_eq!(
        named(&fixture),
        [
            (ConflictKind::Contradictory, vec!["c-b".into(), "a-b".into()]),
            (ConflictKind::Loop, vec!["b-a".into(), "a-b".into()]),
        ]
    );
    assert!(found(&fixture)[1].message.contains("a inside b inside a"), "{}", found(&fixture)[1].message);
}

#[test]
fn hops_and_sources_that_do_not_exist_are_reported() {
    let mut fixture = Fixture::new();
    fixture.tunnel("a");
    let hop = |kind: &str, target: &str| json!({"type": kind, "target": target});
    let group = fixture.create("device_group", json!({"name": "nobody"})).expect("a group").to_string();
    policy(&mut fixture, "gone", 1, ("vlan", "1"), json!({"hops": [hop("vpn", "b")]}));
    policy(
        &mut fixture,
        "half",
        2,
        ("vlan", "2"),
        json!({"hop_mode": "failover", "hops": [hop("vpn", "a"), hop("interface", "wan7")]}),
    );
    policy(&mut fixture, "empty", 3, ("device_group", &group), json!({}));
    policy(&mut fixture, "outside", 4, ("interface", "wan0,lan0"), json!({}));
    policy(&mut fixture, "fine", 5, ("vlan", "6"), json!({"hops": [hop("vpn", "a")]}));
    let conflicts = found(&fixture);
    assert!(
        conflicts.iter().all(|conflict| conflict.kind == ConflictKind::UnreachableTarget),
        "{conflicts:?}"
    );
    let reports: Vec<(&str, Severity)> = conflicts.iter().map(|c| (c.message.as_str(), c.severity)).collect();
    assert_eq!(
        reports[0],
        (r#""gone": there is no tunnel b; its failure policy fail-closed applies."#, Severity::Error)
    );
    assert_eq!(reports[1], (r#""half": wan7 is no configured uplink."#, Severity::Warning));
    assert!(reports[2].0.contains("has no members; it matches nothing"), "{reports:?}");
    assert_eq!(reports[3], (r#""outside": wan0 is no LAN interface."#, Severity::Warning));
    assert_eq!(reports.len(), 4);
}

#[test]
fn a_policy_for_a_domain_is_shadowed_by_one_for_a_domain_around_it() {
    let mut fixture = Fixture::new();
    policy(&mut fixture, "around", 1, ("domain", "example.com"), json!({}));
    policy(&mut fixture, "inside", 2, ("domain", "www.example.com"), json!({}));
    policy(&mut fixture, "beside", 3, ("domain", "example.org"), json!({}));
    let reports: Vec<String> = found(&fixture).iter().map(|conflict| conflict.message.clone()).collect();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].contains("inside") && reports[0].contains("around"), "{reports:?}");
}
