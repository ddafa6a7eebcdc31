//! Leak checks: the verdict on probes that a device could have sent, in the states that matter.

use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::dns_policy::resolving;
use crate::e2e::{SOON, assert_blocked, assert_direct, assert_nothing_leaked, assert_through};

/// Names of the interfaces by which probes of a check left.
fn interfaces(result: &Value) -> Vec<&str> {
    let packets = result["packets"].as_array().expect("packets");
    packets.iter().filter_map(|at| at["interface"].as_str()).collect()
}

fn result<'a>(report: &'a Value, check: &str) -> &'a Value {
    let results = report["results"].as_array().expect("results");
    results.iter().find(|result| result["check"] == check).unwrap_or_else(|| panic!("{check}: {report}"))
}

fn check(testbed: &Testbed, request: &Value) -> Value {
    testbed.api().post("/privacy/leak-check", request).expect("a report")
}

/// Returns the laptop as a device whose address the gateway has observed.
pub(crate) fn known_device(testbed: &Testbed) -> String {
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    assert_direct(&testbed.network.laptop);
    wait_ok(SOON, "an observed address", || {
        let device = testbed.api().get(&format!("/devices/{laptop}"))?;
        anyhow::ensure!(device["ips"].to_string().contains("192.168.10."), "{device}");
        Ok(())
    })
    .expect("observed");
    laptop
}

/// Uplink of the gateway.
const UPLINK: &str = "eth0";
const ALL: [&str; 7] = ["dns", "ipv4", "ipv6", "webrtc", "doh", "quic", "route"];

#[test]
fn a_device_is_checked_directly_through_its_tunnel_and_without_it() {
    let (testbed, _upstream) = resolving();
    let network = &testbed.network;
    let laptop = known_device(&testbed);
    let request = json!({"device_id": laptop});

    let direct = check(&testbed, &request);
    assert_eq!(direct["verdict"], "pass", "{direct:#}");
    for name in ALL {
        let uplink = [UPLINK];
        assert_eq!(interfaces(result(&direct, name)), uplink, "{name}: {direct:#}");
    }
    let risks = direct["remaining_risks"].to_string();
    assert!(
        risks.contains("public address of an uplink") && risks.contains("HTTPS is not blocked"),
        "{risks}"
    );

    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    let interface = testbed.interface(&tunnel).expect("interface");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    network.tap.reset();
    let bound = check(&testbed, &request);
    assert_eq!(bound["verdict"], "pass", "{bound:#}");
    for name in ALL {
        assert_eq!(interfaces(result(&bound, name)), [interface.as_str()], "{name}: {bound:#}");
    }

    testbed.bring_down(&tunnel).expect("down");
    assert_blocked(&network.laptop);
    let cut_off =
        check(&testbed, &json!({"device_id": laptop, "checks": ["route", "ipv4", "ipv6", "webrtc"]}));
    assert_eq!(cut_off["verdict"], "pass", "{cut_off:#}");
    for result in cut_off["results"].as_array().expect("results") {
        assert_eq!(result["packets"], json!([]), "{cut_off:#}");
        let expected = result["expected"].as_str().expect("text");
        assert!(expected.starts_with("stopped"), "{expected}");
    }
    assert_nothing_leaked(&testbed);
}

#[test]
fn blocks_change_the_report() {
    let (testbed, _upstream) = resolving();
    let laptop = known_device(&testbed);
    let request = json!({"device_id": laptop});
    let scope = json!({"device_id": laptop});
    for switch in ["block-doh", "block-webrtc", "block-ipv6", "force-dns"] {
        let body = json!({"enabled": true, "scope": scope});
        testbed.api().post(&format!("/privacy/{switch}"), &body).expect("switched");
    }
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    let report = check(&testbed, &request);
    assert_eq!(report["verdict"], "pass", "{report:#}");
    for name in ["doh", "webrtc", "ipv6"] {
        assert_eq!(interfaces(result(&report, name)), [""; 0], "{name}: {report:#}");
        let expected = result(&report, name)["expected"].as_str().expect("text");
        assert!(expected.contains("blocked for it"), "{expected}");
    }
    let expected = result(&report, "dns")["expected"].as_str().expect("text");
    assert!(expected.contains("answered by the gateway"), "{expected}");
    let risks = report["remaining_risks"].to_string();
    assert!(!risks.contains("HTTPS is not blocked") && risks.contains("TURN over TLS"), "{risks}");
    // The scope is one device: another host sees no block.
    let other = check(&testbed, &json!({"checks": ["doh"]}));
    assert_eq!(interfaces(result(&other, "doh")), [UPLINK], "{other:#}");
}

/// A policy for the IPv4 network only leaves IPv6 to the default route: the check finds it.
#[test]
fn a_family_without_the_policy_of_the_other_fails() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    let v4 = policy("v4-only", 10, ("subnet", "192.168.10.0/24"), &["wg-a"]);
    testbed.policy(&v4).expect("policy");
    let report = check(&testbed, &json!({"device_id": laptop, "checks": ["ipv4", "ipv6", "route"]}));
    assert_eq!(report["verdict"], "fail", "{report:#}");
    assert_eq!(result(&report, "ipv4")["pass"], true, "{report:#}");
    assert_eq!(result(&report, "ipv6")["pass"], false, "{report:#}");
    assert_eq!(interfaces(result(&report, "ipv6")), [UPLINK], "{report:#}");
}

/// The verdict of `/status` follows a tunnel: through it, cut off, and through it again.
#[test]
fn the_verdict_tells_who_is_cut_off_and_why() {
    let testbed = Testbed::start().expect("scene");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    let tunnel = testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_through(&testbed.network.laptop, &testbed.network.exit_a);
    let wait_for = |word: &str, clause: &str| {
        wait_ok(SOON, clause, || {
            let verdict = testbed.api().get("/status")?["verdict"].clone();
            let sentence = verdict["sentence"].as_str().unwrap_or_default();
            anyhow::ensure!(verdict["word"] == word && sentence.contains(clause), "{verdict}");
            anyhow::ensure!(verdict["leaked_packets"] == 0, "{verdict}");
            Ok(())
        })
        .expect(clause);
    };
    wait_for("OK", "1 protected host leaves through its policy.");
    testbed.bring_down(&tunnel).expect("down");
    wait_for(
        "BLOCKED",
        "Of 1 protected host 0 leave through their policy, 1 is cut off on purpose: tunnel wg-a is down",
    );
    testbed.bring_up(&tunnel).expect("up");
    wait_for("OK", "leaves through its policy");
}
