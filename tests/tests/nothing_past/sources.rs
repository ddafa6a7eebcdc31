//! Sources outside the LAN of their ingress interface, and the gateway's answers about them.
//!
//! Security review 1, leak replay L3 (b) and L4.

use std::net::IpAddr;

use gateway_tests::frames::{Body, Forged, FrameSender, mac};
use gateway_tests::netns::remove_pins;
use gateway_tests::services::{DNS, HTTP, IDENT};
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{LAN_V4, LAN_V6, WAN_V4, WAN_V6, server};
use gateway_tests::traffic::{TIMEOUT, ask};
use gateway_tests::wait::wait_for;
use serde_json::json;

use crate::nothing_past::doors::wait_until_whole;
use crate::nothing_past::{FAMILIES, SOON, assert_nothing_left, assert_the_tap_sees};

/// MAC address of the gateway on the LAN.
pub(super) const GATEWAY: [u8; 6] = [2, 0, 0, 0x10, 0, 1];

/// Returns a public address of no test host: an answer to it would leave by the uplink.
fn foreign(ipv6: bool) -> IpAddr {
    if ipv6 { "2001:db8:18::77".parse() } else { "198.18.0.77".parse() }.expect("an address")
}

/// Returns addresses of the gateway itself, and one beyond it.
fn destinations(ipv6: bool) -> [IpAddr; 3] {
    if ipv6 {
        [LAN_V6.into(), WAN_V6.into(), server(true)]
    } else {
        [LAN_V4.into(), WAN_V4.into(), server(false)]
    }
}

/// Returns one packet of each kind that a host answers.
fn provocations(source: IpAddr, destination: IpAddr) -> Vec<Forged> {
    let mut packets = vec![
        Forged::new(source, destination, Body::Ping),
        Forged::datagram(source, destination, DNS),
        Forged::datagram(source, destination, IDENT),
        Forged::new(source, destination, Body::Syn { from: 40_001, to: HTTP }),
        Forged::new(source, destination, Body::Syn { from: 40_002, to: 9 }),
        Forged::new(source, destination, Body::Other { protocol: 132, bytes: vec![0; 64] }),
    ];
    // The packet expires here: the gateway would report that.
    packets.push(Forged { hop_limit: 1, ..Forged::datagram(source, destination, IDENT) });
    packets
}

/// Returns the counter `spoofed`.
pub(super) fn spoofed(testbed: &Testbed) -> u64 {
    let metrics =
        testbed.network.gateway.run("curl", &["-s", "http://127.0.0.1:8080/metrics"]).expect("metrics");
    let line = metrics.lines().find(|line| line.contains("packets_total{") && line.contains("\"spoofed\""));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

fn provoke(testbed: &Testbed, sources: impl Fn(bool) -> IpAddr) -> u64 {
    let laptop = &testbed.network.laptop;
    let sender = FrameSender::open(&laptop.namespace, "eth0").expect("a sender");
    let mut sent = 0;
    for ipv6 in FAMILIES {
        for destination in destinations(ipv6) {
            for packet in provocations(sources(ipv6), destination) {
                sender.send(&packet.frame(mac(laptop.mac), GATEWAY)).expect("sent");
                sent += 1;
            }
        }
    }
    sent
}

/// Returns a laptop bound to exit A with a verified tap.
fn bound() -> (Testbed, String) {
    let testbed = Testbed::start().expect("scene");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    assert_the_tap_sees(&testbed, &testbed.network.tv);
    let tunnel = testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    (testbed, tunnel)
}

#[test]
fn a_forged_public_source_gets_no_answer_out_of_the_gateway() {
    let (testbed, tunnel) = bound();
    let before = spoofed(&testbed);
    let sent = provoke(&testbed, foreign);
    assert_nothing_left(&testbed);
    wait_for(SOON, "the drops to be counted", || spoofed(&testbed) >= before + sent).expect("counted");
    // The same with a policy that rejects: an ICMP error would quote the payload.
    testbed.bring_down(&tunnel).expect("down");
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    provoke(&testbed, foreign);
    assert_nothing_left(&testbed);
}

/// Without the programs, the rules of the routing tables refuse the packets. An ICMP error would quote them to the forged
/// source.
#[test]
fn a_forged_public_source_gets_no_answer_while_the_programs_are_gone() {
    let (mut testbed, _) = bound();
    for _ in 0..3 {
        remove_pins(testbed.daemon.pin_directory());
        provoke(&testbed, foreign);
        wait_until_whole(&testbed);
    }
    assert_nothing_left(&testbed);
    // Without the daemon they stay away.
    testbed.daemon.kill9().expect("killed");
    remove_pins(testbed.daemon.pin_directory());
    for _ in 0..10 {
        provoke(&testbed, foreign);
    }
    assert_nothing_left(&testbed);
}

#[test]
fn another_source_does_not_evade_a_policy_for_a_subnet() {
    let testbed = Testbed::start().expect("scene");
    assert_the_tap_sees(&testbed, &testbed.network.laptop);
    testbed.policy(&policy("blocked", 10, ("subnet", "192.168.10.0/24,fd00:10::/64"), &[])).expect("policy");
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    let elsewhere = |ipv6| -> IpAddr {
        if ipv6 { "fd00:77::9".parse() } else { "172.16.9.9".parse() }.expect("an address")
    };
    let link_local = |ipv6| -> IpAddr {
        if ipv6 { "fe80::77".parse() } else { "169.254.7.7".parse() }.expect("an address")
    };
    provoke(&testbed, elsewhere);
    provoke(&testbed, foreign);
    provoke(&testbed, link_local);
    assert_nothing_left(&testbed);
}

#[test]
fn addresses_of_the_lan_and_of_networks_behind_it_go_on_working() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    // A privacy address (RFC 8981) in the prefix of the LAN.
    network
        .laptop
        .namespace
        .ip("address add fd00:10::5eed:1234/64 dev eth0 nodad preferred_lft forever")
        .expect("one more");
    let answer = ask(&network.laptop, (server(true), HTTP).into(), TIMEOUT);
    assert!(answer.seen().is_some(), "{answer}");
    // A network behind a router on the LAN: rejected until a route exists.
    let [four, six]: [IpAddr; 2] =
        ["10.99.0.10", "fd00:99::10"].map(|text| text.parse().expect("an address"));
    network
        .laptop
        .namespace
        .ip("address add 10.99.0.10/32 dev lo\naddress add fd00:99::10/128 dev lo nodad\n\
             route replace default via 192.168.10.1 src 10.99.0.10\n\
             route replace default via fd00:10::1 src fd00:99::10")
        .expect("a network behind the laptop");
    for ipv6 in FAMILIES {
        let answer = ask(&network.laptop, (server(ipv6), HTTP).into(), crate::nothing_past::BLOCKED);
        assert_eq!(answer.seen(), None, "{answer}");
    }
    let (v4, v6) = (network.laptop.v4, network.laptop.v6);
    network
        .gateway
        .ip(&format!("route add {four}/32 via {v4} dev eth1\nroute add {six}/128 via {v6} dev eth1"))
        .expect("routes");
    for ipv6 in FAMILIES {
        wait_for(SOON, "the routed network to be served", || {
            ask(&network.laptop, (server(ipv6), HTTP).into(), crate::nothing_past::BLOCKED).seen().is_some()
        })
        .expect("served");
    }
    let question = json!({"source": "10.98.0.1", "mac": network.laptop.mac});
    let evaluated = testbed.api().post("/policy/evaluate", &question).expect("evaluated");
    assert_eq!(evaluated["decision"], "block", "{evaluated}");
}

#[test]
fn without_a_plan_a_forged_source_gets_no_answer_out_of_the_gateway() {
    let testbed = Testbed::prepare().expect("scene");
    let network = &testbed.network;
    for ipv6 in FAMILIES {
        let server = server(ipv6).to_string();
        network.gateway.run("ping", &["-c", "1", "-W", "5", &server]).expect("the gateway itself gets out");
    }
    let seen = network.tap.reset();
    assert!(seen.leaked.v4 > 0 && seen.leaked.v6 > 0, "the tap sees what the gateway sends: {seen}");
    testbed.daemon.run(&["guard"]).expect("the block at boot");
    provoke(&testbed, foreign);
    assert_nothing_left(&testbed);
}
