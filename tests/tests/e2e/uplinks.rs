//! Failover and balancing over two uplinks, with real links, probes and flows.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use gateway_tests::netns::Namespace;
use gateway_tests::services::{HTTP, IDENT, Services};
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{OTHER_WAN_V4, other_wan, server, wan};
use gateway_tests::traffic::{Answer, Load, TcpFlow, UdpFlow, ask, ask_server, ask_within};
use gateway_tests::two_uplinks::{Line, TwoUplinks};
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::json;

use crate::e2e::{BLOCKED, FAMILIES, SOON};

/// Number of random failovers. `GATEWAY_FAILOVERS` sets another.
const FAILOVERS: u64 = 8;

fn start(balance: bool, weights: [u32; 2]) -> TwoUplinks {
    TwoUplinks::start(balance, weights).expect("two uplinks")
}

fn seen_as(testbed: &Testbed, ipv6: bool) -> Option<IpAddr> {
    ask_server(&testbed.network.tv, server(ipv6)).seen()
}

fn wait_for_egress(testbed: &Testbed, expected: fn(bool) -> IpAddr) {
    for ipv6 in FAMILIES {
        wait_ok(SOON, "traffic to leave by the other uplink", || {
            let seen = seen_as(testbed, ipv6);
            anyhow::ensure!(seen == Some(expected(ipv6)), "{seen:?}");
            Ok(())
        })
        .expect("left");
    }
}

fn wait_for_active(uplinks: &TwoUplinks, line: Line) {
    wait_ok(2 * SOON, "the other uplink to be active", || {
        let active = uplinks.active()?;
        anyhow::ensure!(active == line.name(), "{active}");
        Ok(())
    })
    .expect("active");
}

#[test]
fn pulled_cable_moves_traffic_and_flows_begin_again() {
    let uplinks = start(false, [1, 1]);
    let (testbed, network) = (&uplinks.testbed, &uplinks.testbed.network);
    for ipv6 in FAMILIES {
        assert_eq!(seen_as(testbed, ipv6), Some(wan(ipv6)));
    }
    let mut flow = TcpFlow::open(&network.tv, server(false)).expect("a connection");
    assert_eq!(flow.ask(BLOCKED).seen(), Some(wan(false)));
    uplinks.pull(Line::Fibre, true).expect("pulled");
    wait_for_egress(testbed, other_wan);
    // The server knows the connection by the address of the first uplink, and resets it.
    let answer = flow.ask(SOON);
    assert!(matches!(answer, Answer::Rejected { .. }), "{answer}");
    let manager = testbed.api().get("/system/wan-manager").expect("the manager");
    assert_eq!((&manager["active"], &manager["standby"]), (&json!("cable"), &json!(["fibre"])), "{manager}");
    let newest = &manager["decisions"][0];
    assert_eq!(
        (&newest["from"], &newest["to"], &newest["applied"]),
        (&json!("fibre"), &json!("cable"), &json!(true))
    );
    assert!(
        newest["reason"].as_str().is_some_and(|reason| reason.contains("link of fibre is down")),
        "{newest}"
    );
    wait_ok(SOON, "the kernel to have the selection", || {
        let kernel = testbed.api().get("/system/wan-manager")?["kernel"].clone();
        anyhow::ensure!(
            kernel["new_connections"] == json!(["cable"]) && kernel["agrees"] == true,
            "{kernel}"
        );
        let preferred = &kernel["default_routes"][0];
        anyhow::ensure!(preferred["uplink"] == "cable" && preferred["ipv6"] == false, "{kernel}");
        Ok(())
    })
    .expect("agreement");
    wait_ok(2 * SOON, "the history to have the failure", || {
        let health = testbed.api().get("/system/wan-health?history=true")?;
        let spans = health[0]["history"]["spans"].as_array().cloned().unwrap_or_default();
        let was_active = spans.iter().any(|span| span["active"] == true && span["state"] == "online");
        let last = spans.last().cloned().unwrap_or_default();
        let has_failed = last["active"] == false && last["state"] == "offline";
        anyhow::ensure!(was_active && has_failed, "{health}");
        anyhow::ensure!(health[0]["history"]["minutes"][0]["at"].is_string(), "{health}");
        Ok(())
    })
    .expect("the history");
}

#[test]
fn dead_line_behind_a_good_link_is_left() {
    let uplinks = start(false, [1, 1]);
    let testbed = &uplinks.testbed;
    uplinks.silence(Line::Fibre, true).expect("cut");
    wait_for_egress(testbed, other_wan);
    let health = testbed.api().get("/system/wan-health").expect("the health");
    assert_eq!(
        (&health[0]["state"], &health[0]["reachable"]),
        (&json!("offline"), &json!(false)),
        "{health}"
    );
    // Programs of the gateway follow.
    let to = SocketAddr::new(server(false), HTTP);
    assert_eq!(ask_within(&testbed.network.gateway, to, SOON).seen(), Some(other_wan(false)));
    uplinks.silence(Line::Fibre, false).expect("repaired");
    wait_for(SOON, "the line to work again", || {
        uplinks.state(Line::Fibre).is_ok_and(|state| state == "online")
    })
    .expect("online");
    assert_eq!(seen_as(testbed, false), Some(other_wan(false)), "fail-back takes time");
    let manager = testbed.api().get("/system/wan-manager").expect("the manager");
    let newest = &manager["decisions"][0];
    assert_eq!((&newest["to"], &newest["applied"]), (&json!("fibre"), &json!(false)), "{manager}");
}

#[test]
fn tunnel_follows_the_active_uplink_and_comes_back() {
    let uplinks = start(false, [1, 1]);
    let (testbed, network) = (&uplinks.testbed, &uplinks.testbed.network);
    let laptop = testbed.device(&network.laptop).expect("a device");
    testbed.tunnel("exit", &network.exit_a).expect("a tunnel");
    testbed.policy(&policy("vpn", 10, ("device", &laptop), &["exit"])).expect("a policy");
    let mut flow = TcpFlow::open(&network.laptop, server(false)).expect("a connection");
    assert_eq!(flow.ask(SOON).seen(), Some(network.exit_a.address(false)));
    uplinks.silence(Line::Fibre, true).expect("cut");
    let answer = flow.ask(Duration::from_secs(20));
    assert_eq!(answer.seen(), Some(network.exit_a.address(false)), "the connection goes on: {answer}");
    wait_for_active(&uplinks, Line::Cable);
    // The way back, also a failover because fail-back takes minutes.
    uplinks.silence(Line::Fibre, false).expect("repaired");
    uplinks.pull(Line::Cable, true).expect("pulled");
    let answer = flow.ask(Duration::from_secs(20));
    assert_eq!(answer.seen(), Some(network.exit_a.address(false)), "the connection goes on: {answer}");
    wait_for_active(&uplinks, Line::Fibre);
}

#[test]
fn new_flows_are_balanced_by_weight_and_none_moves() {
    let uplinks = start(true, [3, 1]);
    let (testbed, network) = (&uplinks.testbed, &uplinks.testbed.network);
    let mut open = Vec::new();
    for _ in 0..40 {
        let mut flow = TcpFlow::open(&network.tv, server(false)).expect("a connection");
        let seen = flow.ask(SOON).seen().expect("an answer");
        open.push((flow, seen));
    }
    let mut flows = BTreeMap::<IpAddr, usize>::new();
    let to = SocketAddr::new(server(false), IDENT);
    for _ in 0..10_000 {
        let flow = UdpFlow::open(&network.tv, to).expect("a socket");
        let seen = flow.ask(SOON).expect("an answer");
        *flows.entry(seen).or_default() += 1;
    }
    let (first, second) = (flows[&wan(false)], flows[&other_wan(false)]);
    assert!(first + second == 10_000 && (7_300..=7_700).contains(&first), "{flows:?}");
    for (flow, seen) in &mut open {
        assert_eq!(flow.ask(SOON).seen(), Some(*seen), "a flow moved");
    }
    let manager = testbed.api().get("/system/wan-manager").expect("the manager");
    let legs: Vec<(&str, u64)> = manager["egress_legs"]
        .as_array()
        .expect("legs")
        .iter()
        .filter_map(|leg| Some((leg["uplink"].as_str()?, leg["weight"].as_u64()?)))
        .collect();
    assert_eq!(legs, [("fibre", 3), ("cable", 1)], "{manager}");
    assert!(manager["egress_legs"][0]["flows"].as_u64() > manager["egress_legs"][1]["flows"].as_u64());
    // The uplink of a host that sticks to one is that of all its new flows.
    testbed.api().put("/settings/network.wan_sticky", &json!({"value": "source"})).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    let of_new_flow = || {
        let mut flow = TcpFlow::open(&network.tv, server(false)).expect("a connection");
        flow.ask(SOON).seen().expect("an answer")
    };
    let first = of_new_flow();
    assert_eq!((0..20).map(|_| of_new_flow()).collect::<BTreeSet<_>>(), BTreeSet::from([first]));
    // The flows of the uplink that fails end, and the others live on.
    uplinks.silence(Line::Fibre, true).expect("cut");
    wait_for_egress(testbed, other_wan);
    for (flow, seen) in open.iter_mut().filter(|(_, seen)| *seen == other_wan(false)).take(5) {
        assert_eq!(flow.ask(SOON).seen(), Some(*seen));
    }
}

#[test]
fn connection_from_outside_is_answered_by_its_uplink() {
    let uplinks = start(false, [1, 1]);
    // An answer by the active uplink would not arrive.
    uplinks.silence(Line::Fibre, true).expect("cut");
    let outside = |to: IpAddr| {
        let to = to.to_string();
        uplinks.testbed.network.internet.run("ping", &["-n", "-c", "1", "-W", "1", &to])
    };
    outside(OTHER_WAN_V4.into()).expect("an answer");
    outside(other_wan(true)).expect("an answer");
    outside(wan(false)).expect_err("the control: this line is cut");
}

#[test]
fn fail_closed_device_stays_in_its_tunnel_during_random_failovers() {
    let uplinks = start(false, [1, 1]);
    let (testbed, network) = (&uplinks.testbed, &uplinks.testbed.network);
    let laptop = testbed.device(&network.laptop).expect("a device");
    testbed.tunnel("exit", &network.exit_a).expect("a tunnel");
    testbed.policy(&policy("vpn", 10, ("device", &laptop), &["exit"])).expect("a policy");
    let load = Load::start(&network.laptop).expect("load");
    load.wait_for_answer_to(network.exit_a.address(false), SOON).expect("an answer");
    uplinks.counts();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let failovers = number("GATEWAY_FAILOVERS").unwrap_or(FAILOVERS);
    let mut random = number("GATEWAY_FAILOVER_SEED").unwrap_or_else(|| std::process::id().into());
    println!("GATEWAY_FAILOVER_SEED={random}");
    let mut active = Line::Fibre;
    let mut tunnelled = 0;
    for failover in 0..failovers {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let is_pulled = random >> 63 == 0;
        if is_pulled {
            uplinks.pull(active, true).expect("pulled");
        } else {
            uplinks.silence(active, true).expect("cut");
        }
        wait_for_active(&uplinks, active.other());
        load.wait_for_answer_to(network.exit_a.address(false), SOON).expect("the tunnel goes on");
        if is_pulled {
            uplinks.pull(active, false).expect("plugged in");
        } else {
            uplinks.silence(active, false).expect("repaired");
        }
        active = active.other();
        for counts in uplinks.counts() {
            assert_eq!(counts.leaked.total() + counts.leaked_dns, 0, "failover {failover}: {counts}");
            tunnelled += counts.tunnel.total();
        }
    }
    assert!(tunnelled > 0, "the taps saw no packet of the tunnel");
    let sent = load.stop();
    println!("{failovers} failovers, {tunnelled} packets of the tunnel, {} packets sent", sent.v4 + sent.v6);
}

#[test]
fn manager_that_only_observes_moves_nothing() {
    let uplinks = start(false, [1, 1]);
    let testbed = &uplinks.testbed;
    testbed.api().put("/settings/network.wan_failover_mode", &json!({"value": "manual"})).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    uplinks.silence(Line::Fibre, true).expect("cut");
    wait_ok(SOON, "a decision", || {
        let manager = testbed.api().get("/system/wan-manager")?;
        let newest = &manager["decisions"][0];
        anyhow::ensure!(newest["to"] == "cable" && newest["applied"] == false, "{manager}");
        Ok(())
    })
    .expect("decided");
    let to = SocketAddr::new(server(false), HTTP);
    assert_eq!(ask(&testbed.network.tv, to, BLOCKED).seen(), None, "traffic stays");
}

#[test]
fn list_of_uplinks_is_checked() {
    let testbed = Testbed::start().expect("a network");
    let shown = testbed.api().get("/system/wan-uplinks").expect("the list");
    assert_eq!(
        (&shown["uplinks"][0]["interface"], &shown["wan_failover_mode"]),
        (&json!("eth0"), &json!("auto"))
    );
    let wrong = json!({"uplinks": [{"interface": "eth0", "weight": 0, "probe": {"targets": ["nowhere"]}}]});
    let reply = testbed.api().send("PUT", "/system/wan-uplinks", Some(&wrong)).expect("an answer");
    assert_eq!(reply.status, 422);
    let fields = &reply.body["error"]["details"]["fields"];
    let paths: Vec<&str> =
        fields.as_array().expect("fields").iter().filter_map(|one| one["path"].as_str()).collect();
    assert_eq!(paths, ["uplinks[0].weight", "uplinks[0].probe.targets[0]"]);
}

/// A network on the second uplink with a modem, which the router of the uplink does not lead to.
#[test]
fn neighbours_of_an_uplink_are_reached_by_it_alone() {
    let modem = |ipv6: bool| -> IpAddr {
        if ipv6 { "2001:db8:114::9".parse().expect("an address") } else { [203, 0, 114, 9].into() }
    };
    for balance in [true, false] {
        let uplinks = start(balance, [1, 1]);
        let (testbed, network) = (&uplinks.testbed, &uplinks.testbed.network);
        let namespace = Namespace::create(&network.prefix, "modem").expect("a namespace");
        network
            .internet
            .ip(&format!(
                "link add link up1 name modem type macvlan mode bridge\nlink set modem netns {}",
                namespace.name()
            ))
            .expect("a link");
        namespace
            .ip(&format!(
                "address add {}/24 dev modem\naddress add {}/64 dev modem nodad\nlink set modem up",
                modem(false),
                modem(true)
            ))
            .expect("addresses");
        let _services = Services::start(&namespace, &FAMILIES.map(modem)).expect("services");
        for ipv6 in FAMILIES {
            let to = SocketAddr::new(modem(ipv6), IDENT);
            for turn in 0..20 {
                let flow = UdpFlow::open(&network.tv, to).expect("a socket");
                let seen = flow.ask(SOON).expect("an answer of the modem");
                assert_eq!(seen, other_wan(ipv6), "turn {turn}");
            }
            let question =
                json!({"mac": network.tv.mac, "destination": modem(ipv6).to_string(), "port": IDENT});
            let explained = testbed.api().post("/policy/evaluate", &question).expect("an explanation");
            let family = if ipv6 { "ipv6" } else { "ipv4" };
            assert_eq!(explained["families"][family]["interface"], "eth2", "{explained}");
        }
        // The active uplink is the other one.
        assert_eq!(uplinks.active().expect("the manager"), "fibre");
    }
}
