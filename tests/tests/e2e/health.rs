//! Tunnel health by traffic through the tunnel, endpoint resolution by name, and changes of the uplink.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use gateway_tests::name_server::{self, NameServer};
use gateway_tests::services::HTTP;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{SERVER_V4, SERVER_V6, server};
use gateway_tests::traffic::ask;
use gateway_tests::wait::wait_ok;
use gateway_tests::wireguard::Exit;
use serde_json::{Value, json};

use crate::e2e::paths::path;
use crate::e2e::{
    BLOCKED, FAMILIES, SOON, assert_blocked, assert_nothing_leaked, assert_the_tap_sees, assert_through,
    wait_until_through,
};

/// Returns a tunnel object whose health is probed every second.
pub(super) fn probed(exit: &Exit, name: &str, kind: &str, target: &str) -> Value {
    let mut tunnel = exit.tunnel(name);
    tunnel["health_check"] =
        json!({"type": kind, "target": target, "interval_sec": 1, "timeout_sec": 1, "fail": 2, "success": 2});
    tunnel
}

/// Makes the exit stop or resume forwarding. It keeps answering handshakes.
pub(super) fn forwards(exit: &Exit, yes: bool) {
    exit.namespace.sysctl("net.ipv4.ip_forward", if yes { "1" } else { "0" }).expect("exit");
    exit.namespace.sysctl("net.ipv6.conf.all.forwarding", if yes { "1" } else { "0" }).expect("exit");
}

fn wait_for_status(testbed: &Testbed, id: &str, status: &str) -> Value {
    wait_ok(SOON, &format!("the tunnel to be {status}"), || {
        let tunnel = testbed.api().get(&format!("/tunnels/{id}"))?;
        anyhow::ensure!(tunnel["status"] == status, "{tunnel}");
        Ok(tunnel)
    })
    .expect("status")
}

#[test]
fn a_tunnel_without_connectivity_is_not_used_despite_a_fresh_handshake() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let tv = testbed.device(&network.tv).expect("device");
    let url = format!("http://[{SERVER_V6}]/ip");
    let ids = [
        (&network.exit_a, "wg-a", "ping", SERVER_V4.to_string()),
        (&network.exit_b, "wg-b", "http", url.clone()),
    ]
    .map(|(exit, name, kind, target)| {
        let id = create(testbed.api(), "/tunnels", &probed(exit, name, kind, &target)).expect("tunnel");
        testbed.bring_up(&id).expect("up");
        id
    });
    testbed.store_policy(&policy("a", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    testbed.policy(&policy("b", 11, ("device", &tv), &["wg-b"])).expect("policy");
    network.tap.reset();
    wait_until_through(&network.laptop, &network.exit_a);
    wait_until_through(&network.tv, &network.exit_b);
    for (id, exit, said) in
        [(&ids[0], &network.exit_a, format!("ping of {SERVER_V4}")), (&ids[1], &network.exit_b, url)]
    {
        let tunnel = wait_for_status(&testbed, id, "up");
        assert!(tunnel["latency_ms"].as_f64().is_some_and(|ms| ms > 0.0 && ms < 1000.0), "{tunnel}");
        // On a busy machine an answer may come late.
        wait_ok(SOON, "all answers", || {
            let tunnel = testbed.api().get(&format!("/tunnels/{id}"))?;
            anyhow::ensure!(tunnel["loss_pct"] == 0.0, "{tunnel}");
            Ok(())
        })
        .expect("no loss");
        forwards(exit, false);
        let tunnel = wait_for_status(&testbed, id, "degraded");
        assert_eq!((&tunnel["health"], &tunnel["healthy"]), (&json!("unhealthy"), &json!(false)), "{tunnel}");
        assert!(tunnel["loss_pct"].as_f64().is_some_and(|loss| loss > 0.0), "{tunnel}");
        assert_eq!(tunnel["last_error"], format!("{said} has no answer"), "{tunnel}");
    }
    let view = testbed.evaluate(&laptop).expect("evaluation");
    assert_eq!(view["decision"], "block", "{view}");
    assert_blocked(&network.laptop);
    forwards(&network.exit_a, true);
    wait_until_through(&network.laptop, &network.exit_a);
    // Another check resets the health: first it is unknown, then the name server answers.
    let mut object = testbed.api().get(&format!("/tunnels/{}", ids[1])).expect("tunnel");
    forwards(&network.exit_b, true);
    object["health_check"]["type"] = json!("dns");
    object["health_check"]["target"] = json!(SERVER_V4);
    testbed.api().put(&format!("/tunnels/{}", ids[1]), &object).expect("tunnel");
    wait_until_through(&network.tv, &network.exit_b);
    assert_nothing_leaked(&testbed);
}

#[test]
fn new_flows_move_within_a_probe_interval_of_the_health_change() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let target = SERVER_V4.to_string();
    let ids = [(&network.exit_a, "wg-a"), (&network.exit_b, "wg-b")].map(|(exit, name)| {
        let id = create(testbed.api(), "/tunnels", &probed(exit, name, "ping", &target)).expect("tunnel");
        testbed.bring_up(&id).expect("up");
        id
    });
    let hops = [("vpn", "wg-a"), ("vpn", "wg-b")];
    let failover = path("one-of", ("device", &laptop), &hops, json!({"hop_mode": "failover"}));
    testbed.policy(&failover).expect("policy");
    network.tap.reset();
    wait_until_through(&network.laptop, &network.exit_a);
    let interval = Duration::from_secs(1);
    for (yes, status, exit) in [(false, "degraded", &network.exit_b), (true, "up", &network.exit_a)] {
        forwards(&network.exit_a, yes);
        wait_for_status(&testbed, &ids[0], status);
        let changed = Instant::now();
        for ipv6 in FAMILIES {
            let moved = || {
                let answer = ask(&network.laptop, (server(ipv6), HTTP).into(), BLOCKED);
                anyhow::ensure!(answer.seen() == Some(exit.address(ipv6)), "{answer}");
                Ok(())
            };
            wait_ok(interval, "new flows to move", moved).expect("moved");
        }
        assert!(changed.elapsed() < interval, "{:?}", changed.elapsed());
    }
    assert_nothing_leaked(&testbed);
}

#[test]
fn the_name_of_an_exit_is_resolved_outside_of_the_tunnel_and_its_last_address_outlives_the_name_server() {
    let mut testbed = Testbed::prepare().expect("scene");
    let names = NameServer::start(&testbed.network.internet, testbed.network.exit_a.place.v4).expect("names");
    let servers = json!({"dns": {"bootstrap_servers": [name_server::ADDRESS]}});
    testbed.daemon.configure(&servers).expect("configuration");
    testbed.daemon.start().expect("start");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    let mut tunnel = testbed.network.exit_a.tunnel("wg-a");
    tunnel["peers"][0]["endpoint"] = json!("exit.example:51820");
    let id = create(testbed.api(), "/tunnels", &tunnel).expect("tunnel");
    testbed.bring_up(&id).expect("up");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_the_tap_sees(&testbed, &testbed.network.tv);
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);

    names.answer(None);
    testbed.bring_down(&id).expect("down");
    testbed.api().act(&format!("/tunnels/{id}/up")).expect("up");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    // Without a known address and a resolver, the policy stays closed.
    testbed.daemon.terminate().expect("stop");
    testbed.daemon.start().expect("start");
    assert_blocked(&testbed.network.laptop);
    let before = names.asked();
    wait_ok(SOON, "the name server to be asked again", || {
        anyhow::ensure!(names.asked() > before, "not yet");
        Ok(())
    })
    .expect("asked");
    let view = testbed.api().get(&format!("/tunnels/{id}")).expect("tunnel");
    assert_eq!(view["healthy"], false, "{view}");
    assert_blocked(&testbed.network.laptop);
    names.answer(Some(testbed.network.exit_a.place.v4));
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_tunnel_follows_the_default_route_to_another_uplink_and_back() {
    let (testbed, second) = Testbed::start_with_two_uplinks().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let mut tunnel = network.exit_a.tunnel("wg-a");
    // Without keepalives, only the change triggers packets.
    tunnel["peers"][0]["persistent_keepalive"] = json!(0);
    tunnel["keepalive"] = json!(0);
    let id = create(testbed.api(), "/tunnels", &tunnel).expect("tunnel");
    testbed.api().act(&format!("/tunnels/{id}/up")).expect("up");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    wait_until_through(&network.laptop, &network.exit_a);
    second.reset();
    let exit: IpAddr = network.exit_a.address(false);
    let arrives = |tap: &gateway_tests::tap::Tap, by: &str| {
        wait_ok(SOON, &format!("the exit to hear from the gateway by {by}"), || {
            let counts = tap.counts();
            anyhow::ensure!(counts.endpoints.contains_key(&exit), "{counts}");
            Ok(())
        })
        .expect("heard");
    };
    network.gateway.ip("link set eth0 down").expect("uplink down");
    arrives(&second, "eth2");
    assert_through(&network.laptop, &network.exit_a);
    network.tap.reset();
    let up = "link set eth0 up\naddress replace 2001:db8:113::2/64 dev eth0 nodad\n\
              route replace default via 203.0.113.1\nroute replace default via 2001:db8:113::1";
    network.gateway.ip(up).expect("uplink up");
    arrives(&network.tap, "eth0");
    wait_until_through(&network.laptop, &network.exit_a);
    let (one, two) = (network.tap.counts(), second.counts());
    assert_eq!((one.leaked.total(), two.leaked.total()), (0, 0), "{one}\n{two}");
    assert_eq!((one.unknown.total(), two.unknown.total()), (0, 0), "{one}\n{two}");
}
