//! Expiry times that the dataplane enforces: exceptions, policies, drains.
//!
//! Security review 6, leak replay L2.

use std::time::{Duration, Instant};

use gateway_tests::services::HTTP;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{server, wan};
use gateway_tests::traffic::{Load, ask};
use gateway_tests::wait::wait_for;
use serde_json::json;

use crate::nothing_past::{BLOCKED, FAMILIES, SOON, assert_the_tap_sees};

/// Waits until the load gets no more answers to the uplink's address.
fn wait_until_not_direct(testbed: &Testbed, deadline: Duration) {
    wait_for(deadline, "new connections to leave directly no longer", || {
        FAMILIES.into_iter().all(|ipv6| {
            ask(&testbed.network.laptop, (server(ipv6), HTTP).into(), BLOCKED).seen() != Some(wan(ipv6))
        })
    })
    .expect("the end is enforced");
}

/// Asserts that no packets of new or existing flows are on the uplink.
fn assert_closed(testbed: &Testbed, load: &Load) {
    testbed.network.tap.reset();
    load.run_for(300).expect("load");
    let counts = testbed.network.tap.counts();
    assert!(counts.leaked.total() == 0 && counts.missed == 0, "{counts}");
}

#[test]
fn an_exception_ends_although_the_daemon_is_dead() {
    let mut testbed = Testbed::start().expect("scene");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    assert_the_tap_sees(&testbed, &testbed.network.tv);
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    let started = Instant::now();
    let exception = json!({
        "type": "emergency-bypass", "device_id": laptop, "reason": "test", "allow_direct": true, "duration_min": 1
    });
    testbed.api().post("/exceptions", &exception).expect("exception");
    let load = Load::start(&testbed.network.laptop).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(wan(ipv6), SOON).expect("load past the policies");
    }
    testbed.daemon.kill9().expect("killed");
    load.run_for(100).expect("load");
    assert!(load.sent().answers.contains_key(&wan(false)), "it goes on without the daemon until its end");
    let left = Duration::from_secs(62).saturating_sub(started.elapsed());
    wait_until_not_direct(&testbed, left + SOON);
    assert!(started.elapsed() >= Duration::from_secs(45), "it did not end long before its time");
    assert_closed(&testbed, &load);
    load.stop();
}

#[test]
fn an_expiring_policy_ends_although_the_daemon_is_dead() {
    let mut testbed = Testbed::start().expect("scene");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    assert_the_tap_sees(&testbed, &testbed.network.tv);
    testbed.store_policy(&policy("closed", 20, ("device", &laptop), &[])).expect("policy");
    let end = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(20);
    let mut open = policy("open", 10, ("device", &laptop), &[]);
    open["hops"] = json!([{"type": "interface", "target": "eth0"}]);
    open["expires_at"] = json!(end.to_string());
    testbed.policy(&open).expect("policy");
    let load = Load::start(&testbed.network.laptop).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(wan(ipv6), SOON).expect("load by the uplink");
    }
    testbed.daemon.kill9().expect("killed");
    wait_until_not_direct(&testbed, Duration::from_secs(40));
    assert!(jiff::Timestamp::now() >= end - jiff::SignedDuration::from_secs(2), "not before its end");
    assert_closed(&testbed, &load);
    load.stop();
}
