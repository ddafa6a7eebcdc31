//! A daemon with authentication enabled, as users experience it: the first user from the command line, curl with a
//! cookie or a key, the client without a credential, and callers from foreign networks and pages.

use std::io::Write;
use std::process::{Command, Stdio};

use gateway_tests::netns::Namespace;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{LAN_V4, WAN_V4};
use serde_json::{Value, json};

use crate::cli::client::{Ran, feed, run};

const PASSWORD: &str = "correct horse battery";
const ROOT: &str = "http://127.0.0.1:8080/api/v1";

/// Returns a daemon that is configured with authentication on all addresses and was not started yet.
fn closed_scene(local_net: &str) -> Testbed {
    let mut testbed = Testbed::prepare().expect("scene");
    let closed = json!({
        "auth": {"enabled": true, "local_net": local_net}, "listen": {"api_addr": "0.0.0.0:8080"},
    });
    testbed.daemon.configure(&closed).expect("configured");
    testbed.daemon.initialise().expect("initialised");
    testbed
}

/// Runs `gatewayd user` with the password on its standard input.
fn user(testbed: &Testbed, words: &[&str], password: &str) -> Ran {
    let mut command = testbed.daemon.command(&[&["user"], words].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("gatewayd runs");
    writeln!(child.stdin.take().expect("a pipe"), "{password}").expect("written");
    Ran::of(child.wait_with_output().expect("ended"))
}

fn add(testbed: &Testbed, name: &str, role: &str) -> String {
    let added = user(testbed, &["add", "--username", name, "--role", role], PASSWORD);
    assert_eq!(added.code, Some(0), "{added:?}");
    added.stdout.trim().to_owned()
}

/// Runs curl and returns the status and the body.
fn curl(place: &Namespace, arguments: &[&str]) -> (u16, Value) {
    let fixed = ["--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{http_code}"];
    let said = place.run("curl", &[&fixed, arguments].concat()).expect("curl");
    let (body, status) = said.rsplit_once('\n').expect("a status");
    (status.parse().expect("a number"), serde_json::from_str(body).unwrap_or(Value::Null))
}

fn code(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["error"]["code"].as_str().unwrap_or_default())
}

const JSON: [&str; 2] = ["--header", "Content-Type: application/json"];

#[test]
fn the_first_user_signs_in_with_curl_and_every_change_needs_the_token() {
    let mut testbed = closed_scene("127.0.0.0/8");
    let anna = add(&testbed, "anna", "admin");
    testbed.daemon.start().expect("started");
    let gateway = &testbed.network.gateway;
    // Adds a second user while the daemon holds the store.
    add(&testbed, "vera", "viewer");
    let listed = user(&testbed, &["list"], "");
    assert!(listed.stdout.contains(&format!("{anna}\tanna\tadmin\ttrue\t")), "{listed:?}");

    let jar = testbed.daemon.state_directory().with_file_name("cookies");
    let jar = jar.to_str().expect("text");
    let login = format!("{ROOT}/auth/login");
    let wrong = r#"{"username":"anna","password":"correct horse pattery"}"#;
    let refused = curl(gateway, &[&JSON[..], &["--data", wrong, &login]].concat());
    assert_eq!(code(&refused), (401, "invalid_credentials"));
    let right = format!(r#"{{"username":"anna","password":"{PASSWORD}"}}"#);
    let signed_in = curl(gateway, &[&JSON[..], &["--cookie-jar", jar, "--data", &right, &login]].concat());
    assert_eq!(signed_in.0, 200, "{signed_in:?}");
    let token = format!("X-CSRF-Token: {}", signed_in.1["data"]["csrf_token"].as_str().expect("a token"));

    let devices = format!("{ROOT}/devices");
    let make = ["--cookie", jar, "--data", r#"{"name":"laptop"}"#, &devices];
    assert_eq!(code(&curl(gateway, &[&JSON[..], &make].concat())), (403, "origin_not_allowed"));
    let made = curl(gateway, &[&JSON[..], &["--header", &token], &make].concat());
    assert_eq!(made.0, 201, "{made:?}");
    // The same browser with a request from a foreign page.
    let evil = ["--header", "Origin: https://evil.example", "--header", &token];
    assert_eq!(code(&curl(gateway, &[&JSON[..], &evil, &make].concat())), (403, "origin_not_allowed"));
    let entry =
        &curl(gateway, &["--cookie", jar, &format!("{ROOT}/audit?action=create_device&result=success")]).1;
    assert_eq!((&entry["data"][0]["actor"], &entry["data"][0]["auth"]), (&json!("anna"), &json!("session")));

    // Deletion of the user ends the session; only the store contains that fact.
    add(&testbed, "root", "admin");
    assert_eq!(user(&testbed, &["del", "--id", &anna], "").code, Some(0));
    let over = curl(gateway, &[&JSON[..], &["--header", &token], &make].concat());
    assert_eq!(over.0, 401, "{over:?}");
    let audited =
        testbed.daemon.terminate().and_then(|_| testbed.daemon.run(&["audit", "verify"])).expect("checked");
    assert!(audited.contains("none changed and none missing"), "{audited}");
}

#[test]
fn a_key_is_made_once_and_acts_in_its_role_only() {
    let mut testbed = closed_scene("127.0.0.0/8");
    let key = "a-key-of-the-configuration";
    let configured = json!({"auth": {"api_keys": [{"name": "setup", "key": key, "role": "admin"}]}});
    testbed.daemon.configure(&configured).expect("configured");
    testbed.daemon.start().expect("started");
    let gateway = &testbed.network.gateway;
    let (keys, devices) = (format!("{ROOT}/auth/keys"), format!("{ROOT}/devices"));
    let admin = format!("Authorization: Bearer {key}");
    let order = ["--header", &admin, "--data", r#"{"name":"backup","role":"viewer"}"#, &keys];
    let made = curl(gateway, &[&JSON[..], &order].concat());
    assert_eq!(made.0, 201, "{made:?}");
    let shown = made.1["data"]["key"].as_str().expect("shown once").to_owned();
    let listed = curl(gateway, &["--header", &admin, &keys]).1.to_string();
    assert!(listed.contains("backup") && !listed.contains(&shown), "{listed}");
    let viewer = format!("Authorization: Bearer {shown}");
    assert_eq!(curl(gateway, &["--header", &viewer, &devices]).0, 200);
    let make = ["--header", &viewer, "--data", r#"{"name":"laptop"}"#, &devices];
    assert_eq!(code(&curl(gateway, &[&JSON[..], &make].concat())), (403, "forbidden"));
    let id = made.1["data"]["id"].as_str().expect("an id");
    assert_eq!(curl(gateway, &["--request", "DELETE", "--header", &admin, &format!("{keys}/{id}")]).0, 200);
    assert_eq!(code(&curl(gateway, &["--header", &viewer, &devices])), (401, "invalid_credentials"));
    // The store contains a hash only.
    let store = std::fs::read(testbed.daemon.state_directory().join("store.redb")).expect("store");
    assert!(!store.windows(shown.len()).any(|window| window == shown.as_bytes()));
}

#[test]
fn the_client_reads_on_the_gateway_and_changes_nothing() {
    let mut testbed = closed_scene("127.0.0.0/8");
    add(&testbed, "anna", "admin");
    testbed.daemon.start().expect("started");
    let read = run(&testbed, &["devices"]);
    assert_eq!((read.code, read.stderr.as_str()), (Some(0), ""), "{read:?}");
    let refused = feed(&testbed, &["devices", "create"], r#"{"name":"laptop"}"#);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(4), ""), "{refused:?}");
    assert!(refused.stderr.contains("401 unauthenticated"), "{}", refused.stderr);
    assert_eq!(testbed.api().get("/devices").expect("devices"), json!([]));
    // The local network's read access excludes the audit log; the local socket has root's access.
    let unread = run(&testbed, &["audit"]);
    assert_eq!((unread.code, unread.stdout.as_str()), (Some(4), ""), "{unread:?}");
    assert!(unread.stderr.contains("neither logs, the audit trail nor secrets"), "{}", unread.stderr);
    let checked = feed(&testbed, &["validate"], r#"{"resources":{}}"#);
    assert!(checked.stderr.contains("This changes nothing"), "{}", checked.stderr);
    let state = testbed.daemon.state_directory();
    let socket = state.parent().expect("a folder").join("run/api.sock");
    let socket = socket.to_str().expect("UTF-8");
    let audit = format!("{ROOT}/audit?action=create_device");
    let denied = curl(&testbed.network.gateway, &["--unix-socket", socket, &audit]).1["data"].clone();
    assert_eq!(denied.as_array().map(Vec::len), Some(1), "{denied}");
    assert_eq!(denied[0]["result"], json!("denied"));
}

#[test]
fn from_the_lan_the_bypass_reads_from_the_internet_there_is_no_door() {
    let mut testbed = closed_scene("192.168.10.10/32");
    add(&testbed, "anna", "admin");
    testbed.daemon.start().expect("started");
    let (laptop, tv) = (&testbed.network.laptop.namespace, &testbed.network.tv.namespace);
    let devices = format!("http://{LAN_V4}:8080/api/v1/devices");
    assert_eq!(curl(laptop, &[&devices]).0, 200, "in the local network of the configuration");
    let change = [&JSON[..], &["--data", r#"{"name":"laptop"}"#, &devices]].concat();
    assert_eq!(code(&curl(laptop, &change)), (401, "unauthenticated"));
    for proxied in ["X-Forwarded-For: 192.168.10.10", "Forwarded: for=192.168.10.10"] {
        let answer = curl(laptop, &["--header", proxied, &devices]);
        assert_eq!(code(&answer), (401, "unauthenticated"), "{proxied}");
    }
    let rebound = curl(laptop, &["--header", "Host: evil.example", &devices]);
    assert_eq!(code(&rebound), (403, "origin_not_allowed"));
    assert_eq!(code(&curl(tv, &[&devices])), (401, "unauthenticated"), "another host of the LAN");
    let health = format!("http://{LAN_V4}:8080/api/v1/health");
    assert_eq!(curl(tv, &[&health]).0, 200);

    let outside = format!("http://{WAN_V4}:8080/api/v1/health");
    let mut command = testbed.network.internet.command("curl");
    command.args(["--silent", "--max-time", "2", &outside]);
    let reached = ended_well(command);
    assert!(!reached, "the API is open to the internet");
}

fn ended_well(mut command: Command) -> bool {
    command.stdout(Stdio::null()).status().expect("curl runs").success()
}
