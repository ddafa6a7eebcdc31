//! Replacement of the keys of two gateways, and what a copy of an earlier installation can do afterwards.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use gateway_tests::daemon::Api;
use gateway_tests::testbed::create;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use super::federation::{Gateways, MAIN, node};
use crate::e2e::SOON;

const OVERLAP_SEC: u64 = 20;

fn status(api: &Api) -> Result<Value> {
    api.get("/federation/status")
}

fn rotate(api: &Api) -> Value {
    api.post("/federation/rotate-key", &json!({"overlap_sec": OVERLAP_SEC})).expect("a new key")
}

/// Waits until a gateway has followed its peer to a new key.
fn wait_for_key(api: &Api, rotated: &Value) -> Value {
    wait_ok(SOON * 3, "the peer to follow", || {
        let node = node(api);
        ensure!(node["fingerprint_words"] == rotated["fingerprint_words"], "{node}");
        ensure!(node["status"] != "pending", "{node}");
        Ok(node)
    })
    .expect("the peer follows")
}

fn wait_for_end_of_overlap(api: &Api) {
    wait_ok(Duration::from_secs(OVERLAP_SEC) + SOON, "the end of the overlap", || {
        let status = status(api)?;
        ensure!(status["previous_fingerprint_words"].is_null(), "{status}");
        Ok(())
    })
    .expect("the overlap ends");
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-aT").arg(from).arg(to).status().expect("cp");
    assert!(copied.success(), "{copied}");
}

/// The branch replaces its key, then the main gateway does. A copy of the branch with the old key is refused afterwards.
#[test]
fn peers_follow_a_new_key_and_refuse_the_old_one_after_the_overlap() {
    let mut gateways = Gateways::synced();
    let folder = tempfile::tempdir().expect("a folder");
    let (stolen, own) = (folder.path().join("stolen"), folder.path().join("own"));
    let state = gateways.branch.state_directory();
    gateways.branch.kill9().expect("killed");
    copy(&state, &stolen);
    gateways.branch.start().expect("the branch again");

    let before = status(gateways.branch.api()).expect("a status");
    let rotated = rotate(gateways.branch.api());
    assert_ne!(rotated["public_key"], before["public_key"]);
    assert_eq!(rotated["previous_fingerprint_words"], before["fingerprint_words"], "{rotated}");
    let again = gateways.branch.api().send("POST", "/federation/rotate-key", None).expect("an answer");
    assert_eq!((again.status, &again.body["error"]["code"]), (409, &json!("invalid_state")));
    let known = wait_for_key(gateways.main.api(), &rotated);
    assert_eq!(known["previous_key"], before["public_key"], "{known}");
    let events = gateways.main.api().get("/federation/recent-events?kind=key_rotated").expect("events");
    assert_eq!(events.as_array().map(Vec::len), Some(1), "{events}");
    let audit = gateways.main.api().get("/audit?action=rotate_node_key").expect("entries");
    assert_eq!(
        (&audit[0]["actor"], &audit[0]["result"]),
        (&json!("federation"), &json!("success")),
        "{audit}"
    );
    gateways.sync().expect("a pull by the new key");

    wait_for_end_of_overlap(gateways.branch.api());
    gateways.branch.kill9().expect("killed");
    copy(&state, &own);
    std::fs::remove_dir_all(&state).expect("removed");
    copy(&stolen, &state);
    gateways.branch.start().expect("a copy of the branch");
    let refused = gateways
        .branch
        .api()
        .send("POST", "/federation/sync", Some(&json!({"peer": MAIN})))
        .expect("an answer");
    assert_eq!(refused.status, 502, "{}", refused.body);
    assert!(refused.body.to_string().contains("not signed by the key"), "{}", refused.body);
    assert_eq!(node(gateways.main.api())["fingerprint_words"], rotated["fingerprint_words"]);

    gateways.branch.kill9().expect("killed");
    std::fs::remove_dir_all(&state).expect("removed");
    copy(&own, &state);
    gateways.branch.start().expect("the branch again");
    gateways.sync().expect("a pull");
    let rotated = rotate(gateways.main.api());
    gateways.sync().expect("a pull with a request to the old key");
    wait_for_key(gateways.branch.api(), &rotated);
    let device = json!({"name": "printer", "mac": "02:00:00:aa:00:01"});
    let device = create(gateways.main.api(), "/devices", &device).expect("a device");
    gateways.sync().expect("a pull");
    gateways.branch.api().get(&format!("/devices/{device}")).expect("the device");
}
