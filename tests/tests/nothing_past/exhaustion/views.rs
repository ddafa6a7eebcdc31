//! Memory of large views: concurrent readers share one computation, and its memory returns to the kernel.

use std::fs;
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gateway_tests::daemon::API;
use gateway_tests::http::exchange;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

const POLICIES: u32 = 5000;
const READERS: usize = 200;
/// Maximum growth that readers may cause, and maximum remainder.
const MOST_MIB: u64 = 200;
const REST_MIB: u64 = 64;
/// Timeout of one response on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(240);
const SETTLED: Duration = Duration::from_secs(60);

/// Returns a value of `/proc/PID/status` in MiB.
pub(super) fn memory(pid: u32, key: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("status of the daemon")?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let kib = line.and_then(|rest| rest.split_whitespace().next()).context("no such value")?;
    Ok(kib.parse::<u64>()? / 1024)
}

fn get(testbed: &Testbed, path: &str, headers: &[(&str, &str)]) -> Result<(u16, Vec<u8>, Option<String>)> {
    let connection = testbed.network.gateway.within(|| TcpStream::connect_timeout(&API, TIMEOUT))?;
    connection.set_read_timeout(Some(TIMEOUT))?;
    let full = format!("/api/v1{path}");
    let answer = exchange(&connection, "GET", &API.to_string(), &full, headers, None)?;
    let tag = answer.header("etag").map(str::to_owned);
    Ok((answer.status, answer.body, tag))
}

fn store_policies(testbed: &Testbed, tunnel: &str) {
    let numbers: Vec<u32> = (0..POLICIES).collect();
    for part in numbers.chunks(1000) {
        let policies: Vec<Value> = part
            .iter()
            .map(|n| {
                let source = format!("10.{}.{}.0/28", n / 250, n % 250);
                policy(&format!("policy-{n}"), n + 10, ("subnet", &source), &[tunnel])
            })
            .collect();
        let plan = json!({"resources": {"routing_policies": policies}});
        let result = testbed.api().post("/apply", &plan).expect("plan applied");
        assert_eq!(result["applied"], true, "{result}");
    }
}

#[test]
fn two_hundred_readers_of_the_leak_matrix_share_one_computation() {
    let testbed = Testbed::start().expect("scene");
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    store_policies(&testbed, "wg-a");
    let pid = testbed.daemon.pid().expect("a daemon");
    let base = memory(pid, "VmRSS").expect("memory");
    for path in ["/policy/leak-matrix", "/routing/policies"] {
        // Resets the peak to the current resident size.
        fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("peak reset");
        let sizes: Vec<usize> = std::thread::scope(|scope| {
            let reader = || {
                let (status, body, _) = get(&testbed, path, &[]).expect("an answer");
                // A list is computed for each reader. Readers that would wait too long get a 503 response.
                let refused = status == 503 && path != "/policy/leak-matrix";
                assert!(status == 200 || refused, "{status}: {}", String::from_utf8_lossy(&body));
                (status == 200).then_some(body.len())
            };
            let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(reader)).collect();
            readers.into_iter().filter_map(|reader| reader.join().expect("a reader")).collect()
        });
        assert!(!sizes.is_empty(), "{path}: every reader was refused");
        assert!(sizes.iter().all(|size| *size > 1 << 20), "{path} is not large: {sizes:?}");
        let peak = memory(pid, "VmHWM").expect("memory");
        println!("{path}: {base} MiB before, {peak} MiB at most, {} bytes", sizes[0]);
        assert!(peak < base + MOST_MIB, "{path}: {base} MiB before, {peak} MiB at most");
        wait_ok(SETTLED, &format!("memory after {path} to go back"), || {
            let now = memory(pid, "VmRSS")?;
            ensure!(now < base + REST_MIB, "{base} MiB before, {now} MiB now");
            Ok(())
        })
        .expect("given back");
    }
}

#[test]
fn a_reader_that_has_the_leak_matrix_is_not_sent_it_again() {
    let testbed = Testbed::start().expect("scene");
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("subnet", "10.0.0.0/24"), &["wg-a"])).expect("policy");
    let (status, _, tag) = get(&testbed, "/policy/leak-matrix", &[]).expect("an answer");
    let tag = tag.expect("a tag");
    assert_eq!(status, 200);
    let (status, body, _) =
        get(&testbed, "/policy/leak-matrix", &[("If-None-Match", &tag)]).expect("an answer");
    assert_eq!((status, body.len()), (304, 0));
    testbed.policy(&policy("another", 11, ("subnet", "10.0.1.0/24"), &["wg-a"])).expect("policy");
    let (status, _, other) =
        get(&testbed, "/policy/leak-matrix", &[("If-None-Match", &tag)]).expect("an answer");
    assert_eq!(status, 200);
    assert_ne!(other, Some(tag), "another policy, another matrix");
}
