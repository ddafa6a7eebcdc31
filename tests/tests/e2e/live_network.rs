//! Changes of uplinks, LAN interfaces, intervals and the resolver's address at run time.

use std::time::Duration;

use gateway_tests::dns::{Client, Upstream};
use gateway_tests::name_server;
use gateway_tests::services::{HTTP, IDENT};
use gateway_tests::tap::Tap;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{LAN_V4, other_wan, server};
use gateway_tests::traffic::{Load, TIMEOUT, TcpFlow, UdpFlow, ask};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::{
    BLOCKED, FAMILIES, SOON, assert_blocked, assert_direct, assert_nothing_leaked, assert_seen_as,
    assert_the_tap_sees,
};

const A: u16 = 1;

/// Sets a key, effective immediately. Returns when a run of the loop has seen it.
fn set(testbed: &Testbed, key: &str, value: Value) {
    let set = testbed.api().put(&format!("/settings/{key}"), &json!({"value": value})).expect("set");
    assert_eq!((&set["apply"], &set["pending_restart"]), (&json!("live"), &json!(false)), "{set}");
    testbed.api().act("/enforce/reconcile").expect("a run");
}

fn uplinks(testbed: &Testbed, interfaces: &[&str]) {
    let wans: Vec<Value> = interfaces.iter().map(|name| json!({"name": name, "interface": name})).collect();
    set(testbed, "network.wans", wans.into());
}

fn only_by(interface: &str, device: &str) -> Value {
    let mut policy = policy("only", 10, ("device", device), &[]);
    policy["hops"] = json!([{"type": "interface", "target": interface}]);
    policy
}

fn assert_silent(tap: &Tap) {
    let counts = tap.counts();
    assert!(counts.leaked.total() == 0 && counts.missed == 0, "{counts}");
}

#[test]
fn an_uplink_added_at_runtime_carries_what_a_policy_sends_by_it_until_it_is_removed() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    assert_the_tap_sees(&testbed, &network.tv);
    let second = network.add_uplink().expect("a link");
    testbed.policy(&only_by("eth2", &laptop)).expect("policy");
    assert_blocked(&network.laptop);
    assert_silent(&second);

    let load = Load::start(&network.laptop).expect("load");
    load.run_for(50).expect("load");
    uplinks(&testbed, &["eth0", "eth2"]);
    assert_seen_as(&network.laptop, other_wan);
    assert!(second.counts().leaked.v4 > 0 && second.counts().leaked.v6 > 0, "{}", second.counts());
    assert_direct(&network.tv);

    uplinks(&testbed, &["eth0"]);
    load.run_for(50).expect("load");
    second.reset();
    network.tap.reset();
    load.run_for(200).expect("load");
    let sent = load.stop();
    assert!(sent.v4 > 300 && sent.v6 > 300, "{sent:?}");
    assert_blocked(&network.laptop);
    assert_nothing_leaked(&testbed);
    assert_silent(&second);
    assert_direct(&network.tv);
}

#[test]
fn an_uplink_keeps_its_number_and_its_flows_while_the_first_goes_and_over_a_restart() {
    let (mut testbed, second) = Testbed::start_with_two_uplinks().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.policy(&only_by("eth2", &laptop)).expect("policy");
    let mut flows = FAMILIES.map(|ipv6| {
        let tcp = TcpFlow::open(&network.laptop, server(ipv6)).expect("TCP flow");
        (ipv6, tcp, UdpFlow::open(&network.laptop, (server(ipv6), IDENT).into()).expect("UDP flow"))
    });
    let mut go_on = |why: &str| {
        for (ipv6, tcp, udp) in &mut flows {
            assert_eq!(tcp.ask(TIMEOUT).seen(), Some(other_wan(*ipv6)), "{why}");
            assert_eq!(udp.ask(TIMEOUT).expect(why), other_wan(*ipv6), "{why}");
        }
    };
    go_on("before");
    uplinks(&testbed, &["eth2"]);
    go_on("without the first");
    let table = |testbed: &Testbed| {
        testbed.network.gateway.run("ip", &["route", "show", "table", "47002"]).expect("a table")
    };
    assert!(table(&testbed).contains("dev eth2"), "{}", table(&testbed));
    testbed.daemon.terminate().expect("ended");
    testbed.daemon.start().expect("started");
    assert!(table(&testbed).contains("dev eth2"), "{}", table(&testbed));
    go_on("after a restart");
    // The change of the tables had no effect on the wire: all packets left by the second uplink.
    assert!(second.counts().leaked.total() > 0, "{}", second.counts());
    testbed.network.tap.reset();
    go_on("again");
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_lan_interface_added_at_runtime_is_blocked_until_then_and_after_its_removal() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    assert_the_tap_sees(&testbed, &network.tv);
    let guest = network.add_segment().expect("another segment");
    let load = Load::start(&guest).expect("load");
    load.run_for(200).expect("load");
    assert_blocked(&guest);
    assert_nothing_leaked(&testbed);

    set(&testbed, "network.lan_iface", json!(["eth1", "eth3"]));
    wait_ok(SOON, "the segment to be served", || {
        for ipv6 in FAMILIES {
            let answer = ask(&guest, (server(ipv6), HTTP).into(), BLOCKED);
            anyhow::ensure!(answer.seen().is_some(), "{answer}");
        }
        Ok(())
    })
    .expect("served");
    assert_direct(&guest);
    let device = testbed.device(&guest).expect("device");
    let id = testbed.policy(&policy("none", 10, ("device", &device), &[])).expect("policy");
    assert_blocked(&guest);
    testbed.api().delete(&format!("/routing/policies/{id}")).expect("deleted");
    testbed.apply().expect("applied");
    assert_direct(&guest);

    set(&testbed, "network.lan_iface", json!("eth1"));
    load.run_for(50).expect("load");
    network.tap.reset();
    load.run_for(200).expect("load");
    load.stop();
    assert_blocked(&guest);
    assert_nothing_leaked(&testbed);
    assert_direct(&network.tv);
}

#[test]
fn a_shorter_interval_holds_at_once() {
    let testbed = Testbed::start().expect("scene");
    let looks = || {
        let metrics = testbed.network.gateway.run("curl", &["-s", "http://127.0.0.1:8080/metrics"]);
        let metrics = metrics.expect("metrics");
        let line = metrics.lines().find(|line| line.starts_with("gateway_reconcile_runs_total"));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).expect("a counter")
    };
    set(&testbed, "reconcile.interval_sec", json!(5));
    let before = looks();
    wait_ok(Duration::from_secs(14), "two looks in ten seconds", || {
        let now = looks();
        anyhow::ensure!(now >= before + 2.0, "{before} runs and then {now}");
        Ok(())
    })
    .expect("the interval of 60 s is over");
}

#[test]
fn the_resolver_changes_its_listen_address_at_once() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let _upstream = Upstream::start(&network.internet).expect("upstream");
    let mut laptop = Client::of(&network.laptop, LAN_V4.into()).and_then(|it| it.with_timeout(BLOCKED));
    let laptop = laptop.as_mut().expect("client");
    set(&testbed, "dns.upstream_servers", json!([name_server::ADDRESS]));
    wait_ok(SOON, "an answer at the first place", || laptop.ask("one.example", A)).expect("answered");
    let listens = || {
        let sockets = network.gateway.run("ss", &["-Hlun"]).expect("sockets");
        let at = |port: &str| sockets.split_whitespace().any(|word| word.ends_with(port));
        (at(":53"), at(":5353"))
    };
    assert_eq!(listens(), (true, false));
    set(&testbed, "dns.listen_addr", json!("0.0.0.0:5353"));
    wait_ok(SOON, "the other place", || {
        anyhow::ensure!(listens() == (false, true), "{:?}", listens());
        Ok(())
    })
    .expect("moved");
    let reply = network
        .laptop
        .namespace
        .run("dig", &["+short", "-p", "5353", "@192.168.10.1", "two.example", "A"])
        .expect("dig");
    assert!(!reply.trim().is_empty(), "an answer at the second place: {reply}");
}
