//! Floods of clients that only discover.

use std::time::Duration;

use anyhow::ensure;
use gateway_tests::dhcp::{ACK, REQUEST, Relay, address_option};
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::LAN_V4;
use gateway_tests::wait::{wait_ok, wait_until};
use serde_json::Value;

use super::{enable, health, leases, resolve, settings, wait_for_name};
use crate::e2e::SOON;

const DISCOVERS: u32 = 100_000;
/// Messages that are sent before the answers are read.
const BURST: u32 = 200;
/// Memory that the flood may take: the offers, and the buffers of the sockets.
const MAX_GROWTH_KIB: u64 = 24 << 10;

fn resident_kib(testbed: &Testbed) -> u64 {
    let pid = testbed.daemon.pid().expect("a daemon");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("resident memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The pool is exhausted visibly, and nothing else is: leases stay, clients that complete get an address, names resolve.
#[test]
fn flood_of_discovers_exhausts_the_pool_visibly_and_nothing_else() {
    let testbed = Testbed::start().expect("scene");
    let (api, laptop) = (testbed.api(), &testbed.network.laptop);
    let mut small = settings(100, 199);
    small["ping_check"] = Value::from(false);
    enable(&testbed, &small);
    let relay = Relay::on(laptop, Duration::from_secs(2)).expect("a relay");
    let mac = [2, 0, 0, 0, 0, 1];
    let address = relay.lease(mac).expect("an address");
    let before = resident_kib(&testbed);
    let drain = || while relay.receive_now().is_some() {};
    for number in 0..DISCOVERS {
        let [a, b, c, d] = number.to_be_bytes();
        relay.send([6, 1, a, b, c, d], 1, &[]).expect("sent");
        if number % BURST == 0 {
            drain();
        }
        if number == DISCOVERS / 2 {
            // A client that completes gets an address in the midst of the flood.
            wait_until(SOON, "an address under the flood", || relay.lease([2, 0, 0, 0, 0, 2]))
                .expect("an address");
        }
    }
    let report = wait_ok(SOON, "the pool to be exhausted", || {
        let health = health(api)?;
        ensure!(health["state"] == "degraded", "{health}");
        Ok(health)
    })
    .expect("reported");
    assert!(report.to_string().contains("no address is free"), "{report}");
    let metrics =
        testbed.network.gateway.run("curl", &["-s", "http://127.0.0.1:8080/metrics"]).expect("metrics");
    assert!(metrics.contains("gateway_dhcp_pool_free_addresses{scope=\"eth1\"} 0"), "{metrics}");
    let renewed = wait_until(SOON, "a renewal", || {
        let request = [address_option(54, LAN_V4), address_option(50, address)];
        relay.ask(mac, REQUEST, &[&request[0], &request[1]])
    });
    assert_eq!(renewed.map(|ack| (ack.kind, ack.address)).expect("renewed"), (ACK, address));
    let active = leases(api, "?state=active");
    assert_eq!(active.len(), 2, "{active:?}");
    assert_eq!(leases(api, "").len(), 2, "an offer is no lease");
    let growth = resident_kib(&testbed).saturating_sub(before);
    assert!(growth < MAX_GROWTH_KIB, "{growth} KiB");
    wait_for_name(laptop, &["localhost"], "127.0.0.1");
    assert!(resolve(laptop, &["-x", "127.0.0.1"]).starts_with("localhost"));
}
