//! Bridges: tunnels over transports other than UDP and never beside them. Also networks that are joined to a tunnel
//! without a policy.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::ensure;
use gateway_tests::services::IDENT;
use gateway_tests::socks::{Proxy, Server};
use gateway_tests::tap::Counts;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{Load, TIMEOUT, ask_udp, ping, transfer};
use gateway_tests::udp_over_tcp::FarEnd;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::{
    FAMILIES, SOON, assert_blocked, assert_direct, assert_nothing_leaked, assert_the_tap_sees,
    assert_through, wait_until_through,
};

/// Timeout until an unresponsive remote end is declared down: keepalives and the TCP user timeout.
const SILENT: Duration = Duration::from_secs(45);

/// A laptop whose only egress is a tunnel to exit A over TCP.
struct Bridged {
    far: FarEnd,
    testbed: Testbed,
    bridge: String,
    tunnel: String,
}

impl Bridged {
    /// Starts in a network that forwards UDP, or in one that drops it.
    fn start(udp: bool) -> Bridged {
        let testbed = Testbed::start().expect("scene");
        if !udp {
            drop_udp(&testbed);
        }
        let network = &testbed.network;
        let laptop = testbed.device(&network.laptop).expect("device");
        let far = FarEnd::start(&network.exit_a).expect("far end");
        let bridge = create(testbed.api(), "/bridges", &far.bridge("tcp")).expect("bridge");
        let mut object = network.exit_a.tunnel("wg-a");
        object["bridge"] = json!("tcp");
        let tunnel = create(testbed.api(), "/tunnels", &object).expect("tunnel");
        testbed.bring_up(&tunnel).expect("up");
        assert_the_tap_sees(&testbed, &network.tv);
        testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
        wait_until_through(&network.laptop, &network.exit_a);
        Bridged { far, testbed, bridge, tunnel }
    }

    fn status(&self) -> Value {
        let all = self.testbed.api().get("/bridges/status").expect("status");
        all.as_array().and_then(|all| all.first()).cloned().expect("a bridge")
    }

    fn wait_for_status(&self, status: &str) {
        wait_ok(SOON, &format!("the bridge to be {status}"), || {
            let now = self.status();
            ensure!(now["status"] == status, "{now}");
            Ok(())
        })
        .expect("status");
    }

    fn wait_until_unavailable(&self, within: Duration) -> Value {
        let mut tunnel_view = Value::Null;
        wait_ok(within, "the tunnel to be unavailable", || {
            tunnel_view = self.testbed.api().get(&format!("/tunnels/{}", self.tunnel))?;
            ensure!(tunnel_view["healthy"] == false && tunnel_view["status"] == "down", "{tunnel_view}");
            Ok(())
        })
        .expect("unavailable");
        tunnel_view
    }

    /// Asserts that no packet of the laptop was on the uplink outside the bridge, and no UDP at all.
    fn assert_only_bridged(&self) -> Counts {
        let counts = assert_nothing_leaked(&self.testbed);
        assert_eq!(counts.udp, 0, "{counts}");
        counts
    }
}

/// Drops UDP, like many hotel networks.
fn drop_udp(testbed: &Testbed) {
    let rules = "table inet hotel {\n chain in {\n type filter hook prerouting priority raw\n \
                 iifname \"up0\" meta l4proto udp drop\n }\n chain out {\n type filter hook postrouting priority 300\n \
                 oifname \"up0\" meta l4proto udp drop\n }\n}\n";
    testbed.network.internet.nft(rules).expect("rules");
}

#[test]
fn a_tunnel_over_tcp_works_where_all_udp_is_dropped() {
    let bridged = Bridged::start(false);
    let network = &bridged.testbed.network;
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_a);
    for ipv6 in FAMILIES {
        let to = SocketAddr::from((server(ipv6), IDENT));
        let answer = ask_udp(&network.laptop, to, TIMEOUT);
        assert_eq!(answer.seen(), Some(network.exit_a.address(ipv6)), "{answer}");
        assert!(ping(&network.laptop, server(ipv6)));
        transfer(&network.laptop, server(ipv6), 8 << 20).expect("bulk");
    }
    let counts = bridged.assert_only_bridged();
    assert_eq!(counts.endpoints.keys().collect::<Vec<_>>(), [&network.exit_a.address(false)], "{counts}");
    let status = bridged.status();
    assert_eq!((&status["status"], &status["healthy"]), (&json!("up"), &json!(true)), "{status}");
    assert_eq!(status["tunnels"][0]["connected"], true, "{status}");
    let test = bridged.testbed.api().act(&format!("/bridges/{}/test", bridged.bridge)).expect("test");
    assert_eq!((&test["ok"], &test["steps"][0]["name"]), (&json!(true), &json!("connect")), "{test}");
    let object = bridged.testbed.api().get(&format!("/bridges/{}", bridged.bridge)).expect("bridge");
    assert_eq!((&object["status"], &object["last_test"]["ok"]), (&json!("up"), &json!(true)), "{object}");

    // Without a bridge a tunnel cannot connect here.
    let plain = create(bridged.testbed.api(), "/tunnels", &network.exit_b.tunnel("wg-b")).expect("tunnel");
    bridged.testbed.api().act(&format!("/tunnels/{plain}/up")).expect("up");
    std::thread::sleep(Duration::from_secs(3));
    let object = bridged.testbed.api().get(&format!("/tunnels/{plain}")).expect("tunnel");
    assert_eq!(object["healthy"], false, "{object}");
    assert!(network.tap.counts().udp > 0, "the tap sees UDP when there is some");
}

#[test]
fn a_remote_end_that_dies_under_load_blocks_traffic_and_recovers() {
    let mut bridged = Bridged::start(false);
    let load = Load::start(&bridged.testbed.network.laptop).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(bridged.testbed.network.exit_a.address(ipv6), SOON).expect("load by exit A");
    }
    bridged.testbed.network.tap.reset();
    bridged.far.kill();
    let tunnel_view = bridged.wait_until_unavailable(SOON);
    let reason = tunnel_view["last_error"].as_str().unwrap_or_default();
    assert!(reason.starts_with("its bridge tcp is not connected: "), "{tunnel_view}");
    bridged.wait_for_status("down");
    let test = bridged.testbed.api().act(&format!("/bridges/{}/test", bridged.bridge)).expect("test");
    assert_eq!(test["ok"], false, "{test}");
    load.run_for(400).expect("load");
    assert_blocked(&bridged.testbed.network.laptop);
    let back = Instant::now();
    bridged.far.start_again().expect("far end");
    wait_until_through(&bridged.testbed.network.laptop, &bridged.testbed.network.exit_a);
    println!("through again {} ms after the far end was back", back.elapsed().as_millis());
    bridged.wait_for_status("up");
    let sent = load.stop();
    assert!(sent.v4 > 400 && sent.v6 > 400, "{sent:?}");
    bridged.assert_only_bridged();
}

#[test]
fn a_far_end_that_falls_silent_is_given_up() {
    let bridged = Bridged::start(true);
    let network = &bridged.testbed.network;
    network.tap.reset();
    let silence = "table inet silence {\n chain in {\n type filter hook prerouting priority raw\n \
                   iifname \"eth0\" tcp dport 5001 drop\n }\n}\n";
    network.exit_a.namespace.nft(silence).expect("rules");
    bridged.wait_until_unavailable(SILENT);
    assert_blocked(&network.laptop);
    network.exit_a.namespace.run("nft", &["delete", "table", "inet", "silence"]).expect("rules");
    wait_ok(SILENT, "the way to be open again", || {
        let object = bridged.testbed.api().get(&format!("/tunnels/{}", bridged.tunnel))?;
        ensure!(object["healthy"] == true, "{object}");
        Ok(())
    })
    .expect("up again");
    wait_until_through(&network.laptop, &network.exit_a);
    bridged.assert_only_bridged();
}

/// The network forwards UDP here, so a tunnel that bypasses its bridge would be visible.
#[test]
fn a_tunnel_never_goes_out_beside_its_bridge() {
    let mut bridged = Bridged::start(true);
    let api = bridged.testbed.api();
    let item = format!("/bridges/{}", bridged.bridge);
    bridged.testbed.network.tap.reset();
    let toggled = api.act(&format!("{item}/toggle")).expect("off");
    assert_eq!((&toggled["enabled"], &toggled["status"]), (&json!(false), &json!("disabled")), "{toggled}");
    assert_blocked(&bridged.testbed.network.laptop);
    let tunnel_view = bridged.wait_until_unavailable(SOON);
    assert_eq!(tunnel_view["last_error"], "its bridge tcp is disabled", "{tunnel_view}");
    std::thread::sleep(Duration::from_secs(6));
    let counts = bridged.assert_only_bridged();
    assert!(!counts.endpoints.contains_key(&bridged.testbed.network.exit_b.address(false)), "{counts}");
    for path in [item.clone(), format!("{item}?force=true")] {
        let reply = api.send("DELETE", &path, None).expect("answer");
        assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("in_use")), "{}", reply.body);
    }
    api.act(&format!("{item}/toggle")).expect("on");
    wait_until_through(&bridged.testbed.network.laptop, &bridged.testbed.network.exit_a);

    bridged.testbed.daemon.kill9().expect("killed");
    assert_blocked(&bridged.testbed.network.laptop);
    bridged.testbed.daemon.start_again().or_else(|_| bridged.testbed.daemon.start()).expect("started again");
    wait_until_through(&bridged.testbed.network.laptop, &bridged.testbed.network.exit_a);
    bridged.assert_only_bridged();
}

#[test]
fn a_tunnel_rides_on_a_proxy() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let mut proxy = Proxy::start(&network.exit_a, Server::Dante).expect("proxy");
    let address = network.exit_a.address(false);
    let transport = json!({"type": "socks5", "address": address, "port": gateway_tests::socks::PORT});
    let object = json!({"name": "by-proxy", "kind": "transport", "transport": transport});
    let bridge = create(testbed.api(), "/bridges", &object).expect("bridge");
    let mut object = network.exit_b.tunnel("wg-b");
    object["bridge"] = json!("by-proxy");
    let tunnel = create(testbed.api(), "/tunnels", &object).expect("tunnel");
    testbed.bring_up(&tunnel).expect("up");
    assert_the_tap_sees(&testbed, &network.tv);
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-b"])).expect("policy");
    wait_until_through(&network.laptop, &network.exit_b);
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_b);
    for ipv6 in FAMILIES {
        transfer(&network.laptop, server(ipv6), 4 << 20).expect("bulk");
    }
    let test = testbed.api().act(&format!("/bridges/{bridge}/test")).expect("test");
    assert_eq!((&test["ok"], &test["steps"][1]["name"]), (&json!(true), &json!("associate")), "{test}");
    let counts = || {
        network.settle().expect("silence");
        let counts = network.tap.counts();
        assert!(counts.is_clean_but_for_proxies() && counts.tunnel.total() == 0, "{counts}");
        counts
    };
    assert!(counts().proxied.total() > 0);
    proxy.kill9().expect("killed");
    wait_ok(SOON, "the tunnel to be unavailable", || {
        let object = testbed.api().get(&format!("/tunnels/{tunnel}"))?;
        ensure!(object["healthy"] == false, "{object}");
        Ok(())
    })
    .expect("unavailable");
    assert_blocked(&network.laptop);
    let _proxy = Proxy::start(&network.exit_a, Server::Dante).expect("proxy");
    wait_until_through(&network.laptop, &network.exit_b);
    counts();
}

#[test]
fn a_segment_takes_a_network_into_a_tunnel_behind_all_policies() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let tv = testbed.device(&network.tv).expect("device");
    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    assert_the_tap_sees(&testbed, &network.tv);
    let target = json!({"type": "vpn", "target": "wg-a"});
    let object = json!({
        "name": "all", "kind": "segment", "source": {"type": "interface", "value": "eth1"}, "target": target,
    });
    let bridge = create(testbed.api(), "/bridges", &object).expect("bridge");
    wait_until_through(&network.laptop, &network.exit_a);
    wait_until_through(&network.tv, &network.exit_a);
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_a);
    assert_nothing_leaked(&testbed);
    let item = format!("/bridges/{bridge}");
    let shown = testbed.api().get(&item).expect("bridge");
    assert_eq!((&shown["status"], &shown["healthy"]), (&json!("up"), &json!(true)), "{shown}");
    let test = testbed.api().act(&format!("{item}/test")).expect("test");
    assert_eq!(test["ok"], true, "{test}");

    // A separate policy takes precedence.
    let mut own = policy("tv", 10, ("device", &tv), &[]);
    own["hops"] = json!([{"type": "interface", "target": "eth0"}]);
    testbed.policy(&own).expect("policy");
    assert_direct(&network.tv);
    assert_through(&network.laptop, &network.exit_a);

    network.tap.reset();
    testbed.bring_down(&tunnel).expect("down");
    assert_blocked(&network.laptop);
    assert_nothing_leaked(&testbed);
    let shown = testbed.api().get(&item).expect("bridge");
    assert_eq!((&shown["status"], &shown["healthy"]), (&json!("down"), &json!(false)), "{shown}");
    let test = testbed.api().act(&format!("{item}/test")).expect("test");
    assert_eq!((&test["ok"], &test["steps"][1]["ok"]), (&json!(false), &json!(false)), "{test}");
    testbed.api().act(&format!("{item}/toggle")).expect("off");
    assert_direct(&network.laptop);
}
