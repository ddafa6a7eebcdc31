//! Policies select the egress of a device's traffic and can change.

use gateway_tests::services::IDENT;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{TIMEOUT, TcpFlow, UdpFlow};
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::{
    BLOCKED, FAMILIES, SOON, assert_blocked, assert_direct, assert_nothing_leaked, assert_the_tap_sees,
    assert_through,
};

#[test]
fn quick_a_policy_sends_a_device_through_an_exit_and_blocks_it_without() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_the_tap_sees(&testbed, &network.tv);

    assert_through(&network.laptop, &network.exit_a);
    let counts = assert_nothing_leaked(&testbed);
    assert!(counts.tunnel.total() > 0, "{counts}");
    let evaluation = testbed.evaluate(&laptop).expect("evaluation");
    assert_eq!(evaluation["decision"], "tunnel", "{evaluation}");
    assert_eq!(evaluation["matched_policies"][0]["name"], "vpn-only", "{evaluation}");

    testbed.bring_down(&tunnel).expect("down");
    assert_blocked(&network.laptop);
    assert_nothing_leaked(&testbed);
    let evaluation = testbed.evaluate(&laptop).expect("evaluation");
    assert_eq!(evaluation["decision"], "block", "{evaluation}");
    let sentence = evaluation["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("vpn-only") && sentence.contains("wg-a"), "{sentence}");
}

#[test]
fn without_policies_a_device_goes_out_directly() {
    let testbed = Testbed::start().expect("scene");
    testbed.device(&testbed.network.laptop).expect("device");
    assert_direct(&testbed.network.laptop);
    assert_direct(&testbed.network.tv);
}

#[test]
fn a_stored_policy_does_nothing_before_it_is_applied() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let blocking = policy("block", 10, ("device", &laptop), &[]);
    testbed.store_policy(&blocking).expect("policy");
    testbed.api().act("/enforce/reconcile").expect("reconcile");
    assert_direct(&network.laptop);
    testbed.apply().expect("apply");
    network.tap.reset();
    assert_blocked(&network.laptop);
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_policy_that_is_toggled_off_and_applied_lets_go() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let id = testbed.policy(&policy("block", 10, ("device", &laptop), &[])).expect("policy");
    assert_blocked(&network.laptop);
    testbed.api().act(&format!("/routing/policies/{id}/toggle")).expect("toggle");
    assert_blocked(&network.laptop);
    testbed.apply().expect("apply");
    assert_direct(&network.laptop);
}

#[test]
fn the_policy_with_the_lowest_number_wins() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    testbed.store_policy(&policy("everyone", 20, ("all", ""), &["wg-a"])).expect("policy");
    let id = testbed.policy(&policy("laptop", 10, ("device", &laptop), &["wg-b"])).expect("policy");
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_b);
    assert_through(&network.tv, &network.exit_a);
    testbed.replace_policy(&id, &policy("laptop", 30, ("device", &laptop), &["wg-b"])).expect("policy");
    assert_through(&network.laptop, &network.exit_a);
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_change_of_policy_moves_datagrams_and_cuts_connections() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    let id = testbed.policy(&policy("way", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    network.tap.reset();
    let mut flows: Vec<_> = FAMILIES
        .into_iter()
        .map(|ipv6| {
            let tcp = TcpFlow::open(&network.laptop, server(ipv6)).expect("TCP flow");
            let udp = UdpFlow::open(&network.laptop, (server(ipv6), IDENT).into()).expect("UDP flow");
            (ipv6, tcp, udp)
        })
        .collect();
    for (ipv6, tcp, udp) in &mut flows {
        assert_eq!(tcp.ask(TIMEOUT).seen(), Some(network.exit_a.address(*ipv6)));
        assert_eq!(udp.ask(TIMEOUT).expect("answer"), network.exit_a.address(*ipv6));
    }
    testbed.replace_policy(&id, &policy("way", 10, ("device", &laptop), &["wg-b"])).expect("policy");
    for (ipv6, tcp, udp) in &mut flows {
        let expected = network.exit_b.address(*ipv6);
        wait_ok(SOON, "the datagrams to take the new way", || {
            let seen = udp.ask(BLOCKED)?;
            anyhow::ensure!(seen == expected, "seen as {seen}");
            Ok(())
        })
        .expect("moved");
        // The server knows the connection only by the old address.
        let answer = tcp.ask(BLOCKED);
        assert_eq!(answer.seen(), None, "the connection goes on as {answer}");
    }
    assert_through(&network.laptop, &network.exit_b);
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_policy_against_a_device_cuts_its_live_flows() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let mut flows: Vec<_> = FAMILIES
        .into_iter()
        .map(|ipv6| {
            let tcp = TcpFlow::open(&network.laptop, server(ipv6)).expect("TCP flow");
            let udp = UdpFlow::open(&network.laptop, (server(ipv6), IDENT).into()).expect("UDP flow");
            (tcp, udp)
        })
        .collect();
    for (tcp, udp) in &mut flows {
        assert!(tcp.ask(TIMEOUT).seen().is_some());
        udp.ask(TIMEOUT).expect("answer");
    }
    testbed.policy(&policy("block", 10, ("device", &laptop), &[])).expect("policy");
    network.settle().expect("silence");
    network.tap.reset();
    for (tcp, udp) in &mut flows {
        assert_eq!(tcp.ask(BLOCKED).seen(), None);
        udp.ask(BLOCKED).expect_err("blocked");
    }
    assert_nothing_leaked(&testbed);
}

#[test]
fn traffic_between_devices_and_to_the_gateway_itself_needs_no_policy() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    testbed.policy(&policy("nothing leaves", 1, ("all", ""), &[])).expect("policy");
    for gateway in ["192.168.10.1", "fd00:10::1"] {
        let address = gateway.parse().expect("address");
        assert!(gateway_tests::traffic::ping(&network.laptop, address), "{gateway} answers not");
    }
    assert!(gateway_tests::traffic::ping(&network.laptop, network.tv.v4.into()));
    assert_blocked(&network.laptop);
    let reply = testbed.api().send("GET", "/status", None).expect("status");
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[test]
fn two_policies_of_one_rank_that_contradict_are_refused() {
    let testbed = Testbed::start().expect("scene");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    testbed.api().post("/tunnels", &testbed.network.exit_a.tunnel("wg-a")).expect("tunnel");
    testbed.policy(&policy("one", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    let other = policy("two", 10, ("device", &laptop), &[]);
    let reply = testbed.api().send("POST", "/routing/policies", Some(&other)).expect("answer");
    assert_eq!(reply.status, 409, "{}", reply.body);
    assert_eq!(reply.body["error"]["code"], json!("policy_conflict"), "{}", reply.body);
}
