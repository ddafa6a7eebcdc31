//! End-to-end tests of the daemon: real packets through namespaces, with configuration through the REST API only.
//!
//! Every test has its own network and daemon. Needs root, and `gatewayd` beside the test program or in `GATEWAYD_BIN`.

mod access_point;
mod alert_causes;
mod alert_delivery;
mod alerts;
mod alerts_of_gateway;
mod allowed_ips;
mod anomalies;
mod bluetooth;
mod bridges;
mod captive;
mod captures;
mod classes;
mod clients;
mod confined;
mod connection_flood;
mod conntrack;
mod cover;
mod dashboard;
mod dhcp;
mod disabled_uplinks;
mod dns_filter;
mod dns_identity;
mod dns_policy;
mod drift;
mod egress_changes;
mod encrypted_storage;
mod exceptions;
mod exit_address;
mod extfilter;
mod fail_closed;
mod fail_matrix;
mod fail_matrix_proxies;
mod fail_policies;
mod fast_path;
mod fast_path_xdp;
mod federation;
mod federation_bus;
mod federation_keys;
mod filtering;
mod flow_check;
mod flow_export;
mod flows;
mod foreign_routers;
mod function_health;
mod health;
mod hostile_network;
mod hosts;
mod interfaces;
mod ipv6_lan;
mod leak_check;
mod live_network;
mod live_paths;
mod live_tests;
mod mesh;
mod mesh_leg;
mod mesh_member;
mod mesh_routes;
mod metrics;
mod neighbour_search;
mod openvpn;
mod package;
mod paths;
mod plan_history;
mod prefix_delegation;
mod privacy_blocks;
mod proxies;
mod quic_names;
mod receiver_egress;
mod rejections;
mod resolvers;
mod restart;
mod returned_exit;
mod routing;
mod same_address;
mod server_names;
mod sources;
mod splitting;
mod stun;
mod swap;
mod timed_confirm;
mod tunnels;
mod uplink_clients;
mod uplinks;
mod victoria_metrics;
mod virtual_links;
mod wipe;
mod zones;

use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use gateway_tests::services::HTTP;
use gateway_tests::tap::Counts;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{Host, server, wan};
use gateway_tests::traffic::{ask, ask_server};
use gateway_tests::wait::wait_ok;
use gateway_tests::wireguard::Exit;

const FAMILIES: [bool; 2] = [false, true];
/// Timeout of a blocked connection: far longer than a working path needs.
const BLOCKED: Duration = Duration::from_millis(700);
/// Timeout for the daemon to apply a change or to detect an event.
const SOON: Duration = Duration::from_secs(15);
/// Number of changes of a policy under load (`GATEWAY_SWAPS`).
static SWAPS: LazyLock<usize> =
    LazyLock::new(|| std::env::var("GATEWAY_SWAPS").map_or(250, |text| text.parse().expect("a number")));

fn assert_seen_as(host: &Host, expected: impl Fn(bool) -> IpAddr) {
    for ipv6 in FAMILIES {
        let answer = ask_server(host, server(ipv6));
        assert_eq!(answer.seen(), Some(expected(ipv6)), "{} at the server: {answer}", host.name);
    }
}

fn assert_through(host: &Host, exit: &Exit) {
    assert_seen_as(host, |ipv6| exit.address(ipv6));
}

fn assert_direct(host: &Host) {
    assert_seen_as(host, wan);
}

fn assert_blocked(host: &Host) {
    for ipv6 in FAMILIES {
        let answer = ask(host, (server(ipv6), HTTP).into(), BLOCKED);
        assert_eq!(answer.seen(), None, "{} reached the server and was seen as {answer}", host.name);
    }
}

/// Waits until the exit transports a host's traffic again.
fn wait_until_through(host: &Host, exit: &Exit) {
    for ipv6 in FAMILIES {
        wait_ok(SOON, &format!("{} to get through {}", host.name, exit.place.label), || {
            let answer = ask(host, (server(ipv6), HTTP).into(), BLOCKED);
            anyhow::ensure!(answer.seen() == Some(exit.address(ipv6)), "{answer}");
            Ok(())
        })
        .expect("way restored");
    }
}

/// Asserts that the tap saw no packet outside the tunnels since it was opened or reset.
fn assert_nothing_leaked(testbed: &Testbed) -> Counts {
    testbed.network.settle().expect("silence on the LAN");
    let counts = testbed.network.tap.counts();
    assert!(counts.is_clean(), "{counts}");
    counts
}

/// Asserts that the tap of this network counts direct traffic. Otherwise a clean count would prove nothing.
fn assert_the_tap_sees(testbed: &Testbed, host: &Host) {
    testbed.network.tap.reset();
    assert_direct(host);
    let counts = testbed.network.tap.counts();
    assert!(counts.leaked.v4 > 0 && counts.leaked.v6 > 0, "{counts}");
    testbed.network.settle().expect("silence on the LAN");
    testbed.network.tap.reset();
}
