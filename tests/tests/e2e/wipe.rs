//! Wiping by command and by the dead-man switch: the data is gone from the bytes on disk, and no traffic leaks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::state_machines::deadman::CheckIn;
use gateway_ctl::clock::{Clock, SystemClock};
use gateway_ctl::services::deadman::POLL_INTERVAL;
use gateway_ctl::store::Store;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{server, wan};
use gateway_tests::traffic::Load;
use gateway_tests::wait::{wait_for, wait_ok};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::e2e::{
    FAMILIES, SOON, assert_blocked, assert_direct, assert_nothing_leaked, assert_the_tap_sees,
    assert_through, wait_until_through,
};

/// Key of an unused tunnel: 32 bytes made for the test.
const KEY: &str = "UGUzZkxPUElZVU5XQ0JTQk5WSVdHWEJSS0dCVE5PUVM=";
const DEVICE: &str = "the-secretary's-laptop";
const TUNNEL: &str = "secret-exit";

/// Returns a laptop bound to a tunnel, and a gateway with data in clear, so that the test can search for it.
fn filled_scene() -> Testbed {
    let testbed = Testbed::start().expect("scene");
    let (api, network) = (testbed.api(), &testbed.network);
    assert_the_tap_sees(&testbed, &network.tv);
    api.act("/secrets/clear-passphrase").expect("in clear");
    let laptop = api.post("/devices", &json!({"name": DEVICE, "mac": network.laptop.mac})).expect("device");
    let spare =
        json!({"name": TUNNEL, "type": "wireguard", "private_key": KEY, "addresses": ["10.9.0.2/32"]});
    api.post("/tunnels", &spare).expect("spare tunnel");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    let laptop = laptop["id"].as_str().expect("an id");
    testbed.policy(&policy("vpn-only", 10, ("device", laptop), &["wg-a"])).expect("policy");
    assert_through(&network.laptop, &network.exit_a);
    for known in [KEY, DEVICE, TUNNEL] {
        assert!(is_in(&testbed.daemon.state_directory(), known), "{known} is not there to be wiped");
    }
    testbed
}

fn wipe(testbed: &Testbed, level: &str) -> Value {
    testbed.api().post("/system/wipe", &json!({"level": level})).expect("wiped")
}

fn is_in(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).expect("folder").flatten().any(|entry| match entry.path() {
        path if path.is_dir() => is_in(&path, text),
        path => contains(&path, text),
    })
}

fn contains(file: &Path, text: &str) -> bool {
    let bytes = fs::read(file).expect("readable");
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Folders of the state with what was observed: records of flows, their totals, plans of before.
const JOURNALS: [&str; 3] = ["flows", "usage", "plans"];
/// Files of the state with what is usual of devices, and how far collectors have come.
const SUMMARIES: [&str; 2] = ["anomalies.json", "flow_export.json"];

/// Makes records of each kind, on the disk as well. Returns a folder with second names of their files.
fn observe(testbed: &mut Testbed) -> PathBuf {
    let collector = json!({"ipfix": {"enabled": true, "host": wan(false).to_string()}});
    testbed.api().put("/flows/export", &collector).expect("a collector");
    wait_ok(SOON, "flows and their totals", || {
        for path in ["/flows?state=ended", "/flows/usage"] {
            let found = testbed.api().get(path)?;
            anyhow::ensure!(found.as_array().is_some_and(|list| !list.is_empty()), "{path}");
        }
        Ok(())
    })
    .expect("flows");
    // A daemon that ends writes what it has.
    testbed.daemon.terminate().expect("ended");
    let state = testbed.daemon.state_directory();
    let kept = state.with_file_name("kept-observations");
    fs::create_dir(&kept).expect("a folder");
    for name in JOURNALS.into_iter().chain(SUMMARIES) {
        let files = files_of(&state.join(name));
        assert!(files.iter().any(|file| file.metadata().is_ok_and(|data| data.len() > 0)), "no {name}");
        // Files with a summary are replaced at each change.
        for (number, file) in files.iter().enumerate().filter(|_| JOURNALS.contains(&name)) {
            fs::hard_link(file, kept.join(format!("{number}-{name}"))).expect("a second name");
        }
    }
    testbed.daemon.start().expect("started again");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    kept
}

fn files_of(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).map(|entries| entries.flatten().collect::<Vec<_>>());
    entries.unwrap_or_default().iter().flat_map(|entry| files_of(&entry.path())).collect()
}

/// Asserts that files that were there before have nothing but zeros, by their second names.
fn assert_overwritten(kept: &Path) {
    for file in files_of(kept) {
        let bytes = fs::read(&file).expect("readable");
        assert!(bytes.iter().all(|byte| *byte == 0), "{} is still in the bytes of the disk", file.display());
    }
}

/// Asserts that nothing of before is shown. What goes on is observed again.
fn assert_nothing_of_before(testbed: &Testbed, wiped: Timestamp) {
    let began = |entry: &Value| entry["started_at"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    assert!(!testbed.daemon.state_directory().join(SUMMARIES[0]).exists(), "what is usual is still stored");
    let ended = testbed.api().get("/flows?state=ended").expect("flows");
    for flow in ended.as_array().expect("a list") {
        assert!(began(flow) >= Some(wiped), "{flow:#}");
    }
    assert_eq!(testbed.api().get("/anomalies").expect("anomalies"), json!([]));
    let learned = testbed.api().get("/anomalies/stats").expect("the state")["learned_since"].clone();
    let since = learned.as_str().and_then(|time| time.parse::<Timestamp>().ok());
    assert!(learned.is_null() || since >= Some(wiped), "{learned}");
}

fn only_blocks(policies: &Value) -> bool {
    let list = policies.as_array().expect("a list");
    list.len() == 1 && list[0]["hops"] == json!([]) && list[0]["source_type"] == "all"
}

#[test]
fn a_soft_wipe_forgets_what_happened_and_changes_no_packet() {
    let mut testbed = filled_scene();
    let kept = observe(&mut testbed);
    assert!(is_in(&testbed.daemon.state_directory(), "create_device"));
    let before = Timestamp::now();
    wipe(&testbed, "soft");
    assert_overwritten(&kept);
    assert_nothing_of_before(&testbed, before);
    let laptop = testbed.api().get("/devices").expect("devices")[0]["id"].clone();
    let past = json!({"device_id": laptop, "at": (before - SignedDuration::from_secs(1)).to_string()});
    let answer = testbed.api().send("POST", "/policy/evaluate", Some(&past)).expect("an answer");
    assert!(answer.status >= 400, "a plan of before the wipe is known: {}", answer.body);
    assert!(!is_in(&testbed.daemon.state_directory(), "create_device"), "the trail is still in the file");
    let entries = testbed.api().get("/audit").expect("audit");
    assert_eq!((entries.as_array().map(Vec::len), &entries[0]["action"]), (Some(1), &json!("wipe_system")));
    assert_through(&testbed.network.laptop, &testbed.network.exit_a);
    assert_direct(&testbed.network.tv);
}

#[test]
fn a_medium_wipe_under_load_leaves_a_gateway_that_blocks_and_answers() {
    let mut testbed = filled_scene();
    let kept = observe(&mut testbed);
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    let load = Load::start(&testbed.network.laptop).expect("load");
    load.run_for(200).expect("load");
    let before = Timestamp::now();
    wipe(&testbed, "medium");
    assert_overwritten(&kept);
    assert_nothing_of_before(&testbed, before);
    load.run_for(400).expect("load");
    let sent = load.stop();
    let exits = FAMILIES.map(|ipv6| testbed.network.exit_a.address(ipv6));
    assert!(sent.answers.keys().all(|seen| exits.contains(seen)), "{sent:?}");
    for gone in [KEY, DEVICE, TUNNEL] {
        assert!(!is_in(&testbed.daemon.state_directory(), gone), "{gone}");
    }
    assert!(only_blocks(&testbed.api().get("/routing/policies").expect("policies")));
    assert_blocked(&testbed.network.laptop);
    assert_blocked(&testbed.network.tv);
    assert_nothing_leaked(&testbed);
    testbed.daemon.terminate().expect("ended");
    testbed.daemon.start().expect("started again");
    assert_blocked(&testbed.network.laptop);
    assert_nothing_leaked(&testbed);
    // The gateway still works: without that policy traffic passes.
    let policies = testbed.api().get("/routing/policies").expect("policies");
    let id = policies[0]["id"].as_str().expect("an id");
    testbed.api().delete(&format!("/routing/policies/{id}")).expect("deleted");
    testbed.apply().expect("applied");
    assert_direct(&testbed.network.tv);
}

#[test]
fn a_hard_wipe_leaves_nothing_ends_the_daemon_and_stays_blocked() {
    let mut testbed = filled_scene();
    let observed = observe(&mut testbed);
    let state = testbed.daemon.state_directory();
    // A hard link to the file: data that is only unlinked would still be readable by it.
    let kept = state.with_file_name("kept.redb");
    fs::hard_link(state.join("store.redb"), &kept).expect("second name");
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    let load = Load::start(&testbed.network.laptop).expect("load");
    load.run_for(200).expect("load");
    assert_eq!(wipe(&testbed, "hard")["ending"], json!(true));
    wait_for(SOON, "the daemon to end", || testbed.daemon.ended().is_some()).expect("ended");
    let status = testbed.daemon.ended().expect("ended");
    assert!(status.success(), "{status}\n{}", testbed.daemon.last_words());
    let left: Vec<_> = fs::read_dir(&state).expect("folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["wiped"]);
    assert_overwritten(&observed);
    for gone in [KEY, DEVICE, TUNNEL] {
        assert!(!contains(&kept, gone), "{gone} is still in the bytes of the store");
    }
    load.run_for(400).expect("load");
    assert_blocked(&testbed.network.laptop);
    assert_blocked(&testbed.network.tv);
    load.stop();
    assert_nothing_leaked(&testbed);

    // A restart does not change the state and reports the reason.
    testbed.daemon.spawn_again().expect("started");
    wait_for(SOON, "the daemon to say that it is blocked", || {
        testbed.api().get("/health").is_ok_and(|health| health["status"] == "blocked")
    })
    .unwrap_or_else(|error| panic!("{error:#}\n{}", testbed.daemon.last_words()));
    let health = testbed.api().get("/health").expect("health");
    assert!(health["reason"].as_str().is_some_and(|reason| reason.contains("wiped")), "{health}");
    let reply = testbed.api().send("GET", "/devices", None).expect("answer");
    assert_eq!((reply.status, &reply.body["error"]["code"]), (503, &json!("not_ready")));
    assert_blocked(&testbed.network.tv);
    assert_nothing_leaked(&testbed);

    // An ordinary initialisation does not lift the state, an explicit one does.
    testbed.daemon.terminate().expect("ended");
    assert!(testbed.daemon.run(&["init"]).is_ok_and(|said| said.contains("nothing was changed")));
    assert!(state.join("wiped").exists());
    testbed.daemon.run(&["init", "--discard-state"]).expect("an empty store");
    testbed.daemon.start().expect("a new gateway");
    assert_eq!(testbed.api().get("/devices").expect("devices"), json!([]));
    assert_direct(&testbed.network.tv);
}

/// Builds a library that sets the synchronisation state of the daemon's clock. The kernel's own state is that of the
/// test machine.
fn clock_library(folder: &Path, synchronised: bool) -> PathBuf {
    let name = if synchronised { "synchronised" } else { "adrift" };
    let (source, library) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    let verdict = if synchronised { "t->status = 0; return 0;" } else { "t->status = 0x40; return 5;" };
    let text = format!("#include <sys/timex.h>\nint adjtimex(struct timex *t) {{ {verdict} }}\n");
    fs::write(&source, text).expect("written");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).output();
    let made = made.expect("a C compiler");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    library
}

/// Ages the check-in as if the machine had been off for two hours without a check-in.
fn age_the_check_in(testbed: &Testbed) {
    let clock = Arc::new(SystemClock);
    let at = clock.now().checked_sub(Duration::from_secs(7200)).expect("a time");
    let store = Store::open(testbed.daemon.state_directory().join("store.redb"), clock).expect("store");
    assert!(store.check_in().expect("read").is_some(), "the switch counts from when it was set");
    store.keep_check_in(CheckIn { at, certain: true }).expect("kept");
}

#[test]
fn a_dead_man_switch_without_a_check_in_wipes_once_the_clock_is_right() {
    let mut testbed = filled_scene();
    testbed.api().put("/system/deadman", &json!({"enabled": true, "hours": 1})).expect("set");
    testbed.daemon.terminate().expect("ended");
    age_the_check_in(&testbed);
    let folder = testbed.daemon.state_directory().with_file_name("clock");
    fs::create_dir(&folder).expect("folder");

    // Overdue, but the clock may be wrong. The test sends no request meanwhile, as that would be a check-in.
    testbed.daemon.set_environment("LD_PRELOAD", clock_library(&folder, false));
    testbed.daemon.spawn().expect("started");
    std::thread::sleep(POLL_INTERVAL + Duration::from_secs(3));
    assert_direct(&testbed.network.tv);
    assert!(testbed.daemon.ended().is_none());
    testbed.daemon.terminate().expect("ended");
    assert!(is_in(&testbed.daemon.state_directory(), DEVICE));

    testbed.network.settle().expect("silence");
    testbed.daemon.set_environment("LD_PRELOAD", clock_library(&folder, true));
    testbed.daemon.spawn().expect("started");
    let gone = || !is_in(&testbed.daemon.state_directory(), DEVICE);
    wait_for(SOON + POLL_INTERVAL, "the switch to wipe", gone)
        .unwrap_or_else(|error| panic!("{error:#}\n{}", testbed.daemon.last_words()));
    wait_for(SOON, "the way to be blocked", || {
        FAMILIES.iter().all(|ipv6| {
            let to = (server(*ipv6), gateway_tests::services::HTTP).into();
            gateway_tests::traffic::ask(&testbed.network.tv, to, crate::e2e::BLOCKED).seen()
                != Some(wan(*ipv6))
        })
    })
    .expect("blocked");
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    assert_blocked(&testbed.network.laptop);
    assert_blocked(&testbed.network.tv);
    assert_nothing_leaked(&testbed);
    for gone in [KEY, TUNNEL] {
        assert!(!is_in(&testbed.daemon.state_directory(), gone), "{gone}");
    }
    let entry = testbed.api().get("/audit").expect("audit")[0].clone();
    assert_eq!((&entry["action"], &entry["actor"]), (&json!("wipe_system"), &json!("system")), "{entry}");
    assert!(only_blocks(&testbed.api().get("/routing/policies").expect("policies")));
}
