//! Flows that begin directly before a policy binds their host to a tunnel.
//!
//! Security review 16.

use gateway_tests::services::IDENT;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{TIMEOUT, TcpFlow, UdpFlow, ask_server};
use gateway_tests::wait::wait_for;

use crate::nothing_past::{BLOCKED, FAMILIES, SOON, assert_nothing_left, assert_the_tap_sees};

/// Global IPv6 address of the laptop, which the uplink does not translate.
const GLOBAL: &str = "2001:db8:77::10";

/// Returns a laptop with a global IPv6 address without a policy, and a tunnel that is up.
fn unbound() -> (Testbed, String) {
    let testbed = Testbed::prepare().expect("scene");
    let network = &testbed.network;
    network.gateway.ip("address add 2001:db8:77::1/64 dev eth1 nodad").expect("address of the gateway");
    network.laptop.namespace.ip(&format!("address add {GLOBAL}/64 dev eth0 nodad")).expect("address");
    network.internet.ip("route add 2001:db8:77::/64 via 2001:db8:113::2").expect("route back");
    let mut testbed = testbed;
    testbed.daemon.start().expect("started");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    assert_the_tap_sees(&testbed, &testbed.network.tv);
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    (testbed, laptop)
}

/// Binds the laptop and resets the tap.
fn bind(testbed: &Testbed, laptop: &str) {
    testbed.policy(&policy("vpn-only", 10, ("device", laptop), &["wg-a"])).expect("policy");
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
}

#[test]
fn tcp_connection_from_before_the_policy_ends_and_the_next_takes_the_tunnel() {
    let (testbed, laptop) = unbound();
    let host = &testbed.network.laptop;
    let mut flows = FAMILIES.map(|ipv6| TcpFlow::open(host, server(ipv6)).expect("a direct connection"));
    let seen = flows.each_mut().map(|flow| flow.ask(TIMEOUT).seen().expect("an answer"));
    assert_eq!(seen[1].to_string(), GLOBAL);
    bind(&testbed, &laptop);
    for (flow, ipv6) in flows.iter_mut().zip(FAMILIES) {
        let answer = flow.ask(BLOCKED);
        assert_eq!(answer.seen(), None, "IPv6 {ipv6}: the connection goes on as {answer}");
        wait_for(SOON, "the connection to be reset", || {
            !matches!(flow.wait_for_the_end(BLOCKED), std::io::ErrorKind::WouldBlock)
        })
        .expect("it ends");
        let next = ask_server(host, server(ipv6));
        assert_eq!(next.seen(), Some(testbed.network.exit_a.address(ipv6)), "{next}");
    }
    assert_nothing_left(&testbed);
}

#[test]
fn udp_flow_from_before_the_policy_goes_on_by_the_tunnel() {
    let (testbed, laptop) = unbound();
    let host = &testbed.network.laptop;
    let open = |ipv6| UdpFlow::open(host, (server(ipv6), IDENT).into()).expect("a flow");
    let flows = FAMILIES.map(open);
    let seen = flows.each_ref().map(|flow| flow.ask(TIMEOUT).expect("an answer"));
    assert_eq!(seen[1].to_string(), GLOBAL);
    let ports = flows.each_ref().map(|flow| flow.port().expect("a port"));
    bind(&testbed, &laptop);
    for (flow, ipv6) in flows.iter().zip(FAMILIES) {
        let exit = testbed.network.exit_a.address(ipv6);
        wait_for(SOON, "the flow to go on by the tunnel", || {
            flow.ask(BLOCKED).is_ok_and(|seen| seen == exit)
        })
        .unwrap_or_else(|error| panic!("IPv6 {ipv6}: {error:#}"));
    }
    assert_eq!(flows.each_ref().map(|flow| flow.port().expect("a port")), ports);
    assert_nothing_left(&testbed);
}
