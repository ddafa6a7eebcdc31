//! A wall clock that steps back or starts in the past reactivates no expired object.

use std::path::Path;
use std::time::Duration;

use gateway_tests::services::HTTP;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{server, wan};
use gateway_tests::traffic::ask;
use gateway_tests::wait::wait_ok;
use gateway_tests::wall_clock::WallClock;
use redb::ReadableTable;
use serde_json::{Value, json};

use crate::nothing_past::first_start::{assert_nothing_leaked, bind, reboot, wait_until_through};

const TIMEOUT: Duration = Duration::from_millis(700);
const SOON: Duration = Duration::from_secs(20);
const HOUR: i64 = 3600;

fn install_clock(testbed: &mut Testbed) -> WallClock {
    WallClock::install(&mut testbed.daemon).expect("a clock")
}

fn wait_until_direct(testbed: &Testbed) {
    for ipv6 in [false, true] {
        wait_ok(SOON, "the exception to let the laptop out", || {
            let answer = ask(&testbed.network.laptop, (server(ipv6), HTTP).into(), TIMEOUT);
            anyhow::ensure!(answer.seen() == Some(wan(ipv6)), "{answer}");
            Ok(())
        })
        .expect("out");
    }
}

fn wait_until_expired(testbed: &Testbed, exception: &str) -> Value {
    wait_ok(SOON, "the exception to be recorded as ended", || {
        let shown = testbed.api().get(&format!("/exceptions/{exception}"))?;
        anyhow::ensure!(shown["status"] == "expired" && shown["ended_at"].is_string(), "{shown}");
        Ok(shown)
    })
    .unwrap_or_else(|error| panic!("{error:#}\n{}", testbed.daemon.last_words()))
}

/// Asserts that the laptop is in its tunnel or blocked. A WireGuard peer rejects handshakes of the past, so after a
/// step back it may be blocked.
fn assert_protected(testbed: &Testbed, case: &str) {
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    for ipv6 in [false, true] {
        let seen = ask(&testbed.network.laptop, (server(ipv6), HTTP).into(), TIMEOUT).seen();
        assert!(
            seen.is_none_or(|seen| seen == testbed.network.exit_a.address(ipv6)),
            "{case}: seen as {seen:?}"
        );
    }
}

/// Returns the offset of a clock without a battery, which shows 1970.
fn since_1970() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(now.as_secs()).expect("seconds")
}

fn made(testbed: &Testbed) -> String {
    let devices = testbed.api().get("/devices").expect("devices");
    let body = json!({
        "type": "emergency-bypass", "device_id": devices[0]["id"], "allow_direct": true, "duration_min": 60,
    });
    let made = testbed.api().post("/exceptions", &body).expect("exception");
    made["id"].as_str().expect("an id").to_owned()
}

#[test]
fn ended_exception_stays_ended_whatever_the_clock_shows_afterwards() {
    let mut testbed = Testbed::prepare().expect("scene");
    let clock = install_clock(&mut testbed);
    testbed.daemon.start().expect("started");
    bind(&testbed);
    let exception = made(&testbed);
    wait_until_direct(&testbed);
    clock.set(2 * HOUR).expect("set");
    let ended = wait_until_expired(&testbed, &exception);
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();

    let offsets = [
        ("two hours back", -2 * HOUR),
        ("twenty years back", -20 * 365 * 24 * HOUR),
        ("no battery", 60 - since_1970()),
    ];
    for (case, offset) in offsets {
        // Under the running daemon; a change triggers a new compilation.
        clock.set(offset).expect("set");
        let body = json!({"name": format!("after {case}")});
        testbed.api().post("/devices", &body).expect("a change");
        assert_protected(&testbed, case);
        testbed.daemon.kill9().expect("killed");
        testbed.daemon.start().expect("started again");
        assert_protected(&testbed, case);
        testbed.daemon.kill9().expect("killed");
        reboot(&testbed);
        testbed.daemon.start().expect("started again");
        assert_protected(&testbed, case);
        let shown = testbed.api().get(&format!("/exceptions/{exception}")).expect("exception");
        assert_eq!((&shown["status"], &shown["ended_at"]), (&json!("expired"), &ended["ended_at"]), "{case}");
        assert_nothing_leaked(&testbed, case);
    }
}

#[test]
fn exception_that_ends_while_the_daemon_is_dead_does_not_wait_for_the_clock() {
    let mut testbed = Testbed::prepare().expect("scene");
    let clock = install_clock(&mut testbed);
    testbed.daemon.start().expect("started");
    bind(&testbed);
    let exception = made(&testbed);
    wait_until_direct(&testbed);
    testbed.daemon.kill9().expect("killed");
    // The store knows the time of another boot only: the machine was off for an unknown time.
    forget_the_boot(&testbed.daemon.state_directory().join("store.redb"));
    clock.set(-2 * HOUR).expect("set");
    reboot(&testbed);
    testbed.daemon.start().expect("started again");
    wait_until_expired(&testbed, &exception);
    assert_protected(&testbed, "another boot");
    assert_nothing_leaked(&testbed, "another boot");
}

/// Sets the id of another boot in the stored time, as the boot id of the test machine does not change.
fn forget_the_boot(store: &Path) {
    const META_TEXT: redb::TableDefinition<'static, &str, &str> = redb::TableDefinition::new("meta_text");
    let database = redb::Database::open(store).expect("store");
    let txn = database.begin_write().expect("transaction");
    {
        let mut texts = txn.open_table(META_TEXT).expect("table");
        let kept = texts.get("high_time").expect("read").expect("a kept time").value().to_owned();
        let (wall, _) = kept.split_once(' ').expect("a time");
        texts.insert("high_time", format!("{wall} 1000000 another-boot").as_str()).expect("written");
    }
    txn.commit().expect("committed");
}
