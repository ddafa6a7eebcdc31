//! Memory of exports and backups of a configuration of 130 MB: it is not that of the documents. That of the import is printed.

use std::fs;
use std::net::TcpStream;
use std::time::Duration;

use gateway_tests::daemon::API;
use gateway_tests::http::{Response, exchange};
use gateway_tests::testbed::Testbed;
use serde_json::json;

use super::views::memory;

/// Devices and blocked domains of the configuration, and the size of the comment of each domain in bytes.
const OBJECTS: usize = 100_000;
const COMMENT_BYTES: usize = 1000;
/// Size of the export at least: ten times that of a gateway with 10 000 devices.
const MIN_BYTES: usize = 129_000_000;
/// Growth that an export or a backup may cause, in MiB: less than the size of the document. The derivation of the key alone
/// takes 64.
const MOST_MIB: u64 = 100;
/// Timeout of one response on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);
const PASSPHRASE: &str = "correct horse battery";

fn send(testbed: &Testbed, method: &str, path: &str, kind: &str, body: Option<&[u8]>) -> Response {
    let connect = || TcpStream::connect_timeout(&API, TIMEOUT);
    let connection = testbed.network.gateway.within(connect).expect("a connection");
    connection.set_read_timeout(Some(TIMEOUT)).expect("set");
    let full = format!("/api/v1{path}");
    let headers = [("Content-Type", kind), ("X-Passphrase", PASSPHRASE)];
    exchange(&connection, method, &API.to_string(), &full, &headers, body).expect("an answer")
}

/// Runs something, and returns by how much the memory of the daemon grew at most, in MiB.
fn growth(pid: u32, what: &str, run: impl FnOnce()) -> u64 {
    // Resets the peak to the current resident size.
    fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("peak reset");
    let before = memory(pid, "VmRSS").expect("memory");
    run();
    let peak = memory(pid, "VmHWM").expect("memory");
    println!("{what}: {before} MiB before, {peak} MiB at most");
    peak - before
}

#[test]
fn exports_and_backups_take_no_memory_by_their_size() {
    let testbed = Testbed::start().expect("scene");
    let pid = testbed.daemon.pid().expect("a daemon");
    let comment = "x".repeat(COMMENT_BYTES);
    let blocked: Vec<_> =
        (0..OBJECTS).map(|n| json!({"domain": format!("ads-{n}.example"), "comment": comment})).collect();
    let device = |n: usize| {
        let [.., high, middle, low] = n.to_be_bytes();
        json!({"name": format!("device {n}"), "mac": format!("02:00:00:{high:02x}:{middle:02x}:{low:02x}")})
    };
    let devices: Vec<_> = (0..OBJECTS).map(device).collect();
    let resources = json!({"dns_blocklist": blocked, "devices": devices});
    let document =
        json!({"schema": "gateway-config/1", "secrets": false, "resources": resources}).to_string();
    growth(pid, "import in clear", || {
        let answer = send(&testbed, "POST", "/config/import", "application/json", Some(document.as_bytes()));
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    });
    drop(document);
    let passphrase = json!({"passphrase": PASSPHRASE}).to_string();
    let mut sealed = Vec::new();
    let grown = growth(pid, "encrypted export", || {
        let answer = send(
            &testbed,
            "POST",
            "/backup/export-encrypted",
            "application/json",
            Some(passphrase.as_bytes()),
        );
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        sealed = answer.body;
    });
    assert!(sealed.len() > MIN_BYTES, "{} bytes", sealed.len());
    assert!(grown < MOST_MIB, "an export took {grown} MiB");

    let folder = tempfile::tempdir().expect("a folder");
    let target = json!({"type": "local", "path": folder.path()});
    let config = json!({"enabled": true, "passphrase": PASSPHRASE, "target": target});
    testbed.api().put("/backup/config", &config).expect("configured");
    let grown = growth(pid, "backup", || {
        let answer = send(&testbed, "POST", "/backup/run", "application/json", None);
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    });
    let files: Vec<_> = fs::read_dir(folder.path()).expect("the folder").collect();
    let length = files[0].as_ref().expect("a file").metadata().expect("its size").len();
    assert!(files.len() == 1 && length as usize > MIN_BYTES, "{files:?}: {length} bytes");
    assert!(grown < MOST_MIB, "a backup took {grown} MiB");
}
