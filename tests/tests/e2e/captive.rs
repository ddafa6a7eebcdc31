//! Detection of captive portals by each uplink.

use std::net::SocketAddr;

use gateway_tests::probe_server::ProbeServer;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{OTHER_SERVER_V4, SERVER_V4};
use serde_json::{Value, json};

/// Port of the probe servers, which the portal redirects.
pub(crate) const PORT: u16 = 8204;
pub(crate) const PORTAL: u16 = 8302;

/// Answers as a probe server does: 204, and the challenge if the request has one.
pub(crate) fn no_content(request: &[String]) -> String {
    let challenge = request.iter().find_map(|line| line.strip_prefix("X-Challenge: "));
    let answered =
        challenge.map_or_else(String::new, |it| format!("X-Challenge-Response: response {it}\r\n"));
    format!("HTTP/1.1 204 No Content\r\n{answered}Connection: close\r\n\r\n")
}

pub(crate) fn redirection(_: &[String]) -> String {
    "HTTP/1.1 302 Found\r\nLocation: http://portal.example/login\r\nContent-Length: 0\r\n\r\n".to_owned()
}

/// Answer of some portals to requests of well-known programs, to be left alone.
fn false_success(_: &[String]) -> String {
    "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".to_owned()
}

/// Redirects requests that come in by a link to the portal.
pub(crate) fn redirect(testbed: &Testbed, interface: &str, is_on: bool) {
    let rules = if is_on {
        format!(
            "table ip portal {{\n chain in {{\n type nat hook prerouting priority dstnat\n iifname \"{interface}\" \
             tcp dport {PORT} redirect to :{PORTAL}\n }}\n}}\n"
        )
    } else {
        "delete table ip portal\n".to_owned()
    };
    testbed.network.internet.nft(&rules).expect("rules");
}

fn targets(challenge: bool) -> Value {
    let target = |address: std::net::Ipv4Addr| json!({"url": format!("http://probe.example:{PORT}/204"), "address": address, "challenge": challenge});
    json!({"value": {"targets": [target(SERVER_V4), target(OTHER_SERVER_V4)]}})
}

fn check(testbed: &Testbed) -> Value {
    testbed.api().act("/captive/check").expect("a result")
}

fn states(report: &Value) -> Vec<&str> {
    let uplinks = report["uplinks"].as_array().expect("uplinks");
    uplinks.iter().map(|one| one["state"].as_str().expect("a state")).collect()
}

#[test]
fn each_uplink_is_checked_by_itself() {
    let (testbed, _tap) = Testbed::start_with_two_uplinks().expect("a network");
    let internet = &testbed.network.internet;
    let [one, two] = [SERVER_V4, OTHER_SERVER_V4].map(|address| {
        ProbeServer::start(internet, SocketAddr::from((address, PORT)), no_content).expect("a server")
    });
    let portal = ProbeServer::start(internet, SocketAddr::from(([0, 0, 0, 0], PORTAL)), redirection);
    let portal = portal.expect("a portal");
    testbed.api().put("/settings/captive", &targets(true)).expect("stored");
    let report = check(&testbed);
    assert_eq!((&report["state"], states(&report)), (&json!("online"), vec!["online", "online"]), "{report}");
    assert_eq!(report["uplinks"][0]["targets"][0]["challenge_met"], true, "{report}");
    assert_eq!((one.asked(), two.asked(), portal.asked()), (2, 2, 0), "both uplinks ask both servers");

    redirect(&testbed, "up0", true);
    let report = check(&testbed);
    assert_eq!(states(&report), ["captive", "online"], "{report}");
    let captive = &report["uplinks"][0];
    assert_eq!((&captive["uplink"], &captive["interface"]), (&json!("one"), &json!("eth0")));
    assert_eq!(captive["portal_url"], "http://portal.example/login");
    assert_eq!(portal.asked(), 2);
    redirect(&testbed, "up0", false);

    testbed.network.gateway.ip("link set eth0 down\n").expect("pulled");
    let report = check(&testbed);
    assert_eq!(
        (&report["state"], states(&report)),
        (&json!("online"), vec!["offline", "online"]),
        "{report}"
    );
    assert!(report["uplinks"][0]["targets"][0]["error"].is_string(), "{report}");
}

#[test]
fn portal_that_feigns_success_is_found_by_the_challenge() {
    let testbed = Testbed::start().expect("a network");
    let portal = SocketAddr::from(([0, 0, 0, 0], PORTAL));
    let _portal = ProbeServer::start(&testbed.network.internet, portal, false_success).expect("a portal");
    redirect(&testbed, "up0", true);
    testbed.api().put("/settings/captive", &targets(false)).expect("stored");
    assert_eq!(check(&testbed)["state"], "online", "nothing tells it without a challenge");
    testbed.api().put("/settings/captive", &targets(true)).expect("stored");
    let report = check(&testbed);
    assert_eq!(
        (&report["state"], &report["uplinks"][0]["portal_url"]),
        (&json!("captive"), &Value::Null),
        "{report}"
    );
}
