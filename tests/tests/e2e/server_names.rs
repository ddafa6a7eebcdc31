//! Names of servers in the flow log, from the ClientHellos of real clients.

use gateway_tests::certificate::ServerCertificate;
use gateway_tests::socks::{Proxy, Server};
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{Host, Topology, server};
use gateway_tests::web_server::{PORT, WebServer};
use serde_json::{Value, json};

use crate::e2e::flows::{flows, known_to_the_dataplane, wait_for_flows};

const SITE: &str = "shop.example.net";
const OTHER: &str = "news.example.net";
const LARGE: usize = 4 << 20;

fn web_server(network: &Topology) -> WebServer {
    let certificate = ServerCertificate::issue(&[SITE, OTHER]).expect("a certificate");
    let files = [("small", "a page"), ("large", &"0123456789abcdef".repeat(LARGE / 16))];
    WebServer::start(&network.internet, &[server(false), server(true)], &certificate, &files)
        .expect("a web server")
}

/// Gets a file of the server by TLS, under a name that no resolver was asked for. Returns its length.
fn get(host: &Host, ipv6: bool, name: &str, file: &str) -> usize {
    let address = if ipv6 { format!("[{}]", server(true)) } else { server(false).to_string() };
    let (at, url) = (format!("{name}:{PORT}:{address}"), format!("https://{name}/{file}"));
    let arguments = ["--silent", "--fail", "--insecure", "--max-time", "20", "--resolve", &at, &url];
    host.namespace.run("curl", &arguments).expect("a page").len()
}

fn log_names(testbed: &Testbed, are_logged: bool) {
    let value = json!({ "value": are_logged });
    testbed.api().put("/settings/flow_log.server_names", &value).expect("set");
    known_to_the_dataplane(testbed);
}

/// Waits for the records of connections to the server that have ended.
fn ended(testbed: &Testbed, condition: &str, count: usize) -> Vec<Value> {
    wait_for_flows(testbed, &format!("port={PORT}&state=ended&{condition}"), |found| found.len() == count)
}

#[test]
fn names_in_client_hellos_are_logged_if_the_configuration_and_the_class_say_so() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let _web = web_server(network);
    let class = json!({"name": "nameless", "query_log": "anonymous"});
    create(testbed.api(), "/privacy-classes", &class).expect("a class");
    let nameless = json!({"name": "tv", "mac": network.tv.mac, "privacy_class": "nameless"});
    create(testbed.api(), "/devices", &nameless).expect("a device");
    let laptop = testbed.device(&network.laptop).expect("a device");
    known_to_the_dataplane(&testbed);

    get(&network.laptop, false, SITE, "small");
    let found = ended(&testbed, &format!("device={laptop}"), 1);
    assert_eq!(found[0]["server_name"], json!(null), "off by default: {found:#?}");

    log_names(&testbed, true);
    for ipv6 in [false, true] {
        get(&network.laptop, ipv6, SITE, "small");
    }
    get(&network.tv, false, OTHER, "small");
    let found = ended(&testbed, &format!("device={laptop}&domain==example.net"), 2);
    for flow in &found {
        assert_eq!((&flow["server_name"], &flow["names"]), (&json!(SITE), &json!([])), "{flow:#}");
    }
    // That of the television is there, without a client and without a name.
    let all = ended(&testbed, "verdict=permitted", 4);
    let of_tv: Vec<&Value> = all.iter().filter(|flow| flow["client"].is_null()).collect();
    assert_eq!((of_tv.len(), &of_tv[0]["server_name"]), (1, &json!(null)), "{all:#?}");
    let top = testbed.api().get("/flows/top?by=domain").expect("totals");
    let names: Vec<&Value> =
        top["totals"].as_array().expect("totals").iter().map(|row| &row["name"]).collect();
    assert!(names.contains(&&json!(SITE)) && !names.contains(&&json!(OTHER)), "{top:#}");

    log_names(&testbed, false);
    get(&network.laptop, false, OTHER, "small");
    let found = ended(&testbed, &format!("device={laptop}"), 4);
    assert!(found.iter().all(|flow| flow["server_name"] != json!(OTHER)), "{found:#?}");
    testbed.api().post("/system/wipe", &json!({"level": "soft"})).expect("wiped");
    assert_eq!(flows(&testbed, "domain=example"), Vec::<Value>::new());
}

#[test]
fn a_connection_whose_name_is_logged_takes_the_fast_path_behind_it() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let _web = web_server(network);
    let laptop = testbed.device(&network.laptop).expect("a device");
    log_names(&testbed, true);
    let passed_by = || {
        let status = testbed.api().get("/status").expect("the status")["fast_path"].clone();
        let packets = |name: &str| status[name].as_u64().expect(name);
        packets("forwarded_packets") + packets("replied_packets")
    };
    let before = passed_by();
    assert_eq!(get(&network.laptop, false, SITE, "large"), LARGE);
    let after = passed_by();
    let found = ended(&testbed, &format!("device={laptop}"), 1);
    assert_eq!(found[0]["server_name"], json!(SITE), "{found:#?}");
    let packets = |direction: &str| found[0][direction]["packets"].as_u64().expect("counted");
    let (passed, all) = (after - before, packets("sent") + packets("received"));
    assert!(2 * passed > all, "{passed} of {all} packets passed the IP stack by");
}

#[test]
fn a_connection_by_a_proxy_has_the_name_of_its_server() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let _web = web_server(network);
    let laptop = testbed.device(&network.laptop).expect("a device");
    let proxy = Proxy::start(&network.exit_a, Server::Dante).expect("a proxy");
    testbed.proxy(&proxy.object("office"), "up").expect("a proxy");
    let mut by_proxy = policy("by-proxy", 10, ("device", &laptop), &[]);
    by_proxy["hops"] = json!([{"type": "proxy", "target": "office"}]);
    testbed.policy(&by_proxy).expect("a policy");
    log_names(&testbed, true);
    get(&network.laptop, false, SITE, "small");
    let found = ended(&testbed, &format!("device={laptop}&domain={SITE}"), 1);
    assert_eq!(
        (&found[0]["egress"], &found[0]["server_name"]),
        (&json!("office"), &json!(SITE)),
        "{found:#?}"
    );
}
