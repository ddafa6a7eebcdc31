//! The real daemon, its clock, and `kill -9`.

use std::time::Duration;

use gateway_tests::daemon::Daemon;
use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::backup::SOON;
use crate::backup::every::backups;
use crate::backup::testbed::PASSPHRASE;

/// Timeout for a run by the schedule, whose shortest interval is a minute.
const A_MINUTE: Duration = Duration::from_secs(90);

#[test]
fn the_daemon_makes_a_backup_every_minute_and_goes_on_after_a_kill() {
    let prefix = Prefix::unique().expect("root");
    let gateway = Namespace::create(&prefix, "gateway").expect("a namespace");
    for name in ["eth0", "eth1"] {
        gateway.ip(&format!("link add {name} type veth peer name p{name}")).expect("links");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut daemon = Daemon::prepare_in(&gateway, &prefix).expect("a configuration");
    daemon.start().unwrap_or_else(|error| panic!("{error:#}\n{}", daemon.last_words()));
    let config = json!({"enabled": true, "schedule": "* * * * *", "passphrase": PASSPHRASE,
        "target": {"type": "local", "path": folder.path()}});
    daemon.api().put("/backup/config", &config).expect("set");
    let inside = json!({"target": {"path": daemon.state_directory()}});
    assert_eq!(daemon.api().send("PUT", "/backup/config", Some(&inside)).expect("an answer").status, 422);
    wait_ok(SOON, "the target to be looked at", || {
        let status = daemon.api().get("/backup/status")?;
        anyhow::ensure!(status["target"]["reachable"] == true, "{status}");
        Ok(())
    })
    .expect("looked at");
    let made = |daemon: &Daemon, count: usize| {
        wait_ok(A_MINUTE, "a backup by the schedule", || {
            let status = daemon.api().get("/backup/status")?;
            anyhow::ensure!(status["history"].as_array().is_some_and(|runs| runs.len() >= count), "{status}");
            anyhow::ensure!(status["last_result"] == "ok", "{status}");
            Ok(status)
        })
        .unwrap_or_else(|error| panic!("{error:#}\n{}", daemon.last_words()))
    };
    let status = made(&daemon, 1);
    assert_eq!(status["history"][0]["trigger"], "schedule");
    daemon.kill9().expect("killed");
    daemon.start().unwrap_or_else(|error| panic!("{error:#}\n{}", daemon.last_words()));
    let after = daemon.api().get("/backup/status").expect("a status");
    assert!(after["history"].as_array().expect("a list").contains(&status["history"][0]), "{after}");
    made(&daemon, 2);
    assert!(backups(folder.path()).len() >= 2);
    assert!(!daemon.last_words().contains(PASSPHRASE));
}
