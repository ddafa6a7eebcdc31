//! Bridges that the daemon makes because its configuration names them.

use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{LAN_V4, server, wan};
use gateway_tests::traffic::ask_server;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::SOON;

fn set(testbed: &Testbed, key: &str, value: &Value) {
    testbed.api().put(&format!("/settings/{key}"), &json!({"value": value})).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
}

/// Returns the description of a link, or `None` if it does not exist.
fn link(testbed: &Testbed, name: &str) -> Option<String> {
    testbed.network.gateway.run("ip", &["-d", "link", "show", "dev", name]).ok()
}

fn wait_for_direct(testbed: &Testbed) {
    wait_ok(SOON, "traffic of the LAN behind the bridge", || {
        let answer = ask_server(&testbed.network.tv, server(false));
        anyhow::ensure!(answer.seen() == Some(wan(false)), "{answer}");
        Ok(())
    })
    .expect("traffic");
}

#[test]
fn bridge_of_the_configuration_carries_the_lan() {
    let mut testbed = Testbed::prepare().expect("a network");
    testbed.network.gateway.ip("address flush dev eth1\n").expect("flushed");
    let bridges = json!([{"name": "br0", "ports": ["eth1"]}]);
    let network = json!({"network": {"lan_iface": "br0", "bridges": bridges}});
    testbed.daemon.configure(&network).expect("configured");
    testbed.daemon.start().expect("started");
    let made = link(&testbed, "br0").expect("a bridge");
    assert!(made.contains("alias made by gatewayd"), "{made}");
    assert!(link(&testbed, "eth1").expect("a port").contains("master br0"));
    let address = json!({"method": "static", "address": LAN_V4, "prefix": 24});
    testbed.api().put("/interfaces/br0/config", &address).expect("stored");
    wait_for_direct(&testbed);
    let list = testbed.api().get("/interfaces").expect("a list");
    let of = |name: &str| list.as_array().expect("a list").iter().find(|one| one["name"] == name).cloned();
    let (bridge, port) = (of("br0").expect("the bridge"), of("eth1").expect("the port"));
    assert_eq!(
        (&bridge["made"], &bridge["role"], &bridge["kind"]),
        (&json!(true), &json!("lan"), &json!("bridge"))
    );
    assert_eq!((&port["role"], &port["master"]), (&json!("port"), &json!("br0")));
    let reply = testbed.api().send("PUT", "/interfaces/eth1/config", Some(&address)).expect("an answer");
    assert_eq!(reply.status, 409, "{}", reply.body);

    // A tunnel takes the device behind it, and nothing else does.
    let laptop = testbed.device(&testbed.network.laptop).expect("a device");
    testbed.tunnel("exit", &testbed.network.exit_a).expect("a tunnel");
    testbed.policy(&policy("vpn", 10, ("device", &laptop), &["exit"])).expect("a policy");
    testbed.network.tap.reset();
    let seen = ask_server(&testbed.network.laptop, server(false)).seen();
    assert_eq!(seen, Some(testbed.network.exit_a.address(false)));
    assert_eq!(testbed.network.tap.counts().leaked.total(), 0);

    // It comes back, and is the same after a restart.
    testbed.network.gateway.ip("link del br0\n").expect("removed");
    wait_for_direct(&testbed);
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started");
    wait_for_direct(&testbed);
    // Its index tells whether it is the same.
    let index = || link(&testbed, "br0").and_then(|shown| shown.split(':').next().map(str::to_owned));
    let before = index();
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    assert_eq!(index(), before, "nothing is made twice");
}

#[test]
fn only_links_of_the_gateway_are_removed() {
    let testbed = Testbed::start().expect("a network");
    let gateway = &testbed.network.gateway;
    gateway
        .ip("link add br7 type bridge\nlink add eth7 type veth peer name eth8\nlink add eth9 type veth peer name eth6\n")
        .expect("links of another program");
    let links = json!([{"name": "br7", "ports": ["eth7"]}, {"name": "br8", "ports": ["eth9", "nowhere"]}]);
    set(&testbed, "network.bridges", &links);
    assert!(link(&testbed, "eth7").expect("a port").contains("master br7"));
    assert!(link(&testbed, "eth9").expect("a port").contains("master br8"), "another port is missing");
    assert!(!link(&testbed, "br7").expect("a bridge").contains("alias"), "another program made it");
    assert_ne!(state_of_links(&testbed), "ok", "a port is missing");
    // A port that another program adds stays; one that is not named any more is released.
    gateway.ip("link set eth8 master br8\n").expect("added");
    set(&testbed, "network.bridges", &json!([{"name": "br8"}, {"name": "br7", "ports": ["eth7"]}]));
    assert!(link(&testbed, "eth8").expect("a port").contains("master br8"));
    assert!(!link(&testbed, "eth9").expect("a port").contains("master"));
    assert_eq!(state_of_links(&testbed), "ok");

    set(&testbed, "network.bridges", &json!([]));
    assert_eq!(link(&testbed, "br8"), None);
    assert!(link(&testbed, "br7").is_some(), "another program made it");
    assert!(!link(&testbed, "eth7").expect("a port").contains("master"));

    set(&testbed, "network.bridges", &json!([{"name": "eth7"}]));
    assert_ne!(state_of_links(&testbed), "ok", "a link of another kind has the name");
    assert!(link(&testbed, "eth7").expect("the link").contains("veth"));
}

fn state_of_links(testbed: &Testbed) -> String {
    let observer = testbed.api().get("/observer").expect("the observer");
    let links = observer.as_array().expect("a list").iter().find(|one| one["subsystem"] == "virtual_links");
    links.expect("the subsystem")["state"].as_str().expect("a state").to_owned()
}
