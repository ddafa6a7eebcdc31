//! IPv6 of the LANs: hosts configure themselves from the router advertisements of the gateway.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{Host, Topology, server, wan};
use gateway_tests::traffic::ask_server;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::SOON;

/// Makes a host forget its addresses, and configure itself by router advertisements.
pub(crate) fn configure_itself(host: &Host) {
    let namespace = &host.namespace;
    for (key, value) in
        [("accept_ra", "2"), ("accept_ra_defrtr", "1"), ("autoconf", "1"), ("use_tempaddr", "0")]
    {
        namespace.sysctl(&format!("net.ipv6.conf.eth0.{key}"), value).expect("set");
    }
    namespace
        .ip("link set eth0 down\naddress flush dev eth0 scope global\nlink set eth0 up")
        .expect("started again");
    let v4 = host.v4;
    namespace
        .ip(&format!(
            "address add {v4}/24 dev eth0\nroute add default via {}",
            gateway_tests::topology::LAN_V4
        ))
        .expect("IPv4");
}

/// Waits until `ip` shows this text for a host, or shows it no longer.
pub(crate) fn wait_until_shown(host: &Host, arguments: &[&str], text: &str, is_shown: bool) {
    let verb = if is_shown { "have" } else { "lose" };
    wait_ok(SOON, &format!("{} to {verb} {text}", host.name), || {
        let shown = host.namespace.run("ip", arguments)?;
        anyhow::ensure!(shown.contains(text) == is_shown, "{shown}");
        Ok(())
    })
    .expect("shown");
}

pub(crate) const ADDRESSES: &[&str] = &["-6", "address", "show", "dev", "eth0", "scope", "global"];
pub(crate) const DEFAULT_ROUTES: &[&str] = &["-6", "route", "show", "default", "proto", "ra"];

/// Starts a daemon that announces a static prefix.
fn start(more: &serde_json::Value) -> Testbed {
    let mut testbed = Testbed::prepare().expect("scene");
    let mut ipv6 = json!({"enabled": true, "delegation": false, "prefix": "fd00:10::/64"});
    for (key, value) in more.as_object().expect("settings") {
        ipv6[key] = value.clone();
    }
    testbed.daemon.configure(&json!({"network": {"ipv6": ipv6}})).expect("configured");
    testbed.daemon.start().expect("started");
    testbed
}

/// Returns the advertisement that answers a solicitation, as text.
fn solicit(network: &Topology) -> String {
    wait_ok(SOON, "an advertisement", || {
        network.laptop.namespace.run("rdisc6", &["--single", "--retry", "2", "--wait", "4000", "eth0"])
    })
    .expect("an advertisement")
}

#[test]
fn a_host_configures_itself_and_reaches_the_internet() {
    let testbed = start(&json!({"mtu": 1400, "lifetime_sec": 900}));
    let network = &testbed.network;
    let tv = &network.tv;
    configure_itself(tv);
    wait_until_shown(tv, ADDRESSES, "fd00:10::", true);
    wait_until_shown(tv, DEFAULT_ROUTES, "default", true);
    let mtu = tv.namespace.run("sysctl", &["-n", "net.ipv6.conf.eth0.mtu"]).expect("the MTU");
    assert_eq!(mtu.trim(), "1400");
    let answer = ask_server(tv, server(true));
    assert_eq!(answer.seen(), Some(wan(true)), "{answer}");

    let heard = solicit(network);
    for line in [
        "Stateful other conf.      :          Yes",
        "Stateful address conf.    :           No",
        "Router lifetime           :          900",
        "Prefix                   : fd00:10::/64",
        "Pref. time              :          900",
        "Valid time              :         1800",
        "Recursive DNS server     : fd00:10::1",
        "DNS search list          : lan",
    ] {
        assert!(heard.contains(line), "no {line:?} in {heard}");
    }
}

#[test]
fn hosts_lose_their_router_when_ipv6_is_blocked_and_when_the_daemon_ends() {
    let mut testbed = start(&json!({}));
    configure_itself(&testbed.network.tv);
    wait_until_shown(&testbed.network.tv, DEFAULT_ROUTES, "default", true);
    for enabled in [true, false] {
        let block = json!({"enabled": enabled, "scope": {"global": true}});
        testbed.api().post("/privacy/block-ipv6", &block).expect("switched");
        wait_until_shown(&testbed.network.tv, DEFAULT_ROUTES, "default", !enabled);
        wait_until_shown(&testbed.network.tv, ADDRESSES, "fd00:10::", true);
    }
    let status = testbed.daemon.terminate().expect("ended");
    assert!(status.success(), "{status}");
    wait_until_shown(&testbed.network.tv, DEFAULT_ROUTES, "default", false);
    wait_until_shown(&testbed.network.tv, ADDRESSES, "fd00:10::", true);
}

#[test]
fn an_address_of_the_gateway_comes_and_goes_with_the_setting() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let set = |key: &str, value: serde_json::Value| {
        let set = testbed.api().put(&format!("/settings/network.ipv6.{key}"), &json!({"value": value}));
        set.unwrap_or_else(|error| panic!("{key}: {error:#}"));
    };
    let own = |address: &str, is_there: bool| {
        wait_ok(SOON, address, || {
            let shown = network.gateway.run("ip", &["-6", "address", "show", "dev", "eth1"])?;
            anyhow::ensure!(shown.contains(address) == is_there, "{shown}");
            Ok(())
        })
        .expect("addresses of the gateway");
    };
    set("delegation", json!(false));
    set("prefix", json!("fd77:1::/48"));
    set("enabled", json!(true));
    own("fd77:1::1/64", true);
    configure_itself(&network.tv);
    wait_until_shown(&network.tv, ADDRESSES, "fd77:1::", true);
    set("prefix", json!("fd77:2::/48"));
    own("fd77:2::1/64", true);
    own("fd77:1::1/64", false);
    wait_until_shown(&network.tv, ADDRESSES, "fd77:2::", true);
    wait_until_shown(&network.tv, ADDRESSES, "deprecated", true);
    set("enabled", json!(false));
    own("fd77:2::1/64", false);
    own("fd00:10::1/64", true);
    wait_until_shown(&network.tv, DEFAULT_ROUTES, "default", false);
}

#[test]
fn dhclient_gets_the_resolver_and_the_domain_without_an_address() {
    let testbed = start(&json!({}));
    let laptop = &testbed.network.laptop;
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    // dhclient shows what it receives to its script only.
    let (script, shown) = (path("script"), path("shown"));
    std::fs::write(&script, format!("#!/bin/sh\nenv >> {shown}\n")).expect("a script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("executable");
    let arguments =
        ["-6", "-S", "-1", "-sf", &script, "-lf", &path("leases"), "-pf", &path("pid"), "-d", "eth0"];
    let mut command = laptop.namespace.command("dhclient");
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let _client = laptop.namespace.spawn(command).expect("a client");
    wait_ok(SOON, "the client to be configured", || {
        let shown = std::fs::read_to_string(&shown).unwrap_or_default();
        for line in ["new_dhcp6_name_servers=fd00:10::1", "new_dhcp6_domain_search=lan."] {
            anyhow::ensure!(shown.contains(line), "no {line} in {shown}");
        }
        Ok(())
    })
    .expect("configured");
}
