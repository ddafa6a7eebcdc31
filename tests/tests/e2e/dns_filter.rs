//! DNS: the kernel answers queries for blocked names, also the first one, as the resolver would.

use std::net::{IpAddr, Ipv4Addr};

use gateway_tests::dns::{A, Client, Upstream};
use gateway_tests::name_server;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{LAN_V4, LAN_V6, server};
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::{Value, json};

use crate::e2e::SOON;
use crate::e2e::dns_policy::{reply, resolving};
use crate::e2e::fast_path_xdp::set_offloads;

const NOWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Names that no query had before.
struct FreshNames(u32);

impl FreshNames {
    fn next(&mut self) -> String {
        self.0 += 1;
        format!("n{}.ads.example", self.0)
    }
}

fn kernel_blocked(testbed: &Testbed) -> u64 {
    testbed.api().get("/dns/status").expect("status")["kernel_blocked"].as_u64().expect("a number")
}

/// Returns the number of queries that the driver has answered.
fn answered_in_driver(testbed: &Testbed) -> u64 {
    let series = "gateway_xdp_packets_total{kind=\"answered\"} ";
    let fetch = ["-s", "http://127.0.0.1:8080/metrics"];
    let metrics = testbed.network.gateway.run("curl", &fetch).expect("the metrics");
    let value = metrics.lines().find_map(|line| line.strip_prefix(series)).expect("the series");
    value.parse().expect("a number")
}

/// Queries fresh names until the kernel has answered ten in a row, and returns the last of them. Changes of the
/// neighbours leave single queries to the resolver.
fn answered_by_kernel(testbed: &Testbed, client: &mut Client, names: &mut FreshNames) -> String {
    let mut last = String::new();
    wait_ok(SOON, "the kernel to answer first queries", || {
        let before = kernel_blocked(testbed);
        for _ in 0..10 {
            last = names.next();
            assert_eq!(client.ask(&last, A)?, reply(NOWHERE), "{last}");
        }
        let answered = kernel_blocked(testbed) - before;
        anyhow::ensure!(answered == 10, "{answered} of 10");
        Ok(())
    })
    .expect("answers");
    last
}

/// Returns what the log says about a name, without what differs between two queries.
fn explanation(testbed: &Testbed, name: &str) -> Value {
    let log = testbed.api().get(&format!("/dns/log?domain={name}")).expect("the log");
    let rows = log.as_array().expect("rows");
    assert_eq!(rows.len(), 1, "one query, one record: {log}");
    let mut row = rows[0].clone();
    for field in ["id", "time", "question", "elapsed_ms"] {
        row.as_object_mut().expect("a record").remove(field);
    }
    // The laptop has an address in each family.
    row["client"].as_object_mut().expect("a client").remove("ip");
    row
}

/// Blocks the names, and returns the explanation of the resolver for one of them.
fn block(testbed: &Testbed, client: &mut Client, names: &mut FreshNames) -> Value {
    testbed.api().put("/privacy/dns-mode", &json!({"mode": "system"})).expect("stored");
    testbed.api().post("/dns/blocklist", &json!({"domain": "ads.example"})).expect("blocked");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    wait_for(SOON, "the name to be blocked", || {
        client.ask("ads.example", A).expect("an answer") == reply(NOWHERE)
    })
    .expect("blocked");
    // Over TCP the resolver answers.
    let by_resolver = names.next();
    let dug = ["+short", "+tcp", "@192.168.10.1", &by_resolver, "A"];
    assert_eq!(testbed.network.laptop.namespace.run("dig", &dug).expect("dig").trim(), "0.0.0.0");
    let explained = explanation(testbed, &by_resolver);
    assert_eq!(explained["status"], "blocked");
    explained
}

#[test]
fn first_queries_for_blocked_names_are_answered_by_the_kernel() {
    let (mut testbed, _upstream) = resolving();
    let mut names = FreshNames(0);
    let mut client = Client::of(&testbed.network.laptop, LAN_V4.into()).expect("a client");
    let wanted = block(&testbed, &mut client, &mut names);
    // At both addresses of the gateway, and at the addresses of other resolvers, which are redirected.
    for resolver in [LAN_V4.into(), LAN_V6.into(), server(false), server(true)] {
        let mut client = Client::of(&testbed.network.laptop, resolver).expect("a client");
        let name = answered_by_kernel(&testbed, &mut client, &mut names);
        assert_eq!(explanation(&testbed, &name), wanted, "queried at {resolver}");
    }
    // dig sends EDNS with a cookie.
    let before = kernel_blocked(&testbed);
    wait_ok(SOON, "a query of dig to be answered by the kernel", || {
        let name = names.next();
        let dug = testbed.network.laptop.namespace.run("dig", &["@192.168.10.1", &name, "A"])?;
        assert!(dug.contains("status: NOERROR") && dug.contains("\t0.0.0.0"), "{dug}");
        assert!(dug.contains("EDE: 15 (Blocked): (blocklist)"), "{dug}");
        anyhow::ensure!(kernel_blocked(&testbed) > before, "it was the resolver");
        Ok(())
    })
    .expect("dig");
    allowed_paused_and_disabled(&testbed, &mut client, &mut names);
    answered_by_kernel(&testbed, &mut client, &mut names);
    testbed.daemon.kill9().expect("killed");
    // The kernel removes the programs from its map asynchronously.
    wait_for(SOON, "no query to be answered", || client.ask(&names.next(), A).is_err()).expect("silence");
}

#[test]
fn first_queries_for_blocked_names_are_answered_in_the_driver() {
    let mut testbed = Testbed::prepare().expect("a network");
    set_offloads(&testbed.network, &["up0"]);
    let _upstream = Upstream::start(&testbed.network.internet).expect("an upstream");
    let configuration = json!({
        "dns": {"upstream_servers": [name_server::ADDRESS]},
        "dataplane": {"fast_path": "on", "xdp": "native"},
    });
    testbed.daemon.configure(&configuration).expect("configured");
    testbed.daemon.start().expect("a daemon");
    let mut names = FreshNames(0);
    let mut client = Client::of(&testbed.network.laptop, LAN_V4.into()).expect("a client");
    let wanted = block(&testbed, &mut client, &mut names);
    for resolver in [LAN_V4.into(), LAN_V6.into(), server(false), server(true)] {
        let mut client = Client::of(&testbed.network.laptop, resolver).expect("a client");
        let mut last = String::new();
        // A change of a neighbour leaves single queries to the resolver, and one of the plan or of a route to tcx.
        wait_ok(SOON, "the driver to answer first queries", || {
            let before = (kernel_blocked(&testbed), answered_in_driver(&testbed));
            for _ in 0..10 {
                last = names.next();
                assert_eq!(client.ask(&last, A)?, reply(NOWHERE), "{last}");
            }
            let blocked = kernel_blocked(&testbed) - before.0;
            let answered = answered_in_driver(&testbed) - before.1;
            anyhow::ensure!((blocked, answered) == (10, 10), "{blocked} and {answered} of 10");
            Ok(())
        })
        .expect("answers");
        assert_eq!(explanation(&testbed, &last), wanted, "queried at {resolver}");
    }
    allowed_paused_and_disabled(&testbed, &mut client, &mut names);
    testbed.daemon.kill9().expect("killed");
    // The kernel removes the programs from its map asynchronously.
    wait_for(SOON, "no query to be answered", || client.ask(&names.next(), A).is_err()).expect("silence");
}

/// Changes end the answers of the kernel at once.
fn allowed_paused_and_disabled(testbed: &Testbed, client: &mut Client, names: &mut FreshNames) {
    let mut passes = |what: &str| {
        wait_for(SOON, what, || client.ask(&names.next(), A).expect("an answer") != reply(NOWHERE))
            .expect(what);
        for _ in 0..50 {
            let name = names.next();
            assert_ne!(client.ask(&name, A).expect("an answer"), reply(NOWHERE), "{name} while {what}");
        }
    };
    testbed.api().post("/dns/allowlist", &json!({"domain": "ads.example"})).expect("allowed");
    passes("the name is allowed");
    testbed.api().delete("/dns/allowlist/ads.example").expect("no longer allowed");
    for (key, value) in [
        ("dns.blocking_paused_until", json!("2100-01-01T00:00:00Z")),
        ("dns.filtering_enabled", json!(false)),
    ] {
        let path = format!("/settings/{key}");
        testbed.api().put(&path, &json!({"value": value})).expect("set");
        passes(key);
        testbed.api().delete(&path).expect("taken back");
    }
    wait_for(SOON, "the names to be blocked again", || {
        client.ask(&names.next(), A).expect("an answer") == reply(NOWHERE)
    })
    .expect("blocked");
}
