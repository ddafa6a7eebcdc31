//! Another DHCP server, an address that a host uses without a lease, and a range that is given out.

use std::time::Duration;

use gateway_tests::dhcp::{DISCOVER, Relay};
use gateway_tests::testbed::Testbed;
use gateway_tests::wait::wait_until;
use gateway_tests::wall_clock::WallClock;
use serde_json::json;

use super::{wait_for_alert, wait_for_end};
use crate::e2e::SOON;
use crate::e2e::dhcp::{enable, other_server, settings};

/// Seconds of a lease.
const LEASE: i64 = 600;
/// Seconds after which a server that is silent is gone: two searches without an answer.
const SERVER_LIFETIME: i64 = 11 * 60;
/// Seconds for which an address that another host uses is not given out.
const QUARANTINE: i64 = 3600;
const RESERVE: i64 = 60;

#[test]
fn other_server_conflicting_address_and_used_up_range_are_alerts_until_they_end() {
    let mut testbed = Testbed::prepare().expect("scene");
    let clock = WallClock::install(&mut testbed.daemon).expect("a clock");
    testbed.daemon.start().expect("daemon");
    let (api, network) = (testbed.api(), &testbed.network);
    network.tv.namespace.ip("address add 192.168.10.100/24 dev eth0").expect("an address without a lease");
    let other = other_server(&network.tv).expect("a server");
    enable(&testbed, &settings(100, 101));
    let rogue = wait_for_alert(api, "rogue_dhcp", "192.168.10.20%eth1", 2 * SOON);
    assert_eq!((&rogue["severity"], &rogue["resource_type"]), (&json!("critical"), &json!("dhcp_server")));
    assert!(rogue["message"].as_str().is_some_and(|text| text.contains(network.tv.mac)), "{rogue}");

    let relay = Relay::on(&network.laptop, Duration::from_secs(5)).expect("a relay");
    let mac = [2, 0, 0, 0, 0, 1];
    let address = wait_until(SOON, "a lease", || relay.lease(mac)).expect("a lease");
    assert_eq!(address.to_string(), "192.168.10.101");
    let conflict = wait_for_alert(api, "ip_conflict", "192.168.10.100", SOON);
    assert_eq!(conflict["resource_type"], "address");
    assert!(relay.ask([2, 0, 0, 0, 0, 2], DISCOVER, &[]).is_none(), "no address is left");
    let exhausted = wait_for_alert(api, "dhcp_pool_exhausted", "eth1", SOON);
    assert!(
        exhausted["message"].as_str().is_some_and(|text| text.contains("no address is free")),
        "{exhausted}"
    );

    // The lease ends, and the other server is not heard any more.
    drop(other);
    clock.set(LEASE.max(SERVER_LIFETIME) + RESERVE).expect("later");
    wait_for_end(api, &exhausted, 2 * SOON);
    wait_for_end(api, &rogue, 2 * SOON);
    network.tv.namespace.ip("address delete 192.168.10.100/24 dev eth0").expect("given up");
    clock.set(SERVER_LIFETIME + QUARANTINE + RESERVE).expect("later");
    wait_for_end(api, &conflict, 2 * SOON);
}
