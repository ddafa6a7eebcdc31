//! Paths of devices and their graph against real packets, with the history of a tunnel and the egress of queries.

use gateway_tests::dns::A;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::dns_policy::{client, reply, resolving};
use crate::e2e::{SOON, assert_blocked, assert_direct, assert_through};

fn path(testbed: &Testbed, device: &str) -> Value {
    let list = testbed.api().get("/policy/paths").expect("paths");
    let mut paths = list.as_array().expect("a list").iter();
    paths.find(|path| path["device_id"] == device).expect("the device").clone()
}

fn graph(testbed: &Testbed) -> Value {
    testbed.api().get("/policy/paths/graph").expect("the graph")
}

/// Waits until the verdict counts the devices as the graph does. The verdict is renewed every few seconds.
fn wait_for_counts(testbed: &Testbed, expected: &Value) {
    wait_ok(SOON, "the verdict to count the devices", || {
        let counts = testbed.api().get("/status")?["verdict"]["counts"].clone();
        let graph = graph(testbed);
        anyhow::ensure!(counts == graph["counts"], "{counts}, but {}", graph["counts"]);
        for (name, number) in expected.as_object().into_iter().flatten() {
            anyhow::ensure!(counts[name] == *number, "{name}: {counts}");
        }
        Ok(())
    })
    .expect("counted");
}

#[test]
fn paths_follow_the_traffic_and_the_graph_counts_it() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let tv = testbed.device(&network.tv).expect("device");
    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    let vpn_only = testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_through(&network.laptop, &network.exit_a);
    assert_direct(&network.tv);

    let shown = path(&testbed, &laptop);
    assert_eq!(
        (&shown["decision"], &shown["treatment"]),
        (&json!("tunnel"), &json!("through_policy")),
        "{shown}"
    );
    assert_eq!((&shown["via"], &shown["egress"]), (&json!("vpn:wg-a"), &json!(["wg-a"])), "{shown}");
    assert_eq!(shown["sentence"], testbed.evaluate(&laptop).expect("evaluated")["sentence"]);
    let shown = path(&testbed, &tv);
    assert_eq!((&shown["decision"], &shown["treatment"]), (&json!("direct"), &json!("no_policy")), "{shown}");
    wait_for_counts(&testbed, &json!({"through_policy": 1, "no_policy": 1, "blocked": 0}));

    let before = graph(&testbed);
    let (at_work, hop, uplink) = (&before["policies"][0], &before["hops"][0], &before["uplinks"][0]);
    assert_eq!((&at_work["id"], &at_work["devices"]), (&json!(vpn_only), &json!(1)), "{before}");
    assert_eq!((&at_work["decision"], &at_work["status"]), (&json!("tunnel"), &json!("active")), "{before}");
    assert_eq!(
        (&hop["id"], &hop["status"], &hop["devices"]),
        (&json!(tunnel), &json!("up"), &json!(1)),
        "{before}"
    );
    assert_eq!((&uplink["active"], &uplink["direct_devices"]), (&json!(true), &json!(1)), "{before}");
    assert_eq!((&uplink["devices"], &hop["uplink"]), (&json!(2), &uplink["interface"]), "{before}");
    assert_through(&network.laptop, &network.exit_a);
    let after = graph(&testbed);
    for field in [
        "/policies/0/packets",
        "/policies/0/bytes",
        "/hops/0/rx_bytes",
        "/hops/0/tx_bytes",
        "/uplinks/0/tx_bytes",
    ] {
        let of = |graph: &Value| graph.pointer(field).and_then(Value::as_u64);
        assert!(of(&after) > of(&before) && of(&before).is_some(), "{field}: {before}, then {after}");
    }

    testbed.bring_down(&tunnel).expect("down");
    assert_blocked(&network.laptop);
    let shown = path(&testbed, &laptop);
    assert_eq!((&shown["decision"], &shown["via"]), (&json!("block"), &json!(null)), "{shown}");
    let down = graph(&testbed);
    assert_eq!(
        (&down["policies"][0]["decision"], &down["hops"][0]["usable"]),
        (&json!("block"), &json!(false)),
        "{down}"
    );
    wait_for_counts(&testbed, &json!({"through_policy": 0, "blocked": 1}));
    let matrix = testbed.api().get("/policy/leak-matrix?per_hop=true").expect("the matrix");
    assert_eq!(matrix["rows"][0]["cells"]["wg-a down"]["outcome"], "blocked", "{matrix}");

    let exception =
        json!({"type": "temporary-direct", "device_id": laptop, "allow_direct": true, "reason": "test"});
    testbed.api().post("/exceptions", &exception).expect("exception");
    wait_for_counts(&testbed, &json!({"direct_by_exception": 1, "blocked": 0}));
    assert_direct(&network.laptop);
    let shown = path(&testbed, &laptop);
    assert_eq!(
        (&shown["exception"]["type"], &shown["policy"]),
        (&json!("temporary-direct"), &json!(null)),
        "{shown}"
    );

    wait_ok(2 * SOON, "the history to have the traffic of the tunnel", || {
        let history = testbed.api().get("/tunnels/history?tunnel=wg-a")?[0].clone();
        let minutes = history["minutes"].as_array().cloned().unwrap_or_default();
        let bytes: u64 = minutes.iter().filter_map(|minute| minute["rx_bytes"].as_u64()).sum();
        let states: Vec<&Value> =
            history["spans"].as_array().into_iter().flatten().map(|span| &span["status"]).collect();
        anyhow::ensure!(
            bytes > 0 && states.contains(&&json!("up")) && states.last() == Some(&&json!("down")),
            "{history}"
        );
        Ok(())
    })
    .expect("the history");
}

#[test]
fn the_log_shows_by_which_egress_the_upstream_was_asked() {
    let (testbed, _upstream) = resolving();
    let network = &testbed.network;
    let mut asking = client(&network.laptop);
    let entry = |query: &str| {
        let log = testbed.api().get(&format!("/dns/log?{query}")).expect("the log");
        log[0].clone()
    };
    assert_eq!(asking.ask("www.example", A).expect("an answer"), reply(server(false)));
    let first = entry("domain=www.example&cached=false");
    assert_eq!((&first["status"], &first["egress"]), (&json!("forwarded"), &json!("auto")), "{first}");
    let direct = json!({"kind": "direct", "name": null, "down": [], "text": "Allowed, direct"});
    assert_eq!(first["left_by"], direct, "{first}");
    assert_eq!(asking.ask("www.example", A).expect("an answer"), reply(server(false)));
    let again = entry("domain=www.example&cached=true");
    assert_eq!((&again["status"], &again["egress"]), (&json!("cached"), &json!(null)), "{again}");
    assert_eq!(again["left_by"], json!(null), "{again}");

    let laptop = testbed.device(&network.laptop).expect("a device");
    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("a tunnel");
    testbed.policy(&policy("vpn", 10, ("device", &laptop), &["wg-a"])).expect("a policy");
    assert_eq!(asking.ask("ftp.example", A).expect("an answer"), reply(server(false)));
    let by_tunnel = entry(&format!("client={laptop}&egress=wg-a&type=A"));
    assert_eq!(
        (&by_tunnel["question"]["name"], &by_tunnel["egress"]),
        (&json!("ftp.example"), &json!("wg-a"))
    );
    let left = json!({"kind": "egress", "name": "wg-a", "down": [], "text": "Allowed by wg-a"});
    assert_eq!(by_tunnel["left_by"], left, "{by_tunnel}");
    let blocked = testbed.api().post("/dns/blocklist", &json!({"domain": "ads.example"})).expect("stored");
    asking.ask("ads.example", A).expect("an answer");
    let id = blocked["id"].as_str().or_else(|| blocked[0]["id"].as_str()).unwrap_or_default();
    let entry = entry(&format!("status=blocked&list={id}"));
    assert_eq!(
        (&entry["list"]["name"], &entry["list"]["id"]),
        (&json!("ads.example"), &entry["list_id"]),
        "{entry}"
    );
    testbed.api().post(&format!("/tunnels/{tunnel}/down"), &json!({})).expect("down");
    let shut = json!({"kind": "blocked", "name": null, "down": ["wg-a"], "text": "Blocked: wg-a is down"});
    wait_ok(SOON, "a query that its policy blocks", || {
        asking.ask("shut.example", A)?;
        let log = testbed.api().get("/dns/log?domain=shut.example")?;
        anyhow::ensure!(log[0]["left_by"] == shut, "{}", log[0]);
        Ok(())
    })
    .expect("blocked");
    let history = testbed.api().get("/dns/status?history=true").expect("the status")["history"].clone();
    let queries: u64 =
        history.as_array().into_iter().flatten().filter_map(|minute| minute["queries"].as_u64()).sum();
    assert!(queries >= 4, "{history}");
}
