//! Exceptions of devices and what policies take from profiles: what is compiled, and when it ends.

use gateway_core::evaluate::{Decision, Request, evaluate};
use gateway_core::matrix::{Outcome, Risk, fail_matrix, leak_matrix};
use gateway_core::network_tests;
use gateway_model::Id;
use jiff::SignedDuration;
use serde_json::json;

use crate::fixture::Fixture;

/// A laptop whose only policy sends it through the tunnel `a`.
fn fixture() -> (Fixture, Id) {
    let mut fixture = Fixture::new();
    let laptop = fixture.device("laptop", "02:00:00:00:00:01");
    fixture.tunnel("a");
    fixture.policy(json!({"name": "p", "source_type": "device", "source_value": laptop.to_string(), "hops": [{"type": "vpn", "target": "a"}]}));
    fixture.apply();
    (fixture, laptop)
}

fn decision(fixture: &Fixture, device: Id) -> Decision {
    let request = Request { device_id: Some(device), ..Request::default() };
    evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer").decision
}

fn exception(fixture: &mut Fixture, kind: &str, device: Id, minutes: i64) -> Id {
    let input = json!({"type": kind, "device_id": device, "allow_direct": true, "duration_min": minutes});
    fixture.create("exception", input).expect("an exception")
}

#[test]
fn a_bypass_needs_no_apply_and_ends_by_itself() {
    let (mut fixture, laptop) = fixture();
    let other = fixture.device("tv", "02:00:00:00:00:02");
    assert_eq!(decision(&fixture, laptop), Decision::Tunnel);
    let id = exception(&mut fixture, "emergency-bypass", laptop, 30);
    let compiled = fixture.compiled();
    assert_eq!(compiled.policies[0].id, id);
    assert_eq!(compiled.plan.dataplane.actions[0].policy, 0, "it has no counters of a policy");
    let end = fixture.now + SignedDuration::from_mins(30);
    assert_eq!(compiled.plan.valid_until, Some(end));
    assert_eq!((decision(&fixture, laptop), decision(&fixture, other)), (Decision::Direct, Decision::Direct));
    fixture.now = end;
    assert_eq!((decision(&fixture, laptop), fixture.compiled().plan.valid_until), (Decision::Tunnel, None));
}

#[test]
fn quarantine_outranks_every_bypass_and_policy() {
    let (mut fixture, laptop) = fixture();
    exception(&mut fixture, "temporary-direct", laptop, 60);
    exception(&mut fixture, "quarantine", laptop, 10);
    assert_eq!(decision(&fixture, laptop), Decision::Block);
    fixture.now += SignedDuration::from_mins(11);
    assert_eq!(decision(&fixture, laptop), Decision::Direct);
    fixture.now += SignedDuration::from_mins(50);
    assert_eq!(decision(&fixture, laptop), Decision::Tunnel);
}

/// Fields keep the exact time; words do not.
#[test]
fn ends_of_exceptions_are_explained_in_whole_seconds() {
    for (kind, words) in [
        (
            "temporary-direct",
            r#"the exception "temporary-direct of laptop" holds until 2026-11-20T12:10:00Z"#,
        ),
        ("quarantine", "an exception keeps the device in quarantine until 2026-11-20T12:10:00Z"),
    ] {
        let (mut fixture, laptop) = fixture();
        fixture.now += SignedDuration::from_nanos(987_654_321);
        fixture.state = fixture.state.begin(fixture.now);
        exception(&mut fixture, kind, laptop, 10);
        let request = Request { device_id: Some(laptop), ..Request::default() };
        let evaluation = evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer");
        assert!(evaluation.sentence.contains(words), "{}", evaluation.sentence);
        let mut shown = json!(evaluation);
        for exception in shown["effective"]["exceptions"].as_array_mut().expect("exceptions") {
            assert_eq!(exception["expires_at"].take(), "2026-11-20T12:10:00.987654321Z");
        }
        assert!(!shown.to_string().contains("987654321"), "{shown}");
    }
}

#[test]
fn a_bypass_without_leave_to_go_directly_changes_nothing() {
    let (mut fixture, laptop) = fixture();
    let input = json!({"type": "diagnostic-bypass", "device_id": laptop});
    fixture.create("exception", input).expect("an exception");
    assert_eq!((decision(&fixture, laptop), fixture.compiled().policies.len()), (Decision::Tunnel, 1));
}

#[test]
fn a_captive_portal_opens_dns_and_the_web_only() {
    let (mut fixture, laptop) = fixture();
    exception(&mut fixture, "captive-portal", laptop, 10);
    let to_port = |port: u16| {
        let request = Request { device_id: Some(laptop), port: Some(port), ..Request::default() };
        evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer").decision
    };
    assert_eq!([53, 80, 443].map(to_port), [Decision::Direct; 3]);
    assert_eq!([22, 123, 8080].map(to_port), [Decision::Tunnel; 3]);
}

#[test]
fn domains_of_an_allowlist_are_for_its_device_only() {
    let (mut fixture, laptop) = fixture();
    let targets = json!(["=Bank.example", "pay.example", "203.0.113.7", ":8443"]);
    let input =
        json!({"type": "service-allowlist", "device_id": laptop, "allow_direct": true, "targets": targets});
    fixture.create("exception", input).expect("an exception");
    let compiled = fixture.compiled();
    let slot = fixture.state.devices.get(laptop).expect("the device").meta.slot;
    let rules = compiled
        .plan
        .dataplane
        .domains
        .iter()
        .map(|rule| (format!("{:?}", rule.pattern), rule.rank.get(), rule.device));
    let exact = (r#"Exact("bank.example")"#.to_owned(), 0, Some(slot));
    let suffix = (r#"Suffix("pay.example")"#.to_owned(), 0, Some(slot));
    assert_eq!(rules.collect::<Vec<_>>(), [suffix, exact]);
    let to = |address: &str, port: u16| {
        let request = Request {
            device_id: Some(laptop),
            destination: Some(address.to_owned()),
            port: Some(port),
            ..Request::default()
        };
        evaluate(&fixture.input(), &compiled, &request).expect("an answer").decision
    };
    assert_eq!(to("203.0.113.7", 22), Decision::Direct);
    assert_eq!(to("203.0.113.8", 8443), Decision::Direct);
    assert_eq!(to("203.0.113.8", 443), Decision::Tunnel);
}

#[test]
fn an_exception_may_use_the_hops_of_a_profile() {
    let (mut fixture, laptop) = fixture();
    fixture.tunnel("b");
    fixture
        .create("profile", json!({"name": "other", "hops": [{"type": "vpn", "target": "b"}]}))
        .expect("a profile");
    let input =
        json!({"type": "temporary-direct", "device_id": laptop, "allow_direct": true, "profile": "other"});
    fixture.create("exception", input).expect("an exception");
    let request = Request { device_id: Some(laptop), ..Request::default() };
    let answer = evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer");
    assert_eq!(answer.effective.hop.expect("a hop").target, "b");
    fixture.set_usable("b", false);
    assert_eq!(decision(&fixture, laptop), Decision::Block, "the profile fails closed");
}

#[test]
fn the_matrices_show_exceptions_before_the_policies() {
    let (mut fixture, laptop) = fixture();
    let id = exception(&mut fixture, "emergency-bypass", laptop, 60);
    let matrix = leak_matrix(&fixture.input());
    assert_eq!(matrix.rows.len(), 2);
    assert_eq!((matrix.rows[0].policy_id, matrix.rows[0].cells.down.outcome), (id, Outcome::Direct));
    // The exception is meant to go out directly: that is no leak. The policy below it is as it was.
    assert!(!matrix.rows[0].cells.down.leak);
    assert_eq!((matrix.rows[1].risk, matrix.rows[1].cells.down.outcome), (Risk::None, Outcome::Blocked));
    let rows = fail_matrix(&fixture.input(), &fixture.compiled());
    assert_eq!(rows.iter().map(|row| row.policy_id).collect::<Vec<_>>()[0], id);
    assert_eq!(rows.len(), 2);
}

#[test]
fn the_hops_of_a_policy_are_frozen_by_the_apply() {
    let mut fixture = Fixture::new();
    let laptop = fixture.device("laptop", "02:00:00:00:00:01");
    fixture.tunnel("a");
    fixture.tunnel("b");
    let profile = json!({"name": "exit", "hops": [{"type": "vpn", "target": "a"}], "privacy_class": "strict", "fail_policy": "fail-open"});
    let profile = fixture.create("profile", profile).expect("a profile");
    fixture.policy(json!({"source_type": "device", "source_value": laptop.to_string(), "profile": "exit"}));
    fixture.apply();
    assert_eq!(decision(&fixture, laptop), Decision::Tunnel);
    assert_eq!(fixture.state.pending_policies(), 0);
    // The class of the profile is stricter than its failure policy.
    fixture.set_usable("a", false);
    assert_eq!(decision(&fixture, laptop), Decision::Block);
    let kind = gateway_model::registry::kind("profile").expect("a kind");
    let edited = json!({"name": "exit", "hops": [{"type": "vpn", "target": "b"}]});
    kind.replace(&mut fixture.state, &profile.to_string(), None, edited).expect("an edit");
    assert_eq!((decision(&fixture, laptop), fixture.state.pending_policies()), (Decision::Block, 1));
    fixture.apply();
    assert_eq!((decision(&fixture, laptop), fixture.state.pending_policies()), (Decision::Tunnel, 0));
}

#[test]
fn gates_evaluate_policies_and_not_health() {
    let (mut fixture, laptop) = fixture();
    let test = json!({
        "name": "t", "source": {"device": laptop}, "accept": ["203.0.113.7:443"], "expect_egress": "a",
    });
    fixture.create("test_definition", test).expect("a test");
    let leaks = json!({"name": "u", "source": {"cidr": "192.168.1.128/25"}, "deny": ["203.0.113.7:25"]});
    fixture.create("test_definition", leaks).expect("a test");
    // The tunnel is down now, which fails no test; strangers have no policy, which does.
    fixture.set_usable("a", false);
    let failing: Vec<String> =
        network_tests::failing_gates(&fixture.input()).into_iter().map(|result| result.name).collect();
    assert_eq!(failing, ["u"]);
    // What is denied may not become possible by an outage.
    let id = fixture.state.routing_policies.iter().next().expect("a policy").meta.id.to_string();
    let open = json!({"name": "p", "source_type": "device", "source_value": laptop.to_string(), "hops": [{"type": "vpn", "target": "a"}], "fail_policy": "fail-open"});
    gateway_model::registry::kind("routing_policy")
        .expect("a kind")
        .replace(&mut fixture.state, &id, None, open)
        .expect("an edit");
    fixture.apply();
    let down = json!({"name": "v", "source": {"device": laptop}, "deny": ["203.0.113.7:25"]});
    fixture.create("test_definition", down).expect("a test");
    let results = network_tests::failing_gates(&fixture.input());
    let of_v = results.iter().find(|result| result.name == "v").expect("it fails");
    assert!(of_v.failures.iter().any(|text| text.contains("while no tunnel works")), "{of_v:?}");
}

/// Asks about one destination.
fn decision_to(fixture: &Fixture, device: Id, destination: &str) -> Decision {
    let destination = Some(destination.to_owned());
    let request = Request { device_id: Some(device), destination, ..Request::default() };
    evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer").decision
}

fn allowlist(fixture: &mut Fixture, device: Id, targets: &[&str]) -> Id {
    let input =
        json!({"type": "service-allowlist", "device_id": device, "allow_direct": true, "targets": targets});
    fixture.create("exception", input).expect("an exception")
}

#[test]
fn an_allowlist_lets_one_device_out_to_its_targets_only() {
    let (mut fixture, laptop) = fixture();
    let other = fixture.device("tv", "02:00:00:00:00:02");
    fixture.policy(json!({"name": "q", "source_type": "device", "source_value": other.to_string(), "hops": [{"type": "vpn", "target": "a"}]}));
    fixture.apply();
    allowlist(&mut fixture, laptop, &["203.0.113.0/24", "198.51.100.7:443", "[2001:db8::]:53", ":8443"]);
    for (to, want) in [
        ("203.0.113.9", Decision::Direct),
        ("198.51.100.7:443", Decision::Direct),
        ("198.51.100.7:80", Decision::Tunnel),
        ("192.0.2.1:8443", Decision::Direct),
        ("[2001:db8::7]:8443", Decision::Direct),
        ("[2001:db8::]:53", Decision::Direct),
        ("[2001:db8::1]:53", Decision::Tunnel),
        ("192.0.2.1:443", Decision::Tunnel),
    ] {
        assert_eq!(decision_to(&fixture, laptop, to), want, "{to}");
        assert_eq!(decision_to(&fixture, other, to), Decision::Tunnel, "{to} of another device");
    }
    fixture.now += SignedDuration::from_mins(61);
    assert_eq!(decision_to(&fixture, laptop, "203.0.113.9"), Decision::Tunnel);
    assert!(fixture.compiled().plan.dataplane.list_destinations.is_empty());
}

#[test]
fn lists_of_devices_do_not_mix_and_quarantine_outranks_them() {
    let (mut fixture, laptop) = fixture();
    let other = fixture.device("tv", "02:00:00:00:00:02");
    fixture.policy(json!({"name": "all", "priority": 2000, "source_type": "all", "hops": []}));
    fixture.apply();
    allowlist(&mut fixture, laptop, &["203.0.113.0/24"]);
    allowlist(&mut fixture, laptop, &["203.0.113.0/24:443", "198.51.100.0/24"]);
    allowlist(&mut fixture, other, &["192.0.2.0/24"]);
    let asked = |fixture: &Fixture, device| {
        ["203.0.113.1:443", "198.51.100.1:443", "192.0.2.1:443"].map(|to| decision_to(fixture, device, to))
    };
    assert_eq!(asked(&fixture, laptop), [Decision::Direct, Decision::Direct, Decision::Tunnel]);
    assert_eq!(asked(&fixture, other), [Decision::Block, Decision::Block, Decision::Direct]);
    exception(&mut fixture, "quarantine", laptop, 10);
    assert_eq!(asked(&fixture, laptop), [Decision::Block; 3]);
}
