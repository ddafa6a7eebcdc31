//! Limits, retention, roles and erasure of captures.

use std::fs;

use gateway_tests::testbed::Testbed;
use gateway_tests::topology::server;
use gateway_tests::traffic::ping;
use gateway_tests::wait::wait_until;
use serde_json::{Value, json};

use super::{LAN, detail, start, stop, wait_for_packets};
use crate::e2e::SOON;

fn files(testbed: &Testbed) -> usize {
    let folder = testbed.daemon.state_directory().join("captures");
    fs::read_dir(folder).map_or(0, Iterator::count)
}

fn captures(testbed: &Testbed) -> Vec<Value> {
    testbed.api().get("/diagnostics/captures").expect("a list").as_array().expect("a list").clone()
}

#[test]
fn three_captures_run_at_a_time_and_twenty_are_kept() {
    let testbed = Testbed::start().expect("scene");
    let request = json!({"interface": LAN, "filter": "port 1"});
    let first = start(&testbed, &request);
    let running = [start(&testbed, &request), start(&testbed, &request)];
    let refused = testbed.api().send("POST", "/diagnostics/capture", Some(&request)).expect("an answer");
    assert_eq!((refused.status, &refused.body["error"]["code"]), (409, &json!("limit_reached")));
    stop(&testbed, &first);
    for _ in 0..18 {
        let id = start(&testbed, &request);
        stop(&testbed, &id);
    }
    let kept = captures(&testbed);
    let is_kept = |id: &str| kept.iter().any(|capture| capture["id"] == id);
    assert_eq!((kept.len(), files(&testbed)), (20, 60));
    assert!(!is_kept(&first) && running.iter().all(|id| is_kept(id)), "the oldest one that has ended goes");
    let last = kept[0]["id"].as_str().expect("an id");
    let deleted = testbed.api().delete(&format!("/diagnostics/capture/{last}")).expect("deleted");
    assert_eq!((deleted["deleted"].clone(), files(&testbed)), (json!(true), 57));
}

#[test]
fn capture_ends_by_itself_after_its_time_and_its_number_of_packets() {
    let testbed = Testbed::start().expect("scene");
    let by_time = start(&testbed, &json!({"interface": LAN, "filter": "port 1", "duration_sec": 1}));
    let by_count = start(&testbed, &json!({"interface": LAN, "filter": "icmp", "count": 3}));
    for _ in 0..3 {
        assert!(ping(&testbed.network.laptop, server(false)), "an answer");
    }
    for (id, end, packets) in [(&by_time, "duration", 0), (&by_count, "count", 3)] {
        let ended = wait_until(SOON, "the capture to end", || {
            Some(detail(&testbed, id)).filter(|capture| capture["state"] != "running")
        });
        let ended = ended.expect("an end");
        assert_eq!(
            (&ended["state"], &ended["end"], &ended["packets"]),
            (&json!("done"), &json!(end), &json!(packets))
        );
    }
}

#[test]
fn captures_outlive_a_restart_and_end_with_a_soft_wipe() {
    let mut testbed = Testbed::start().expect("scene");
    let done = start(&testbed, &json!({"interface": LAN, "filter": "icmp", "count": 1}));
    let running = start(&testbed, &json!({"interface": LAN, "filter": "icmp"}));
    assert!(ping(&testbed.network.laptop, server(false)), "an answer");
    wait_for_packets(&testbed, &running, "a packet", |_| true);
    wait_until(SOON, "the end of the capture", || (detail(&testbed, &done)["state"] == "done").then_some(()))
        .expect("done");
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("a daemon");
    let capture = detail(&testbed, &done);
    assert_eq!((&capture["state"], capture["summaries"].as_array().map(Vec::len)), (&json!("done"), Some(1)));
    let capture = detail(&testbed, &running);
    assert_eq!((&capture["state"], &capture["end"]), (&json!("error"), &json!("error")), "{capture}");
    start(&testbed, &json!({"interface": LAN}));
    testbed.api().post("/system/wipe", &json!({"level": "soft"})).expect("wiped");
    assert_eq!((captures(&testbed), files(&testbed)), (vec![], 0));
}

#[test]
fn start_stop_and_download_are_in_the_audit_log() {
    let testbed = Testbed::start().expect("scene");
    let id = start(&testbed, &json!({"interface": LAN}));
    stop(&testbed, &id);
    testbed.api().bytes(&format!("/diagnostics/capture/{id}/pcapng")).expect("a download");
    let entries = testbed.api().get("/audit").expect("audit");
    let entries = entries.as_array().expect("a list").iter();
    let of_captures =
        entries.filter(|entry| entry["resource_type"] == "capture" && entry["resource_id"] == json!(id));
    let actions: Vec<&str> = of_captures.filter_map(|entry| entry["action"].as_str()).collect();
    assert_eq!(actions, ["read_capture", "stop_capture", "start_capture"]);
}
