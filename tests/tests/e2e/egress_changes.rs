//! Open connections whose egress changes get a reset from the gateway. The servers keep silent about a segment that belongs
//! to no connection, as behind any stateful firewall.

use std::io::ErrorKind;

use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Topology, server, wan};
use gateway_tests::traffic::{Answer, TIMEOUT, TcpFlow};
use gateway_tests::two_uplinks::{Line, TwoUplinks};

use crate::e2e::{FAMILIES, SOON};

/// Lets the servers drop what belongs to no connection.
fn firewall(network: &Topology) {
    network.internet.sysctl("net.netfilter.nf_conntrack_tcp_loose", "0").expect("strict");
    let rules = "table inet firewall {\n chain in {\n type filter hook input priority filter; policy accept;\n \
                 tcp dport 7007 ct state invalid drop\n \
                 tcp dport 7007 ct state new tcp flags & (fin | syn | rst | ack) != syn drop\n }\n}\n";
    network.internet.nft(rules).expect("a firewall");
}

/// Opens connections in both families: one that goes on sending, and one that stays idle.
fn open(testbed: &Testbed, expected: impl Fn(bool) -> std::net::IpAddr) -> Vec<[TcpFlow; 2]> {
    let flow = |ipv6| {
        let mut flow = TcpFlow::open(&testbed.network.laptop, server(ipv6)).expect("a connection");
        assert_eq!(flow.ask(TIMEOUT).seen(), Some(expected(ipv6)));
        flow
    };
    FAMILIES.iter().map(|ipv6| [flow(*ipv6), flow(*ipv6)]).collect()
}

/// Asserts that all connections end with a reset, in which only the gateway can have a part.
fn assert_reset(flows: Vec<[TcpFlow; 2]>, what: &str) {
    for [mut busy, mut idle] in flows {
        let answer = busy.ask(SOON);
        assert!(matches!(answer, Answer::Rejected { .. }), "{what}: {answer}");
        assert_eq!(idle.wait_for_the_end(SOON), ErrorKind::ConnectionReset, "{what}: an idle connection");
    }
}

#[test]
fn connections_are_reset_when_a_policy_comes_changes_and_goes() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    firewall(network);
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    let direct = open(&testbed, wan);
    let id = testbed.policy(&policy("vpn", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_reset(direct, "a policy was applied");
    let by_a = open(&testbed, |ipv6| network.exit_a.address(ipv6));
    testbed.replace_policy(&id, &policy("vpn", 10, ("device", &laptop), &["wg-b"])).expect("policy");
    assert_reset(by_a, "the hops changed");
    let by_b = open(&testbed, |ipv6| network.exit_b.address(ipv6));
    testbed.api().delete(&format!("/routing/policies/{id}")).expect("deleted");
    testbed.apply().expect("applied");
    assert_reset(by_b, "the policy was deleted");
    let _still = open(&testbed, wan);
}

#[test]
fn connections_are_reset_when_the_uplink_changes() {
    let uplinks = TwoUplinks::start(false, [1, 1]).expect("two uplinks");
    firewall(&uplinks.testbed.network);
    let flows = open(&uplinks.testbed, wan);
    uplinks.pull(Line::Fibre, true).expect("pulled");
    assert_reset(flows, "the uplink failed");
}
