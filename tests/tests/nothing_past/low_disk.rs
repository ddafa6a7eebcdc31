//! A disk that runs out of space: query log and cached lists stop first, and resume when there is space.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gateway_tests::alerts;
use gateway_tests::dns::{A, Client, Upstream};
use gateway_tests::name_server;
use gateway_tests::netns::Namespace;
use gateway_tests::testbed::{Testbed, create};
use gateway_tests::topology::LAN_V4;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::nothing_past::full_disk::{DISK, SmallDisk};
use crate::nothing_past::traces::is_in;

/// Timeout: the log is written every 30 s, and a failed list is fetched again after 60 s.
const SOON: Duration = Duration::from_secs(120);
/// Free space in bytes: enough for the store, too little for the log and for lists.
const LOW: u64 = 8 << 20;
const LIST_PORT: u16 = 8099;

/// Returns a resolver with its state on a small disk.
fn scene_on_a_small_disk() -> (Testbed, SmallDisk, Upstream) {
    let mut testbed = Testbed::prepare().expect("scene");
    let disk = SmallDisk::mount(&testbed.daemon.state_directory());
    let upstream = Upstream::start(&testbed.network.internet).expect("upstream");
    let dns = json!({"upstream_servers": [name_server::ADDRESS], "list_private_targets": true});
    testbed.daemon.configure(&json!({ "dns": dns })).expect("configured");
    testbed.daemon.start().expect("daemon");
    (testbed, disk, upstream)
}

fn client(testbed: &Testbed) -> Client {
    Client::of(&testbed.network.laptop, LAN_V4.into()).expect("client")
}

fn wait_until(testbed: &Testbed, what: &str, mut check: impl FnMut() -> anyhow::Result<()>) {
    wait_ok(SOON, what, &mut check)
        .unwrap_or_else(|error| panic!("{error:#}\n{}", testbed.daemon.last_words()));
}

/// Waits until the events report the expected state of the alert.
fn wait_for_alert(testbed: &Testbed, active: bool) {
    wait_until(testbed, "the alert of the disk", || {
        let listen = "curl -sN --max-time 1 http://127.0.0.1:8080/api/v1/events || true";
        let events = testbed.network.gateway.run("sh", &["-c", listen])?;
        let alerts: Vec<Value> = events
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
            .filter(|event: &Value| event["kind"] == "storage_low" && event["subject"] == "store")
            .collect();
        anyhow::ensure!(alerts.iter().any(|alert| alert["active"] == true) == active, "{events}");
        Ok(())
    });
}

#[test]
fn query_log_stops_before_the_store_and_goes_on_when_there_is_room() {
    let (testbed, disk, _upstream) = scene_on_a_small_disk();
    let log = testbed.daemon.state_directory().join("dns/log");
    let error = || testbed.api().get("/dns/status").map(|status| status["log"]["error"].clone());
    wait_for_alert(&testbed, false);
    disk.fill_but(LOW);
    client(&testbed).ask("kept-in-memory.example", A).expect("an answer");
    wait_until(&testbed, "the log to stop", || {
        let error = error()?;
        anyhow::ensure!(error.as_str().is_some_and(|error| error.contains("MiB left")), "{error}");
        Ok(())
    });
    assert!(!is_in(&log, "kept-in-memory"), "the log took room from the store");
    let entries = testbed.api().get("/dns/log?domain=kept-in-memory").expect("log");
    assert!(entries.as_array().is_some_and(|entries| !entries.is_empty()), "kept in memory: {entries}");
    create(testbed.api(), "/devices", &json!({"name": "made"})).expect("the store goes on");
    wait_for_alert(&testbed, true);
    disk.free();
    wait_for_alert(&testbed, false);
    client(&testbed).ask("on-the-disk.example", A).expect("an answer");
    wait_until(&testbed, "the log to go on", || {
        anyhow::ensure!(is_in(&log, "on-the-disk"), "nothing is written");
        anyhow::ensure!(error()?.is_null(), "{}", error()?);
        Ok(())
    });
}

/// Half of the disk is above one threshold and below another. A disk without room for the log is above each.
#[test]
fn alert_of_the_disk_obeys_the_threshold_of_its_rule() {
    let (testbed, disk, _upstream) = scene_on_a_small_disk();
    let api = testbed.api();
    let set = |threshold: f64| {
        let change = json!({"threshold": threshold, "cooldown_sec": 0});
        alerts::set_rule(api, "storage_low", &change).expect("changed");
    };
    let wait = |part: &str| {
        let alert = alerts::wait_for_alert(api, "storage_low", "store", SOON).expect("an alert");
        assert!(alert["message"].as_str().is_some_and(|text| text.contains(part)), "{alert}");
        alert
    };
    let wait_for_end = |alert: &Value| alerts::wait_for_end(api, alert, SOON).expect("it ended");
    disk.fill_but(DISK / 2);
    set(40.0);
    let low = wait("per cent of the disk of the store are in use");
    assert_eq!((&low["resource_type"], &low["caused_by"]), (&json!("disk"), &Value::Null), "{low}");
    set(60.0);
    wait_for_end(&low);
    disk.fill_but(DISK / 10 * 3);
    let low = wait("per cent of the disk of the store are in use");
    disk.free();
    wait_for_end(&low);
    set(100.0);
    disk.fill_but(LOW);
    let low = wait("MiB are left");
    disk.free();
    wait_for_end(&low);
}

/// Serves a text to every client in a namespace.
fn serve_list(namespace: &Namespace, at: IpAddr) -> Arc<Mutex<String>> {
    let listener = namespace.within(|| TcpListener::bind(SocketAddr::new(at, LIST_PORT))).expect("server");
    let text = Arc::new(Mutex::new(String::new()));
    let served = text.clone();
    // The thread ends with the test program.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let body = served.lock().expect("list").clone();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    text
}

fn wait_until_blocked(testbed: &Testbed, name: &str) {
    wait_until(testbed, "a listed name to be blocked", || {
        let answer = client(testbed).ask(name, A)?;
        anyhow::ensure!(answer.addresses == [IpAddr::from([0; 4])], "{answer:?}");
        Ok(())
    });
}

fn copy_of(folder: &Path, id: &str) -> String {
    fs::read_to_string(folder.join(format!("{id}.list"))).unwrap_or_default()
}

#[test]
fn list_works_from_memory_without_room_and_is_copied_again_when_there_is_some() {
    let (testbed, disk, _upstream) = scene_on_a_small_disk();
    let at = name_server::ADDRESS.into();
    let served = serve_list(&testbed.network.internet, at);
    let copies = testbed.daemon.state_directory().join("dns/lists");
    *served.lock().expect("list") = "first.example\n".to_owned();
    let mut list = json!({"name": "ads", "url": format!("http://{at}:{LIST_PORT}/list")});
    let id = create(testbed.api(), "/dns/blocklist", &list).expect("list");
    wait_until_blocked(&testbed, "first.example");
    assert!(copy_of(&copies, &id).contains("first.example"));
    disk.fill_but(LOW);
    *served.lock().expect("list") = "first.example\nsecond.example\n".to_owned();
    // A new address triggers an immediate fetch.
    list["url"] = json!(format!("http://{at}:{LIST_PORT}/list?newer"));
    testbed.api().put(&format!("/dns/blocklist/{id}"), &list).expect("stored");
    wait_until(&testbed, "the copy to be refused", || {
        let shown = testbed.api().get(&format!("/dns/blocklist/{id}"))?;
        anyhow::ensure!(shown["error"].as_str().is_some_and(|error| error.contains("MiB left")), "{shown}");
        Ok(())
    });
    assert!(!copy_of(&copies, &id).contains("second.example"), "the copy took room from the store");
    wait_until_blocked(&testbed, "www.first.example");
    disk.free();
    wait_until_blocked(&testbed, "second.example");
    assert!(copy_of(&copies, &id).contains("second.example"), "the copy was not written again");
    let shown = testbed.api().get(&format!("/dns/blocklist/{id}")).expect("list");
    assert!(shown["error"].is_null(), "{shown}");
}
