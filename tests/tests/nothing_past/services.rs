//! Every service of the daemon panics once by an injected fault: the panic is reported, the service restarts, and
//! nothing leaks meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::traffic::Load;
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::{Value, json};

use crate::nothing_past::FAMILIES;
use crate::nothing_past::doors::{assert_nothing_leaked, bind_laptop, wait_until_through};

const SOON: Duration = Duration::from_secs(30);
/// Maximum time from the panic of a service to its report and restart.
const NOTICED: Duration = Duration::from_secs(5);
/// Services whose end terminates the daemon; the service manager restarts it.
const VITAL: [&str; 4] = ["reconcile_loop", "tunnel_watcher", "proxy_watcher", "certificate_files"];
/// Lower bound of the number of services.
const LEAST: usize = 25;

fn tasks(testbed: &Testbed) -> anyhow::Result<BTreeMap<String, Value>> {
    let observer = testbed.api().get("/observer")?;
    let rows = observer.as_array().into_iter().flatten();
    Ok(rows.map(|row| (row["subsystem"].as_str().unwrap_or_default().to_owned(), row.clone())).collect())
}

/// Returns a daemon with fault injection, and a laptop bound to a tunnel.
fn faulty() -> (Testbed, PathBuf) {
    let mut testbed = Testbed::prepare().expect("scene");
    let faults = testbed.daemon.state_directory().with_file_name("faults");
    fs::create_dir_all(&faults).expect("a folder");
    testbed.daemon.set_environment("GATEWAY_FAULTS", faults.clone());
    testbed.daemon.start().expect("started");
    bind_laptop(&testbed);
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    (testbed, faults)
}

#[test]
fn service_that_panics_is_seen_and_started_again_while_nothing_leaks() {
    let (testbed, faults) = faulty();
    let before = tasks(&testbed).expect("tasks");
    let status = testbed.api().get("/status").expect("status");
    assert_eq!(status.get("failed_services"), None, "{status}");
    let load = Load::start(&testbed.network.laptop).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(testbed.network.exit_a.address(ipv6), SOON).expect("load through exit A");
    }
    let names: Vec<&String> = before.keys().filter(|name| !VITAL.contains(&name.as_str())).collect();
    for name in &names {
        fs::write(faults.join(name), "").expect("a fault");
    }
    // Health rows of the reconcile loop and of the store have no task that would take a fault.
    let hit = |name: &&&String| !faults.join(name).exists();
    wait_ok(NOTICED, "all services to be seen as failed and started again", || {
        let now = tasks(&testbed)?;
        let hit: Vec<_> = names.iter().filter(hit).collect();
        let missed: Vec<_> = hit
            .iter()
            .filter(|name| !was_restarted(&before[name.as_str()], now.get(name.as_str())))
            .collect();
        anyhow::ensure!(hit.len() >= LEAST && missed.is_empty(), "{missed:?} of {hit:?}");
        Ok(())
    })
    .unwrap_or_else(|error| panic!("{error:#}\n{}", testbed.daemon.last_words()));
    for expected in ["backups", "commit_confirm", "dead_man_switch", "dns_updates", "bridge_changes"] {
        assert!(names.iter().any(|name| name.as_str() == expected), "there is no service {expected}");
        assert!(!faults.join(expected).exists(), "{expected} was not hit");
    }
    let health = testbed.api().get("/health").expect("health");
    assert_eq!(
        (&health["status"], &health["cause"]),
        (&json!("degraded"), &json!("task_failed")),
        "{health}"
    );
    let status = testbed.api().get("/status").expect("status");
    let failed = status["failed_services"].as_array().expect("failed services");
    let backups = failed.iter().find(|service| service["name"] == "backups").expect("the failed backups");
    assert!(backups["failure"].as_str().is_some_and(|text| text.contains("injected")), "{backups}");
    assert!(backups["since"].is_string(), "{backups}");
    load.run_for(200).expect("load");
    load.stop();
    assert_nothing_leaked(&testbed);
    // A change after the panics reaches the kernel.
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    let tv = testbed.device(&testbed.network.tv).expect("device");
    testbed.policy(&policy("tv", 20, ("device", &tv), &["wg-a"])).expect("policy");
    wait_until_through(&testbed.network.tv, &testbed.network.exit_a);
    assert_nothing_leaked(&testbed);
}

#[test]
fn daemon_ends_when_a_service_dies_that_it_cannot_do_without_and_leaks_nothing() {
    let (mut testbed, faults) = faulty();
    let load = Load::start(&testbed.network.laptop).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(testbed.network.exit_a.address(ipv6), SOON).expect("load through exit A");
    }
    for name in VITAL {
        fs::write(faults.join(name), "").expect("a fault");
        wait_for(NOTICED, "the daemon to end", || testbed.daemon.ended().is_some()).expect(name);
        assert!(testbed.daemon.last_words().contains(name), "{}", testbed.daemon.last_words());
        load.run_for(100).expect("load");
        testbed.daemon.start_again().expect("started again");
        wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    }
    load.stop();
    assert_nothing_leaked(&testbed);
}

/// Reports whether a task is shown as failed by the fault and has restarted once more.
fn was_restarted(before: &Value, now: Option<&Value>) -> bool {
    let Some(now) = now else { return false };
    let failed =
        now["state"] == "failed" && now["message"].as_str().is_some_and(|text| text.contains("injected"));
    failed && now["checks"].as_u64() > before["checks"].as_u64()
}
