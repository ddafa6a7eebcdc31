//! Crashes of the daemon while clients get addresses (`GATEWAY_DHCP_KILLS`: 6).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use gateway_tests::dhcp::Relay;
use gateway_tests::fuzz::mutation::Numbers;
use gateway_tests::testbed::Testbed;
use gateway_tests::wait::wait_for;
use serde_json::Value;

use super::{enable, leases, settings};
use crate::e2e::SOON;

/// Number of kills.
fn kills() -> u64 {
    std::env::var("GATEWAY_DHCP_KILLS").map_or(6, |text| text.parse().expect("a number"))
}

/// Addresses by client, as acknowledged.
type Acknowledged = BTreeMap<[u8; 6], Ipv4Addr>;

/// Clients of one run of the daemon.
#[derive(Default)]
struct Running {
    end: AtomicBool,
    got: AtomicUsize,
}

/// Gets addresses for new clients until the end, also while there is no server.
fn get_addresses(relay: &Relay, clients: &mut u32, running: &Running, acknowledged: &mut Acknowledged) {
    while !running.end.load(Ordering::Relaxed) {
        *clients += 1;
        let [a, b, c, d] = clients.to_be_bytes();
        let mac = [2, 9, a, b, c, d];
        if let Some(address) = relay.lease(mac) {
            let known = acknowledged.iter().find(|(_, known)| **known == address);
            assert_eq!(known, None, "{address} is given twice");
            acknowledged.insert(mac, address);
            running.got.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn no_acknowledged_lease_is_lost_and_none_is_given_twice_by_crashes() {
    let mut testbed = Testbed::start().expect("scene");
    let mut wide = settings(1, 1);
    for (key, value) in
        [("range_start", "192.168.0.1"), ("range_end", "192.168.255.250"), ("mask", "255.255.0.0")]
    {
        wide[key] = Value::from(value);
    }
    wide["ping_check"] = Value::from(false);
    testbed.network.gateway.ip("address add 192.168.10.1/16 dev eth1").expect("a wider network");
    enable(&testbed, &wide);
    let relay = Relay::on(&testbed.network.laptop, Duration::from_millis(20)).expect("a relay");
    let (mut acknowledged, mut clients) = (Acknowledged::new(), 0);
    let mut numbers = Numbers::new(std::process::id().into());
    for kill in 0..kills() {
        let running = Running::default();
        let wanted = 1 + numbers.below(60);
        std::thread::scope(|scope| {
            let clients = scope.spawn(|| get_addresses(&relay, &mut clients, &running, &mut acknowledged));
            let got = || running.got.load(Ordering::Relaxed) >= wanted;
            let waited = wait_for(SOON, &format!("{wanted} addresses before kill {kill}"), got);
            testbed.daemon.kill9().expect("killed");
            running.end.store(true, Ordering::Relaxed);
            clients.join().expect("clients");
            waited.expect("addresses");
        });
        testbed.daemon.start().expect("started");
    }
    let listed: BTreeMap<String, String> = leases(testbed.api(), "?state=active")
        .iter()
        .map(|lease| {
            (lease["ip"].as_str().expect("ip").to_owned(), lease["mac"].as_str().expect("mac").to_owned())
        })
        .collect();
    println!("{} acknowledged leases, {} kills", acknowledged.len(), kills());
    for (mac, address) in &acknowledged {
        let text = mac.map(|byte| format!("{byte:02x}")).join(":");
        assert_eq!(listed.get(&address.to_string()), Some(&text), "the lease of {address} is lost");
    }
}
