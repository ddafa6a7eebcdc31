//! Leak check: the egresses by which servers are asked for the address that they see, and its part of the report.

use gateway_common::verdict::Reason;
use gateway_core::leak_check::{
    Check, CheckResult, Expected, LeakVerdict, Outcome, Plan, Run, Sighting, SightingKind, compare, plan,
};
use gateway_model::settings::group::GroupKind;
use serde_json::{Value, json};

use crate::fixture::Fixture;

const EXIT: &str = "203.0.113.7";
const UPLINK: &str = "203.0.113.200";

/// Returns a fixture with a server and the tunnel `a`.
fn fixture(servers: &[&str]) -> Fixture {
    let mut fixture = Fixture::new();
    let settings = GroupKind::find("privacy.leak_check").expect("a group");
    settings.put(&mut fixture.state, json!({"stun_servers": servers})).expect("valid settings");
    fixture.tunnel("a");
    fixture.address("wg-a", "10.64.0.2/32").address("wg-a", "fd64::2/128");
    fixture
}

fn with_hops(hops: &Value) -> Fixture {
    let mut fixture = fixture(&["198.18.0.1:3478"]);
    fixture.create("proxy", json!({"name": "p", "address": "203.0.113.5"})).expect("a proxy");
    let source = "192.168.1.0/24,fd00:1::/64";
    fixture.policy(json!({"name": "n", "source_type": "subnet", "source_value": source, "hops": hops}));
    fixture.apply();
    fixture
}

fn planned(fixture: &Fixture) -> Plan {
    plan(&fixture.input(), &fixture.compiled(), None, &Check::ALL, 7).expect("a LAN")
}

/// Returns, for IPv4 and IPv6, the expected egresses, the other uplinks, and the sentences about the rest.
fn asked(plan: &Plan) -> Vec<(Vec<&str>, Vec<&str>, &[String])> {
    let of = |exits: &'static [Check]| plan.exits.iter().filter(|exit| exits.contains(&exit.check));
    let exits = of(&[Check::Ipv4]).chain(of(&[Check::Ipv6]));
    exits
        .map(|exits| {
            let expected = exits.expected.iter().map(|query| query.egress.as_str()).collect();
            let uplinks = exits.uplinks.iter().map(|query| query.egress.as_str()).collect();
            (expected, uplinks, &exits.unknown[..])
        })
        .collect()
}

/// Runs the plan on a kernel that does as planned. IPv4 queries are answered with these addresses.
fn run(plan: &Plan, by_tunnel: &str, by_uplink: &str) -> Vec<CheckResult> {
    let outcome = |expected: &Expected| {
        let left = |by: &String| (Sighting { interface: by.clone(), kind: SightingKind::Left }, 1);
        let sightings = match expected {
            Expected::Leaves { by } => by.first().map(left).into_iter().collect(),
            _ => [].into(),
        };
        Outcome { sightings, verdict: Some(Reason::NoPolicy), ..Outcome::default() }
    };
    let answers = plan.exits.iter().flat_map(|exits| exits.queries()).map(|query| {
        let text = if query.tunnel.is_some() { by_tunnel } else { by_uplink };
        let answer = text.parse().ok().filter(|_| query.source.is_ipv4());
        (query.clone(), answer.ok_or_else(|| "silence".to_owned()))
    });
    let exits = answers.collect();
    let outcomes = plan.probes.iter().map(|probe| outcome(&probe.expected)).collect();
    compare(plan, &Run { outcomes, failure: None, exits }).results
}

fn result(results: &[CheckResult], check: Check) -> &CheckResult {
    results.iter().find(|result| result.check == check).expect("a result")
}

#[test]
fn without_servers_and_without_traffic_nothing_is_asked() {
    assert_eq!(planned(&fixture(&[])).exits, []);
    let mut blocked = with_hops(&json!([{"type": "vpn", "target": "a"}]));
    blocked.set_usable("a", false);
    let plan = planned(&blocked);
    assert_eq!(asked(&plan), [(vec![], vec![], &[][..]), (vec![], vec![], &[][..])]);
}

#[test]
fn a_tunnel_is_asked_by_and_so_is_each_uplink() {
    let plan = planned(&with_hops(&json!([{"type": "vpn", "target": "a"}])));
    assert_eq!(asked(&plan), [(vec!["a"], vec!["wan0"], &[][..]), (vec!["a"], vec!["wan0"], &[][..])]);
    let tunnel = &plan.exits[0].expected[0];
    assert_eq!((tunnel.leg.get(), tunnel.interface.as_str()), (16, "wg-a"));
    assert_eq!(tunnel.source.to_string(), "10.64.0.2");
}

#[test]
fn traffic_by_an_uplink_needs_no_other_address() {
    let plan = planned(&fixture(&["198.18.0.1:3478"]));
    assert_eq!(asked(&plan), [(vec!["wan0"], vec![], &[][..]), (vec!["wan0"], vec![], &[][..])]);
    let policy = planned(&with_hops(&json!([{"type": "interface", "target": "wan0"}])));
    assert_eq!(asked(&policy), asked(&plan));
}

#[test]
fn an_egress_without_an_address_of_the_family_is_not_asked_by() {
    let mut fixture = with_hops(&json!([{"type": "vpn", "target": "a"}]));
    fixture.facts.addresses.get_mut("wg-a").expect("addresses").retain(|net| net.addr().is_ipv4());
    let plan = planned(&fixture);
    let unknown = "No server was asked by a: it has no IPv6 address.".to_owned();
    assert_eq!(asked(&plan)[1], (vec![], vec![], &[unknown][..]));
}

#[test]
fn a_proxy_is_not_asked_by() {
    let plan = planned(&with_hops(&json!([{"type": "proxy", "target": "p"}])));
    let unknown = "It is not known which address servers see behind the proxy p.".to_owned();
    assert_eq!(asked(&plan)[0], (vec![], vec![], &[unknown.clone()][..]));
    let results = run(&plan, EXIT, UPLINK);
    let ipv4 = result(&results, Check::Ipv4);
    assert_eq!(ipv4.exit_address, None);
    assert!(ipv4.detail.ends_with(&unknown), "{ipv4:?}");
}

/// The answer to the gateway's own address would not be that of the host.
#[test]
fn a_global_ipv6_address_that_is_not_translated_is_not_asked_for() {
    let mut fixture = fixture(&["198.18.0.1:3478"]);
    fixture.address("lan0", "2001:db8:1::1/64");
    let plan = planned(&fixture);
    let (expected, uplinks, unknown) = &asked(&plan)[1];
    assert!(expected.is_empty() && uplinks.is_empty(), "{plan:?}");
    assert!(unknown[0].starts_with("By wan0, servers see the IPv6 address of the host"), "{unknown:?}");
}

#[test]
fn servers_that_see_the_uplink_behind_a_tunnel_fail_the_check_of_their_family() {
    let plan = planned(&with_hops(&json!([{"type": "vpn", "target": "a"}])));
    let results = run(&plan, UPLINK, UPLINK);
    let ipv4 = result(&results, Check::Ipv4);
    assert_eq!((ipv4.outcome, ipv4.pass), (LeakVerdict::Fail, false));
    assert!(ipv4.detail.contains("a does not hide 203.0.113.200 of the uplink wan0."), "{ipv4:?}");
    assert!(results.iter().all(|result| result.pass != (result.check == Check::Ipv4)), "{results:?}");
}

#[test]
fn an_answer_is_reported_and_a_missing_one_fails_nothing() {
    let plan = planned(&with_hops(&json!([{"type": "vpn", "target": "a"}])));
    let results = run(&plan, EXIT, UPLINK);
    assert!(results.iter().all(|result| result.pass), "{results:?}");
    let ipv4 = result(&results, Check::Ipv4);
    assert_eq!(ipv4.exit_address, EXIT.parse().ok());
    let seen = "All 2 probes were treated as expected. Servers saw 203.0.113.7 by a, 203.0.113.200 by wan0.";
    assert_eq!(ipv4.detail, seen);
    let ipv6 = result(&results, Check::Ipv6);
    assert_eq!(ipv6.exit_address, None);
    assert!(ipv6.detail.ends_with("servers see by a: no answer (silence)."), "{ipv6:?}");
    assert!(results.iter().all(|result| result.exit_address.is_none() || result.check == Check::Ipv4));
}

#[test]
fn a_risk_remains_for_each_family_without_an_answer() {
    let risks = |fixture: &Fixture, by_tunnel: &str| {
        let plan = planned(fixture);
        let answers = plan.exits.iter().flat_map(|exits| exits.queries());
        let exits = answers.map(|query| (query.clone(), by_tunnel.parse().map_err(|_| String::new())));
        let run = Run { exits: exits.collect(), ..Run::default() };
        let risks = compare(&plan, &run).remaining_risks;
        ["IPv4", "IPv6"]
            .map(|family| risks.iter().any(|risk| risk.contains(&format!("which {family} address"))))
    };
    let mut tunnel = with_hops(&json!([{"type": "vpn", "target": "a"}]));
    assert_eq!(risks(&tunnel, EXIT), [false, false]);
    assert_eq!(risks(&tunnel, ""), [true, true]);
    assert_eq!(risks(&fixture(&[]), EXIT), [true, true]);
    tunnel.set_usable("a", false);
    assert_eq!(risks(&tunnel, EXIT), [false, false], "nothing leaves");
}
