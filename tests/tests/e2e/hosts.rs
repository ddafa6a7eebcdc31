//! Hosts on the LAN that are no device: they are listed, the verdict counts them, and the setting blocks them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gateway_common::link_protocol::MDNS_PORT;
use gateway_tests::cores::resident;
use gateway_tests::frames::{Body, Forged, FrameSender};
use gateway_tests::netns::Namespace;
use gateway_tests::services::IDENT;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Host, server};
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

/// Payload of a datagram, and its length in a frame.
const PAYLOAD: usize = 1000;
const FRAME: usize = PAYLOAD + 14 + 20 + 8;
const INTERVAL: Duration = Duration::from_millis(2);
const BITS_PER_SECOND: f64 = (FRAME * 8) as f64 / 0.002;

/// Sends datagrams at a steady rate until the end.
fn send_steadily(from: &Namespace, to: SocketAddr, ending: &AtomicBool) {
    let socket = from.within(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).expect("a socket");
    let mut next = Instant::now();
    while !ending.load(Ordering::Relaxed) {
        socket.send_to(&[0; PAYLOAD], to).expect("sent");
        next += INTERVAL;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

fn wait_for_rate(testbed: &Testbed, host: &Host, what: &str, is_right: impl Fn(&Value) -> bool) {
    wait_ok(3 * SOON, what, || {
        let shown = listed(testbed, host.mac)?;
        anyhow::ensure!(is_right(&shown["rate"]), "{shown}");
        Ok(())
    })
    .expect("the rate");
}

#[test]
fn host_that_transfers_has_its_rate_an_idle_one_none_and_one_that_never_answered_null() {
    let mut testbed = Testbed::prepare().expect("a network");
    testbed.daemon.configure(&json!({"dataplane": {"fast_path": "on"}})).expect("configured");
    testbed.daemon.start().expect("a daemon");
    let network = &testbed.network;
    [&network.tv, &network.laptop].into_iter().for_each(assert_direct);
    for host in [&network.tv, &network.laptop] {
        wait_for_host(&testbed, host);
    }
    let fast =
        || testbed.api().get("/status").expect("the status")["fast_path"]["forwarded_packets"].as_u64();
    let fast_before = fast();
    let zero = json!({"sent_bps": 0, "received_bps": 0});
    wait_for_rate(&testbed, &network.laptop, "the idle host to have no traffic", |rate| *rate == zero);

    let receiver =
        network.tv.namespace.within(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 9))).expect("bound");
    let ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| send_steadily(&network.tv.namespace, (server(false), IDENT).into(), &ending));
        scope.spawn(|| send_steadily(&network.gateway, (network.tv.v4, 9).into(), &ending));
        let is_near = |rate: &Value, datagrams: f64| {
            let expected = datagrams * BITS_PER_SECOND;
            rate.as_f64().is_some_and(|rate| (0.7 * expected..1.4 * expected).contains(&rate))
        };
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for_rate(&testbed, &network.tv, "the rate of the transfer", |rate| {
                // The server answers each datagram by one of its length.
                is_near(&rate["sent_bps"], 1.0) && is_near(&rate["received_bps"], 2.0)
            });
            wait_for_rate(&testbed, &network.laptop, "the idle host to be idle", |rate| *rate == zero);
        }));
        ending.store(true, Ordering::Relaxed);
        waited.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    drop(receiver);
    assert!(fast() >= fast_before.map(|before| before + 500), "the packets took the fast path: {:?}", fast());
    wait_for_rate(&testbed, &network.tv, "the transfer to be over", |rate| *rate == zero);

    // A host that never answered may be forged: its traffic is not counted.
    let sender = FrameSender::open(&network.tv.namespace, "eth0").expect("a socket");
    let forged = "06:00:00:00:00:07";
    let shown = wait_ok(SOON, "the forged host to be listed", || {
        sender.send(&forged_announcement(7))?;
        listed(&testbed, forged)
    })
    .expect("listed");
    assert_eq!((&shown["confirmed"], &shown["rate"]), (&json!(false), &json!(null)), "{shown}");
}

#[test]
fn own_zones_and_reservations_name_a_host_and_its_device() {
    let testbed = Testbed::start().expect("scene");
    let (api, network) = (testbed.api(), &testbed.network);
    assert_direct(&network.tv);
    let shown = wait_for_host(&testbed, &network.tv);
    assert_eq!(shown["names"], json!([]), "{shown}");
    api.post("/dns/zones", &json!({"name": "home.example"})).expect("a zone");
    let record =
        json!({"zone": "home.example", "name": "tv", "type": "AAAA", "value": network.tv.v6.to_string()});
    api.post("/dns/records", &record).expect("a record");
    let shown = listed(&testbed, network.tv.mac).expect("listed");
    assert_eq!(shown["names"], json!([{"name": "tv.home.example", "from": "dns"}]), "{shown}");
    let id = shown["id"].as_str().expect("an id");
    let device = api.post(&format!("/hosts/{id}/adopt"), &json!({})).expect("adopted");
    assert_eq!(device["name"], "tv.home.example", "{device}");
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
