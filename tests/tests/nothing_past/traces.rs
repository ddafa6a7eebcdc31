//! Traces after a wipe, and access to secrets and histories.

use std::fs;
use std::path::Path;

use gateway_tests::dns::{A, Client, Upstream};
use gateway_tests::name_server;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::LAN_V4;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

const SOON: std::time::Duration = std::time::Duration::from_secs(45);
/// A queried name, and one of a list.
const VISITED: &str = "secret-visits";
const LISTED: &str = "a-domain-of-a-list";

pub(super) fn is_in(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).expect("folder").flatten().any(|entry| match entry.path() {
        path if path.is_dir() => is_in(&path, text),
        path => {
            let bytes = fs::read(path).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        }
    })
}

/// Creates a hard link elsewhere for every regular file below a folder: data that is only unlinked would still be
/// readable by it.
fn keep_second_names(folder: &Path, kept: &Path) {
    for entry in fs::read_dir(folder).expect("folder").flatten() {
        let (path, second) = (entry.path(), kept.join(entry.file_name()));
        if path.is_dir() {
            fs::create_dir(&second).expect("folder");
            keep_second_names(&path, &second);
        } else {
            fs::hard_link(&path, &second).expect("second name");
        }
    }
}

fn entries(testbed: &Testbed) -> Vec<Value> {
    let log = testbed.api().get(&format!("/dns/log?domain={VISITED}")).expect("log");
    log.as_array().cloned().unwrap_or_default()
}

/// Returns a resolver with a queried name in the log on disk, in memory and in the cache.
fn scene_with_history() -> (Testbed, Upstream) {
    let mut testbed = Testbed::prepare().expect("scene");
    let upstream = Upstream::start(&testbed.network.internet).expect("upstream");
    let dns = json!({"dns": {"upstream_servers": [name_server::ADDRESS]}});
    testbed.daemon.configure(&dns).expect("configured");
    testbed.daemon.start().expect("daemon");
    let name = format!("{VISITED}.example");
    Client::of(&testbed.network.laptop, LAN_V4.into()).expect("client").ask(&name, A).expect("an answer");
    let state = testbed.daemon.state_directory().join("dns");
    // A cached list, as a download stores it.
    let copy = state.join("lists").join("00000000-0000-4000-8000-000000000001.list");
    fs::write(&copy, format!("{{}}\n{LISTED}\n")).expect("copy");
    fs::write(state.join("zones/00000000-0000-4000-8000-000000000002.zone"), LISTED).expect("copy");
    assert!(!entries(&testbed).is_empty(), "the query was not logged");
    let cache = testbed.api().get("/dns/cache").expect("cache");
    assert!(cache.to_string().contains(VISITED), "{cache}");
    wait_ok(SOON, "the log to be on the disk", || {
        anyhow::ensure!(is_in(&state.join("log"), VISITED), "only in memory");
        Ok(())
    })
    .expect("written");
    (testbed, upstream)
}

fn assert_history_is_gone(level: &str) {
    let (testbed, _upstream) = scene_with_history();
    let state = testbed.daemon.state_directory();
    let kept = state.with_file_name("kept");
    fs::create_dir(&kept).expect("folder");
    keep_second_names(&state.join("dns"), &kept);
    testbed.api().post("/system/wipe", &json!({"level": level})).expect("wiped");
    for gone in [VISITED, LISTED] {
        assert!(!is_in(&state, gone), "{gone} is still in the state folder");
        assert!(!is_in(&kept, gone), "the bytes of {gone} were not overwritten");
    }
    assert_eq!(entries(&testbed), Vec::<Value>::new(), "the log in memory");
    let cache = testbed.api().get("/dns/cache").expect("cache");
    assert!(!cache.to_string().contains(VISITED), "{cache}");
}

#[test]
fn soft_wipe_takes_the_dns_history_with_it() {
    assert_history_is_gone("soft");
}

#[test]
fn medium_wipe_takes_the_dns_history_with_it() {
    assert_history_is_gone("medium");
}
