//! Decisions of the past: by the plan that was in force then, over changes, restarts and a wipe.

use gateway_tests::services::HTTP;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::ask;
use gateway_tests::wait::wait_ok;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::e2e::{BLOCKED, SOON, assert_blocked, assert_through, wait_until_through};

/// Evaluates traffic of a device to the server at a time.
fn evaluate_at(testbed: &Testbed, device: &str, at: Timestamp) -> gateway_tests::daemon::Reply {
    let request = json!({"device_id": device, "to": format!("{}:443", server(false)), "at": at.to_string()});
    testbed.api().send("POST", "/policy/evaluate", Some(&request)).expect("an answer")
}

/// Returns the decision of a time, after the record of a plan was written.
fn decision(testbed: &Testbed, device: &str, at: Timestamp) -> Value {
    let mut data = Value::Null;
    wait_ok(SOON, "a plan of the time", || {
        let reply = evaluate_at(testbed, device, at);
        anyhow::ensure!(reply.status == 200, "{}", reply.body);
        data = reply.body["data"].clone();
        Ok(())
    })
    .expect("a decision of then");
    assert_eq!(data["as_of"]["reproduced"], true, "{data}");
    data
}

fn via(decision: &Value) -> &Value {
    &decision["families"]["ipv4"]["via"]
}

#[test]
fn a_decision_of_the_past_is_explained_by_the_plan_of_then() {
    let mut testbed = Testbed::start().expect("scene");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &testbed.network.exit_b).expect("tunnel");
    let bound = testbed.policy(&policy("by exit", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_through(&testbed.network.laptop, &testbed.network.exit_a);
    let through_a = Timestamp::now();

    testbed.replace_policy(&bound, &policy("by exit", 10, ("device", &laptop), &["wg-b"])).expect("policy");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_b);
    let through_b = Timestamp::now();

    let quarantine = json!({"type": "quarantine", "device_id": laptop, "reason": "test", "duration_min": 5});
    testbed.api().post("/exceptions", &quarantine).expect("an exception");
    wait_ok(SOON, "the quarantine", || {
        let answer = ask(&testbed.network.laptop, (server(false), HTTP).into(), BLOCKED);
        anyhow::ensure!(answer.seen().is_none(), "{answer}");
        Ok(())
    })
    .expect("quarantined");
    assert_blocked(&testbed.network.laptop);
    let quarantined = Timestamp::now();

    let check = |testbed: &Testbed| {
        let a = decision(testbed, &laptop, through_a);
        assert_eq!((&a["decision"], via(&a)), (&json!("tunnel"), &json!("vpn:wg-a")), "{a}");
        let b = decision(testbed, &laptop, through_b);
        assert_eq!((&b["decision"], via(&b)), (&json!("tunnel"), &json!("vpn:wg-b")), "{b}");
        let c = decision(testbed, &laptop, quarantined);
        assert_eq!((&c["decision"], via(&c)), (&json!("block"), &Value::Null), "{c}");
        let generation = |decision: &Value| decision["as_of"]["generation"].as_u64().expect("a number");
        assert!(generation(&a) < generation(&b) && generation(&b) < generation(&c));
        let until = a["as_of"]["until"].as_str().expect("its end").parse::<Timestamp>().expect("a time");
        assert!(until > through_a && until <= through_b, "{a}");
        generation(&c)
    };
    let before = check(&testbed);
    let rendered = testbed.api().get("/render").expect("the plan")["generation"].as_u64().expect("a number");
    assert!(rendered >= before);
    // What was decided is on the disk when the daemon is killed.
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started again");
    assert_eq!(check(&testbed), before);
    refusals(&testbed, &laptop, through_a);
}

fn refusals(testbed: &Testbed, laptop: &str, kept: Timestamp) {
    let error = |reply: &gateway_tests::daemon::Reply| (reply.status, reply.body["error"]["code"].clone());
    let tomorrow = evaluate_at(testbed, laptop, Timestamp::now() + SignedDuration::from_hours(24));
    assert_eq!(error(&tomorrow), (422, json!("validation_failed")), "{}", tomorrow.body);
    assert_eq!(tomorrow.body["error"]["details"]["fields"][0]["path"], "at");
    let yesterday = evaluate_at(testbed, laptop, Timestamp::now() - SignedDuration::from_hours(24));
    assert_eq!(error(&yesterday), (404, json!("not_found")), "{}", yesterday.body);
    let oldest = yesterday.body["error"]["details"]["oldest"].as_str().expect("what is kept");
    assert!(oldest.parse::<Timestamp>().expect("a time") < kept);

    testbed.api().post("/system/wipe", &json!({"level": "soft"})).expect("wiped");
    let wiped = evaluate_at(testbed, laptop, kept);
    assert_eq!(error(&wiped), (404, json!("not_found")), "{}", wiped.body);
}

/// A number of a plan must not return, because records of flows name it.
#[test]
fn after_the_maps_are_gone_the_numbers_of_plans_go_on() {
    let mut testbed = Testbed::start().expect("scene");
    let generation = |testbed: &Testbed| {
        testbed.api().get("/render").expect("the plan")["generation"].as_u64().expect("a number")
    };
    let before = generation(&testbed);
    assert!(before > 0);
    testbed.daemon.kill9().expect("killed");
    // As a boot of the host does.
    gateway_tests::netns::remove_pins(testbed.daemon.pin_directory());
    testbed.daemon.start().expect("started again");
    let after = generation(&testbed);
    assert!(after > before, "{before}, then {after}");
}
