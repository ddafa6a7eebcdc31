//! Fast path with the daemon: it is switched live, shows what it does, and follows each change.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use gateway_tests::services::IDENT;
use gateway_tests::tap::MARK;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Host, server, wan};
use gateway_tests::traffic::{Load, TcpFlow, UdpFlow};
use gateway_tests::wait::wait_for;
use serde_json::{Value, json};

use crate::e2e::{BLOCKED, FAMILIES, SOON, SWAPS, assert_nothing_leaked, assert_the_tap_sees};

fn start() -> Testbed {
    let mut testbed = Testbed::prepare().expect("a network");
    testbed.daemon.configure(&json!({"dataplane": {"fast_path": "on"}})).expect("configured");
    testbed.daemon.start().expect("a daemon");
    wait_until(&testbed, "on", |status| status["on"] == true);
    testbed
}

fn status(testbed: &Testbed) -> Value {
    testbed.api().get("/status").expect("the status")["fast_path"].clone()
}

fn wait_until(testbed: &Testbed, state: &str, is_so: impl Fn(&Value) -> bool) {
    wait_for(SOON, &format!("the fast path to be {state}"), || is_so(&status(testbed))).expect(state);
}

fn packets(testbed: &Testbed) -> (u64, u64) {
    let status = status(testbed);
    let number = |name: &str| status[name].as_u64().expect(name);
    (number("forwarded_packets"), number("replied_packets"))
}

fn udp(host: &Host, ipv6: bool) -> UdpFlow {
    UdpFlow::open(host, SocketAddr::from((server(ipv6), IDENT))).expect("a flow")
}

#[test]
fn established_flows_take_it_and_the_setting_is_live() {
    let testbed = start();
    let laptop = &testbed.network.laptop;
    for ipv6 in FAMILIES {
        let (flow, mut connection) = (udp(laptop, ipv6), TcpFlow::open(laptop, server(ipv6)).expect("open"));
        let before = packets(&testbed);
        for _ in 0..10 {
            assert_eq!(flow.ask(SOON).expect("an answer"), wan(ipv6));
            assert_eq!(connection.ask(SOON).seen(), Some(wan(ipv6)));
        }
        let after = packets(&testbed);
        assert!(after.0 >= before.0 + 12 && after.1 >= before.1 + 12, "{before:?} {after:?}, IPv6: {ipv6}");
    }
    assert!(status(&testbed)["share_pct"].as_f64().expect("a share") > 10.0);
    let gateway = &testbed.network.gateway;
    let metrics = gateway.run("curl", &["-s", "http://127.0.0.1:8080/metrics"]).expect("the metrics");
    for series in ["gateway_fast_path_enabled 1", "gateway_fast_path_packets_total{kind=\"forwarded\"} "] {
        let found = metrics.lines().find(|line| line.starts_with(series)).expect(series);
        assert!(!found.ends_with(" 0"), "{found}");
    }
    let set = |value: &str| {
        testbed.api().put("/settings/dataplane.fast_path", &json!({"value": value})).expect("set");
    };
    set("off");
    wait_until(&testbed, "off", |status| status["on"] == false && status["message"].is_null());
    let flow = udp(laptop, false);
    let before = packets(&testbed);
    for _ in 0..5 {
        flow.ask(SOON).expect("an answer");
    }
    assert_eq!(packets(&testbed), before, "off");
    set("on");
    wait_until(&testbed, "on", |status| status["on"] == true);
    for _ in 0..5 {
        flow.ask(SOON).expect("an answer");
    }
    assert!(packets(&testbed).0 > before.0, "on again");
}

#[test]
fn a_new_route_and_a_new_plan_end_the_entries() {
    let testbed = start();
    let laptop = &testbed.network.laptop;
    let device = testbed.device(laptop).expect("a device");
    let flow = udp(laptop, false);
    for _ in 0..5 {
        flow.ask(SOON).expect("an answer");
    }
    let changes = |cause: &str| status(&testbed)["epoch_changes"][cause].as_u64().unwrap_or(0);
    let before = changes("route");
    testbed.network.gateway.ip("route add 192.0.2.77/32 dev eth0").expect("a route");
    wait_for(SOON, "a change by the route", || changes("route") > before).expect("invalidated");
    flow.ask(SOON).expect("an answer");
    let before = changes("plan");
    testbed.policy(&policy("none", 10, ("device", &device), &[])).expect("a policy");
    assert!(changes("plan") > before);
    assert!(flow.ask(BLOCKED).is_err(), "the policy has no hop");
    let explained = testbed.evaluate(&device).expect("an evaluation");
    let ipv4 = &explained["families"]["ipv4"];
    assert_eq!(ipv4["fast_path"]["possible"], false, "{explained}");
    assert_eq!(ipv4["fast_path"]["reason"], "verdict", "{explained}");
}

#[test]
fn swaps_between_two_tunnels_under_load_leak_nothing() {
    let testbed = start();
    let network = &testbed.network;
    assert_the_tap_sees(&testbed, &network.laptop);
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    let plans = ["wg-a", "wg-b"].map(|tunnel| policy("way", 10, ("device", &laptop), &[tunnel]));
    let id = testbed.policy(&plans[0]).expect("policy");
    let load = Load::start(&network.laptop).expect("load");
    for number in 1..=*SWAPS {
        let exit = if number % 2 == 0 { &network.exit_a } else { &network.exit_b };
        testbed.replace_policy(&id, &plans[number % 2]).expect("applied");
        // Most plans are replaced before a flow has moved, some after it has entries again.
        if number % 17 != 0 {
            continue;
        }
        for ipv6 in FAMILIES {
            load.wait_for_answer_to(exit.address(ipv6), SOON).expect("moved");
        }
        load.run_for(20).expect("sent");
    }
    let sent = load.stop();
    let exits = [&network.exit_a, &network.exit_b].map(|exit| FAMILIES.map(|ipv6| exit.address(ipv6)));
    assert!(sent.answers.keys().all(|seen| exits.concat().contains(seen)), "{sent:?}");
    assert_nothing_leaked(&testbed);
    let (forwarded, replied) = packets(&testbed);
    assert!(forwarded > 100 && replied > 100, "{forwarded} {replied}");
}

#[test]
fn a_tunnel_that_is_deleted_by_hand_takes_its_flows_along() {
    let testbed = start();
    let network = &testbed.network;
    assert_the_tap_sees(&testbed, &network.laptop);
    let laptop = testbed.device(&network.laptop).expect("device");
    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("way", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    let load = Load::start(&network.laptop).expect("load");
    load.wait_for_answer_to(network.exit_a.address(false), SOON).expect("through the tunnel");
    load.run_for(50).expect("sent");
    let (forwarded, _) = packets(&testbed);
    assert!(forwarded > 0);
    let interface = testbed.interface(&tunnel).expect("an interface");
    network.gateway.ip(&format!("link delete {interface}")).expect("deleted");
    load.run_for(300).expect("sent");
    let sent = load.stop();
    let exit = FAMILIES.map(|ipv6| network.exit_a.address(ipv6));
    assert!(sent.answers.keys().all(|seen| exit.contains(seen)), "{sent:?}");
    assert_nothing_leaked(&testbed);
}

#[test]
fn flows_between_lans_take_it_until_a_trust_class_forbids_them() {
    let mut testbed = Testbed::prepare().expect("a network");
    let guest = testbed.network.add_segment().expect("a segment");
    let configuration = json!({"dataplane": {"fast_path": "on"}, "network": {"lan_iface": ["eth1", "eth3"]}});
    testbed.daemon.configure(&configuration).expect("configured");
    testbed.daemon.start().expect("a daemon");
    wait_until(&testbed, "on", |status| status["on"] == true);
    let laptop = &testbed.network.laptop;
    let device = testbed.device(laptop).expect("a device");
    for at in [SocketAddr::from((guest.v4, 7777)), SocketAddr::from((guest.v6, 7777))] {
        let any = if at.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let server = guest.namespace.within(|| UdpSocket::bind(at)).expect("a server");
        let client = laptop.namespace.within(|| UdpSocket::bind(any)).expect("a client");
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(BLOCKED)).expect("a timeout");
        }
        let exchange = |number: u8| -> std::io::Result<Vec<u8>> {
            let mut buffer = [0; 100];
            client.send_to(&[number; 50], at)?;
            let (length, from) = server.recv_from(&mut buffer)?;
            server.send_to(&buffer[..length], from)?;
            client.recv(&mut buffer).map(|length| buffer[..length].to_vec())
        };
        let before = packets(&testbed);
        for number in 0..20 {
            assert_eq!(exchange(number).expect("an answer"), [number; 50]);
        }
        let after = packets(&testbed);
        // Both directions are packets from the LAN.
        assert!(after.0 >= before.0 + 30, "{before:?} {after:?}");
        let set = |class: &str| {
            let path = format!("/devices/{device}");
            let mut object = testbed.api().get(&path).expect("the device");
            object["trust_class"] = json!(class);
            testbed.api().put(&path, &object).expect("stored");
            testbed.api().act("/enforce/reconcile").expect("reconciled");
        };
        set("guest");
        assert!(exchange(77).is_err(), "the class has no access to other networks");
        set("standard");
        assert_eq!(exchange(78).expect("an answer"), [78; 50]);
    }
    let question =
        json!({"device_id": device, "destination": format!("{}:7777", guest.v4), "protocol": "udp"});
    let explained = testbed.api().post("/policy/evaluate", &question).expect("an evaluation");
    assert_eq!(explained["families"]["ipv4"]["fast_path"]["possible"], true, "{explained}");
}

#[test]
fn packets_longer_than_a_route_take_the_ip_stack() {
    let testbed = start();
    let laptop = &testbed.network.laptop;
    let (to, any) = (SocketAddr::from((server(false), IDENT)), "0.0.0.0:0");
    let client = laptop.namespace.within(|| UdpSocket::bind(any)).expect("a client");
    client.set_read_timeout(Some(SOON)).expect("a timeout");
    let ask = || {
        client.send_to(MARK, to).expect("sent");
        client.recv(&mut [0; 100]).expect("an answer");
    };
    (0..3).for_each(|_| ask());
    testbed.network.gateway.ip("route add 198.18.0.1/32 via 203.0.113.1 mtu 1300").expect("a route");
    // Less than the interval of probes, by which the stack gets a packet anyway.
    wait_for(Duration::from_secs(4), "the gateway to send an ICMP message", || {
        // The short packets get an entry, and take the probes.
        (0..4).for_each(|_| ask());
        // The host refuses it once it knows the path MTU.
        let _ = client.send_to(&[0; 1400], to);
        let route = laptop.namespace.run("ip", &["route", "get", "198.18.0.1"]).expect("a route");
        route.contains("mtu 1300")
    })
    .expect("the path MTU");
}

#[test]
fn a_killed_daemon_leaves_flows_and_the_next_one_takes_over() {
    let mut testbed = start();
    let flow = udp(&testbed.network.laptop, false);
    for _ in 0..5 {
        flow.ask(SOON).expect("an answer");
    }
    testbed.daemon.kill9().expect("killed");
    for _ in 0..20 {
        assert_eq!(flow.ask(SOON).expect("an answer"), wan(false));
    }
    testbed.daemon.start().expect("a daemon");
    wait_until(&testbed, "on", |status| status["on"] == true);
    for _ in 0..5 {
        assert_eq!(flow.ask(SOON).expect("an answer"), wan(false));
    }
    assert!(packets(&testbed).0 > 0, "the statistics begin again");
}
