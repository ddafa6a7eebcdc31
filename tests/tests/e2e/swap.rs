//! Plan activation is atomic: no packet sees half of a plan.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::Load;
use serde_json::json;

use crate::e2e::{BLOCKED, FAMILIES, SOON, assert_blocked, assert_nothing_leaked, assert_the_tap_sees};

const APPLIES: usize = 1000;

#[test]
fn a_thousand_applies_between_two_plans_without_direct_egress_leak_nothing() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    assert_the_tap_sees(&testbed, &network.laptop);
    let laptop = testbed.device(&network.laptop).expect("device");
    let mut tunnel = network.exit_a.tunnel("wg-a");
    tunnel["enabled"] = json!(false);
    testbed.api().post("/tunnels", &tunnel).expect("tunnel");
    // One plan blocks by the device, the other by everything; neither has the other's entry as a fallback.
    let plans = [policy("one", 10, ("device", &laptop), &["wg-a"]), policy("one", 20, ("all", ""), &[])];
    let id = testbed.policy(&plans[0]).expect("policy");
    let load = Load::start(&network.laptop).expect("load");
    for number in 1..=APPLIES {
        testbed
            .replace_policy(&id, &plans[number % 2])
            .unwrap_or_else(|error| panic!("apply {number}: {error:#}"));
    }
    assert_blocked(&network.laptop);
    let sent = load.stop();
    assert!(sent.v4 > 500 && sent.v6 > 500, "{sent:?}");
    assert!(sent.answers.is_empty(), "{sent:?}");
    let counts = assert_nothing_leaked(&testbed);
    assert_eq!(counts.tunnel.total(), 0, "{counts}");
}

#[test]
fn applies_that_move_live_traffic_between_two_exits_leak_nothing() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    assert_the_tap_sees(&testbed, &network.laptop);
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    let plans = ["wg-a", "wg-b"].map(|tunnel| policy("way", 10, ("device", &laptop), &[tunnel]));
    let id = testbed.policy(&plans[0]).expect("policy");
    let load = Load::start(&network.laptop).expect("load");
    for number in 1..=40 {
        let exit = if number % 2 == 0 { &network.exit_a } else { &network.exit_b };
        testbed
            .replace_policy(&id, &plans[number % 2])
            .unwrap_or_else(|error| panic!("apply {number}: {error:#}"));
        for ipv6 in FAMILIES {
            load.wait_for_answer_to(exit.address(ipv6), SOON).expect("moved");
        }
    }
    let sent = load.stop();
    let exits = [&network.exit_a, &network.exit_b].map(|exit| FAMILIES.map(|ipv6| exit.address(ipv6)));
    assert!(sent.answers.keys().all(|seen| exits.concat().contains(seen)), "{sent:?}");
    assert_nothing_leaked(&testbed);
}

/// Four plans in turn, each of which blocks STUN: by the class of the device, by the switch for all, or by both.
#[test]
fn applies_that_move_a_block_from_a_class_to_all_and_back_let_nothing_pass() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let at = SocketAddr::new(server(false), 50_000);
    let internet = network.internet.within(|| UdpSocket::bind(at)).expect("a server");
    internet.set_read_timeout(Some(BLOCKED)).expect("a timeout");
    let request = [&[0u8, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat();
    let client = || network.laptop.namespace.within(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
    let laptop = testbed.device(&network.laptop).expect("device");
    let mut device = testbed.api().get(&format!("/devices/{laptop}")).expect("the device").clone();
    client().send_to(&request, at).expect("sent");
    internet.recv_from(&mut [0; 64]).expect("a request that passes before");

    let mut set_class = |class: &str| {
        device["privacy_class"] = json!(class);
        testbed.api().put(&format!("/devices/{laptop}"), &device).expect("stored");
        testbed.api().act("/enforce/reconcile").expect("reconciled");
    };
    let set_all = |enabled: bool| {
        testbed.api().post("/privacy/block-webrtc", &json!({"enabled": enabled})).expect("switched");
        testbed.api().act("/enforce/reconcile").expect("reconciled");
    };
    set_class("isolated");
    while internet.recv_from(&mut [0; 64]).is_ok() {}
    let (ends, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let long = client();
            while !ends.load(Ordering::Relaxed) {
                // A flow that goes on, and a new one.
                for socket in [&long, &client()] {
                    sent.fetch_add(u64::from(socket.send_to(&request, at).is_ok()), Ordering::Relaxed);
                }
            }
        });
        for _ in 0..25 {
            set_all(true);
            set_class("open");
            set_class("isolated");
            set_all(false);
        }
        ends.store(true, Ordering::Relaxed);
    });
    assert!(sent.load(Ordering::Relaxed) > 1000, "{sent:?}");
    let passed = internet.recv_from(&mut [0; 64]);
    assert!(passed.is_err(), "a request passed: {passed:?}");
}
