//! The network of a phone as the uplink of last resort, and the network that the gateway offers. A veth stands for the interface
//! that BlueZ makes.

use std::net::Ipv4Addr;

use gateway_tests::dhcp_server::{DhcpServer, Offer};
use gateway_tests::testbed::policy;
use gateway_tests::topology::{INTERNET_V4, server, wan};
use gateway_tests::traffic::ask_server;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use super::{PHONE, Scene};
use crate::e2e::SOON;

const PHONE_V4: Ipv4Addr = Ipv4Addr::new(203, 0, 115, 1);
const LEASED_V4: Ipv4Addr = Ipv4Addr::new(203, 0, 115, 7);

/// Adds the link that BlueZ would make, with the phone at its remote end. Returns the DHCP server of the phone.
fn add_phone_link(scene: &Scene) -> DhcpServer {
    let network = &scene.testbed.network;
    let internet = network.internet.name();
    network
        .gateway
        .ip(&format!("link add bnep0 type veth peer name phone0 netns {internet}"))
        .expect("a link");
    network
        .internet
        .ip(&format!("address add {PHONE_V4}/24 dev phone0\nlink set phone0 up"))
        .expect("a remote end");
    network
        .internet
        .nft(
            "table inet phone {\n counter direct { }\n chain in {\n type filter hook prerouting priority raw\n \
             iifname phone0 ip daddr 198.18.0.0/15 counter name direct\n }\n}\n",
        )
        .expect("a counter");
    let offer =
        Offer { router: Some(PHONE_V4), ..Offer::of(format!("{LEASED_V4}/24").parse().expect("an address")) };
    DhcpServer::start(&network.internet, "phone0", PHONE_V4, offer).expect("a server")
}

/// Configures the cable with probes each second, and the phone as its failover.
fn configure(scene: &Scene) {
    let probe = json!({
        "targets": [INTERNET_V4.to_string(), PHONE_V4.to_string()],
        "interval_sec": 1, "timeout_sec": 1, "fail": 2, "success": 2,
    });
    let uplink = json!({"name": "cable", "interface": "eth0", "priority": 10, "enabled": true, "balance": true, "probe": probe});
    scene.api().put("/system/wan-uplinks", &json!({"uplinks": [uplink]})).expect("configured");
    let failover = json!({"enabled": true, "device_mac": PHONE, "metered": false, "start_after_sec": 3});
    scene.api().put("/bluetooth/failover", &failover).expect("configured");
}

fn wait_for_active(scene: &Scene, name: &str) {
    wait_ok(3 * SOON, "an uplink to be active", || {
        let manager = scene.api().get("/system/wan-manager")?;
        anyhow::ensure!(manager["active"] == name, "{manager}");
        Ok(())
    })
    .expect("active");
}

/// Counts the packets by the phone to servers, outside of a tunnel.
fn direct_packets(scene: &Scene) -> u64 {
    let internet = &scene.testbed.network.internet;
    let text = internet.run("nft", &["list", "counter", "inet", "phone", "direct"]).expect("a counter");
    let packets = text.split_whitespace().skip_while(|word| *word != "packets").nth(1);
    packets.and_then(|count| count.parse().ok()).expect("a count")
}

fn seen_as(scene: &Scene) -> Option<std::net::IpAddr> {
    ask_server(&scene.testbed.network.tv, server(false)).seen()
}

#[test]
fn phone_is_the_uplink_while_no_other_works_and_fail_closed_policies_hold_over_it() {
    let scene = Scene::with_phone();
    let network = &scene.testbed.network;
    scene.api().post("/bluetooth/pair", &json!({"mac": PHONE})).expect("paired");
    let laptop = scene.testbed.device(&network.laptop).expect("device");
    scene.testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    scene.testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    let _dhcp = add_phone_link(&scene);
    configure(&scene);
    wait_for_active(&scene, "cable");
    assert_eq!(seen_as(&scene), Some(wan(false)));
    let idle = scene.api().get("/bluetooth/status").expect("the state");
    assert_eq!(idle["pan"]["connected"], false, "the cable works: {idle}");
    network.internet.ip("link set up0 down").expect("pulled");
    let joined = scene.wait_for_status("the network of the phone", |status| status["pan"]["ip"].is_string());
    assert_eq!(
        (&joined["pan"]["device"], &joined["pan"]["interface"], &joined["pan"]["ip"]),
        (&json!(PHONE), &json!("bnep-wan"), &json!(LEASED_V4.to_string())),
        "{joined}"
    );
    wait_for_active(&scene, "bluetooth");
    wait_ok(SOON, "traffic by the phone", || {
        let seen = seen_as(&scene);
        anyhow::ensure!(seen == Some(LEASED_V4.into()), "{seen:?}");
        Ok(())
    })
    .expect("traffic");
    // The exit of the tunnel is killed, so the laptop has no permitted egress at all.
    network.exit_a.kill9().expect("killed");
    let before = direct_packets(&scene);
    assert!(before > 0, "the television was counted");
    let answer = ask_server(&network.laptop, server(false));
    assert_eq!(answer.seen(), None, "{answer}");
    assert_eq!(direct_packets(&scene), before, "the laptop left by the phone");
    // A user ends it; the cable comes back.
    network.internet.ip("link set up0 up").expect("plugged in");
    wait_for_active(&scene, "bluetooth");
    scene.api().act("/bluetooth/pan/disconnect").expect("left");
    scene.wait_for_status("the end of the network", |status| status["pan"]["connected"] == false);
    network.gateway.ip("link del bnep-wan").expect("BlueZ removes its interface");
    wait_for_active(&scene, "cable");
}

#[test]
fn network_of_the_gateway_is_on_the_bridge_of_its_segment() {
    let scene = Scene::with_phone();
    let start = |expected: &str| {
        let (status, code, error) = scene.refused("POST", "/bluetooth/nap/start", &json!({}));
        assert_eq!((status, code.as_str()), (409, "invalid_state"), "{error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(expected)), "{error}");
    };
    start("names no segment");
    let body = json!({"name": "bluetooth", "interface": "br7", "cidr": "10.77.0.0/24"});
    scene.api().post("/segments", &body).expect("a segment");
    scene.api().put("/bluetooth/settings", &json!({"nap_segment": "bluetooth"})).expect("stored");
    start("no LAN");
    scene
        .api()
        .put("/settings/network.bridges", &json!({"value": [{"name": "br7", "ports": []}]}))
        .expect("a bridge");
    scene.api().put("/settings/network.lan_iface", &json!({"value": ["eth1", "br7"]})).expect("a LAN");
    let started = wait_ok(SOON, "the network", || scene.api().act("/bluetooth/nap/start")).expect("started");
    assert_eq!(
        (&started["nap"]["active"], &started["nap"]["bridge"], &started["nap"]["clients"]),
        (&json!(true), &json!("br7"), &json!(0)),
        "{started}"
    );
    assert_eq!(scene.bluez.bridge().expect("a bridge"), "br7");
    // BlueZ adds a port for each client.
    let network = &scene.testbed.network;
    let client = gateway_tests::netns::Namespace::create(&network.prefix, "headset").expect("a client");
    network
        .gateway
        .ip(&format!(
            "link add bnep1 type veth peer name bnep0 netns {}\nlink set bnep1 master br7\nlink set bnep1 up",
            client.name()
        ))
        .expect("a port");
    scene.wait_for_status("a client", |status| status["nap"]["clients"] == 1);
    let stopped = scene.api().act("/bluetooth/nap/stop").expect("stopped");
    assert_eq!(stopped["nap"]["active"], false, "{stopped}");
    assert_eq!(scene.bluez.bridge().expect("a bridge"), "");
}

#[test]
fn networks_need_their_settings() {
    let scene = Scene::with_phone();
    let (status, code, error) = scene.refused("POST", "/bluetooth/pan/connect", &Value::Null);
    assert_eq!((status, code.as_str()), (409, "invalid_state"), "{error}");
    let failover = json!({"enabled": true, "device_mac": PHONE});
    scene.api().put("/bluetooth/failover", &failover).expect("configured");
    let (status, code, error) = scene.refused("POST", "/bluetooth/pan/connect", &Value::Null);
    assert_eq!(
        (status, code.as_str(), &error["details"]["state"]),
        (409, "invalid_state", &json!("not_paired"))
    );
}
