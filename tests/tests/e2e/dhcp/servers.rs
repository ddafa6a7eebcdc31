//! Other DHCP servers, and hosts that use addresses without a lease.

use std::time::Duration;

use anyhow::ensure;
use gateway_tests::dhcp::{DISCOVER, OFFER, Program, Relay};
use gateway_tests::testbed::Testbed;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use super::{enable, forget_address, health, leases, other_server, settings};
use crate::e2e::SOON;

#[test]
fn other_server_is_found_before_the_own_is_enabled_and_reported_afterwards() {
    let testbed = Testbed::start().expect("scene");
    let tv = &testbed.network.tv;
    let other = other_server(tv).expect("a server");
    let warnings = enable(&testbed, &settings(100, 109));
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let message = warnings[0]["message"].as_str().expect("a message");
    assert!(message.contains("192.168.10.20") && message.contains(tv.mac), "{message}");
    let report = wait_ok(SOON, "the other server to be reported", || {
        let health = health(testbed.api())?;
        ensure!(health["state"] == "degraded", "{health}");
        Ok(health)
    })
    .expect("reported");
    assert!(report.to_string().contains("192.168.10.20"), "{report}");
    drop(other);
}

#[test]
fn address_in_use_is_not_offered() {
    let testbed = Testbed::start().expect("scene");
    let (laptop, tv) = (&testbed.network.laptop, &testbed.network.tv);
    tv.namespace.ip("address add 192.168.10.100/24 dev eth0").expect("an address without a lease");
    enable(&testbed, &settings(100, 101));
    let relay = Relay::on(laptop, Duration::from_secs(5)).expect("a relay");
    let offer = relay.ask([2, 0, 0, 0, 0, 1], DISCOVER, &[]).expect("an offer");
    assert_eq!((offer.kind, offer.address.to_string()), (OFFER, "192.168.10.101".to_owned()));
    let declined = leases(testbed.api(), "?state=declined");
    assert_eq!(declined.len(), 1, "{declined:?}");
    assert_eq!((&declined[0]["ip"], &declined[0]["mac"]), (&json!("192.168.10.100"), &json!(tv.mac)));
}

/// A blocked host gets an address all the same.
#[test]
fn host_that_is_blocked_gets_an_address() {
    let testbed = Testbed::start().expect("scene");
    let tv = &testbed.network.tv;
    let device = testbed.device(tv).expect("a device");
    let blocked = json!({
        "name": "blocked", "priority": 1, "enabled": true, "source_type": "device", "source_value": device,
        "hops": [], "fail_policy": "fail-closed",
    });
    testbed.policy(&blocked).expect("a policy");
    enable(&testbed, &settings(100, 101));
    forget_address(tv);
    let client = Program::Udhcpc.start(tv, "tv").expect("a client");
    assert!(client.bound().expect("an address").address.starts_with("192.168.10.10"));
}
