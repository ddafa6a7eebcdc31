//! Profiles of devices: the egress of traffic that no policy matches.

use gateway_core::evaluate::{Decision, Evaluation, Request, evaluate};
use gateway_core::matrix::leak_matrix;
use gateway_model::Id;
use serde_json::{Value, json};

use crate::fixture::Fixture;

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    for tunnel in ["a", "b", "c"] {
        fixture.tunnel(tunnel);
        let hops = json!([{"type": "vpn", "target": tunnel}]);
        fixture.create("profile", json!({"name": format!("by {tunnel}"), "hops": hops})).expect("a profile");
    }
    fixture
}

fn asked(fixture: &Fixture, device: Id) -> Evaluation {
    let request = Request { device_id: Some(device), ..Request::default() };
    evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer")
}

fn hop(fixture: &Fixture, device: Id) -> Option<String> {
    asked(fixture, device).effective.hop.map(|hop| hop.target)
}

fn replace(fixture: &mut Fixture, noun: &str, id: Id, input: Value) {
    let kind = gateway_model::registry::kind(noun).expect("a kind");
    kind.replace(&mut fixture.state, &id.to_string(), None, input).expect("replaced");
}

#[test]
fn a_profile_counts_at_once_and_behind_every_policy() {
    let mut fixture = fixture();
    let mac = "02:00:00:00:00:01";
    let laptop =
        fixture.create("device", json!({"name": "laptop", "mac": mac, "profile": "by a"})).expect("a device");
    let other = fixture.device("tv", "02:00:00:00:00:02");
    assert_eq!(
        (hop(&fixture, laptop).as_deref(), asked(&fixture, other).decision),
        (Some("a"), Decision::Direct)
    );
    let compiled = fixture.compiled();
    assert_eq!(
        (compiled.policies.len(), compiled.plan.dataplane.actions[0].policy),
        (1, 0),
        "no counters of a policy"
    );
    fixture.policy(json!({"name": "web", "priority": 1_000_000, "source_type": "destination",
        "source_value": "198.51.100.0/24", "hops": [{"type": "vpn", "target": "b"}]}));
    fixture.apply();
    let to = |address: &str| {
        let destination = Some(address.to_owned());
        let request = Request { device_id: Some(laptop), destination, ..Request::default() };
        evaluate(&fixture.input(), &fixture.compiled(), &request)
            .expect("an answer")
            .effective
            .hop
            .map(|hop| hop.target)
    };
    assert_eq!((to("198.51.100.7").as_deref(), to("192.0.2.7").as_deref()), (Some("b"), Some("a")));
    replace(&mut fixture, "device", laptop, json!({"name": "laptop", "mac": mac, "profile": null}));
    assert_eq!(asked(&fixture, laptop).decision, Decision::Direct);
}

#[test]
fn a_device_says_before_its_groups_and_those_before_its_class() {
    let mut fixture = fixture();
    fixture.create("trust_class", json!({"name": "ours", "default_profile": "by c"})).expect("a class");
    let mac = "02:00:00:00:00:01";
    let laptop = fixture
        .create("device", json!({"name": "laptop", "mac": mac, "trust_class": "ours"}))
        .expect("a device");
    assert_eq!(hop(&fixture, laptop).as_deref(), Some("c"));
    fixture.create("device_group", json!({"name": "plain", "members": [laptop]})).expect("a group");
    fixture
        .create("device_group", json!({"name": "g", "members": [laptop], "profile": "by b"}))
        .expect("a group");
    assert_eq!(hop(&fixture, laptop).as_deref(), Some("b"));
    let own = json!({"name": "laptop", "mac": mac, "trust_class": "ours", "profile": "by a"});
    replace(&mut fixture, "device", laptop, own);
    assert_eq!(hop(&fixture, laptop).as_deref(), Some("a"));
}

#[test]
fn a_profile_fails_as_it_says_and_the_matrix_knows() {
    let mut fixture = fixture();
    let open = json!({"name": "open", "hops": [{"type": "vpn", "target": "a"}], "fail_policy": "fail-open"});
    fixture.create("profile", open).expect("a profile");
    let closed = fixture
        .create("device", json!({"name": "closed", "mac": "02:00:00:00:00:01", "profile": "by a"}))
        .expect("a device");
    let open = fixture
        .create("device", json!({"name": "open", "mac": "02:00:00:00:00:02", "profile": "open"}))
        .expect("a device");
    fixture.set_usable("a", false);
    assert_eq!(asked(&fixture, closed).decision, Decision::Block);
    assert_eq!(asked(&fixture, open).decision, Decision::Direct);
    let matrix = leak_matrix(&fixture.input());
    let names: Vec<_> = matrix.rows.iter().map(|row| (row.name.as_str(), row.cells.down.leak)).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&("profile by a", false)), "{names:?}");
}

#[test]
fn quarantine_and_exceptions_come_before_a_profile() {
    let mut fixture = fixture();
    let laptop = fixture
        .create("device", json!({"name": "laptop", "mac": "02:00:00:00:00:01", "profile": "by a"}))
        .expect("a device");
    let bypass = json!({"type": "emergency-bypass", "device_id": laptop, "allow_direct": true});
    fixture.create("exception", bypass).expect("an exception");
    assert_eq!(asked(&fixture, laptop).decision, Decision::Direct);
    fixture.create("exception", json!({"type": "quarantine", "device_id": laptop})).expect("an exception");
    assert_eq!(asked(&fixture, laptop).decision, Decision::Block);
}
