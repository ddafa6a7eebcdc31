//! Hostile servers and files that try to change more of the host than the tunnel.

use std::fs;

use anyhow::ensure;
use gateway_tests::openvpn::Server;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::wait::wait_ok;
use serde_json::json;

use super::Bound;
use crate::e2e::{SOON, assert_blocked, assert_direct, assert_nothing_leaked, assert_through};

/// Returns all routes, rules and addresses of the host, except those of the tunnels.
fn ways(testbed: &Testbed) -> String {
    let ask = |arguments: &[&str]| testbed.network.gateway.run("ip", arguments).expect("ip");
    [ask(&["-4", "route", "show", "table", "main"]), ask(&["-6", "route", "show", "table", "main"])].concat()
}

fn addresses(testbed: &Testbed, interface: &str) -> String {
    testbed.network.gateway.run("ip", &["-o", "address", "show", "dev", interface]).expect("ip")
}

/// Returns a server that assigns this address, with prefix, to its clients.
fn server_that_gives(testbed: &Testbed, address: &str) -> Server {
    let network = &testbed.network;
    let mut server = Server::start(&network.exit_a, &network.prefix, "").expect("server");
    server.kill9().expect("ended");
    server.give(address).expect("given");
    server.start_again().expect("server");
    server
}

#[test]
fn pushed_options_except_addresses_are_shown_and_not_obeyed() {
    let options = "push \"redirect-gateway def1 ipv6\"\npush \"dhcp-option DNS 10.67.1.1\"\n\
                   push \"route 198.18.0.0 255.255.0.0\"\npush \"route-ipv6 2001:db8:18::/48\"\npush \"block-outside-dns\"";
    let before = {
        let testbed = Testbed::start().expect("scene");
        ways(&testbed)
    };
    let bound = Bound::start(options);
    let network = &bound.testbed.network;
    let pushed = bound.object()["pushed"].clone();
    for option in ["redirect-gateway def1 ipv6", "dhcp-option DNS 10.67.1.1", "route 198.18.0.0 255.255.0.0"]
    {
        assert!(pushed.as_array().is_some_and(|list| list.contains(&json!(option))), "{option} in {pushed}");
    }
    assert_eq!(without_links(&ways(&bound.testbed)), without_links(&before));
    // The neighbour has no policy: it leaves directly as before.
    assert_direct(&network.tv);
    network.settle().expect("silence");
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_a);
    assert_nothing_leaked(&bound.testbed);
}

/// Removes the kernel's own routes to link-local addresses, which exist for every link.
fn without_links(ways: &str) -> Vec<&str> {
    ways.lines().filter(|line| !line.starts_with("fe80::")).collect()
}

#[test]
fn a_wide_address_becomes_a_narrow_one() {
    let testbed = Testbed::start().expect("scene");
    let before = ways(&testbed);
    let server = server_that_gives(&testbed, "198.18.200.7 128.0.0.0");
    let object = server.tunnel("nl").expect("tunnel");
    let tunnel = create(testbed.api(), "/tunnels", &object).expect("tunnel made");
    testbed.bring_up(&tunnel).expect("up");
    // The tunnel is healthy once the session is up; its address follows.
    wait_ok(SOON, "the narrow address", || {
        let shown = addresses(&testbed, "ov-nl");
        ensure!(shown.contains("198.18.200.7/32"), "{shown}");
        Ok(())
    })
    .expect("narrow");
    assert_eq!(without_links(&ways(&testbed)), without_links(&before));
    assert_direct(&testbed.network.tv);
}

#[test]
fn an_address_that_this_host_or_its_lan_has_is_not_taken() {
    for (given, why) in
        [("192.168.10.1", "this host's own on eth1"), ("192.168.10.77", "of the network of eth1")]
    {
        let testbed = Testbed::start().expect("scene");
        let server = server_that_gives(&testbed, &format!("{given} 255.255.255.0"));
        let object = server.tunnel("nl").expect("tunnel");
        let tunnel = create(testbed.api(), "/tunnels", &object).expect("tunnel made");
        wait_ok(SOON, "the address to be refused", || {
            let object = testbed.api().get(&format!("/tunnels/{tunnel}"))?;
            ensure!(object["last_error"].as_str().is_some_and(|reason| reason.contains(why)), "{object}");
            ensure!(object["healthy"] == false && object["status"] == "degraded", "{object}");
            Ok(())
        })
        .expect("refused");
        let shown = addresses(&testbed, "ov-nl");
        assert!(!shown.contains("192.168."), "{shown}");
        let laptop = testbed.device(&testbed.network.laptop).expect("device");
        testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["nl"])).expect("policy");
        assert_blocked(&testbed.network.laptop);
        assert_direct(&testbed.network.tv);
    }
}

#[test]
fn commands_in_a_file_are_never_run() {
    let testbed = Testbed::start().expect("scene");
    let server = Server::start(&testbed.network.exit_a, &testbed.network.prefix, "").expect("server");
    let sign = testbed.daemon.state_directory().join("command-was-run");
    let hooks: String =
        ["up", "route-up", "ipchange", "down", "route-pre-down", "tls-export-cert", "iproute"]
            .map(|hook| format!("{hook} \"/bin/touch {}\"\n", sign.display()))
            .concat();
    let more = format!("script-security 3\n{hooks}setenv PATH /tmp\nplugin {0} {0}\n", sign.display());
    let body = json!({"name": "nl", "config": server.file(&more).expect("file")});
    let id = create(testbed.api(), "/tunnels/upload-ovpn", &body).expect("upload");
    testbed.bring_up(&id).expect("up");
    testbed.bring_down(&id).expect("down");
    wait_ok(SOON, "the tunnel to be down", || {
        ensure!(testbed.api().get(&format!("/tunnels/{id}"))?["status"] == "down");
        Ok(())
    })
    .expect("down");
    assert!(!sign.exists());
    let log = fs::read_to_string(testbed.daemon.log_file()).expect("log");
    assert!(!log.contains("/bin/touch"), "the log tells of the command");
}
