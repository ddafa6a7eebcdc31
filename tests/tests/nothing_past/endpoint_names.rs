//! The daemon resolves names of its own connections through the bootstrap servers, over the egress of the connection,
//! and not in clear beside it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gateway_tests::name_server::{self, NameServer};
use gateway_tests::openvpn;
use gateway_tests::services::HTTP;
use gateway_tests::socks::{self, Proxy};
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{Host, server};
use gateway_tests::traffic::ask;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(40);
const TIMEOUT: Duration = Duration::from_millis(700);

/// Returns a gateway with a name server in the internet that counts the queries from its uplink.
fn start(answer: std::net::Ipv4Addr) -> (Testbed, NameServer) {
    let mut testbed = Testbed::prepare().expect("scene");
    let names = NameServer::start(&testbed.network.internet, answer).expect("name server");
    let count = format!(
        "table inet names {{\n counter clear {{ }}\n chain in {{\n type filter hook input priority filter\n \
         iifname \"up0\" ip daddr {} udp dport 53 counter name clear\n }}\n}}\n",
        name_server::ADDRESS
    );
    testbed.network.internet.nft(&count).expect("counter");
    testbed
        .daemon
        .configure(&json!({"dns": {"bootstrap_servers": [name_server::ADDRESS]}}))
        .expect("configuration");
    testbed.daemon.start().expect("start");
    (testbed, names)
}

fn queries_in_clear(testbed: &Testbed) -> Result<u64> {
    let text = testbed.network.internet.run("nft", &["list", "counter", "inet", "names", "clear"])?;
    let packets = text.split_whitespace().skip_while(|word| *word != "packets").nth(1);
    Ok(packets.context("no count")?.parse()?)
}

fn wait_until_seen_as(host: &Host, expected: std::net::IpAddr) {
    wait_ok(SOON, &format!("the server to see {} as {expected}", host.name), || {
        let answer = ask(host, (server(false), HTTP).into(), TIMEOUT);
        ensure!(answer.seen() == Some(expected), "{answer}");
        Ok(())
    })
    .expect("seen");
}

fn path(name: &str, device: &str, hops: &Value) -> Value {
    let mut path = policy(name, 10, ("device", device), &[]);
    path["hops"] = hops.clone();
    path
}

#[test]
fn the_name_of_a_proxy_behind_a_tunnel_is_resolved_through_the_tunnel() {
    let (mut testbed, names) = start("198.51.100.8".parse().expect("the address of exit-b"));
    let exit = testbed.network.exit_b.address(false);
    let _proxy = Proxy::start(&testbed.network.exit_b, socks::Server::Dante).expect("proxy");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    let hops = json!([{"type": "vpn", "target": "wg-a"}, {"type": "proxy", "target": "far"}]);
    let far = json!({"name": "far", "address": "proxy.example", "port": socks::PORT});
    let plan = json!({"resources": {"proxies": [far], "routing_policies": [path("far", &laptop, &hops)]}});
    testbed.api().post("/apply", &plan).expect("plan applied");
    wait_until_seen_as(&testbed.network.laptop, exit);
    assert!(names.asked() > 0, "the name was asked for");
    assert_eq!(queries_in_clear(&testbed).expect("count"), 0);

    // At a start the tunnel comes up after the first plan.
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started");
    wait_until_seen_as(&testbed.network.laptop, exit);
    assert_eq!(queries_in_clear(&testbed).expect("count"), 0);
}

#[test]
fn the_name_of_an_openvpn_server_behind_a_tunnel_is_resolved_through_the_tunnel() {
    let (testbed, names) = start("198.51.100.8".parse().expect("the address of exit-b"));
    let network = &testbed.network;
    let server = openvpn::Server::start(&network.exit_b, &network.prefix, "").expect("server");
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    let address = network.exit_b.place.v4.to_string();
    let file = server.file("").expect("file").replace(&format!("remote {address} "), "remote vpn.example ");
    assert!(file.contains("remote vpn.example "), "{file}");
    let tunnel = json!({"name": "ov-b", "type": "openvpn", "config": file});
    let hops = json!([{"type": "vpn", "target": "wg-a"}, {"type": "vpn", "target": "ov-b"}]);
    let plan =
        json!({"resources": {"tunnels": [tunnel], "routing_policies": [path("nested", &laptop, &hops)]}});
    testbed.api().post("/apply", &plan).expect("plan applied");
    wait_until_seen_as(&network.laptop, network.exit_b.address(false));
    assert!(names.asked() > 0, "the name was asked for");
    assert_eq!(queries_in_clear(&testbed).expect("count"), 0);
}

fn wait_until_asked_for(names: &NameServer, name: &str) {
    wait_ok(SOON, &format!("{name} to be asked of the bootstrap servers"), || {
        ensure!(names.was_asked_for(name), "{} other queries", names.asked());
        Ok(())
    })
    .expect("asked");
}

#[test]
fn the_name_of_a_bridge_under_test_is_resolved_by_the_bootstrap_servers() {
    let (testbed, names) = start("198.51.100.8".parse().expect("the address of exit-b"));
    let transport = json!({"type": "udp2tcp", "address": "bridge.example", "port": 443});
    let bridge = json!({"name": "carrier", "kind": "transport", "transport": transport});
    let bridge = create(testbed.api(), "/bridges", &bridge).expect("stored");
    assert!(!names.was_asked_for("bridge.example"), "no tunnel uses it");
    // No server listens there: the result is irrelevant.
    testbed.api().send("POST", &format!("/bridges/{bridge}/test"), None).expect("an answer");
    wait_until_asked_for(&names, "bridge.example");
}

#[test]
fn the_name_of_a_list_is_resolved_by_the_bootstrap_servers() {
    let (testbed, names) = start("198.51.100.8".parse().expect("the address of exit-b"));
    let feed = json!({"name": "feed", "url": "http://feed.example/list", "format": "domains"});
    create(testbed.api(), "/dns/threat-feeds", &feed).expect("stored");
    wait_until_asked_for(&names, "feed.example");
}

#[test]
fn the_name_of_the_external_filter_is_resolved_by_the_bootstrap_servers() {
    let (testbed, names) = start("198.51.100.8".parse().expect("the address of exit-b"));
    let filter = json!({"url": "http://filter.example", "resolver": "198.51.100.8:53", "password": "unused"});
    testbed.api().put("/dns/extfilter/config", &filter).expect("stored");
    testbed.api().get("/dns/extfilter/status").expect("a status");
    wait_until_asked_for(&names, "filter.example");
}

#[test]
fn names_of_backup_targets_are_resolved_by_the_bootstrap_servers() {
    let (testbed, names) = start("198.51.100.8".parse().expect("the address of exit-b"));
    let host_key = format!("SHA256:{}", "A".repeat(43));
    for (name, target) in [
        ("dav.example", json!({"type": "webdav", "url": "http://dav.example/"})),
        ("s3.example", json!({"type": "s3", "url": "http://s3.example", "path": "bucket/home"})),
        ("sftp.example", json!({"type": "sftp", "url": "sftp://sftp.example", "host_key": host_key})),
    ] {
        let mut config = json!({"enabled": true, "passphrase": "a long passphrase", "target": target});
        config["target"]["username"] = json!("somebody");
        config["target"]["secret"] = json!("unused");
        testbed.api().put("/backup/config", &config).expect("stored");
        testbed.api().send("POST", "/backup/run", None).expect("an answer");
        wait_until_asked_for(&names, name);
    }
}
