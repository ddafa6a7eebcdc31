//! A wall clock that steps back or starts in the past reactivates no expired object.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gateway_tests::services::HTTP;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{server, wan};
use gateway_tests::traffic::ask;
use gateway_tests::wait::wait_ok;
use redb::ReadableTable;
use serde_json::{Value, json};

use crate::nothing_past::first_start::{assert_nothing_leaked, bind, reboot, wait_until_through};

const TIMEOUT: Duration = Duration::from_millis(700);
const SOON: Duration = Duration::from_secs(20);
const HOUR: i64 = 3600;

/// The daemon's wall clock: the kernel's clock plus an offset in seconds, which the test changes at run time.
struct WallClock {
    offset: PathBuf,
}

const LIBRARY: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static volatile long long *offset;

__attribute__((constructor)) static void map_offset(void) {
    int file = open(getenv("CLOCK_OFFSET"), O_RDONLY | O_CLOEXEC);
    void *at = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (file < 0 || at == MAP_FAILED) abort();
    offset = at;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME && offset) time->tv_sec += *offset;
    return result;
}

/* No source of time vouches for the clock. */
int adjtimex(struct timex *state) { state->status = STA_UNSYNC; return TIME_ERROR; }
"#;

impl WallClock {
    /// Installs this clock in the daemon, effective from its next start.
    fn install(testbed: &mut Testbed) -> WallClock {
        let folder = testbed.daemon.state_directory().with_file_name("clock");
        fs::create_dir(&folder).expect("folder");
        let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
        fs::write(&source, LIBRARY).expect("written");
        let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).output();
        let made = made.expect("a C compiler");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let clock = WallClock { offset: folder.join("offset") };
        clock.set(0);
        testbed.daemon.set_environment("CLOCK_OFFSET", clock.offset.clone());
        testbed.daemon.set_environment("LD_PRELOAD", library);
        clock
    }

    fn set(&self, seconds: i64) {
        // Written in place: the daemon has mapped the file.
        let file = fs::OpenOptions::new().create(true).write(true).truncate(false).open(&self.offset);
        write_at_start(&file.expect("offset"), &seconds.to_ne_bytes());
    }
}

fn write_at_start(file: &fs::File, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    file.write_all_at(bytes, 0).expect("written");
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
    let clock = WallClock::install(&mut testbed);
    testbed.daemon.start().expect("started");
    bind(&testbed);
    let exception = made(&testbed);
    wait_until_direct(&testbed);
    clock.set(2 * HOUR);
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
        clock.set(offset);
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
    let clock = WallClock::install(&mut testbed);
    testbed.daemon.start().expect("started");
    bind(&testbed);
    let exception = made(&testbed);
    wait_until_direct(&testbed);
    testbed.daemon.kill9().expect("killed");
    // The store knows the time of another boot only: the machine was off for an unknown time.
    forget_the_boot(&testbed.daemon.state_directory().join("store.redb"));
    clock.set(-2 * HOUR);
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
