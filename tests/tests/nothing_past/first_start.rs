//! A missing, damaged, older or newer store across a reboot.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use gateway_tests::netns::remove_pins;
use gateway_tests::services::HTTP;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Host, server, wan};
use gateway_tests::traffic::{Load, ask, ask_server};
use gateway_tests::wait::{wait_for, wait_ok};
use gateway_tests::wireguard::Exit;
use serde_json::{Value, json};

const FAMILIES: [bool; 2] = [false, true];
/// Timeout of a blocked connection.
const BLOCKED: Duration = Duration::from_millis(700);
/// Timeout for the daemon to detect an event.
const SOON: Duration = Duration::from_secs(20);
const META: redb::TableDefinition<'static, &str, u64> = redb::TableDefinition::new("meta");

/// Returns a laptop bound to exit A and a tv that may leave directly.
pub(super) fn bound_scene() -> Testbed {
    let testbed = Testbed::start().expect("scene");
    bind(&testbed);
    testbed
}

/// Binds the laptop of a running gateway to exit A.
pub(super) fn bind(testbed: &Testbed) {
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    assert_the_tap_sees(testbed);
    wait_until_through(&network.laptop, &network.exit_a);
}

/// Asserts that the tap counts direct traffic. Otherwise a clean count would prove nothing.
fn assert_the_tap_sees(testbed: &Testbed) {
    testbed.network.tap.reset();
    assert_direct(&testbed.network.tv);
    let counts = testbed.network.tap.counts();
    assert!(counts.leaked.v4 > 0 && counts.leaked.v6 > 0, "{counts}");
    testbed.network.settle().expect("silence on the LAN");
    testbed.network.tap.reset();
}

pub(super) fn assert_direct(host: &Host) {
    for ipv6 in FAMILIES {
        let answer = ask_server(host, server(ipv6));
        assert_eq!(answer.seen(), Some(wan(ipv6)), "{} at the server: {answer}", host.name);
    }
}

pub(super) fn assert_blocked(host: &Host, case: &str) {
    for ipv6 in FAMILIES {
        let answer = ask(host, (server(ipv6), HTTP).into(), BLOCKED);
        assert_eq!(answer.seen(), None, "{case}: {} reached the server as {answer}", host.name);
    }
}

pub(super) fn wait_until_through(host: &Host, exit: &Exit) {
    for ipv6 in FAMILIES {
        wait_ok(SOON, &format!("{} to get through {}", host.name, exit.place.label), || {
            let answer = ask(host, (server(ipv6), HTTP).into(), BLOCKED);
            anyhow::ensure!(answer.seen() == Some(exit.address(ipv6)), "{answer}");
            Ok(())
        })
        .expect("the tunnel carries it");
    }
}

pub(super) fn assert_nothing_leaked(testbed: &Testbed, case: &str) {
    testbed.network.settle().expect("silence on the LAN");
    let counts = testbed.network.tap.counts();
    assert!(counts.is_clean(), "{case}: {counts}");
}

/// Simulates a reboot: removes programs, rules, routes and tables as the kernel does, then runs the commands before the
/// daemon. The host forwards and masquerades by itself: the worst case for an unprotected interval.
pub(super) fn reboot(testbed: &Testbed) {
    let gateway = &testbed.network.gateway;
    remove_pins(testbed.daemon.pin_directory());
    gateway.nft("flush ruleset\n").expect("rule set flushed");
    for family in ["-4", "-6"] {
        gateway.run("ip", &[family, "rule", "flush"]).expect("rules flushed");
        gateway.run("ip", &[family, "rule", "add", "priority", "32766", "table", "main"]).expect("main rule");
    }
    testbed.daemon.run(&["guard"]).expect("guard");
    testbed.network.forward_plainly().expect("forwarding");
    // Enabling forwarding removes the IPv6 default route.
    gateway.ip("route replace default via 2001:db8:113::1").expect("default route");
    testbed.network.settle().expect("silence on the LAN");
    testbed.network.tap.reset();
}

fn health(testbed: &Testbed) -> Value {
    testbed.api().get("/health").unwrap_or(Value::Null)
}

fn wait_until_blocked(testbed: &Testbed, cause: &str, case: &str) -> Value {
    wait_ok(SOON, "the daemon to report that it blocks", || {
        let health = health(testbed);
        anyhow::ensure!(health["status"] == "blocked" && health["cause"] == cause, "{health}");
        Ok(health)
    })
    .unwrap_or_else(|error| panic!("{case}: {error:#}\n{}", testbed.daemon.last_words()))
}

/// Expected result of a start.
enum Outcome {
    /// The laptop is in its tunnel.
    Tunnel,
    /// The gateway forwards nothing, for this cause.
    Blocked(&'static str),
}

type Case = (&'static str, fn(&Path, &Path), Outcome);

/// Each case damages the state folder or the marker.
const CASES: &[Case] = &[
    ("intact", |_, _| {}, Outcome::Tunnel),
    ("missing file", |state, _| remove(&state.join("store.redb")), Outcome::Blocked("store_missing")),
    ("empty folder", |state, _| empty(state), Outcome::Blocked("store_missing")),
    ("missing folder", |state, _| remove(state), Outcome::Blocked("store_missing")),
    ("truncated", |state, _| truncate(state, 2), Outcome::Blocked("store_unusable")),
    ("empty file", |state, _| truncate(state, u64::MAX), Outcome::Blocked("store_unusable")),
    ("damaged header", |state, _| overwrite(state, 0..512), Outcome::Blocked("store_unusable")),
    (
        "garbage",
        |state, _| fs::write(store(state), b"no database").expect("written"),
        Outcome::Blocked("store_unusable"),
    ),
    ("older schema", |state, _| set_schema(state, 1), Outcome::Tunnel),
    ("newer schema", |state, _| set_schema(state, 99), Outcome::Blocked("store_unusable")),
    // The daemon runs as root, which permissions do not stop: it must not treat an unreadable file as a missing one.
    ("no permissions", |state, _| forbid(state), Outcome::Tunnel),
    ("directory in its place", |state, _| replace_by_folder(state), Outcome::Blocked("store_unusable")),
    ("dangling link in its place", |state, _| replace_by_link(state), Outcome::Blocked("store_unusable")),
    ("marker missing", |_, marker| remove(marker), Outcome::Tunnel),
    (
        "store and marker missing",
        |state, marker| {
            empty(state);
            remove(marker);
        },
        Outcome::Blocked("not_initialised"),
    ),
];

fn store(state: &Path) -> std::path::PathBuf {
    state.join("store.redb")
}

fn remove(path: &Path) {
    let done = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    done.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn empty(state: &Path) {
    remove(state);
    fs::create_dir(state).expect("folder");
}

fn truncate(state: &Path, divisor: u64) {
    let file = fs::OpenOptions::new().write(true).open(store(state)).expect("store");
    let length = file.metadata().expect("length").len();
    file.set_len(length / divisor).expect("truncated");
}

fn overwrite(state: &Path, bytes: std::ops::Range<usize>) {
    let mut content = fs::read(store(state)).expect("store");
    content[bytes].fill(0x5a);
    fs::write(store(state), content).expect("written");
}

fn set_schema(state: &Path, schema: u64) {
    let database = redb::Database::open(store(state)).expect("store");
    let txn = database.begin_write().expect("transaction");
    txn.open_table(META).expect("table").insert("schema", schema).expect("written");
    txn.commit().expect("committed");
}

fn forbid(state: &Path) {
    fs::set_permissions(store(state), fs::Permissions::from_mode(0o0)).expect("permissions");
}

fn replace_by_folder(state: &Path) {
    remove(&store(state));
    fs::create_dir(store(state)).expect("folder");
}

fn replace_by_link(state: &Path) {
    remove(&store(state));
    std::os::unix::fs::symlink("/nonexistent/store.redb", store(state)).expect("link");
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").args([from, to]).status().expect("cp");
    assert!(done.success());
}

#[test]
fn no_state_of_the_store_lets_a_bound_device_out_after_a_reboot() {
    let mut testbed = bound_scene();
    testbed.daemon.terminate().expect("ended");
    let (state, marker) = (testbed.daemon.state_directory(), testbed.daemon.marker());
    let kept = state.with_file_name("kept");
    copy(&state, &kept);
    for (case, spoil, outcome) in CASES {
        if state.exists() {
            remove(&state);
        }
        copy(&kept, &state);
        fs::write(&marker, "initialised").expect("marker");
        spoil(&state, &marker);
        reboot(&testbed);
        let load = Load::start(&testbed.network.laptop).expect("load");
        load.run_for(100).expect("load");
        testbed.daemon.spawn().expect("started");
        match outcome {
            Outcome::Tunnel => {
                testbed.daemon.wait_until_well().unwrap_or_else(|error| panic!("{case}: {error:#}"));
                wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
                assert!(marker.exists(), "{case}: there is no marker");
            }
            Outcome::Blocked(cause) => {
                wait_until_blocked(&testbed, cause, case);
                load.run_for(200).expect("load");
                assert_blocked(&testbed.network.laptop, case);
                assert_blocked(&testbed.network.tv, case);
                let refused = testbed.api().send("GET", "/status", None).expect("answer");
                assert_eq!(refused.status, 503, "{case}: {}", refused.body);
                assert_eq!(refused.body["error"]["details"]["cause"], *cause, "{case}: {}", refused.body);
            }
        }
        load.stop();
        assert_nothing_leaked(&testbed, case);
        testbed.daemon.terminate().unwrap_or_else(|error| panic!("{case}: {error:#}"));
    }
}

#[test]
fn a_gateway_that_was_never_initialised_forwards_nothing_until_it_is() {
    let mut testbed = Testbed::prepare().expect("scene");
    testbed.daemon.leave_uninitialised();
    reboot(&testbed);
    testbed.daemon.spawn().expect("started");
    let health = wait_until_blocked(&testbed, "not_initialised", "first start");
    assert!(health["reason"].as_str().is_some_and(|reason| reason.contains("gatewayd init")), "{health}");
    assert_blocked(&testbed.network.tv, "first start");
    assert_nothing_leaked(&testbed, "first start");
    assert!(!testbed.daemon.state_directory().join("store.redb").exists(), "a store was made unasked");
    testbed.daemon.initialise().expect("initialised");
    wait_for(SOON, "the daemon to end for its next start", || testbed.daemon.ended().is_some())
        .expect("ended");
    testbed.daemon.start_again().expect("started");
    assert_direct(&testbed.network.tv);
}

#[test]
fn each_start_without_a_store_blocks_and_keeps_running() {
    const STARTS: usize = 6;
    let mut testbed = Testbed::prepare().expect("scene");
    testbed.daemon.leave_uninitialised();
    for start in 0..STARTS {
        // As after boot: the maps are not pinned yet.
        remove_pins(testbed.daemon.pin_directory());
        testbed.daemon.spawn().expect("started");
        wait_until_blocked(&testbed, "not_initialised", &format!("start {start}"));
        testbed.daemon.terminate().unwrap_or_else(|error| panic!("start {start}: {error:#}"));
    }
}

#[test]
fn a_state_folder_that_is_mounted_late_is_waited_for_and_used() {
    let mut testbed = bound_scene();
    testbed.daemon.terminate().expect("ended");
    let state = testbed.daemon.state_directory();
    let away = state.with_file_name("away");
    fs::rename(&state, &away).expect("moved");
    fs::create_dir(&state).expect("the mount point");
    reboot(&testbed);
    let load = Load::start(&testbed.network.laptop).expect("load");
    testbed.daemon.spawn().expect("started");
    wait_until_blocked(&testbed, "store_missing", "mounted late");
    load.run_for(200).expect("load");
    fs::remove_dir_all(&state).expect("removed");
    fs::rename(&away, &state).expect("mounted");
    wait_for(SOON, "the daemon to end for its next start", || testbed.daemon.ended().is_some())
        .expect("ended");
    testbed.daemon.start_again().expect("started");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    load.stop();
    assert_nothing_leaked(&testbed, "mounted late");
}

#[test]
fn a_lost_store_is_reported_to_the_service_manager_and_replaced_only_on_demand() {
    let mut testbed = bound_scene();
    testbed.daemon.terminate().expect("ended");
    empty(&testbed.daemon.state_directory());
    reboot(&testbed);
    let socket = testbed.daemon.state_directory().with_file_name("notify");
    let manager = UnixDatagram::bind(&socket).expect("socket");
    manager.set_read_timeout(Some(SOON)).expect("time-out");
    testbed.daemon.set_environment("NOTIFY_SOCKET", socket);
    testbed.daemon.spawn().expect("started");
    let reported = wait_ok(SOON, "the status of the service", || {
        let mut buffer = [0; 4096];
        let length = manager.recv(&mut buffer)?;
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        anyhow::ensure!(text.contains("STATUS=BLOCKED"), "{text}");
        Ok(text)
    })
    .expect("reported");
    assert!(reported.contains("--discard-state"), "{reported}");
    let refused = testbed.daemon.run(&["init"]).expect_err("refused").to_string();
    assert!(refused.contains("--discard-state"), "{refused}");
    testbed.daemon.run(&["init", "--discard-state"]).expect("an explicit act");
    wait_for(SOON, "the daemon to end for its next start", || testbed.daemon.ended().is_some())
        .expect("ended");
    testbed.daemon.start_again().expect("started");
    assert_eq!(testbed.api().get("/devices").expect("devices"), json!([]));
    assert_direct(&testbed.network.tv);
}
