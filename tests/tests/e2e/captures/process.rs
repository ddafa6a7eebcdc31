//! The process of a capture: it has no rights, and its death ends its capture and nothing else.

use std::fs;

use gateway_tests::testbed::Testbed;
use gateway_tests::topology::server;
use gateway_tests::traffic::ping;
use gateway_tests::wait::wait_until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{LAN, detail, start, stop, wait_for_packets};
use crate::e2e::{SOON, assert_direct};

/// Returns the processes of captures of this daemon.
fn processes(testbed: &Testbed) -> Vec<i32> {
    let daemon = testbed.daemon.pid().expect("a daemon");
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_one = |pid: &i32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let parent = status(*pid, "PPid:").and_then(|parent| parent.parse().ok());
        line.ends_with("\0capture\0") && parent == Some(daemon)
    };
    pids.filter(is_one).collect()
}

/// Returns a field of the status of a process.
fn status(pid: i32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix(field))?.trim().to_owned())
}

#[test]
fn process_of_a_capture_has_no_rights() {
    let testbed = Testbed::start().expect("scene");
    let id = start(&testbed, &json!({"interface": LAN, "filter": "icmp"}));
    let [pid] = processes(&testbed)[..] else { panic!("{:?}", processes(&testbed)) };
    for field in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
        assert_eq!(status(pid, field).as_deref(), Some("0000000000000000"), "{field}");
    }
    assert_eq!(status(pid, "NoNewPrivs:").as_deref(), Some("1"));
    // Filter mode, with the filters of the network and of all system calls.
    assert_eq!(status(pid, "Seccomp:").as_deref(), Some("2"));
    assert_eq!(status(pid, "Seccomp_filters:").as_deref(), Some("2"));
    stop(&testbed, &id);
    wait_until(SOON, "the process to be gone", || processes(&testbed).is_empty().then_some(()))
        .expect("gone");
}

#[test]
fn death_of_the_process_ends_its_capture_only() {
    let testbed = Testbed::start().expect("scene");
    let laptop = &testbed.network.laptop;
    let killed = start(&testbed, &json!({"interface": LAN, "filter": "icmp"}));
    let [pid] = processes(&testbed)[..] else { panic!("{:?}", processes(&testbed)) };
    let other = start(&testbed, &json!({"interface": LAN, "filter": "icmp"}));
    assert!(ping(laptop, server(false)), "an answer");
    wait_for_packets(&testbed, &killed, "a packet", |_| true);
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("killed");
    let ended = wait_until(SOON, "the end of the capture", || {
        Some(detail(&testbed, &killed)).filter(|capture| capture["state"] == "error")
    });
    let ended = ended.expect("an end");
    assert_eq!(ended["error"], "the process of the capture was ended by signal 9", "{ended}");
    // What it had captured is kept.
    assert!(ended["summaries"].as_array().is_some_and(|list| !list.is_empty()), "{ended}");
    assert_eq!(super::read_by_tshark(&testbed, &killed, &["frame.number"]).len(), ended["packets"]);

    assert_direct(laptop);
    let before = detail(&testbed, &other)["packets"].clone();
    assert!(ping(laptop, server(false)), "an answer");
    wait_for_packets(&testbed, &other, "further packets", |packet: &Value| {
        packet["no"].as_u64() > before.as_u64()
    });
    assert_eq!(stop(&testbed, &other)["state"], "stopped");
    let health = testbed.api().get("/health").expect("health");
    assert_eq!(health["status"], "ok", "{health}");
}
