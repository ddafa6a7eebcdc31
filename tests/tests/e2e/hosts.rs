//! Hosts on the LAN that are no device: they are listed, the verdict counts them, and the setting blocks them.

use std::net::IpAddr;

use gateway_core::announcements::MDNS_PORT;
use gateway_tests::cores::resident;
use gateway_tests::frames::{Body, Forged, FrameSender};
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::Host;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::{SOON, assert_blocked, assert_direct, assert_nothing_leaked, assert_through};

/// Returns the host of the list with this MAC address.
fn listed(testbed: &Testbed, mac: &str) -> anyhow::Result<Value> {
    let hosts = testbed.api().get(&format!("/hosts?mac={mac}"))?;
    let first = hosts.get(0).cloned();
    first.ok_or_else(|| {
        anyhow::anyhow!("{mac} is not listed: {}", testbed.api().get("/hosts").unwrap_or_default())
    })
}

/// Waits until a host that has sent something is listed as one that answers.
fn wait_for_host(testbed: &Testbed, host: &Host) -> Value {
    let check = || {
        let shown = listed(testbed, host.mac)?;
        anyhow::ensure!(shown["confirmed"] == true && shown["online"] == true, "{shown}");
        Ok(shown)
    };
    wait_ok(2 * SOON, "the host to be listed", check).expect("listed")
}

fn wait_for_verdict(testbed: &Testbed, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    wait_ok(SOON, what, || {
        let verdict = testbed.api().get("/status")?["verdict"].clone();
        anyhow::ensure!(holds(&verdict), "{verdict}");
        Ok(verdict)
    })
    .expect("the verdict")
}

#[test]
fn a_host_without_a_record_is_listed_with_its_path_and_counted() {
    let testbed = Testbed::start().expect("scene");
    let (api, network) = (testbed.api(), &testbed.network);
    // An invented record says nothing of the LAN.
    api.post("/devices", &json!({"name": "invented", "mac": "02:00:00:99:99:99"})).expect("device");
    let unknown =
        wait_for_verdict(&testbed, "no host to be known", |verdict| verdict["counts"]["records_silent"] == 1);
    assert_eq!(unknown["counts"]["no_policy"], 0, "{unknown}");
    assert_direct(&network.tv);
    let shown = wait_for_host(&testbed, &network.tv);
    assert_eq!((&shown["status"], &shown["device_id"]), (&json!("new"), &json!(null)), "{shown}");
    assert_eq!(
        (&shown["path"]["decision"], &shown["path"]["treatment"]),
        (&json!("direct"), &json!("no_policy"))
    );
    let ips = shown["ips"].as_array().expect("addresses");
    assert!(ips.contains(&json!(network.tv.v4)) && ips.contains(&json!(network.tv.v6)), "{shown}");
    let verdict = wait_for_verdict(&testbed, "the host to be counted", |verdict| {
        verdict["counts"]["no_policy"].as_u64() >= Some(1)
    });
    let total = &verdict["share"]["total"];
    assert_eq!((&verdict["word"], &verdict["share"]["covered"]), (&json!("OK"), &json!(0)), "{verdict}");
    assert_eq!(&verdict["counts"]["no_policy"], total, "{verdict}");
    let sentence = verdict["sentence"].as_str().expect("a sentence");
    assert!(sentence.starts_with(&format!("OK for 0 of {total} host")), "{sentence}");
    assert_eq!(verdict["phrases"][0]["code"], "ok_partly", "{verdict}");
    let graph = api.get("/policy/paths/graph").expect("the graph");
    assert_eq!((&graph["devices"], &graph["unmatched"]["direct"]), (total, total), "{graph}");

    // One call makes a device of it, which a policy can name.
    let id = shown["id"].as_str().expect("an id");
    let device = api.post(&format!("/hosts/{id}/adopt"), &json!({"name": "Television"})).expect("adopted");
    assert_eq!((&device["mac"], &device["name"]), (&json!(network.tv.mac), &json!("Television")), "{device}");
    assert_eq!((&device["online"], &device["first_seen"]), (&json!(true), &shown["first_seen"]), "{device}");
    assert_eq!(listed(&testbed, network.tv.mac).expect("listed")["device_id"], device["id"]);
    let entries = api.get("/audit?action=adopt_host").expect("entries");
    assert_eq!(entries[0]["resource_id"], device["id"], "{entries}");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    let device = device["id"].as_str().expect("an id");
    testbed.policy(&policy("vpn-only", 10, ("device", device), &["wg-a"])).expect("policy");
    assert_through(&network.tv, &network.exit_a);
    wait_for_verdict(&testbed, "the device to be covered", |verdict| {
        verdict["counts"]["through_policy"] == 1
    });
}

#[test]
fn unknown_hosts_that_are_blocked_leak_nothing_and_devices_go_on() {
    let testbed = Testbed::start().expect("scene");
    let (api, network) = (testbed.api(), &testbed.network);
    testbed.device(&network.laptop).expect("device");
    assert_direct(&network.tv);
    for setting in ["blocked", "quarantine"] {
        api.put("/settings/network.unknown_hosts", &json!({"value": setting})).expect("set");
        wait_ok(SOON, "the setting to be in force", || {
            let evaluated = api.post("/policy/evaluate", &json!({"mac": network.tv.mac}))?;
            anyhow::ensure!(evaluated["decision"] == "block", "{evaluated}");
            let sentence = evaluated["sentence"].as_str().unwrap_or_default();
            anyhow::ensure!(sentence.contains("network.unknown_hosts"), "{sentence}");
            Ok(())
        })
        .expect("in force");
        api.act("/enforce/reconcile").expect("in the kernel");
        network.settle().expect("silence on the LAN");
        network.tap.reset();
        assert_blocked(&network.tv);
        assert_nothing_leaked(&testbed);
        assert_direct(&network.laptop);
    }
    api.put("/settings/network.unknown_hosts", &json!({"value": "direct"})).expect("set");
    api.act("/enforce/reconcile").expect("in the kernel");
    assert_direct(&network.tv);
}

#[test]
fn a_wipe_erases_hosts_and_a_restart_does_not() {
    let mut testbed = Testbed::start().expect("scene");
    assert_direct(&testbed.network.tv);
    let before = wait_for_host(&testbed, &testbed.network.tv);
    testbed.daemon.terminate().expect("ended");
    testbed.daemon.start().expect("started");
    let after = wait_for_host(&testbed, &testbed.network.tv);
    assert_eq!((&after["id"], &after["first_seen"]), (&before["id"], &before["first_seen"]));
    testbed.api().post("/system/wipe", &json!({"level": "soft"})).expect("wiped");
    let stored = testbed.daemon.state_directory().join("hosts.json");
    assert!(!stored.exists(), "the file is erased");
    // A host that is still there is new.
    let new = wait_for_host(&testbed, &testbed.network.tv);
    assert_ne!(new["first_seen"], before["first_seen"], "{new}");
}

/// Forged hosts of a round of the flood.
const ROUND: u32 = 400;
/// More than the table of an interface has room for.
const FORGED: u32 = 6_000;
/// Maximum number of hosts at an interface.
const TABLE: usize = 4096;
/// Memory that the flood may take: the table, and the answers that show it.
const MAX_GROWTH_KIB: u64 = 48 << 10;

/// Returns the announcement of a host that does not exist, from a MAC address that no other has.
fn forged_announcement(number: u32) -> Vec<u8> {
    let [_, a, b, c] = number.to_be_bytes();
    let address = [192, 168, 10, c.clamp(1, 254)];
    let name = format!("h{number}");
    let mut message = vec![0, 0, 0x84, 0, 0, 0, 0, 1, 0, 0, 0, 0, name.len() as u8];
    message.extend(name.as_bytes());
    message.extend(b"\x05local\0\0\x01\x80\x01\0\0\0\x78\0\x04");
    message.extend(address);
    let group = [224, 0, 0, 251].into();
    let body = Body::Udp { from: MDNS_PORT, to: MDNS_PORT, payload: message };
    Forged::new(IpAddr::from(address), group, body).frame([0x06, 0, 0, a, b, c], [1, 0, 0x5e, 0, 0, 0xfb])
}

#[test]
fn flood_of_forged_hosts_removes_no_host_that_answers_and_takes_bounded_memory() {
    let testbed = Testbed::start().expect("scene");
    let (api, network) = (testbed.api(), &testbed.network);
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_through(&network.laptop, &network.exit_a);
    assert_direct(&network.tv);
    let before = [&network.laptop, &network.tv].map(|host| wait_for_host(&testbed, host));
    let total = |verdict: &Value| verdict["share"]["total"].clone();
    let known = wait_for_verdict(&testbed, "both hosts to be counted", |verdict| {
        verdict["share"]["total"].as_u64() >= Some(2)
    });
    let pid = testbed.daemon.pid().expect("a daemon");
    let memory = || resident(pid).expect("its memory") >> 10;
    let count = || api.get("/hosts").map(|hosts| hosts.as_array().map_or(0, Vec::len));
    count().expect("the hosts");
    let memory_before = memory();

    let sender = FrameSender::open(&network.tv.namespace, "eth0").expect("a socket");
    let mut sent = 0;
    let send = |from: u32| {
        for number in from..from + ROUND {
            sender.send(&forged_announcement(number)).expect("sent");
        }
        from + ROUND
    };
    // Announcements that come faster than they are read are lost, so the flood goes on until the table is full.
    wait_ok(8 * SOON, "the table to be full", || {
        sent = send(sent);
        let listed = count()?;
        anyhow::ensure!(listed >= TABLE, "{listed} of {sent}");
        Ok(())
    })
    .expect("full");
    while sent < FORGED {
        sent = send(sent);
    }
    // The newest forged ones are in no place of another: the table is as large as before.
    let kept = count().expect("the hosts");
    assert!(kept <= TABLE, "{kept} hosts");

    for (host, shown) in [&network.laptop, &network.tv].into_iter().zip(&before) {
        let now = listed(&testbed, host.mac).expect("listed");
        assert_eq!((&now["id"], &now["first_seen"]), (&shown["id"], &shown["first_seen"]), "{now}");
        assert_eq!((&now["confirmed"], &now["online"]), (&json!(true), &json!(true)), "{now}");
    }
    assert_through(&network.laptop, &network.exit_a);
    assert_direct(&network.tv);
    let verdict = wait_for_verdict(&testbed, "a verdict", |verdict| total(verdict) == total(&known));
    assert_eq!(verdict["counts"]["through_policy"], known["counts"]["through_policy"], "{verdict}");
    let growth = memory().saturating_sub(memory_before);
    println!("{sent} forged hosts, {kept} kept: {growth} KiB");
    assert!(growth < MAX_GROWTH_KIB, "{growth} KiB");
}
