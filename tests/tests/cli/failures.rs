//! Exit codes and messages of failures.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use std::time::Duration;

use gateway_tests::wait::wait_until;
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::Pid;

use crate::cli::client::{Ran, command, feed, run};
use crate::cli::quiet_scene;

/// Runs the client against an address of this host.
fn at(address: &str, arguments: &[&str]) -> Ran {
    Ran::of(command(arguments).env("GATEWAY_ADDR", address).output().expect("gateway-ctl runs"))
}

/// Starts a server that sends this answer to the first client. Returns its address.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let mut connection = connection;
            let _ = std::io::Read::read(&mut connection, &mut [0; 4096]);
            let head = "Content-Type: application/json\r\nConnection: close\r\nContent-Length";
            let (status, body) = answer.split_once('\n').expect("a status and a body");
            let _ = write!(connection, "HTTP/1.1 {status}\r\n{head}: {}\r\n\r\n{body}", body.len());
        }
    });
    address
}

#[test]
fn a_gateway_that_is_not_there_is_3() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let ran = at(&address, &["status"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    let first = format!("error: cannot reach the gateway at http://{address}: connection refused\n");
    assert!(ran.stderr.starts_with(&first), "{}", ran.stderr);
    assert!(ran.stderr.contains("systemctl status gatewayd"), "{}", ran.stderr);
    assert!(ran.stderr.contains("sudo bpftool net"), "{}", ran.stderr);
}

#[test]
fn the_version_is_reported_without_a_gateway() {
    let ran = at("127.0.0.1:9", &["version"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let version: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(version["client"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(version["server"].is_null());
}

#[test]
fn an_address_that_is_none_is_2() {
    for address in ["ftp://gateway", "gateway:http", "me@gateway", "gateway/api"] {
        let ran = at(address, &["status"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{address}");
        assert!(ran.stderr.contains("It takes host:port"), "{}", ran.stderr);
    }
}

#[test]
fn every_status_has_its_exit_code() {
    let cases = [
        (
            "401 Unauthorized\n{\"error\":{\"code\":\"unauthenticated\",\"message\":\"Sign in.\",\"details\":{}}}",
            4,
        ),
        (
            "403 Forbidden\n{\"error\":{\"code\":\"forbidden\",\"message\":\"No.\",\"details\":{\"role\":\"viewer\",\"required_role\":\"admin\"}}}",
            4,
        ),
        ("404 Not Found\n{\"error\":{\"code\":\"not_found\",\"message\":\"No.\",\"details\":{}}}", 5),
        ("409 Conflict\n{\"error\":{\"code\":\"conflict\",\"message\":\"No.\",\"details\":{}}}", 6),
        (
            "412 Precondition Failed\n{\"error\":{\"code\":\"precondition_failed\",\"message\":\"No.\",\"details\":{}}}",
            6,
        ),
        (
            "429 Too Many Requests\n{\"error\":{\"code\":\"rate_limited\",\"message\":\"No.\",\"details\":{}}}",
            6,
        ),
        (
            "500 Internal Server Error\n{\"error\":{\"code\":\"internal\",\"message\":\"No.\",\"details\":{\"request_id\":\"r1\"}}}",
            1,
        ),
        (
            "503 Service Unavailable\n{\"error\":{\"code\":\"not_ready\",\"message\":\"No.\",\"details\":{}}}",
            1,
        ),
        ("200 OK\n<html>another program</html>", 1),
        ("200 OK\n{\"ok\":true}", 1),
        ("302 Found\n{}", 1),
    ];
    for (answer, code) in cases {
        let ran = at(&answering(answer), &["devices", "delete", "0199f1c2-0000-7000-8000-000000000001"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{answer}\n{}", ran.stderr);
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
    let ran = at(&answering(cases[0].0), &["devices", "delete", "0199f1c2-0000-7000-8000-000000000001"]);
    assert!(ran.stderr.contains("This changes state and the client carries no credential"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("curl -X DELETE -H \"Authorization: Bearer $KEY\" http://127.0.0.1:"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_bad_answer_of_a_check_is_7_and_is_printed() {
    let leaking = answering("200 OK\n{\"data\":{\"verdict\":\"fail\",\"results\":[]}}");
    let ran = at(&leaking, &["leak-check"]);
    assert_eq!(ran.code, Some(7), "{}", ran.stderr);
    assert!(ran.stdout.contains("\"verdict\": \"fail\""), "{}", ran.stdout);
}

#[test]
fn a_wrong_body_is_found_before_anything_is_sent() {
    let testbed = quiet_scene();
    for (arguments, input, message) in [
        (&["devices", "create", "{\"name\": }"][..], "", "error: json:1:10: not valid JSON"),
        (&["devices", "create"], "{\n  \"name\": \"x\",\n}", "error: standard input:3:1: not valid JSON"),
        (&["devices", "create", "-"], "", "error: standard input is empty"),
        (
            &["devices", "create", "no-such-file.json"],
            "",
            "error: no-such-file.json is no file, and no JSON either",
        ),
        (&["backup", "import", "-"], "{}", "error: the file must be named"),
        (&["policies"], "", "error: unrecognized subcommand 'policies'"),
    ] {
        let ran = feed(testbed, arguments, input);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ran.stderr.starts_with(message), "{arguments:?}: {}", ran.stderr);
    }
    let audit = run(testbed, &["audit"]);
    assert!(!audit.stdout.contains("create_device"), "{}", audit.stdout);
}

#[test]
fn ctrl_c_ends_a_request_by_the_signal() {
    // The listener accepts connections and never answers.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let mut client = command(&["status"]);
    // If the tests run in the background they may ignore the signal, and their children inherit that.
    // SAFETY: the closure makes one async-signal-safe system call.
    unsafe { client.pre_exec(|| signal(Signal::SIGINT, SigHandler::SigDfl).map(drop).map_err(Into::into)) };
    let mut child = client.env("GATEWAY_ADDR", &address).stderr(Stdio::null()).spawn().expect("it runs");
    let _connection = listener.accept().expect("the client connects");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("a signal");
    let status =
        wait_until(Duration::from_secs(5), "the client to end", || child.try_wait().expect("a child"));
    // A shell shows 128 + 2 = 130.
    assert_eq!(status.expect("it ends").signal(), Some(Signal::SIGINT as i32));
}
