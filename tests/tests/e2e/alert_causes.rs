//! Kinds of alerts with their real causes, up to the delivery at a receiver on the internet.
//!
//! `contract::alert_causes` lists the kinds, each with the test that causes it.

mod dhcp;
mod enforcement;
mod host;
mod policies;
mod reset;
mod uplinks;

use std::fs;
use std::net::Ipv6Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use gateway_tests::alerts::{self, open_alert};
use gateway_tests::daemon::Api;
use gateway_tests::dns::{A, Client};
use gateway_tests::frames::{FrameSender, mac};
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{Load, ask_server};
use gateway_tests::wait::wait_ok;
use gateway_tests::webhook_receiver::WebhookReceiver;
use serde_json::{Value, json};

use crate::e2e::SOON;
use crate::e2e::alert_delivery::{delivered, receiver, wait_for};
use crate::e2e::dns_policy::resolving;
use crate::e2e::foreign_routers::advertisement;

/// Time after which a silent WireGuard tunnel has an old handshake, with some reserve.
const STALE: Duration = Duration::from_secs(240);
/// Time after which a silent host is offline, with some reserve.
const OFFLINE: Duration = Duration::from_secs(400);
/// Time after a start in which ends are deferred, with some reserve.
const SETTLING_TIME: Duration = Duration::from_secs(40);
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x66);

fn wait_for_alert(api: &Api, kind: &str, subject: &str, within: Duration) -> Value {
    alerts::wait_for_alert(api, kind, subject, within).expect("the alert")
}

fn wait_for_end(api: &Api, alert: &Value, within: Duration) {
    alerts::wait_for_end(api, alert, within).expect("it ended");
}

fn set_rule(api: &Api, kind: &str, change: &Value) {
    alerts::set_rule(api, kind, change).expect("changed");
}

/// Waits until so many alerts of a kind have begun at the receiver. Returns the time that it took.
fn wait_for_firings(receiver: &WebhookReceiver, kind: &str, count: usize, load: &Load) -> Duration {
    let begun = Instant::now();
    wait_ok(4 * SOON, &format!("{count} firing {kind}"), || {
        load.run_for(100)?;
        let statuses = delivered(receiver, kind);
        let firings = statuses.iter().filter(|status| *status == "firing").count();
        anyhow::ensure!(firings >= count, "{statuses:?}");
        Ok(())
    })
    .expect("delivered");
    begun.elapsed()
}

#[test]
fn device_that_asks_other_resolvers_is_an_alert_and_a_new_one_is_another() {
    let (testbed, _upstream) = resolving();
    let (api, receiver) = (testbed.api(), receiver(&testbed));
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    api.post("/privacy/force-dns", &json!({"enabled": true})).expect("forced");
    api.act("/enforce/reconcile").expect("reconciled");
    let mut number = 0;
    let alert = wait_ok(2 * SOON, "ten queries to be an alert", || {
        number += 1;
        // A flow that began before the switch stays where it is, so each query has a port of its own.
        Client::of(&testbed.network.laptop, server(false))?.ask(&format!("n{number}.example"), A)?;
        open_alert(api, "dns_bypass_attempt", &laptop)
    })
    .expect("an alert");
    assert!(number >= 10, "{number} queries");
    assert_eq!((&alert["device_id"], &alert["resource_type"]), (&json!(laptop), &json!("device")), "{alert}");
    assert!(alert["message"].as_str().is_some_and(|text| text.contains("laptop")), "{alert}");
    wait_for(&receiver, "dns_bypass_attempt", &["firing"]);
    ask_server(&testbed.network.tv, server(false));
    wait_for_alert(api, "new_device", testbed.network.tv.mac, 2 * SOON);
    wait_for(&receiver, "new_device", &["firing"]);
}

#[test]
fn foreign_router_stays_an_alert_over_kill_9_until_it_takes_its_word_back() {
    let mut testbed = Testbed::start().expect("scene");
    let sender = FrameSender::open(&testbed.network.tv.namespace, "eth0").expect("a sender");
    let source = mac(testbed.network.tv.mac);
    sender.send(&advertisement(source, ROUTER, 1800)).expect("sent");
    let alert = wait_for_alert(testbed.api(), "rogue_ra", "fe80::66%", SOON);
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started again");
    let begun = Instant::now();
    wait_ok(2 * SETTLING_TIME, "the settling time to pass", || {
        let open = testbed.api().get("/alerts/active")?;
        let known = open.as_array().into_iter().flatten().find(|one| one["id"] == alert["id"]);
        assert_eq!(known.map(|one| &one["count"]), Some(&json!(1)), "{open}");
        anyhow::ensure!(begun.elapsed() > SETTLING_TIME, "it has not passed");
        Ok(())
    })
    .expect("it stays");
    sender.send(&advertisement(source, ROUTER, 0)).expect("sent");
    wait_for_end(testbed.api(), &alert, SOON);
}

#[test]
fn silent_tunnel_is_down_then_stale_and_flaps() {
    let testbed = Testbed::start().expect("scene");
    let (api, network) = (testbed.api(), &testbed.network);
    for (kind, change) in
        [("tunnel_flapping", json!({"threshold": 2.0})), ("handshake_stale", json!({"threshold": 120.0}))]
    {
        set_rule(api, kind, &change);
    }
    let laptop = testbed.device(&network.laptop).expect("device");
    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    let receiver = receiver(&testbed);
    let load = Load::start(&network.laptop).expect("load");
    // Replies of other hosts, which the server would forward, count as a sign of life.
    let silence = "table inet silence {\n \
        chain in { type filter hook prerouting priority raw; iifname eth0 drop; }\n \
        chain out { type filter hook postrouting priority raw; oifname eth0 drop; }\n}\n";
    network.exit_a.namespace.nft(silence).expect("silent");
    let silent = wait_for_firings(&receiver, "tunnel_down", 1, &load);
    println!("from silence of the remote end to the delivery: {:.1} s", silent.as_secs_f64());
    let stale = wait_for_alert(api, "handshake_stale", &tunnel, STALE);
    assert!(!stale["caused_by"].is_null(), "the tunnel is down: {stale}");
    network.exit_a.namespace.nft("delete table inet silence").expect("heard again");
    wait_for(&receiver, "tunnel_down", &["firing", "resolved"]);
    network.exit_a.kill9().expect("killed");
    let flapping = wait_ok(4 * SOON, "the tunnel to flap", || {
        load.run_for(100)?;
        open_alert(api, "tunnel_flapping", &tunnel)
    });
    assert_eq!(flapping.expect("an alert")["resource_type"], "tunnel");
    load.stop();
}

#[test]
fn device_that_is_unplugged_is_an_alert() {
    let testbed = Testbed::start().expect("scene");
    let (api, network) = (testbed.api(), &testbed.network);
    set_rule(api, "device_offline", &json!({"enabled": true, "window_sec": 0}));
    let receiver = receiver(&testbed);
    let tv = testbed.device(&network.tv).expect("device");
    ask_server(&network.tv, server(false));
    wait_ok(2 * SOON, "the device to be seen", || {
        let device = api.get(&format!("/devices/{tv}"))?;
        anyhow::ensure!(device["online"] == true, "{device}");
        Ok(())
    })
    .expect("seen");
    network.tv.namespace.ip("link set eth0 down").expect("unplugged");
    let offline = wait_for_alert(api, "device_offline", &tv, OFFLINE);
    assert_eq!((&offline["device_id"], &offline["severity"]), (&json!(tv), &json!("info")), "{offline}");
    wait_for(&receiver, "device_offline", &["firing"]);
}

#[test]
fn secret_that_cannot_be_decrypted_is_an_alert_until_it_is_set_again() {
    let mut testbed = Testbed::start().expect("scene");
    let tunnel = testbed.network.exit_a.tunnel("wg-a");
    let id = create(testbed.api(), "/tunnels", &tunnel).expect("a tunnel");
    testbed.daemon.terminate().expect("ended");
    lose_passphrase(&testbed.daemon.state_directory());
    testbed.daemon.spawn().expect("started again");
    wait_ok(2 * SOON, "the API", || testbed.api().get("/version").map(drop)).expect("it answers");
    let alert = wait_for_alert(testbed.api(), "secrets_decrypt_failed", "", SOON);
    assert!(
        alert["message"].as_str().is_some_and(|text| text.contains("tunnel wg-a private_key")),
        "{alert}"
    );
    testbed.api().put(&format!("/tunnels/{id}"), &tunnel).expect("set again");
    // Ends are deferred for half a minute after a start.
    wait_for_end(testbed.api(), &alert, 2 * SETTLING_TIME);
}

/// Removes both copies of the passphrase of the secrets.
fn lose_passphrase(state: &Path) {
    const META_TEXT: redb::TableDefinition<'static, &str, &str> = redb::TableDefinition::new("meta_text");
    let database = redb::Database::open(state.join("store.redb")).expect("store");
    let txn = database.begin_write().expect("transaction");
    {
        let mut texts = txn.open_table(META_TEXT).expect("table");
        assert!(texts.remove("secrets_passphrase").expect("removed").is_some());
    }
    txn.commit().expect("committed");
    fs::remove_file(state.join("secrets.passphrase")).expect("removed");
}
