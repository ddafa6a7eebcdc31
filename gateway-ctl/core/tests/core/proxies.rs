//! Proxies as hops: their egresses, the traffic that they take, and their reported state.

use std::collections::{BTreeMap, BTreeSet};

use gateway_common::wire::{ActionValue, Choice, ChoiceKind};
use gateway_core::evaluate::{Request, evaluate};
use gateway_core::facts::ProxyFact;
use gateway_core::indexes::{LegId, ProxyIndex};
use gateway_core::matrix::Outcome::{self, Blocked, Direct, Tunnel};
use gateway_core::matrix::{Risk, leak_matrix};
use serde_json::{Value, json};

use crate::fixture::Fixture;

/// Legs of the uplink and of the tunnels a and b.
const WAN: u8 = 1;
const A: u8 = 16;
const B: u8 = 17;
const FIRST: ProxyIndex = ProxyIndex::new(1).expect("a proxy");

fn fixture(hops: &[(&str, &str)], more: Value) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.device("laptop", "02:00:00:00:00:01");
    fixture.tunnel("a");
    fixture.tunnel("b");
    let login = json!({"name": "p", "address": "203.0.113.5", "username": "anna", "password": "hush"});
    fixture.create("proxy", login).expect("a proxy");
    let hops: Vec<Value> =
        hops.iter().map(|(kind, target)| json!({"type": kind, "target": target})).collect();
    let mut policy = json!({"name": "n", "source_type": "subnet", "source_value": "192.168.1.0/24,fd00:1::/64", "hops": hops});
    policy.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    fixture.policy(policy);
    fixture.apply();
    fixture
}

fn record(fixture: &mut Fixture, leg: u8, usable: bool, udp: bool) {
    let reason = if usable { String::new() } else { "no answer".to_owned() };
    let ways: &mut BTreeMap<Option<LegId>, ProxyFact> =
        fixture.facts.proxies.entry(fixture.ids["p"].to_string()).or_default();
    ways.insert(LegId::new(leg), ProxyFact { usable, reason, udp });
}

fn action(fixture: &Fixture) -> ActionValue {
    fixture.compiled().policies[0].action()
}

/// Both families take the proxy by these legs.
fn assert_by(fixture: &Fixture, legs: &[u8]) {
    let action = action(fixture);
    assert_eq!(action.v4, Choice::legs(legs).to_proxy(1));
    assert_eq!((action.v4, action.v4.kind()), (action.v6, ChoiceKind::Proxy));
}

fn assert_fails(fixture: &Fixture) {
    assert_eq!(action(fixture).v4, Choice::REJECT);
}

#[test]
fn a_proxy_is_reached_through_the_hops_before_it() {
    assert_by(&fixture(&[("proxy", "p")], json!({})), &[0]);
    assert_by(&fixture(&[("interface", "wan0"), ("proxy", "p")], json!({})), &[WAN]);
    assert_by(&fixture(&[("vpn", "a"), ("proxy", "p")], json!({})), &[A]);
    let long = fixture(&[("interface", "wan0"), ("vpn", "a"), ("proxy", "p")], json!({}));
    assert_by(&long, &[A]);
    let pool = fixture(&[("vpn", "a"), ("vpn", "b"), ("proxy", "p")], json!({"splitting": true}));
    assert_by(&pool, &[A, B]);
    let plan = pool.compiled().plan;
    let target = &plan.proxies[&FIRST];
    assert_eq!(
        (&target.legs, target.address),
        (&BTreeSet::from([A, B].map(LegId::new)), "203.0.113.5:1080".parse().ok())
    );
    let rules = |mark: u32| {
        plan.rules.values().any(|rule| rule.fwmark.is_some_and(|(value, mask)| mark & mask == value))
    };
    assert!(rules(0x4701_0010) && rules(0x4706_0110) && rules(0x4702_0110) && plan.nft.proxied);
}

#[test]
fn without_a_proxy_hop_there_is_no_relay() {
    let plan = fixture(&[("vpn", "a")], json!({})).compiled().plan;
    assert!(plan.proxies.is_empty() && !plan.nft.proxied);
}

#[test]
fn a_proxy_is_usable_through_egresses_on_which_it_answers() {
    let mut single = fixture(&[("vpn", "a"), ("proxy", "p")], json!({}));
    record(&mut single, 0, false, false);
    assert_by(&single, &[A]);
    record(&mut single, A, false, false);
    assert_fails(&single);
    let hop = &single.compiled().policies[0].hops[1];
    assert_eq!((hop.usable, hop.reason.as_str()), (false, "no answer"));
    // Its connections may go on: it is the new ones that fail.
    assert_eq!(single.compiled().plan.proxies[&FIRST].legs, BTreeSet::from([LegId::new(A)]));

    let mut pool = fixture(&[("vpn", "a"), ("vpn", "b"), ("proxy", "p")], json!({"splitting": true}));
    record(&mut pool, A, false, false);
    assert_by(&pool, &[B]);
    pool.set_usable("b", false);
    assert_fails(&pool);
    assert_eq!(
        pool.compiled().plan.proxies[&FIRST].legs,
        BTreeSet::from([LegId::new(A)]),
        "what goes by b is reset"
    );
}

#[test]
fn a_broken_path_fails_and_degrades_by_the_policy() {
    let hops = [("vpn", "a"), ("proxy", "p")];
    let mut closed = fixture(&hops, json!({}));
    closed.set_usable("a", false);
    assert_fails(&closed);
    assert!(closed.compiled().plan.proxies[&FIRST].legs.is_empty());

    let mut degraded = fixture(&hops, json!({"fail_policy": "fail-degraded"}));
    degraded.set_usable("a", false);
    assert_by(&degraded, &[0]);
    record(&mut degraded, 0, false, false);
    assert_fails(&degraded);
    degraded.set_usable("a", true);
    record(&mut degraded, A, false, false);
    assert_eq!(action(&degraded).v4, Choice::legs(&[A]), "the tunnel remains");

    let mut failover = fixture(&[("proxy", "p"), ("vpn", "b")], json!({"hop_mode": "failover"}));
    assert_by(&failover, &[0]);
    record(&mut failover, 0, false, false);
    assert_eq!(action(&failover).v4, Choice::legs(&[B]));
}

#[test]
fn datagrams_are_for_proxies_that_take_them() {
    let mut fixture = fixture(&[("proxy", "p")], json!({}));
    assert!(action(&fixture).proxy_takes_udp(), "as it is set, until it is known better");
    record(&mut fixture, 0, true, false);
    assert!(!action(&fixture).proxy_takes_udp());
    assert_eq!(action(&fixture).unproxied(), ChoiceKind::Reject);
    record(&mut fixture, 0, true, true);
    assert!(action(&fixture).proxy_takes_udp());
}

#[test]
fn a_policy_that_fails_degraded_sends_datagrams_by_the_tunnel_alone() {
    let degraded = json!({"fail_policy": "fail-degraded"});
    let mut inside = fixture(&[("vpn", "a"), ("proxy", "p")], degraded.clone());
    record(&mut inside, A, true, false);
    assert_by(&inside, &[A]);
    assert_eq!((action(&inside).unproxied(), action(&inside).proxy_takes_udp()), (ChoiceKind::Legs, false));
    let udp = ask(&inside, json!({"mac": "02:00:00:00:00:01", "protocol": "udp", "port": 53}));
    assert_eq!(udp["families"]["ipv6"]["via"], "vpn:a", "{udp}");
    let sentence = udp["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("TUNNEL a (vpn)") && sentence.contains("p does not take UDP"), "{sentence}");
    assert_eq!(outcomes(&inside).1, [false; 4], "nothing leaves without the tunnel");
    // There is no tunnel before the proxy, or an uplink only.
    for hops in [[("proxy", "p")].as_slice(), &[("interface", "wan0"), ("proxy", "p")]] {
        let mut fixture = fixture(hops, degraded.clone());
        let leg = if hops.len() == 1 { 0 } else { WAN };
        record(&mut fixture, leg, true, false);
        assert_by(&fixture, &[leg]);
        assert_eq!(action(&fixture).unproxied(), ChoiceKind::Reject);
    }
}

fn ask(fixture: &Fixture, question: Value) -> Value {
    let request: Request = serde_json::from_value(question).expect("a question");
    let answer = evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer");
    serde_json::to_value(answer).expect("a value")
}

#[test]
fn explanations_name_the_proxy() {
    let mut fixture = fixture(&[("vpn", "a"), ("proxy", "p")], json!({}));
    let said = ask(&fixture, json!({"mac": "02:00:00:00:00:01"}));
    assert_eq!(said["sentence"], "laptop -> PROXY p by a: policy \"n\" (priority 1000, fail-closed) matched");
    let four = &said["families"]["ipv4"];
    assert_eq!((&four["decision"], &four["via"]), (&json!("tunnel"), &json!("proxy:p")));
    assert_eq!((&four["kernel"]["mark"], &four["interface"]), (&json!("0x47020110"), &json!("wg-a")));
    assert_eq!(said["effective"]["hop"], json!({"type": "proxy", "target": "p"}));

    let ping = ask(&fixture, json!({"mac": "02:00:00:00:00:01", "protocol": "icmp"}));
    let sentence = ping["sentence"].as_str().expect("a sentence");
    assert!(
        sentence.contains("BLOCKED") && sentence.contains("the proxy p does not take ICMP"),
        "{sentence}"
    );

    record(&mut fixture, A, false, false);
    let down = ask(&fixture, json!({"mac": "02:00:00:00:00:01"}));
    let sentence = down["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("BLOCKED") && sentence.contains("proxy:p is down (no answer)"), "{sentence}");
    assert!(!format!("{:?} {down}", fixture.compiled()).contains("hush"), "the password is shown");
}

fn outcomes(fixture: &Fixture) -> ([Outcome; 4], [bool; 4], Risk) {
    let matrix = leak_matrix(&fixture.input());
    let cells = &matrix.rows[0].cells;
    let cells = [&cells.up, &cells.degraded, &cells.down, &cells.daemon_down];
    (cells.map(|cell| cell.outcome), cells.map(|cell| cell.leak), matrix.risk)
}

#[test]
fn the_leak_matrix_knows_proxies() {
    let closed = fixture(&[("proxy", "p")], json!({}));
    assert_eq!(outcomes(&closed), ([Tunnel, Blocked, Blocked, Blocked], [false; 4], Risk::None));
    let via = leak_matrix(&closed.input()).rows[0].cells.up.via.clone();
    assert_eq!(via.as_deref(), Some("p"));
    // Echo requests go out directly at all times, as the policy says.
    let open = fixture(&[("proxy", "p")], json!({"fail_policy": "fail-open"}));
    assert_eq!(outcomes(&open), ([Tunnel, Direct, Direct, Blocked], [true; 4], Risk::Low));
    let mut inside = fixture(&[("vpn", "a"), ("proxy", "p")], json!({}));
    record(&mut inside, A, true, false);
    assert_eq!(outcomes(&inside), ([Tunnel, Blocked, Blocked, Blocked], [false; 4], Risk::None));
    assert_eq!(leak_matrix(&inside.input()).rows[0].cells.up.dns, Blocked, "questions are datagrams");
}
