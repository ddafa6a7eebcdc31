//! The flow log against real packets: what was forwarded and denied, by which path, and how many bytes.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use gateway_core::flow_log::{FlowId, FlowRecord};
use gateway_tests::services::{HTTP, IDENT};
use gateway_tests::socks::{Proxy, Server};
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{Host, server};
use gateway_tests::traffic::{TIMEOUT, UdpFlow, ask};
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::{Value, json};

use crate::e2e::flow_check::records;
use crate::e2e::{
    BLOCKED, FAMILIES, SOON, assert_blocked, assert_direct, assert_through, wait_until_through,
};

/// A block of records is written after 30 seconds at the latest.
const WRITTEN: Duration = Duration::from_secs(45);

pub(super) fn flows(testbed: &Testbed, query: &str) -> Vec<Value> {
    let list = testbed.api().get(&format!("/flows?{query}")).expect("flows");
    list.as_array().cloned().expect("a list")
}

/// Waits for flows that are as wanted.
pub(super) fn wait_for_flows(
    testbed: &Testbed,
    query: &str,
    wanted: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let mut found = Vec::new();
    wait_ok(SOON, &format!("the flows of {query}"), || {
        found = flows(testbed, query);
        anyhow::ensure!(wanted(&found), "{found:#?}");
        Ok(())
    })
    .expect("flows");
    found
}

/// Counts the packets of a host to and from a port, as its own IP stack sees them.
pub(crate) fn count_at(host: &Host, protocol: &str, port: u16) {
    let rules = format!(
        "table inet seen {{
            counter out {{ }}
            counter in {{ }}
            chain output {{ type filter hook output priority 0; {protocol} dport {port} counter name out; }}
            chain input {{ type filter hook input priority 0; {protocol} sport {port} counter name in; }}
        }}"
    );
    host.namespace.nft(&rules).expect("counters");
}

/// Returns packets and bytes of a counter.
pub(crate) fn counted(host: &Host, name: &str) -> Value {
    let text = host.namespace.run("nft", &["-j", "list", "counters"]).expect("counters");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let counters = all["nftables"].as_array().expect("a list").iter().map(|item| &item["counter"]);
    let found = counters.into_iter().find(|counter| counter["name"] == name).expect(name);
    json!({"packets": found["packets"], "bytes": found["bytes"]})
}

/// Waits until the dataplane knows the devices that were stored.
pub(super) fn known_to_the_dataplane(testbed: &Testbed) {
    testbed.api().act("/enforce/reconcile").expect("reconciled");
}

fn to(ipv6: bool, port: u16) -> SocketAddr {
    (server(ipv6), port).into()
}

#[test]
fn a_connection_by_a_policy_has_its_path_and_the_bytes_that_the_client_counted() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("a device");
    testbed.tunnel("wg-a", &network.exit_a).expect("a tunnel");
    let by = testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("a policy");
    count_at(&network.laptop, "tcp", HTTP);
    for ipv6 in FAMILIES {
        network.laptop.namespace.run("nft", &["reset", "counters"]).expect("reset");
        let answer = ask(&network.laptop, to(ipv6, HTTP), TIMEOUT);
        assert_eq!(answer.seen(), Some(network.exit_a.address(ipv6)), "{answer}");
        let query = format!("device={laptop}&destination={}&state=ended", server(ipv6));
        let found = wait_for_flows(&testbed, &query, |found| found.len() == 1);
        let flow = &found[0];
        assert_eq!(
            (&flow["verdict"], &flow["reason"]),
            (&json!("permitted"), &json!("policy_egress")),
            "{flow:#}"
        );
        assert_eq!(flow["policy"], json!({"id": by, "name": "vpn-only"}), "{flow:#}");
        assert_eq!(
            (&flow["egress"], &flow["paths"][0]["hops"]),
            (&json!("wg-a"), &json!(["vpn:wg-a"])),
            "{flow:#}"
        );
        assert_eq!((&flow["protocol"], &flow["destination_port"]), (&json!("tcp"), &json!(HTTP)), "{flow:#}");
        assert_eq!(
            (&flow["client"]["device_id"], &flow["client"]["mac"]),
            (&json!(laptop), &json!(network.laptop.mac))
        );
        assert_eq!((&flow["end"], &flow["path_changes"]), (&json!("closed"), &json!(0)), "{flow:#}");
        assert!(flow["ended_at"].is_string() && flow["server_name"].is_null(), "{flow:#}");
        let (sent, received) = (counted(&network.laptop, "out"), counted(&network.laptop, "in"));
        assert_eq!((&flow["sent"], &flow["received"]), (&sent, &received), "{flow:#}");
    }
    let usage = testbed.api().get(&format!("/flows/usage?by=egress&device={laptop}")).expect("usage");
    assert_eq!(
        (&usage[0]["name"], usage[0]["flows"].as_u64() >= Some(2)),
        (&json!("wg-a"), true),
        "{usage:#}"
    );
    assert!(
        usage[0]["sent_bytes"].as_u64() > Some(0) && usage[0]["received_bytes"].as_u64() > Some(0),
        "{usage:#}"
    );
    let top = testbed.api().get("/flows/top?by=egress").expect("totals");
    let first = &top["totals"][0];
    assert_eq!((&first["name"], first["flows"].as_u64() >= Some(2)), (&json!("wg-a"), true), "{top:#}");
    assert_eq!((&top["complete"], &top["searched_back_to"]), (&json!(true), &json!(null)), "{top:#}");
    // With a condition, from the records: the same flows are of one device, and of no other one.
    let of_laptop = testbed.api().get(&format!("/flows/top?by=egress&device={laptop}")).expect("totals");
    assert_eq!(of_laptop["totals"][0]["name"], "wg-a", "{of_laptop:#}");
    let of_tv = testbed.api().get(&format!("/flows/top?by=egress&device={by}")).expect("totals");
    assert_eq!((&of_tv["totals"], &of_tv["complete"]), (&json!([]), &json!(true)), "{of_tv:#}");
}

#[test]
fn changes_are_streamed() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("a device");
    known_to_the_dataplane(&testbed);
    let mut lines = testbed.api().json_lines(&format!("/flows/stream?device={laptop}")).expect("a stream");
    let answer = ask(&network.laptop, to(false, HTTP), TIMEOUT);
    assert!(answer.seen().is_some(), "{answer}");
    // A silent stream has a heartbeat every five seconds.
    let mut next = || lines.by_ref().take(6).find(|line| line["event"] != "heartbeat").expect("a line");
    let begun = next();
    assert_eq!((&begun["event"], &begun["flow"]["active"]), (&json!("begun"), &json!(true)), "{begun:#}");
    let ended = next();
    assert_eq!((&ended["event"], &ended["flow"]["end"]), (&json!("ended"), &json!("closed")), "{ended:#}");
    assert_eq!(ended["flow"]["flow_id"], begun["flow"]["flow_id"]);
}

#[test]
fn packets_of_the_fast_path_count_like_all_others() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("a device");
    known_to_the_dataplane(&testbed);
    count_at(&network.laptop, "udp", IDENT);
    let forwarded =
        || testbed.api().get("/status").expect("the status")["fast_path"]["forwarded_packets"].as_u64();
    for ipv6 in FAMILIES {
        network.laptop.namespace.run("nft", &["reset", "counters"]).expect("reset");
        let (flow, before) = (UdpFlow::open(&network.laptop, to(ipv6, IDENT)).expect("a flow"), forwarded());
        for _ in 0..50 {
            flow.ask(TIMEOUT).expect("an answer");
        }
        assert!(forwarded() > before, "none passed the IP stack by");
        let query = format!("device={laptop}&destination={}&protocol=udp", server(ipv6));
        let (sent, received) = (counted(&network.laptop, "out"), counted(&network.laptop, "in"));
        assert_eq!(sent["packets"], 50);
        wait_for_flows(&testbed, &query, |found| {
            found.len() == 1 && found[0]["sent"] == sent && found[0]["received"] == received
        });
    }
}

#[test]
fn connections_and_datagrams_through_a_proxy_count_like_all_others() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("a device");
    let proxy = Proxy::start(&network.exit_a, Server::Dante).expect("a proxy");
    testbed.proxy(&proxy.object("office"), "up").expect("a proxy");
    let mut by_proxy = policy("by proxy", 10, ("device", &laptop), &[]);
    by_proxy["hops"] = json!([{"type": "proxy", "target": "office"}]);
    testbed.policy(&by_proxy).expect("a policy");
    wait_until_through(&network.laptop, &network.exit_a);
    known_to_the_dataplane(&testbed);
    count_at(&network.laptop, "udp", IDENT);
    for ipv6 in FAMILIES {
        network.laptop.namespace.run("nft", &["reset", "counters"]).expect("reset");
        let flow = UdpFlow::open(&network.laptop, to(ipv6, IDENT)).expect("a flow");
        for _ in 0..20 {
            assert_eq!(flow.ask(SOON).expect("an answer"), network.exit_a.address(ipv6));
        }
        let (sent, received) = (counted(&network.laptop, "out"), counted(&network.laptop, "in"));
        assert_eq!(sent["packets"], 20);
        let query = format!("device={laptop}&destination={}&protocol=udp&egress=office", server(ipv6));
        wait_for_flows(&testbed, &query, |found| {
            found.len() == 1 && found[0]["sent"] == sent && found[0]["received"] == received
        });
    }
    assert_through(&network.laptop, &network.exit_a);
    let query = format!("device={laptop}&port={HTTP}&state=ended&egress=office");
    let found = wait_for_flows(&testbed, &query, |found| found.len() >= 2);
    for flow in &found {
        assert_eq!(
            (&flow["end"], &flow["policy"]["name"]),
            (&json!("closed"), &json!("by proxy")),
            "{flow:#}"
        );
        let count = |direction: &str, unit: &str| flow[direction][unit].as_u64().expect("counted");
        // At least the opening, a request or an answer, and the end.
        for direction in ["sent", "received"] {
            assert!(count(direction, "packets") >= 3, "{flow:#}");
            assert!(count(direction, "bytes") > 40 * count(direction, "packets"), "{flow:#}");
        }
        let explained = testbed.api().post("/policy/evaluate", &json!({"flow_id": flow["flow_id"]}));
        let explained = explained.expect("an explanation");
        assert_eq!(explained["flow"]["comparison"]["result"], "agrees", "{explained:#}");
    }
}

#[test]
fn a_denied_flow_is_a_record_with_its_reason() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let tv = testbed.device(&network.tv).expect("a device");
    testbed.policy(&policy("stop", 10, ("device", &tv), &[])).expect("a policy");
    count_at(&network.tv, "tcp", HTTP);
    assert_blocked(&network.tv);
    let query = format!("device={tv}&port={HTTP}");
    let are_all_counted = |found: &[Value]| {
        let sum = |name: &str| found.iter().filter_map(|flow| flow["sent"][name].as_u64()).sum::<u64>();
        let sent = counted(&network.tv, "out");
        found.len() == 2 && sent == json!({"packets": sum("packets"), "bytes": sum("bytes")})
    };
    let found = wait_for_flows(&testbed, &query, are_all_counted);
    for flow in &found {
        assert_ne!(flow["verdict"], "permitted", "{flow:#}");
        assert_eq!((&flow["policy"]["name"], &flow["active"]), (&json!("stop"), &json!(true)), "{flow:#}");
        assert_eq!((&flow["egress"], &flow["received"]), (&json!(null), &json!(null)), "{flow:#}");
        let reason = flow["reason"].as_str().expect("a reason");
        assert!(["policy_reject", "policy_drop"].contains(&reason), "{flow:#}");
    }
    // Further attempts from other ports belong to the same flow.
    assert_blocked(&network.tv);
    wait_for_flows(&testbed, &query, are_all_counted);
    assert_eq!(flows(&testbed, &format!("device={tv}&verdict=permitted")), Vec::<Value>::new());
}

#[test]
fn privacy_classes_decide_whether_a_device_is_in_the_log() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let class = |name: &str, log: &str| {
        create(testbed.api(), "/privacy-classes", &json!({"name": name, "query_log": log})).expect("a class");
    };
    class("silent", "off");
    class("nameless", "anonymous");
    let device = |host: &Host, class: &str| {
        let object = json!({"name": host.name, "mac": host.mac, "privacy_class": class});
        create(testbed.api(), "/devices", &object).expect("a device")
    };
    let (tv, laptop) = (device(&network.tv, "silent"), device(&network.laptop, "nameless"));
    known_to_the_dataplane(&testbed);
    assert_direct(&network.tv);
    assert_direct(&network.laptop);
    let found = wait_for_flows(&testbed, "state=ended", |found| found.len() >= 2);
    assert_eq!(found.len(), 2, "{found:#?}");
    for flow in &found {
        assert_eq!((&flow["client"], &flow["egress"]), (&json!(null), &found[0]["egress"]), "{flow:#}");
    }
    for hidden in [tv, laptop] {
        assert_eq!(flows(&testbed, &format!("device={hidden}")), Vec::<Value>::new());
    }
}

#[test]
fn a_udp_flow_shows_the_change_of_its_leg() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("a device");
    testbed.tunnel("wg-a", &network.exit_a).expect("a tunnel");
    testbed.tunnel("wg-b", &network.exit_b).expect("a tunnel");
    let id = testbed.policy(&policy("vpn", 10, ("device", &laptop), &["wg-a"])).expect("a policy");
    let flow = UdpFlow::open(&network.laptop, to(false, IDENT)).expect("a flow");
    assert_eq!(flow.ask(TIMEOUT).expect("an answer"), network.exit_a.address(false));
    let query = format!("device={laptop}&protocol=udp&port={IDENT}&state=active");
    let first =
        wait_for_flows(&testbed, &query, |found| found.len() == 1 && found[0]["received"] != json!(null));
    assert_eq!(
        (&first[0]["egress"], &first[0]["received"]["packets"]),
        (&json!("wg-a"), &json!(1)),
        "{first:#?}"
    );
    testbed.replace_policy(&id, &policy("vpn", 10, ("device", &laptop), &["wg-b"])).expect("changed");
    let id = first[0]["flow_id"].as_str().expect("an id");
    let changed = wait_for_flows(&testbed, &format!("flow_id={id}"), |found| {
        // Conntrack drops a packet that would leave by another interface with the address of the first one.
        let _ = flow.ask(BLOCKED);
        found.iter().any(|flow| flow["path_changes"] == 1)
    });
    let egresses: Vec<&Value> =
        changed[0]["paths"].as_array().expect("paths").iter().map(|path| &path["egress"]).collect();
    assert_eq!(egresses, [&json!("wg-a"), &json!("wg-b")], "{changed:#?}");
    assert_eq!(flow.ask(TIMEOUT).expect("an answer"), network.exit_b.address(false));
    wait_for_flows(&testbed, &query, |found| found.iter().any(|flow| flow["paths"][0]["egress"] == "wg-b"));
}

#[test]
fn written_records_outlive_a_kill_and_a_wipe_erases_them() {
    let mut testbed = Testbed::start().expect("a testbed");
    let laptop = testbed.device(&testbed.network.laptop).expect("a device");
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("a tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("a policy");
    assert_through(&testbed.network.laptop, &testbed.network.exit_a);
    let query = format!("device={laptop}&port={HTTP}&state=ended");
    let before = wait_for_flows(&testbed, &query, |found| found.len() == 2);
    let folder = testbed.daemon.state_directory().join("flows");
    let length = || {
        let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        files.filter_map(|file| Some(file.metadata().ok()?.len())).sum::<u64>()
    };
    wait_for(WRITTEN, "a block of records on disk", || length() > 0).expect("written");
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started again");
    let after = flows(&testbed, &query);
    assert_eq!(after, before);
    testbed.api().post("/system/wipe", &json!({"level": "soft"})).expect("wiped");
    assert_eq!(flows(&testbed, "state=ended"), Vec::<Value>::new());
    assert_eq!(length(), 0, "files of records remain");
}

#[test]
fn a_flow_that_began_after_the_last_reading_is_in_the_log_of_a_daemon_that_ended() {
    let mut testbed = Testbed::start().expect("scene");
    let laptop = testbed.network.laptop.v4;
    // The tables are read every two seconds: five rounds end at other times of this period.
    for round in 1..=5 {
        assert_direct(&testbed.network.laptop);
        testbed.daemon.terminate().expect("ended");
        let (_, records) = records(&testbed);
        let is_of_laptop =
            |record: &&FlowRecord| record.client.as_ref().is_some_and(|client| client.address == laptop);
        let flows: BTreeSet<FlowId> =
            records.iter().filter(is_of_laptop).map(|record| record.flow_id).collect();
        assert!(flows.len() >= round, "{} flows after {round} rounds", flows.len());
        testbed.daemon.start().expect("started again");
    }
}
