//! Uplinks that fail, lose packets, flap, or lead to a captive portal.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::ensure;
use gateway_tests::netns::Namespace;
use gateway_tests::probe_server::ProbeServer;
use gateway_tests::topology::{OTHER_SERVER_V4, SERVER_V4};
use gateway_tests::two_uplinks::{Line, TwoUplinks, two_uplinks};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use super::{set_rule, wait_for_alert, wait_for_end};
use crate::e2e::SOON;
use crate::e2e::captive::{PORT, PORTAL, no_content, redirect, redirection};

/// Time for quality to get worse or better: it is that of the last 20 rounds of probes, one each second.
const QUALITY: Duration = Duration::from_secs(60);
/// Number of failures within ten minutes after which an uplink is set aside.
const FLAPS: usize = 3;

fn wait_for_state(uplinks: &TwoUplinks, line: Line, expected: &str) {
    wait_ok(2 * SOON, &format!("{} to be {expected}", line.name()), || {
        let state = uplinks.state(line)?;
        ensure!(state == expected, "{state}");
        Ok(())
    })
    .expect("in the state");
}

/// Lets one of three probes of the second uplink be lost. Each round still has an answer.
fn lose_probes(internet: &Namespace, is_lossy: bool) {
    let rules = if is_lossy {
        "table ip lossy {\n chain in {\n type filter hook prerouting priority raw; iifname \"up1\" icmp type echo-request \
         ip daddr { 203.0.113.1, 203.0.114.1 } numgen inc mod 3 == 0 drop;\n }\n}\n"
    } else {
        "delete table ip lossy\n"
    };
    internet.nft(rules).expect("rules");
}

#[test]
fn uplink_that_degrades_fails_and_flaps_is_reported_with_what_follows() {
    let uplinks = TwoUplinks::start(false, [1, 1]).expect("two uplinks");
    let (api, internet) = (uplinks.testbed.api(), &uplinks.testbed.network.internet);
    set_rule(api, "wan_degraded", &json!({"window_sec": 0}));
    // Each failure is an alert that ends with it.
    set_rule(api, "wan_down", &json!({"cooldown_sec": 0}));

    lose_probes(internet, true);
    let degraded = wait_for_alert(api, "wan_degraded", "eth2", QUALITY);
    assert_eq!((&degraded["resource_type"], &degraded["caused_by"]), (&json!("uplink"), &Value::Null));
    lose_probes(internet, false);
    wait_for_end(api, &degraded, QUALITY);

    let mut failover = Value::Null;
    for number in 1..=FLAPS {
        uplinks.pull(Line::Fibre, true).expect("pulled");
        let down = wait_for_alert(api, "wan_down", "eth0", SOON);
        if number == 1 {
            failover = wait_for_caused(&uplinks, "wan_failover", &down);
        }
        if number == FLAPS {
            wait_for_caused(&uplinks, "wan_flapping", &down);
        }
        uplinks.pull(Line::Fibre, false).expect("plugged in");
        wait_for_state(&uplinks, Line::Fibre, "online");
        wait_for_end(api, &down, SOON);
    }
    // Traffic goes back when the other uplink fails, although the first one is set aside.
    uplinks.pull(Line::Cable, true).expect("pulled");
    wait_for_end(api, &failover, 2 * SOON);
    uplinks.pull(Line::Cable, false).expect("plugged in");
    wait_for_state(&uplinks, Line::Cable, "online");
    let flapping = wait_for_alert(api, "wan_flapping", "eth0", SOON);
    let mut list = two_uplinks(false, [1, 1]);
    list["uplinks"][0]["enabled"] = json!(false);
    api.put("/system/wan-uplinks", &list).expect("disabled");
    wait_for_end(api, &flapping, 2 * SOON);
}

/// Waits for an alert about the first uplink that names its cause.
fn wait_for_caused(uplinks: &TwoUplinks, kind: &str, cause: &Value) -> Value {
    wait_ok(2 * SOON, &format!("{kind} with its cause"), || {
        let alert = gateway_tests::alerts::open_alert(uplinks.testbed.api(), kind, "eth0")?;
        ensure!(alert["caused_by"] == cause["id"], "{alert}");
        Ok(alert)
    })
    .expect("a consequence")
}

#[test]
fn captive_portal_of_an_uplink_is_an_alert_until_it_lets_pass() {
    let uplinks = TwoUplinks::start(false, [1, 1]).expect("two uplinks");
    let (api, internet) = (uplinks.testbed.api(), &uplinks.testbed.network.internet);
    let targets = [SERVER_V4, OTHER_SERVER_V4];
    let _servers = targets.map(|address| {
        ProbeServer::start(internet, SocketAddr::from((address, PORT)), no_content).expect("a server")
    });
    let portal = SocketAddr::from(([0, 0, 0, 0], PORTAL));
    let _portal = ProbeServer::start(internet, portal, redirection).expect("a portal");
    let mut list = two_uplinks(false, [1, 1]);
    for uplink in list["uplinks"].as_array_mut().expect("uplinks") {
        uplink["probe"]["method"] = json!("http");
        uplink["probe"]["targets"] = json!(targets.map(|address| format!("http://{address}:{PORT}/204")));
    }
    api.put("/system/wan-uplinks", &list).expect("set");
    wait_for_state(&uplinks, Line::Fibre, "online");
    redirect(&uplinks.testbed, "up0", true);
    let captive = wait_for_alert(api, "captive_portal", "eth0", 2 * SOON);
    assert_eq!((&captive["resource_type"], &captive["caused_by"]), (&json!("uplink"), &Value::Null));
    let failover = wait_for_caused(&uplinks, "wan_failover", &captive);
    assert_eq!(failover["subject"], "eth0");
    redirect(&uplinks.testbed, "up0", false);
    wait_for_end(api, &captive, 2 * SOON);
}
