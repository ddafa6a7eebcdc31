//! Clients that are slow, silent, too numerous, or use the wrong protocol.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use gateway_api::serve::Limits;
use gateway_ctl::tls::Origin;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::tls::SOON;
use crate::tls::peers::{classic, https, session};
use crate::tls::testbed::{Testbed, json_of};

/// Limit that is short enough to wait for, long enough for a busy machine to answer in.
const TIMEOUT: Duration = Duration::from_millis(1500);

fn impatient() -> Limits {
    Limits { handshake: TIMEOUT, headers: TIMEOUT, idle: TIMEOUT, ..Limits::default() }
}

fn secure(limits: Limits) -> Testbed {
    Testbed::with(limits, |folder| Some(Origin::SelfSigned { folder: folder.join("tls") }))
}

/// Reads until the server ends the connection. Returns the duration.
fn wait_until_cut(stream: &mut impl Read) -> Duration {
    let begun = Instant::now();
    let mut bytes = [0; 1024];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return begun.elapsed(),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("the connection still stands after {:?}", begun.elapsed())
            }
            Err(_) => return begun.elapsed(),
        }
    }
}

#[test]
fn a_client_that_never_begins_its_handshake_is_cut() {
    let testbed = secure(impatient());
    let mut silent = testbed.connect();
    let mut halting = testbed.connect();
    // Beginning of a record that never ends.
    halting.write_all(&[0x16, 3, 1, 2, 0, 1]).expect("sent");
    assert_eq!(testbed.request("GET", "/version", None).status, 200);
    for stream in [&mut silent, &mut halting] {
        assert!(wait_until_cut(stream) < SOON);
    }
}

#[test]
fn headers_that_trickle_in_are_cut_while_others_are_served() {
    for testbed in [secure(impatient()), Testbed::with(impatient(), |_| None)] {
        let plain = testbed.tls().certificate().is_none();
        let begun = Instant::now();
        let trickle = |stream: &mut dyn Write| {
            // One header at a time without end; each arrives well within the limit.
            stream.write_all(b"GET /api/v1/version HTTP/1.1\r\nHost: localhost\r\n")?;
            loop {
                std::thread::sleep(TIMEOUT / 10);
                stream.write_all(b"X-More: x\r\n")?;
                stream.flush()?;
                assert!(begun.elapsed() < SOON, "the connection still stands");
            }
            #[allow(unreachable_code)]
            Ok::<(), std::io::Error>(())
        };
        let ended = if plain {
            trickle(&mut testbed.connect())
        } else {
            assert_eq!(testbed.request("GET", "/version", None).status, 200);
            trickle(&mut session(testbed.address, &classic(&testbed.authority())).expect("a session"))
        };
        assert!(ended.is_err() && begun.elapsed() >= TIMEOUT, "{ended:?} after {:?}", begun.elapsed());
    }
}

#[test]
fn a_connection_without_requests_ends() {
    let testbed = secure(impatient());
    let mut idle = session(testbed.address, &classic(&testbed.authority())).expect("a session");
    assert!(wait_until_cut(&mut idle) < SOON);
}

#[test]
fn plain_http_gets_a_hint_to_use_tls_and_noise_is_cut() {
    let testbed = secure(impatient());
    let answer = gateway_tests::http::exchange(
        testbed.connect(),
        "POST",
        "localhost",
        "/api/v1/devices",
        &[("Content-Type", "application/json")],
        Some(b"{}"),
    )
    .expect("an answer");
    let error = json_of(&answer)["error"].clone();
    assert_eq!((answer.status, &error["code"]), (400, &json!("bad_request")), "{error}");
    assert!(error["message"].to_string().contains("https://"), "{error}");
    assert_eq!(error["details"]["request_id"].as_str(), answer.header("x-request-id"));
    let mut noise = testbed.connect();
    noise.write_all(b"\x00\x01\x02\x03").expect("sent");
    assert!(wait_until_cut(&mut noise) < TIMEOUT);
}

#[test]
fn a_connection_beyond_the_limit_takes_the_place_of_the_longest_idle_one() {
    let testbed = secure(Limits { loopback: 2, ..Limits::default() });
    let config = classic(&testbed.authority());
    let mut first = session(testbed.address, &config).expect("a session");
    let mut second = session(testbed.address, &config).expect("a session");
    let mut third = session(testbed.address, &config).expect("served at once");
    assert!(wait_until_cut(&mut first) < SOON);
    for stream in [&mut second, &mut third] {
        stream.write_all(b"GET /api/v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
        assert!(wait_for_line(stream, "HTTP/1.1").contains("200"));
    }
}

/// Returns the first line of the stream that contains the text.
fn wait_for_line(stream: &mut impl Read, text: &str) -> String {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while stream.read_exact(&mut byte).is_ok() {
        if byte[0] == b'\n' {
            let line = String::from_utf8_lossy(&std::mem::take(&mut seen)).into_owned();
            if line.contains(text) {
                return line;
            }
        } else {
            seen.push(byte[0]);
        }
    }
    panic!("the stream ended without {text}");
}

#[test]
fn a_stream_goes_on_beyond_every_limit_and_ends_with_the_server() {
    let mut testbed = secure(impatient());
    let config = classic(&testbed.authority());
    let mut stream = session(testbed.address, &config).expect("a session");
    stream.write_all(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    wait_for_line(&mut stream, "event: status");
    for number in 1..=2 {
        std::thread::sleep(TIMEOUT * 2);
        let body = json!({"name": format!("d{number}"), "mac": format!("02:00:00:00:00:0{number}")});
        let made = https(testbed.address, &config, "POST", "/devices", Some(&body)).expect("an answer");
        assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
        wait_for_line(&mut stream, "event: revision");
    }
    testbed.stop.send(true).expect("the server listens");
    let mut serving = testbed.serving.take().expect("serving");
    let limit = Duration::from_secs(1);
    let waited = testbed.runtime.block_on(async { tokio::time::timeout(limit, &mut serving).await });
    assert!(waited.is_err(), "an open stream has no end of its own");
    serving.abort();
    assert!(wait_until_cut(&mut stream) < SOON);
}

#[test]
fn the_end_waits_for_no_idle_client_and_accepts_no_connection() {
    let mut testbed = secure(Limits::default());
    let config = classic(&testbed.authority());
    let mut idle = session(testbed.address, &config).expect("a session");
    crate::tls::peers::keep_asking(&mut idle, "/version").expect("an answer");
    testbed.stop.send(true).expect("the server listens");
    let serving = testbed.serving.take().expect("serving");
    testbed
        .runtime
        .block_on(async { tokio::time::timeout(SOON, serving).await })
        .expect("ended")
        .expect("no panic");
    wait_until_cut(&mut idle);
    wait_ok(SOON, "the port to be closed", || match TcpStream::connect(testbed.address) {
        Err(_) => Ok(()),
        Ok(_) => anyhow::bail!("somebody listens"),
    })
    .expect("closed");
}
