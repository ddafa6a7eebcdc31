//! Federation of two gateways: the main one, and a branch that is a host of its LAN and has a LAN of its own.

use gateway_tests::alerts::{set_rule, wait_for_alert, wait_for_end};
use gateway_tests::daemon::{Api, Daemon};
use gateway_tests::netns::Prefix;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::Host;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::SOON;

pub(super) const MAIN: &str = "http://192.168.10.1:8080/";
const BRANCH: &str = "http://192.168.10.30:8080/";
/// Counter of the notices that made the gateway pull.
const TAKEN: &str = "gateway_federation_notices_total{result=\"taken\"}";
const KINDS: &str = "devices,routing";

/// Two gateways that do not know each other.
pub(super) struct Gateways {
    // Field order is drop order: the branch before the network that it is in.
    pub(super) branch: Daemon,
    host: Host,
    pub(super) main: Testbed,
}

impl Gateways {
    fn start() -> Gateways {
        Gateways::start_with(json!({"wan_iface": "eth0", "lan_iface": "eth1"}))
    }

    /// Starts them with these interfaces of the branch.
    fn start_with(interfaces: Value) -> Gateways {
        let listen = json!({"listen": {"api_addr": "0.0.0.0:8080"}});
        let mut main = Testbed::prepare().expect("a network");
        main.daemon.configure(&listen).expect("a configuration");
        main.daemon.start().expect("the main gateway");
        let host = main.network.add_host("branch", "02:00:00:10:00:30", 30).expect("a host");
        let links = "link add eth1 type veth peer name peth1\nlink set peth1 up\nlink set eth1 up\n\
                     address add 192.168.77.1/24 dev eth1";
        host.namespace.ip(links).expect("a LAN");
        let prefix = Prefix::unique().expect("a prefix");
        let mut branch = Daemon::prepare_in(&host.namespace, &prefix).expect("a configuration");
        branch.configure(&listen).expect("a configuration");
        branch.configure(&json!({"network": interfaces})).expect("a configuration");
        branch.start().expect("the branch");
        Gateways { branch, host, main }
    }

    /// Both have exchanged keys and approved each other; the branch follows the main gateway.
    pub(super) fn synced() -> Gateways {
        Gateways::start().sync_first()
    }

    fn sync_first(self) -> Gateways {
        let gateways = self;
        let made = gateways.exchange();
        approve(gateways.branch.api(), &made);
        approve(gateways.main.api(), &node(gateways.main.api()));
        gateways.set(
            gateways.main.api(),
            json!({"role": "secondary", "sync_policy": "push", "sync_resources": KINDS}),
        );
        gateways.follow(KINDS);
        gateways.sync().expect("a first pull");
        gateways
    }

    fn exchange(&self) -> Value {
        let input = json!({"peer": MAIN, "url": BRANCH, "name": "main"});
        self.branch.api().post("/nodes/exchange", &input).expect("an exchange")
    }

    fn set(&self, api: &Api, fields: Value) {
        let mut edited = node(api);
        for (key, value) in fields.as_object().expect("fields") {
            edited[key] = value.clone();
        }
        api.put(&format!("/nodes/{}", id(&edited)), &edited).expect("a node");
    }

    /// Lets the branch take these kinds.
    pub(super) fn follow(&self, kinds: &str) {
        let fields = json!({"role": "primary", "sync_policy": "pull", "sync_resources": KINDS,
            "allowed_receive_resources": kinds});
        self.set(self.branch.api(), fields);
    }

    pub(super) fn sync(&self) -> anyhow::Result<Value> {
        Ok(self.branch.api().post("/federation/sync", &json!({"peer": MAIN}))?[0].clone())
    }
}

pub(super) fn node(api: &Api) -> Value {
    api.get("/nodes").expect("nodes")[0].clone()
}

fn id(object: &Value) -> &str {
    object["id"].as_str().expect("an id")
}

fn approve(api: &Api, node: &Value) {
    let words = json!({"fingerprint_words": node["fingerprint_words"]});
    api.post(&format!("/nodes/{}/approve", id(node)), &words).expect("an approval");
}

/// Makes a device with a policy on the main gateway. Returns their ids.
fn device_with_policy(main: &Testbed) -> (String, String) {
    let device = main.device(&main.network.laptop).expect("a device");
    let blocked = policy("laptop", 10, ("device", &device), &[]);
    let policy = main.policy(&blocked).expect("a policy");
    (device, policy)
}

#[test]
fn keys_are_exchanged_and_approved_at_both_ends() {
    let gateways = Gateways::start();
    let (main, branch) = (gateways.main.api(), gateways.branch.api());
    let made = gateways.exchange();
    assert_eq!((&made["status"], &made["name"]), (&json!("pending"), &json!("main")), "{made}");
    let words_of = |api: &Api| api.get("/federation/status").expect("a status")["fingerprint_words"].clone();
    assert_eq!(made["fingerprint_words"], words_of(main));
    let there = node(main);
    assert_eq!((&there["status"], &there["url"]), (&json!("pending"), &json!(BRANCH)), "{there}");
    assert_eq!(there["fingerprint_words"], words_of(branch));
    // A second exchange makes no other node.
    assert_eq!(gateways.exchange()["id"], made["id"]);
    assert_eq!(main.get("/nodes").expect("nodes").as_array().map(Vec::len), Some(1));

    let path = format!("/nodes/{}/approve", id(&made));
    let wrong = json!({"fingerprint_words": words_of(branch)});
    let refused = branch.send("POST", &path, Some(&wrong)).expect("an answer");
    assert_eq!(refused.status, 422, "{}", refused.body);
    approve(branch, &made);
    approve(main, &there);
    let peers = main.get("/federation/peers").expect("peers");
    assert_eq!(peers[0]["status"], "approved", "{peers}");
    let counts = branch.get("/federation/status").expect("a status")["peers"].clone();
    assert_eq!((&counts["total"], &counts["approved"]), (&json!(1), &json!(1)), "{counts}");
    let kinds: Vec<Value> = branch
        .get("/federation/recent-events")
        .expect("events")
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| event["kind"].clone())
        .collect();
    assert_eq!(kinds, ["peer_approved", "peer_added"]);
    let audit = branch.get("/audit?action=approve_node").expect("entries");
    assert_eq!(audit[0]["resource_id"], made["id"], "{audit}");
    assert!(!branch.get("/config/export").expect("an export").to_string().contains("federation_key"));
}

#[test]
fn a_policy_arrives_is_applied_and_cannot_be_edited() {
    let gateways = Gateways::synced();
    let (main, branch) = (gateways.main.api(), gateways.branch.api());
    let (device, policy) = device_with_policy(&gateways.main);
    gateways.sync().expect("a pull");
    let origin = node(branch)["id"].clone();
    let arrived = branch.get(&format!("/routing/policies/{policy}")).expect("the policy");
    assert_eq!(arrived["origin_node"], origin, "{arrived}");
    assert_ne!(arrived["status"], "pending", "{arrived}");
    let path = format!("/devices/{device}");
    for (method, body) in [("PUT", Some(json!({"name": "mine"}))), ("DELETE", None)] {
        let refused = branch.send(method, &path, body.as_ref()).expect("an answer");
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (409, &json!("invalid_state")),
            "{method}"
        );
    }
    assert_eq!(node(branch)["status"], "connected");
    assert_eq!(node(main)["status"], "connected");
    assert_eq!(gateways.sync().expect("a pull")["changed"], json!([]));

    // An edit at the main gateway arrives.
    let edited = json!({"name": "renamed", "mac": gateways.main.network.laptop.mac});
    main.put(&path, &edited).expect("an edit");
    gateways.sync().expect("a pull");
    assert_eq!(branch.get(&path).expect("the device")["name"], "renamed");
    let entry = branch.get("/audit?action=sync_node&limit=1").expect("entries")[0].clone();
    assert_eq!((&entry["actor"], &entry["result"]), (&json!("federation"), &json!("success")), "{entry}");
}

#[test]
fn a_deletion_arrives_and_a_revocation_ends_the_exchange_at_once() {
    let gateways = Gateways::synced();
    let (main, branch) = (gateways.main.api(), gateways.branch.api());
    let (device, policy) = device_with_policy(&gateways.main);
    gateways.sync().expect("a pull");
    main.delete(&format!("/routing/policies/{policy}")).expect("deleted");
    gateways.main.apply().expect("applied");
    gateways.sync().expect("a pull");
    assert_eq!(
        branch.send("GET", &format!("/routing/policies/{policy}"), None).expect("an answer").status,
        404
    );
    let inventory = branch.get("/federation/inventory?kind=routing").expect("an inventory");
    assert_eq!(
        (&inventory[0]["id"], &inventory[0]["deleted"]),
        (&json!(policy), &json!(true)),
        "{inventory}"
    );

    let path = format!("/nodes/{}/approve", id(&node(main)));
    main.post(&path, &json!({"decision": "revoke"})).expect("revoked");
    let refused = branch.send("POST", "/federation/sync", Some(&json!({"peer": MAIN}))).expect("an answer");
    assert_eq!((refused.status, &refused.body["error"]["code"]), (502, &json!("upstream_failed")));
    let events = branch.get("/federation/recent-events?kind=sync_failed").expect("events");
    assert_eq!(events.as_array().map(Vec::len), Some(1), "{events}");
    // The objects stay, and belong to the branch once it deletes the node.
    let path = format!("/devices/{device}");
    assert_eq!(branch.get(&path).expect("the device")["origin_node"], node(branch)["id"]);
    branch.delete(&format!("/nodes/{}", id(&node(branch)))).expect("deleted");
    assert_eq!(branch.get(&path).expect("the device")["origin_node"], Value::Null);
    branch.delete(&path).expect("deleted");
}

#[test]
fn a_kind_that_is_not_permitted_and_a_failing_gate_take_nothing() {
    let gateways = Gateways::synced();
    let branch = gateways.branch.api();
    gateways.follow("devices");
    let (device, policy) = device_with_policy(&gateways.main);
    // A policy needs its device; the other way round it does not.
    gateways.sync().expect("a pull");
    branch.get(&format!("/devices/{device}")).expect("the device");
    assert_eq!(
        branch.send("GET", &format!("/routing/policies/{policy}"), None).expect("an answer").status,
        404
    );

    let gate = json!({"name": "laptop reaches the internet", "mode": "plan", "gate": true, "source": {"device": device},
        "accept": ["198.18.0.1:80"]});
    create(branch, "/test-definitions", &gate).expect("a test");
    gateways.follow(KINDS);
    let refused = branch.send("POST", "/federation/sync", Some(&json!({"peer": MAIN}))).expect("an answer");
    assert_eq!(refused.status, 502, "{}", refused.body);
    assert!(refused.body.to_string().contains("gating tests"), "{}", refused.body);
    assert_eq!(
        branch.send("GET", &format!("/routing/policies/{policy}"), None).expect("an answer").status,
        404
    );
    let events = branch.get("/federation/recent-events?kind=resource_rejected").expect("events");
    assert_eq!(events.as_array().map(Vec::len), Some(1), "{events}");
}

#[test]
fn an_object_of_the_receiver_is_a_conflict_that_ends_with_it() {
    let gateways = Gateways::synced();
    let branch = gateways.branch.api();
    let own = json!({"name": "own", "mac": gateways.main.network.laptop.mac});
    let own = create(branch, "/devices", &own).expect("a device");
    device_with_policy(&gateways.main);
    let refused = branch.send("POST", "/federation/sync", Some(&json!({"peer": MAIN}))).expect("an answer");
    assert_eq!(refused.status, 502, "{}", refused.body);
    assert_eq!(branch.get("/routing/policies").expect("policies"), json!([]), "nothing is taken in part");
    let events = branch.get("/federation/recent-events?kind=conflict_detected").expect("events");
    assert_eq!(events.as_array().map(Vec::len), Some(1), "{events}");
    branch.delete(&format!("/devices/{own}")).expect("deleted");
    gateways.sync().expect("a pull");
    assert_eq!(branch.get("/routing/policies").expect("policies").as_array().map(Vec::len), Some(1));
}

#[test]
fn requests_without_the_key_of_an_approved_node_get_nothing() {
    let gateways = Gateways::synced();
    let main = gateways.main.api();
    let key = node(main)["public_key"].clone();
    let request = json!({"payload": "{}", "public_key": key, "signature": "AAAA"});
    let refused = main.send("POST", "/federation/pull", Some(&request)).expect("an answer");
    assert_eq!((refused.status, &refused.body["error"]["code"]), (403, &json!("forbidden")));
    // Another key for the node ends its approval.
    gateways.set(main, json!({"public_key": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE="}));
    assert_eq!(node(main)["status"], "pending");
    let refused = gateways
        .branch
        .api()
        .send("POST", "/federation/sync", Some(&json!({"peer": MAIN})))
        .expect("an answer");
    assert_eq!(refused.status, 502, "{}", refused.body);
}

/// Without a notice, each would wait for a pull of every 30 seconds.
#[test]
fn changes_are_pulled_at_once_after_a_notice() {
    // The API is not open at an uplink.
    let interfaces = json!({"wan_iface": "eth1", "lan_iface": "eth0"});
    let gateways = Gateways::start_with(interfaces).sync_first();
    let branch = gateways.branch.api();
    for number in 1..=5 {
        let device = json!({"name": format!("device {number}"), "mac": format!("02:00:00:aa:00:0{number}")});
        let id = create(gateways.main.api(), "/devices", &device).expect("a device");
        wait_ok(SOON * 3, "the device to arrive", || branch.get(&format!("/devices/{id}")))
            .expect("it arrives");
    }
    // The periodic pull may have been faster by chance, though not each time.
    let metrics =
        gateways.host.namespace.run("curl", &["-s", "http://127.0.0.1:8080/metrics"]).expect("metrics");
    let taken = metrics.lines().find_map(|line| line.strip_prefix(TAKEN)).expect("a counter");
    assert!(taken.trim().parse::<u32>().expect("a number") >= 3, "{taken}");

    let forged = json!({"payload": "{}", "public_key": node(branch)["public_key"], "signature": "AAAA"});
    let refused = branch.send("POST", "/federation/notice", Some(&forged)).expect("an answer");
    assert_eq!((refused.status, &refused.body["error"]["code"]), (403, &json!("forbidden")));
}

#[test]
fn both_gateways_are_killed_and_nothing_is_lost() {
    let mut gateways = Gateways::synced();
    let (device, policy) = device_with_policy(&gateways.main);
    gateways.sync().expect("a pull");
    let edited = json!({"name": "renamed", "mac": gateways.main.network.laptop.mac});
    gateways.main.api().put(&format!("/devices/{device}"), &edited).expect("an edit");
    gateways.main.daemon.kill9().expect("killed");
    gateways.branch.kill9().expect("killed");
    gateways.main.daemon.start().expect("the main gateway again");
    gateways.branch.start().expect("the branch again");
    // The branch pulls by itself after its start.
    wait_ok(SOON * 6, "the edit to arrive", || {
        let arrived = gateways.branch.api().get(&format!("/devices/{device}"))?;
        anyhow::ensure!(arrived["name"] == "renamed", "{arrived}");
        Ok(())
    })
    .unwrap_or_else(|error| panic!("{error:#}\n{}", gateways.branch.last_words()));
    let arrived = gateways.branch.api().get(&format!("/routing/policies/{policy}")).expect("the policy");
    assert_eq!(arrived["origin_node"], node(gateways.branch.api())["id"]);
}

/// Causes both kinds of alerts of federation at the branch: a node that is not reached, and objects that are not taken.
#[test]
fn node_that_is_dead_and_objects_that_conflict_are_alerts_until_they_are_taken() {
    let mut gateways = Gateways::synced();
    let main = node(gateways.branch.api())["id"].as_str().expect("an id").to_owned();
    let pull = |gateways: &Gateways| {
        gateways
            .branch
            .api()
            .send("POST", "/federation/sync", Some(&json!({"peer": MAIN})))
            .expect("an answer")
    };
    // Other than by the rule of the installation, the first seconds without an answer count.
    set_rule(gateways.branch.api(), "node_unreachable", &json!({"threshold": 0})).expect("changed");
    gateways.main.daemon.kill9().expect("killed");
    assert_eq!(pull(&gateways).status, 502);
    let dead = wait_for_alert(gateways.branch.api(), "node_unreachable", &main, SOON).expect("an alert");
    assert_eq!((&dead["resource_type"], &dead["caused_by"]), (&json!("gateway_node"), &Value::Null));
    assert!(dead["title"].as_str().is_some_and(|title| title.ends_with("main")), "{dead}");
    gateways.main.daemon.start().expect("started again");
    gateways.sync().expect("a pull");
    wait_for_end(gateways.branch.api(), &dead, SOON).expect("it ended");

    let branch = gateways.branch.api();
    let own = json!({"name": "own", "mac": gateways.main.network.laptop.mac});
    let own = create(branch, "/devices", &own).expect("a device");
    device_with_policy(&gateways.main);
    for _ in 0..3 {
        assert_eq!(pull(&gateways).status, 502);
    }
    let failed = wait_for_alert(branch, "sync_failed", &main, SOON).expect("three failures in a row");
    assert_eq!(failed["resource_id"], json!(main), "{failed}");
    branch.delete(&format!("/devices/{own}")).expect("deleted");
    gateways.sync().expect("a pull");
    wait_for_end(branch, &failed, SOON).expect("it ended");
}
