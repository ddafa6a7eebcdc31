//! Uplinks that are listed and disabled: nothing leaves by them, and the enabled one is used, whatever the main routing
//! table says.

use std::net::SocketAddr;

use gateway_tests::dns::A;
use gateway_tests::services::HTTP;
use gateway_tests::tap::Tap;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{INTERNET_V4, other_wan, server};
use gateway_tests::traffic::ask;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::dns_policy::client;
use crate::e2e::{BLOCKED, FAMILIES, SOON, assert_blocked, assert_through};

/// Returns a gateway with two uplinks; the main routing table prefers the first.
fn start(enabled: [bool; 2]) -> (Testbed, Tap) {
    let mut testbed = Testbed::prepare().expect("scene");
    let tap = testbed.network.add_uplink().expect("a second uplink");
    let uplink = |name: &str, interface: &str, enabled: bool| {
        // Its targets do not answer: a single uplink is used whatever its probes say.
        let probe = json!({"targets": ["203.0.113.99"], "interval_sec": 1, "timeout_sec": 1});
        json!({"name": name, "interface": interface, "enabled": enabled, "probe": probe})
    };
    let wans = json!([uplink("one", "eth0", enabled[0]), uplink("two", "eth2", enabled[1])]);
    // A tap counts queries to a server of the tests as leaked, also those of the gateway.
    let dns = json!({"upstream_servers": [server(false)]});
    testbed.daemon.configure(&json!({"network": {"wans": wans}, "dns": dns})).expect("configured");
    testbed.daemon.start().expect("started");
    (testbed, tap)
}

/// Asserts that no packet has left by the first uplink since the last reset.
fn assert_silent(testbed: &Testbed) {
    testbed.network.settle().expect("silence");
    let counts = testbed.network.tap.counts();
    let left = counts.leaked.total() + counts.unknown.total() + counts.tunnel.total() + counts.udp;
    assert_eq!((left, counts.missed), (0, 0), "by the disabled uplink: {counts} {:?}", counts.samples);
}

#[test]
fn only_enabled_uplink_is_used_and_nothing_leaves_by_the_disabled_one() {
    let (testbed, tap) = start([false, true]);
    let network = &testbed.network;
    network.tap.reset();
    for ipv6 in FAMILIES {
        wait_ok(SOON, "traffic without a policy to leave by the enabled uplink", || {
            let answer = ask(&network.tv, (server(ipv6), HTTP).into(), BLOCKED);
            anyhow::ensure!(answer.seen() == Some(other_wan(ipv6)), "{answer}");
            Ok(())
        })
        .expect("by the other uplink");
    }
    // The resolver's own queries.
    tap.reset();
    let query = || client(&network.tv).ask("direct.example", A);
    let _ = query();
    wait_ok(SOON, "a query of the resolver at the enabled uplink", || {
        let _ = query();
        anyhow::ensure!(tap.counts().leaked_dns > 0, "{}", tap.counts());
        Ok(())
    })
    .expect("by the enabled uplink");
    // Outer packets of tunnels.
    testbed.tunnel("wg-a", &network.exit_a).expect("a tunnel by the enabled uplink");
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_through(&network.laptop, &network.exit_a);
    // Programs of this host, and replies to its neighbours there.
    let to = SocketAddr::from((server(false), HTTP)).to_string();
    let _ =
        network.gateway.run("ping", &["-n", "-c", "1", "-W", "1", "-I", "eth0", &INTERNET_V4.to_string()]);
    let _ = network
        .gateway
        .run("timeout", &["1", "bash", "-c", &format!("echo > /dev/udp/{}", to.replace(':', "/"))]);
    let reply = network.internet.run("ping", &["-n", "-c", "1", "-W", "1", "203.0.113.2"]);
    assert!(reply.is_err(), "the disabled uplink replies");
    assert_silent(&testbed);
}

#[test]
fn without_an_enabled_uplink_nothing_leaves_and_the_gateway_says_so() {
    let (testbed, tap) = start([false, false]);
    let network = &testbed.network;
    network.tap.reset();
    assert_blocked(&network.tv);
    let _ = client(&network.tv).ask("direct.example", A);
    let counts = tap.counts();
    assert_eq!(counts.leaked.total() + counts.unknown.total(), 0, "{counts}");
    assert_silent(&testbed);
    let device = testbed.device(&network.tv).expect("device");
    let evaluated: Value = testbed.evaluate(&device).expect("evaluated");
    assert_eq!(evaluated["decision"], "block", "{evaluated}");
}
