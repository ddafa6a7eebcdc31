//! External changes are reported and repaired, and cause no leak meanwhile.

use std::collections::BTreeSet;

use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::traffic::Load;
use serde_json::Value;

use crate::e2e::{assert_nothing_leaked, assert_the_tap_sees, assert_through, wait_until_through};

fn bound_scene() -> Testbed {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_the_tap_sees(&testbed, &network.tv);
    assert_through(&network.laptop, &network.exit_a);
    testbed
}

/// Destroys something from outside under load. The listing afterwards must equal the listing before.
fn destroy_and_repair(listing: &[&str], ours: impl Fn(&str) -> bool, destroy: impl Fn(&Testbed, &str)) {
    let testbed = bound_scene();
    let gateway = &testbed.network.gateway;
    let list = || {
        let text = gateway.run(listing[0], &listing[1..]).unwrap_or_default();
        let lines = text.lines().filter(|line| ours(line)).map(|line| line.trim().to_owned());
        lines.collect::<BTreeSet<_>>()
    };
    let before = list();
    assert!(!before.is_empty(), "nothing of ours in {listing:?}");
    let load = Load::start(&testbed.network.laptop).expect("load");
    load.run_for(100).expect("load");
    for line in &before {
        destroy(&testbed, line);
    }
    load.run_for(200).expect("load");
    testbed.api().act("/enforce/reconcile").expect("reconcile");
    assert_eq!(list(), before);
    let drift = testbed.api().get("/drift").expect("drift");
    let items = drift.as_array().expect("list");
    assert!(!items.is_empty(), "nothing is told of the change");
    for field in ["type", "resource", "field", "expected", "actual", "severity", "detected_at", "repaired"] {
        assert!(items.iter().all(|item| item.get(field).is_some()), "no {field} in {drift}");
    }
    assert!(items.iter().any(|item| item["repaired"] == Value::Bool(true)), "{drift}");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    load.stop();
    assert_nothing_leaked(&testbed);
}

#[test]
fn deleted_rules_are_shown_and_restored() {
    destroy_and_repair(
        &["ip", "-4", "rule"],
        |line| line.starts_with("47") || line.starts_with("48") || line.starts_with("49"),
        |testbed, line| {
            let priority = line.split(':').next().expect("priority");
            // If the daemon is faster, the command deletes another rule of the same priority.
            testbed.network.gateway.run("ip", &["-4", "rule", "del", "priority", priority]).expect("deleted");
        },
    );
}

#[test]
fn deleted_routes_are_shown_and_restored() {
    destroy_and_repair(
        &["ip", "-4", "route", "show", "table", "all"],
        |line| line.contains(" table 47") && line.contains("default"),
        |testbed, line| {
            let arguments: Vec<_> =
                ["-4", "route", "del"].into_iter().chain(line.split_whitespace()).collect();
            testbed.network.gateway.run("ip", &arguments).expect("deleted");
        },
    );
}

#[test]
fn a_deleted_nft_table_is_shown_and_restored() {
    destroy_and_repair(
        &["nft", "list", "tables"],
        |line| line.contains("gateway"),
        |testbed, line| testbed.network.gateway.nft(&format!("delete {line}\n")).expect("deleted"),
    );
}

#[test]
fn a_route_that_an_outsider_puts_into_our_table_is_removed() {
    let testbed = bound_scene();
    let gateway = &testbed.network.gateway;
    let routes = gateway.run("ip", &["-4", "route", "show", "table", "all"]).expect("routes");
    let words: Vec<_> = routes.split_whitespace().collect();
    let table = words.windows(2).find(|pair| pair[0] == "table" && pair[1].starts_with("470"));
    let table = table.expect("a table of a leg")[1].to_owned();
    let load = Load::start(&testbed.network.laptop).expect("load");
    load.run_for(100).expect("load");
    gateway
        .ip(&format!("route add 198.18.0.0/15 via 203.0.113.1 dev eth0 table {table}"))
        .expect("a way around the tunnel");
    load.run_for(200).expect("load");
    testbed.api().act("/enforce/reconcile").expect("reconcile");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    load.stop();
    // The guard on the uplink dropped all of it.
    assert_nothing_leaked(&testbed);
}

/// Settings by which a neighbour could change routes, choose them, or reach the loopback addresses.
#[test]
fn changed_settings_of_interfaces_are_restored() {
    let testbed = bound_scene();
    let gateway = &testbed.network.gateway;
    let read = |name: &str| gateway.run("sysctl", &["-n", name]).expect("a value").trim().to_owned();
    let mut names = Vec::new();
    for interface in ["eth0", "eth1"] {
        for name in ["rp_filter", "accept_redirects", "accept_source_route", "route_localnet", "accept_local"]
        {
            names.push(format!("net.ipv4.conf.{interface}.{name}"));
        }
        names.extend(
            ["accept_redirects", "accept_source_route"]
                .map(|name| format!("net.ipv6.conf.{interface}.{name}")),
        );
    }
    let before: Vec<String> = names.iter().map(|name| read(name)).collect();
    for (name, value) in names.iter().zip(&before) {
        gateway.sysctl(name, if value == "0" { "1" } else { "0" }).expect("changed");
    }
    testbed.api().act("/enforce/reconcile").expect("reconcile");
    let after: Vec<String> = names.iter().map(|name| read(name)).collect();
    assert_eq!(after, before, "{names:?}");
}
