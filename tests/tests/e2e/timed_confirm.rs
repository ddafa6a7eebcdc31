//! Commit-confirmed: a change that disconnects its author is rolled back, even across restarts of the daemon.

use gateway_tests::services::HTTP;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{Host, server, wan};
use gateway_tests::traffic::ask;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::{BLOCKED, FAMILIES, SOON, assert_blocked, assert_direct};

/// Returns a plan that removes the host's egress and requires confirmation.
fn cut_off(host: &Host, seconds: u32) -> Value {
    json!({
        "resources": {
            "devices": [{"name": host.name, "mac": host.mac}],
            "policies": [{"name": "nowhere", "priority": 1, "source_type": "device", "source_value": host.name,
                          "hops": [], "fail_policy": "fail-closed"}],
        },
        "confirm_timeout_sec": seconds,
    })
}

fn wait_until_direct(host: &Host) {
    for ipv6 in FAMILIES {
        wait_ok(SOON, &format!("{} to have its way again", host.name), || {
            let answer = ask(host, (server(ipv6), HTTP).into(), BLOCKED);
            anyhow::ensure!(answer.seen() == Some(wan(ipv6)), "{answer}");
            Ok(())
        })
        .expect("way restored");
    }
}

#[test]
fn a_client_that_is_cut_off_and_cannot_confirm_gets_access_back() {
    let testbed = Testbed::start().expect("scene");
    let laptop = &testbed.network.laptop;
    assert_direct(laptop);
    let result = testbed.api().post("/apply", &cut_off(laptop, 4)).expect("applied");
    assert_eq!((&result["applied"], &result["run"]["ok"]), (&json!(true), &json!(true)), "{result}");
    assert!(result["pending_confirm_until"].is_string(), "{result}");
    assert_blocked(laptop);
    wait_until_direct(laptop);
    let policies = testbed.api().get("/routing/policies").expect("policies");
    assert_eq!(policies, json!([]));
    let entry = testbed.api().get("/audit?limit=1").expect("audit")[0].clone();
    assert_eq!((&entry["action"], &entry["actor"]), (&json!("revert_apply"), &json!("system")));
}

#[test]
fn a_confirmed_change_stays_applied() {
    let testbed = Testbed::start().expect("scene");
    let laptop = &testbed.network.laptop;
    testbed.api().post("/apply", &cut_off(laptop, 3)).expect("applied");
    testbed.api().act("/apply/confirm").expect("confirmed");
    let until = std::time::Duration::from_secs(5);
    let back = wait_ok(until, "the way not to come back", || {
        let answer = ask(laptop, (server(false), HTTP).into(), BLOCKED);
        anyhow::ensure!(answer.seen().is_some(), "{answer}");
        Ok(())
    });
    assert!(back.is_err(), "a confirmed change was taken back");
}

#[test]
fn a_daemon_that_is_killed_meanwhile_takes_the_change_back_at_its_start() {
    let mut testbed = Testbed::start().expect("scene");
    testbed.api().post("/apply", &cut_off(&testbed.network.laptop, 3)).expect("applied");
    assert_blocked(&testbed.network.laptop);
    testbed.daemon.kill9().expect("killed");
    // Without the daemon no rollback occurs: the plan stays active beyond its timeout.
    let over = std::time::Instant::now() + std::time::Duration::from_secs(4);
    while std::time::Instant::now() < over {
        assert_blocked(&testbed.network.laptop);
    }
    testbed.daemon.start().expect("started again");
    wait_until_direct(&testbed.network.laptop);
    assert_eq!(testbed.api().get("/devices").expect("devices"), json!([]));
}

#[test]
fn a_change_survives_a_restart_within_its_time_and_goes_after_it() {
    let mut testbed = Testbed::start().expect("scene");
    testbed.api().post("/apply", &cut_off(&testbed.network.laptop, 12)).expect("applied");
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started again");
    assert_blocked(&testbed.network.laptop);
    let status = testbed.api().get("/status").expect("status");
    assert!(status["pending_confirm_until"].is_string(), "{status}");
    wait_until_direct(&testbed.network.laptop);
}
