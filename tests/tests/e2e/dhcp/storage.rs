//! The server while its leases wait for the encrypted storage. A container that nothing opens is enough.

use std::fs;
use std::time::Duration;

use gateway_tests::dhcp::{ACK, Relay};
use gateway_tests::testbed::Testbed;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use super::{enable, health, leases, settings};
use crate::e2e::SOON;

const FIRST: [u8; 6] = [2, 9, 0, 0, 0, 1];
const RESERVED: [u8; 6] = [2, 9, 0, 0, 0, 2];
const LATER: [u8; 6] = [2, 9, 0, 0, 0, 3];

fn wait_for_lease(relay: &Relay, mac: [u8; 6]) -> String {
    let leased = || relay.lease(mac).ok_or_else(|| anyhow::anyhow!("no lease"));
    wait_ok(SOON, "a lease", leased).expect("a lease").to_string()
}

#[test]
fn without_its_leases_the_server_serves_reservations_and_new_clients_wait() {
    let mut testbed = Testbed::start().expect("scene");
    enable(&testbed, &settings(100, 110));
    let reservation = json!({"mac": "02:09:00:00:00:02", "ip": "192.168.10.50"});
    testbed.api().post("/dhcp/reservations", &reservation).expect("reserved");
    // The server probes an address before it offers it.
    let relay = Relay::on(&testbed.network.laptop, Duration::from_secs(2)).expect("a relay");
    wait_for_lease(&relay, FIRST);
    let state = testbed.daemon.state_directory();
    testbed.daemon.terminate().expect("ended");
    assert!(state.join("dhcp/leases").exists());
    fs::write(state.join("encrypted.json"), json!({"contents": ["dhcp_leases"]}).to_string())
        .expect("settings");
    fs::write(state.join("encrypted.luks"), vec![7; 1 << 20]).expect("a container");
    testbed.daemon.start().expect("the daemon");

    wait_ok(SOON, "the server to say what it waits for", || {
        let health = health(testbed.api())?;
        anyhow::ensure!(
            health.to_string().contains("waiting for encrypted storage: dhcp_leases"),
            "{health}"
        );
        Ok(())
    })
    .expect("waiting");
    assert!(!state.join("dhcp/leases").exists(), "the storage has it");
    assert_eq!(wait_for_lease(&relay, RESERVED), "192.168.10.50");
    for mac in [FIRST, LATER] {
        assert_eq!(relay.lease(mac), None, "another client may have any address");
    }
    let renewed = relay.ask(RESERVED, gateway_tests::dhcp::REQUEST, &[&[50, 4, 192, 168, 10, 50]]);
    assert_eq!(renewed.map(|answer| answer.kind), Some(ACK), "its lease is in memory");
    let fetch = ["-s", "http://127.0.0.1:8080/metrics"];
    let metrics = testbed.network.gateway.run("curl", &fetch).expect("metrics");
    let withheld = "gateway_dhcp_unanswered_messages_total{reason=\"leases_wait_for_storage\"}";
    let count = metrics.lines().find_map(|line| line.strip_prefix(withheld)).map(str::trim);
    assert!(count.is_some_and(|count| count != "0"), "{metrics}");
    assert!(!state.join("dhcp/leases").exists(), "nothing is written beside the storage");

    testbed.api().act("/storage/encrypted/teardown").expect("torn down");
    wait_for_lease(&relay, LATER);
    assert_eq!(leases(testbed.api(), "?state=active").len(), 2);
    assert!(state.join("dhcp/leases").exists());
}
