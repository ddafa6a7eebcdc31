//! Live tests: definitions that are tried with packets, in the states that matter.

use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use serde_json::{Value, json};

use crate::e2e::assert_nothing_leaked;
use crate::e2e::dns_policy::resolving;
use crate::e2e::leak_check::known_device;

/// Stores a definition of the mode live, and returns its id.
fn define(testbed: &Testbed, name: &str, body: Value) -> String {
    let mut definition = json!({"name": name, "mode": "live"});
    for (key, value) in body.as_object().expect("an object") {
        definition[key] = value.clone();
    }
    let stored = testbed.api().post("/test-definitions", &definition).expect("stored");
    stored["id"].as_str().expect("an id").to_owned()
}

fn run(testbed: &Testbed, id: &str) -> Value {
    let report = testbed.api().post("/test-definitions/run", &json!({"ids": [id]})).expect("a report");
    report["results"][0].clone()
}

#[test]
fn destinations_and_names_are_tried_through_the_tunnel_and_without_it() {
    let (testbed, _upstream) = resolving();
    let laptop = known_device(&testbed);
    let tunnel = testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    // The device was seen before the policy.
    testbed.network.tap.reset();
    testbed.api().post("/dns/blocklist", &json!({"domain": "ads.example"})).expect("blocked");
    let source = json!({"device": laptop});
    let through = define(
        &testbed,
        "through",
        json!({
            "source": source, "accept": [format!("{}:443", server(false)), "www.example:443"], "expect_egress": "wg-a",
            "dns": {"name": "www.example", "expect": "resolve"},
        }),
    );
    let kept_in = define(
        &testbed,
        "kept-in",
        json!({
            "source": source, "deny": ["ads.example:443"], "dns": {"name": "ads.example", "expect": "blocked"},
        }),
    );
    let wrong = define(
        &testbed,
        "wrong",
        json!({
            "source": source, "accept": [format!("{}:443", server(false))], "expect_egress": "direct",
            "deny": ["203.0.113.9:22"], "dns": {"name": "www.example", "expect": "blocked"},
        }),
    );

    for id in [&through, &kept_in] {
        let result = run(&testbed, id);
        assert_eq!(result["pass"], true, "{result:#}");
    }
    let result = run(&testbed, &wrong);
    assert_eq!(result["pass"], false, "{result:#}");
    assert_eq!(result["failures"].as_array().expect("failures").len(), 3, "{result:#}");

    testbed.bring_down(&tunnel).expect("down");
    let result = run(&testbed, &through);
    assert_eq!(result["pass"], false, "{result:#}");
    assert!(result["failures"].to_string().contains("no packet leaves"), "{result:#}");
    // Nothing leaves now, so what must not leave does not.
    let refused =
        define(&testbed, "refused", json!({"source": source, "deny": [format!("{}:443", server(false))]}));
    let result = run(&testbed, &refused);
    assert_eq!(result["pass"], true, "{result:#}");
    assert_nothing_leaked(&testbed);
}

#[test]
fn networks_and_groups_are_tried_as_their_hosts() {
    let testbed = Testbed::start().expect("scene");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    let group = json!({"name": "all", "members": [laptop]});
    testbed.api().post("/device-groups", &group).expect("a group");
    let network = json!({"cidr": "192.168.10.0/24"});
    let open = define(
        &testbed,
        "open",
        json!({
            "source": network, "accept": [format!("{}:443", server(false)), format!("[{}]:443", server(true))],
            "expect_egress": "direct",
        }),
    );
    let of_group =
        define(&testbed, "of-group", json!({"source": {"group": "all"}, "expect_egress": "direct"}));
    let datagrams = define(
        &testbed,
        "datagrams",
        json!({
            "source": network, "proto": "udp", "accept": [format!("{}:4433", server(false))],
        }),
    );
    for id in [&open, &of_group, &datagrams] {
        let result = run(&testbed, id);
        assert_eq!(result["pass"], true, "{result:#}");
    }
    // All enabled tests run together, and the failed one makes the report fail.
    define(&testbed, "shut", json!({"source": network, "deny": [format!("{}:443", server(false))]}));
    let report = testbed.api().post("/test-definitions/run", &json!({})).expect("a report");
    assert_eq!(
        (&report["pass"], report["results"].as_array().map(Vec::len)),
        (&json!(false), Some(4)),
        "{report:#}"
    );
}
