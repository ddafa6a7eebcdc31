//! The check of an edit that is not applied.

use gateway_core::compile::compile;
use gateway_core::conflicts::Severity;
use gateway_core::plan_check::{IssueSource, PlanCheck, check_edit};
use gateway_model::registry::kind;
use serde_json::{Value, json};

use crate::fixture::Fixture;

/// A laptop whose traffic goes through a tunnel, applied.
fn through_a_tunnel() -> Fixture {
    let mut fixture = Fixture::new();
    let laptop = fixture.device("laptop", "02:00:00:00:00:0a");
    fixture.tunnel("nl");
    fixture.policy(json!({"name": "by nl", "priority": 100, "source_type": "device",
        "source_value": laptop.to_string(), "hops": [{"type": "vpn", "target": "nl"}]}));
    fixture.apply();
    fixture
}

fn check(fixture: &Fixture, policy: Value) -> PlanCheck {
    let create = |draft: &mut _| {
        kind("routing_policy").expect("a kind").create(draft, policy).map(|written| written.warnings)
    };
    check_edit(&fixture.input(), create)
}

fn sources(check: &PlanCheck) -> Vec<(IssueSource, Severity)> {
    check.issues.iter().map(|issue| (issue.source, issue.severity)).collect()
}

#[test]
fn a_policy_that_only_blocks_has_no_issue_and_changes_nothing() {
    let fixture = through_a_tunnel();
    let policy = json!({"name": "no guests", "priority": 50, "source_type": "subnet",
        "source_value": "192.168.1.128/25", "hops": []});
    let checked = check(&fixture, policy);
    assert!(checked.valid && checked.issues.is_empty(), "{checked:#?}");
    assert_eq!((checked.changes.len(), checked.leak_rows.len()), (1, 1));
    assert!(checked.plan.is_some_and(|plan| plan.changed));
    assert_eq!(fixture.state.routing_policies.len(), 1);
}

#[test]
fn a_device_that_would_leave_directly_is_named() {
    let fixture = through_a_tunnel();
    let checked = check(
        &fixture,
        json!({"name": "all open", "priority": 1, "source_type": "all", "hops": [], "fail_policy": "fail-open"}),
    );
    let exposed: Vec<_> =
        checked.issues.iter().filter(|issue| issue.source == IssueSource::Exposure).collect();
    assert_eq!(exposed.len(), 1, "{checked:#?}");
    assert!(exposed[0].message.contains("\"laptop\""), "{}", exposed[0].message);
}

#[test]
fn wrong_fields_conflicts_and_gating_tests_make_it_invalid() {
    let mut fixture = through_a_tunnel();
    let unknown =
        json!({"name": "x", "source_type": "all", "hops": [{"type": "vpn", "target": "none-such"}]});
    let checked = check(&fixture, unknown);
    assert!(!checked.valid, "{checked:#?}");
    assert!(sources(&checked).contains(&(IssueSource::Conflicts, Severity::Error)), "{checked:#?}");
    assert_eq!(checked.issues[0].path, "hops[0].target");
    let wrong = json!({"name": "x", "source_type": "subnet", "source_value": "everyone", "hops": []});
    let checked = check(&fixture, wrong);
    assert!(!checked.valid && checked.plan.is_none(), "{checked:#?}");
    assert_eq!(sources(&checked), [(IssueSource::Fields, Severity::Error)]);
    assert_eq!(checked.issues[0].path, "source_value");

    let laptop = fixture.ids["laptop"].to_string();
    let against = json!({"name": "against", "priority": 100, "source_type": "device", "source_value": laptop,
        "hops": []});
    let checked = check(&fixture, against);
    assert!(!checked.valid, "{checked:#?}");
    assert!(checked.issues[0].message.contains("\"by nl\""), "{checked:#?}");

    let gate = json!({"name": "laptop leaves", "source": {"device": laptop}, "accept": ["203.0.113.80:443"],
        "gate": true});
    fixture.create("test_definition", gate).expect("a test");
    let blocks = json!({"name": "stop", "priority": 1, "source_type": "all", "hops": []});
    let checked = check(&fixture, blocks);
    assert!(
        !checked.valid && sources(&checked).contains(&(IssueSource::Tests, Severity::Error)),
        "{checked:#?}"
    );
}

#[test]
fn a_leak_of_the_policy_itself_is_said() {
    let fixture = through_a_tunnel();
    let policy = json!({"name": "open", "priority": 50, "source_type": "subnet", "source_value": "192.168.1.0/25",
        "hops": [{"type": "vpn", "target": "nl"}], "fail_policy": "fail-open"});
    let checked = check(&fixture, policy);
    let leak = checked.issues.iter().find(|issue| issue.source == IssueSource::LeakMatrix);
    let leak = leak.unwrap_or_else(|| panic!("no leak: {checked:#?}"));
    assert!(leak.message.contains("all tunnels are down"), "{}", leak.message);
    assert!(checked.valid, "a leak by the failure policy is no error");
}

#[test]
fn devices_that_were_not_compared_are_said() {
    let mut fixture = through_a_tunnel();
    (1..=500).for_each(|number| {
        fixture.device(
            &format!("d{number}"),
            &format!("02:00:00:00:{:02x}:{:02x}", 1 + number / 256, number % 256),
        );
    });
    let policy = json!({"name": "no guests", "priority": 50, "source_type": "subnet",
        "source_value": "192.168.1.128/25", "hops": []});
    let checked = check(&fixture, policy);
    assert_eq!(sources(&checked), [(IssueSource::Exposure, Severity::Info)], "{:#?}", checked.issues);
    assert!(checked.valid && checked.issues[0].message.contains("500 of 501"), "{:#?}", checked.issues);
}

#[test]
fn policies_that_wait_for_an_apply_are_no_difference() {
    let mut fixture = through_a_tunnel();
    fixture.policy(json!({"name": "waits", "priority": 1, "source_type": "all", "hops": [],
        "fail_policy": "fail-open"}));
    let checked = check(
        &fixture,
        json!({"name": "no guests", "priority": 50, "source_type": "subnet", "source_value": "10.9.0.0/16",
               "hops": []}),
    );
    assert!(checked.issues.iter().all(|issue| issue.source != IssueSource::Exposure), "{checked:#?}");
    let untouched = compile(&fixture.input());
    assert_eq!(untouched.policies.len(), 1);
}
