//! XDP with the daemon: attached on demand, visible, and gone with the setting. Virtual links need the mode `native`.

use std::net::SocketAddr;

use gateway_tests::netns::Namespace;
use gateway_tests::services::IDENT;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Topology, other_wan, server, wan};
use gateway_tests::traffic::{Load, TcpFlow, UdpFlow};
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::{Value, json};

use crate::e2e::flows::{count_at, counted};
use crate::e2e::{BLOCKED, FAMILIES, SOON, SWAPS, assert_the_tap_sees};

/// Starts the daemon in a network whose links accept redirected frames, and whose hosts complete their checksums.
fn start(dataplane: &Value) -> Testbed {
    let mut testbed = Testbed::prepare().expect("a network");
    set_offloads(&testbed.network, &["up0"]);
    testbed.daemon.configure(&json!({"dataplane": dataplane})).expect("configured");
    testbed.daemon.start().expect("a daemon");
    testbed
}

/// Sets the offloads that virtual links need for XDP.
pub(crate) fn set_offloads(network: &Topology, uplinks: &[&str]) {
    let set = |namespace: &Namespace, interface: &str, feature: &str, state: &str| {
        namespace.run("ethtool", &["-K", interface, feature, state]).expect("an offload");
    };
    set(&network.lan, "to-gateway", "gro", "on");
    set(&network.laptop.namespace, "eth0", "tx", "off");
    for uplink in uplinks {
        set(&network.internet, uplink, "gro", "on");
        set(&network.internet, uplink, "tx", "off");
    }
}

fn status(testbed: &Testbed) -> Value {
    testbed.api().get("/status").expect("the status")["fast_path"].clone()
}

fn wait_until(testbed: &Testbed, state: &str, is_so: impl Fn(&Value) -> bool) {
    let waited = wait_for(SOON, &format!("XDP to be {state}"), || is_so(&status(testbed)));
    waited.unwrap_or_else(|error| panic!("{error}: {}", status(testbed)));
}

fn interface<'a>(status: &'a Value, name: &str) -> &'a Value {
    let all = status["xdp"].as_array().expect("a list");
    all.iter().find(|one| one["interface"] == name).unwrap_or(&Value::Null)
}

fn is_used(status: &Value, name: &str) -> bool {
    let one = interface(status, name);
    one["attached"] == true && one["sends"] == true && one["reason"].is_null()
}

fn xdp_packets(testbed: &Testbed) -> u64 {
    status(testbed)["xdp_packets"].as_u64().expect("a number")
}

fn native() -> Value {
    json!({"fast_path": "on", "xdp_interfaces": [
        {"interface": "eth0", "mode": "native"}, {"interface": "eth1", "mode": "native"}]})
}

#[test]
fn established_flows_leave_in_the_driver_and_a_policy_ends_them() {
    let testbed = start(&native());
    wait_until(&testbed, "used", |status| is_used(status, "eth0") && is_used(status, "eth1"));
    let laptop = &testbed.network.laptop;
    let flow = UdpFlow::open(laptop, SocketAddr::from((server(false), IDENT))).expect("a flow");
    for ipv6 in FAMILIES {
        let flow = UdpFlow::open(laptop, SocketAddr::from((server(ipv6), IDENT))).expect("a flow");
        let mut connection = TcpFlow::open(laptop, server(ipv6)).expect("open");
        let before = xdp_packets(&testbed);
        for _ in 0..10 {
            assert_eq!(flow.ask(SOON).expect("an answer"), wan(ipv6));
            assert_eq!(connection.ask(SOON).seen(), Some(wan(ipv6)));
        }
        let after = xdp_packets(&testbed);
        assert!(after >= before + 20, "{before} {after} IPv6: {ipv6}");
    }
    for _ in 0..5 {
        flow.ask(SOON).expect("an answer");
    }
    let device = testbed.device(laptop).expect("a device");
    testbed.policy(&policy("none", 10, ("device", &device), &[])).expect("a policy");
    assert!(flow.ask(BLOCKED).is_err(), "the policy has no hop");
}

#[test]
fn flows_in_the_driver_count_like_the_client_counts_them() {
    let testbed = start(&native());
    wait_until(&testbed, "used", |status| is_used(status, "eth0") && is_used(status, "eth1"));
    let laptop = &testbed.network.laptop;
    let device = testbed.device(laptop).expect("a device");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    count_at(laptop, "udp", IDENT);
    for ipv6 in FAMILIES {
        laptop.namespace.run("nft", &["reset", "counters"]).expect("reset");
        let before = xdp_packets(&testbed);
        let flow = UdpFlow::open(laptop, SocketAddr::from((server(ipv6), IDENT))).expect("a flow");
        for _ in 0..60 {
            flow.ask(SOON).expect("an answer");
        }
        assert!(xdp_packets(&testbed) >= before + 40, "IPv6: {ipv6}");
        let wanted = (counted(laptop, "out"), counted(laptop, "in"));
        let query = format!("/flows?device={device}&destination={}&protocol=udp", server(ipv6));
        wait_ok(SOON, "the counts of the client", || {
            let found = testbed.api().get(&query)?;
            let counts = (found[0]["sent"].clone(), found[0]["received"].clone());
            anyhow::ensure!(counts == wanted, "{counts:?} instead of {wanted:?}, IPv6: {ipv6}");
            Ok(())
        })
        .expect("counted");
    }
}

#[test]
fn each_interface_shows_why_it_has_no_xdp_and_the_setting_is_live() {
    let testbed = start(&json!({"fast_path": "on", "xdp": "auto"}));
    wait_until(&testbed, "refused", |status| interface(status, "eth1")["reason"] == "virtual");
    let set = |key: &str, value: Value| {
        testbed.api().put(&format!("/settings/dataplane.{key}"), &json!({"value": value})).expect("set");
    };
    set("xdp", json!("native"));
    wait_until(&testbed, "used", |status| is_used(status, "eth0") && is_used(status, "eth1"));
    let gateway = &testbed.network.gateway;
    // A queueing discipline is not passed by.
    gateway
        .run("tc", &["qdisc", "replace", "dev", "eth0", "root", "pfifo", "limit", "100"])
        .expect("a discipline");
    wait_until(&testbed, "shaped", |status| interface(status, "eth0")["reason"] == "shaped");
    assert_eq!(interface(&status(&testbed), "eth0")["sends"], false);
    gateway.run("tc", &["qdisc", "delete", "dev", "eth0", "root"]).expect("no discipline");
    wait_until(&testbed, "used", |status| is_used(status, "eth0"));
    set("xdp_interfaces", json!([{"interface": "eth0", "mode": "off"}]));
    wait_until(&testbed, "off", |status| interface(status, "eth0")["reason"] == "off");
    let has_program =
        |name: &str| gateway.run("ip", &["link", "show", "dev", name]).expect("a link").contains("prog/xdp");
    assert!(!has_program("eth0") && has_program("eth1"));
    let platform = testbed.api().get("/platform").expect("the platform");
    let nics = platform["nics"].as_array().expect("a list");
    let mode =
        |name: &str| nics.iter().find(|nic| nic["name"] == name).expect("the interface")["xdp"].clone();
    assert_eq!([mode("eth0"), mode("eth1")], ["none", "native"]);
    set("fast_path", json!("off"));
    wait_until(&testbed, "off", |status| interface(status, "eth1")["reason"] == "fast_path_off");
    assert!(!has_program("eth1"));
}

#[test]
fn a_killed_daemon_leaves_the_program_and_the_next_one_takes_over() {
    let mut testbed = start(&native());
    wait_until(&testbed, "used", |status| is_used(status, "eth0") && is_used(status, "eth1"));
    let flow = UdpFlow::open(&testbed.network.laptop, SocketAddr::from((server(false), IDENT)));
    let flow = flow.expect("a flow");
    let ask = || {
        for _ in 0..10 {
            assert_eq!(flow.ask(SOON).expect("an answer"), wan(false));
        }
    };
    ask();
    testbed.daemon.kill9().expect("killed");
    ask();
    testbed.daemon.start().expect("a daemon");
    wait_until(&testbed, "used", |status| is_used(status, "eth0") && is_used(status, "eth1"));
    ask();
    assert!(xdp_packets(&testbed) > 0, "the statistics begin again");
}

#[test]
fn swaps_between_a_driver_and_a_tunnel_under_load_leak_nothing() {
    let mut testbed = Testbed::prepare().expect("a network");
    let second = testbed.network.add_uplink().expect("an uplink");
    set_offloads(&testbed.network, &["up0", "up1"]);
    let wans = json!([{"name": "one", "interface": "eth0"}, {"name": "two", "interface": "eth2"}]);
    let dataplane = json!({"fast_path": "on", "xdp": "native"});
    testbed
        .daemon
        .configure(&json!({"dataplane": dataplane, "network": {"wans": wans}}))
        .expect("configured");
    testbed.daemon.start().expect("a daemon");
    wait_until(&testbed, "used", |status| ["eth0", "eth1", "eth2"].iter().all(|name| is_used(status, name)));
    let network = &testbed.network;
    assert_the_tap_sees(&testbed, &network.laptop);
    let laptop = testbed.device(&network.laptop).expect("a device");
    testbed.tunnel("wg-a", &network.exit_a).expect("a tunnel");
    let by_tunnel = policy("way", 10, ("device", &laptop), &["wg-a"]);
    let mut by_driver = by_tunnel.clone();
    by_driver["hops"] = json!([{"type": "interface", "target": "eth2"}]);
    let id = testbed.policy(&by_driver).expect("a policy");
    let load = Load::start(&network.laptop).expect("a load");
    let (mut in_driver, mut by_second) = (0, 0);
    for number in 1..=*SWAPS {
        let is_tunnel = number % 2 == 1;
        testbed.replace_policy(&id, if is_tunnel { &by_tunnel } else { &by_driver }).expect("applied");
        // Most plans are replaced before a flow has moved, some after it has entries again.
        if number % 17 != 0 {
            continue;
        }
        for ipv6 in FAMILIES {
            let seen = if is_tunnel { network.exit_a.address(ipv6) } else { other_wan(ipv6) };
            load.wait_for_answer_to(seen, SOON).expect("moved");
        }
        let (before, packets) = (second.counts().leaked, xdp_packets(&testbed));
        load.run_for(40).expect("sent");
        let (after, packets) = (second.counts().leaked, xdp_packets(&testbed) - packets);
        if is_tunnel {
            assert_eq!(after, before, "{number}: by the uplink before");
        } else {
            in_driver += packets;
            by_second += after.total() - before.total();
        }
    }
    let sent = load.stop();
    let all = FAMILIES.map(|ipv6| [network.exit_a.address(ipv6), other_wan(ipv6)]).concat();
    assert!(sent.answers.keys().all(|seen| all.contains(seen)), "{sent:?}");
    // The first uplink had nothing of it. Its probes are of no class.
    network.settle().expect("silence on the LAN");
    let counts = network.tap.counts();
    assert_eq!((counts.leaked.total(), counts.missed, second.counts().missed), (0, 0, 0), "{counts}");
    assert!(counts.tunnel.total() > 300, "{counts}");
    assert!(in_driver > 100 && by_second > 100, "{in_driver} {by_second}");
}
