//! Packets about LAN flows that the gateway itself sends.
//!
//! Security review 8 and 10, leak replay L3 (a) and L10.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use gateway_tests::frames::{Body, Forged, FrameSender, mac};
use gateway_tests::services::IDENT;
use gateway_tests::tap::MARK;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{Load, TIMEOUT, UdpFlow};
use gateway_tests::wait::wait_for;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::nothing_past::{FAMILIES, SOON, assert_nothing_left, assert_the_tap_sees};

/// Port of a server that sends unsolicited packets.
const STREAM: u16 = 7999;

fn signal(testbed: &Testbed, signal: Signal) {
    let pid = testbed.daemon.pid().expect("the daemon runs");
    kill(Pid::from_raw(i32::try_from(pid).expect("a pid")), signal).expect("signalled");
}

/// Returns a laptop bound to exit A with a verified tap.
fn bound() -> Testbed {
    let testbed = Testbed::start().expect("scene");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    assert_the_tap_sees(&testbed, &testbed.network.tv);
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    testbed
}

/// Sends to the laptop until neighbour resolution starts, and waits until it fails.
///
/// The kernel reports each packet that was queued meanwhile. A later packet restarts the resolution.
fn give_up(testbed: &Testbed, ipv6: bool, ask: &dyn Fn()) {
    let laptop = &testbed.network.laptop;
    let host = if ipv6 { laptop.v6.to_string() } else { laptop.v4.to_string() };
    let is = |state: &str| {
        let shown =
            testbed.network.gateway.run("ip", &["neighbour", "show", "dev", "eth1"]).unwrap_or_default();
        let entry = shown.lines().find(|line| line.split(' ').next() == Some(&host)).unwrap_or_default();
        entry.split_whitespace().next_back() == Some(state)
    };
    let searches = || {
        ask();
        is("INCOMPLETE")
    };
    wait_for(SOON, "the gateway to search the host", searches).expect("the neighbour is searched");
    wait_for(SOON, "the gateway to give up on the host", || is("FAILED")).expect("the neighbour fails");
}

#[test]
fn errors_about_a_host_that_is_gone_leave_by_its_tunnel() {
    let testbed = bound();
    let network = &testbed.network;
    let flows = FAMILIES.map(|ipv6| {
        let to = SocketAddr::from((server(ipv6), STREAM));
        let far = network.internet.within(|| UdpSocket::bind(to)).expect("a server");
        far.set_read_timeout(Some(TIMEOUT)).expect("a deadline");
        let near = SocketAddr::from((
            if ipv6 { IpAddr::V6(network.laptop.v6) } else { network.laptop.v4.into() },
            0,
        ));
        let near = network.laptop.namespace.within(|| UdpSocket::bind(near)).expect("a client");
        near.send_to(MARK, to).expect("sent");
        let (_, from) = far.recv_from(&mut [0; 64]).expect("it arrives");
        assert_eq!(from.ip(), network.exit_a.address(ipv6));
        (far, near, from)
    });
    // The link goes down, and the remote end keeps sending.
    network.lan.ip("link set to-laptop down").expect("down");
    network.gateway.ip("neighbour flush dev eth1").expect("flushed");
    let ask = || {
        for (far, _, to) in &flows {
            far.send_to(MARK, to).expect("sent");
        }
    };
    for ipv6 in [false, true, false, true] {
        give_up(&testbed, ipv6, &ask);
    }
    assert_nothing_left(&testbed);
}

#[test]
fn without_rules_and_nftables_nothing_leaves_unmasked() {
    let testbed = bound();
    let load = Load::start(&testbed.network.laptop).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(testbed.network.exit_a.address(ipv6), SOON).expect("load through exit A");
    }
    // No repair occurs while the daemon is stopped.
    signal(&testbed, Signal::SIGSTOP);
    testbed.network.gateway.run("ip", &["rule", "flush", "protocol", "71"]).expect("flushed");
    testbed.network.gateway.run("ip", &["-6", "rule", "flush", "protocol", "71"]).expect("flushed");
    testbed.network.gateway.run("nft", &["flush", "ruleset"]).expect("flushed");
    load.run_for(600).expect("load");
    let tv = Load::start(&testbed.network.tv).expect("load of a host without a policy");
    tv.run_for(200).expect("load");
    tv.stop();
    load.stop();
    let counts = testbed.network.tap.counts();
    signal(&testbed, Signal::SIGCONT);
    assert!(counts.leaked.total() == 0 && counts.missed == 0, "{counts}");
}

#[test]
fn a_neighbour_on_the_uplink_does_not_reach_into_a_tunnel() {
    let testbed = bound();
    let network = &testbed.network;
    for ipv6 in FAMILIES {
        let flow = UdpFlow::open(&network.laptop, (server(ipv6), IDENT).into()).expect("flow");
        assert_eq!(flow.ask(TIMEOUT).expect("answer"), network.exit_a.address(ipv6));
        // Masquerade keeps the port.
        let port = flow.port().expect("a port");
        let place = network.exit_a.place;
        let inner: IpAddr = if ipv6 { place.client_v6().into() } else { place.client_v4().into() };
        let sender = FrameSender::open(&network.internet, "up0").expect("a sender");
        let mut forged = Forged::datagram(server(ipv6), inner, port);
        if let Body::Udp { from, .. } = &mut forged.body {
            *from = IDENT;
        }
        for _ in 0..20 {
            sender.send(&forged.frame(mac("02:00:00:11:30:01"), mac("02:00:00:11:30:02"))).expect("sent");
        }
        assert!(!flow.hears(Duration::from_millis(700)), "a forged datagram was delivered");
        // The flow itself continues.
        assert_eq!(flow.ask(TIMEOUT).expect("answer"), network.exit_a.address(ipv6));
    }
}
