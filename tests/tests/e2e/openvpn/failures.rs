//! Servers that stop, reject or never answer.

use std::time::Duration;

use anyhow::ensure;
use gateway_tests::openvpn::Server;
use gateway_tests::testbed::{Testbed, create};
use gateway_tests::traffic::Load;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use super::{Bound, processes};
use crate::e2e::{FAMILIES, SOON, assert_blocked, assert_nothing_leaked, assert_through, wait_until_through};

const PASSWORD: &str = "wrong-and-secret-5f2a";

/// Waits until a tunnel has a status and a reason.
fn wait_for_reason(testbed: &Testbed, tunnel: &str, status: &str, reason: &str) -> Value {
    wait_ok(SOON * 2, &format!("the tunnel to be in {status} because of {reason}"), || {
        let object = testbed.api().get(&format!("/tunnels/{tunnel}"))?;
        let why = object["last_error"].as_str().unwrap_or_default();
        ensure!(object["status"] == status && why.contains(reason), "{object}");
        ensure!(object["healthy"] == false, "{object}");
        Ok(object)
    })
    .unwrap_or_else(|error| panic!("{error:#}\n{}", testbed.daemon.last_words()))
}

#[test]
fn a_server_that_dies_under_load_leaks_nothing_and_is_found_again() {
    let bound = Bound::start("");
    let network = &bound.testbed.network;
    let load = Load::start(&network.laptop).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(network.exit_a.address(ipv6), SOON).expect("load through the tunnel");
    }
    bound.server.kill9().expect("server killed");
    load.run_for(400).expect("load");
    wait_for_reason(&bound.testbed, &bound.tunnel, "degraded", "the server");
    assert_blocked(&network.laptop);
    load.run_for(400).expect("load");
    bound.server.start_again().expect("server started");
    wait_ok(SOON * 2, "the tunnel to be up again", || bound.testbed.bring_up(&bound.tunnel)).expect("up");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(network.exit_a.address(ipv6), SOON).expect("load through the tunnel again");
    }
    wait_until_through(&network.laptop, &network.exit_a);
    let sent = load.stop();
    assert!(sent.v4 > 400 && sent.v6 > 400, "{sent:?}");
    assert_nothing_leaked(&bound.testbed);
    let object = bound.object();
    assert!(object["restarts"].as_u64() >= Some(1), "{object}");
}

#[test]
fn wrong_credentials_are_reported_once_in_a_while_and_shown_nowhere() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let mut server = Server::start(&network.exit_a, &network.prefix, "").expect("server");
    server.kill9().expect("ended");
    server.demand("alice", "wonderland").expect("script");
    server.start_again().expect("server with credentials");
    let file = server.file("auth-user-pass").expect("file");
    let object = json!({
        "name": "nl", "type": "openvpn", "config": file, "username": "alice", "password": PASSWORD,
    });
    let tunnel = create(testbed.api(), "/tunnels", &object).expect("tunnel");
    wait_for_reason(&testbed, &tunnel, "error", "AUTH_FAILED");
    std::thread::sleep(Duration::from_secs(6));
    let tried = server.log().matches("TLS Auth Error: Auth Username/Password verification failed").count();
    assert_eq!(tried, 1, "{}", server.log());
    assert_eq!(processes(&testbed), [0; 0]);
    let secret = server.secret().expect("key");
    for path in [
        format!("/tunnels/{tunnel}"),
        "/tunnels".into(),
        format!("/tunnels/{tunnel}/config"),
        "/audit".into(),
        "/render".into(),
        "/observer".into(),
    ] {
        let shown = testbed.api().get(&path).expect("answer").to_string();
        assert!(!shown.contains(PASSWORD) && !shown.contains(&secret), "{path}: {shown}");
    }
    let log = std::fs::read_to_string(testbed.daemon.log_file()).expect("log");
    assert!(!log.contains(PASSWORD) && !log.contains(&secret), "a secret is in the log");

    // The correct password takes effect immediately.
    let path = format!("/tunnels/{tunnel}");
    let mut object = testbed.api().get(&path).expect("tunnel");
    object["password"] = json!("wonderland");
    testbed.api().put(&path, &object).expect("password exchanged");
    testbed.bring_up(&tunnel).expect("up");
    // No secret is in clear on a command line or in the environment.
    for pid in processes(&testbed) {
        for file in ["cmdline", "environ"] {
            let text = std::fs::read(format!("/proc/{pid}/{file}")).expect("/proc");
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains("wonderland") && !text.contains("alice"), "{file}: {text}");
        }
    }
}

#[test]
fn missing_credentials_and_a_server_that_is_not_there_are_reported() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let mut server = Server::start(&network.exit_a, &network.prefix, "").expect("server");
    let object =
        json!({"name": "nl", "type": "openvpn", "config": server.file("auth-user-pass").expect("file")});
    let tunnel = create(testbed.api(), "/tunnels", &object).expect("tunnel");
    wait_for_reason(&testbed, &tunnel, "error", "set both");
    server.kill9().expect("ended");
    let silent = create(testbed.api(), "/tunnels", &with_name(&server, "de")).expect("tunnel");
    wait_for_reason(&testbed, &silent, "connecting", "the server");
    server.set_options("tls-version-max 1.2\ndata-ciphers CHACHA20-POLY1305");
    server.start_again().expect("server");
    testbed.bring_up(&silent).expect("up");
    let object = testbed.api().get(&format!("/tunnels/{silent}")).expect("tunnel");
    assert_eq!(object["cipher"], "CHACHA20-POLY1305", "{object}");
}

fn with_name(server: &Server, name: &str) -> Value {
    server.tunnel(name).expect("tunnel")
}

#[test]
fn an_encrypted_key_is_opened_by_its_passphrase_alone() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let server = Server::start(&network.exit_a, &network.prefix, "").expect("server");
    let file = server.file_with_encrypted_key("through the \"looking\" glass").expect("file");
    let object = json!({"name": "nl", "type": "openvpn", "config": file});
    let tunnel = create(testbed.api(), "/tunnels", &object).expect("tunnel");
    wait_for_reason(&testbed, &tunnel, "error", "key_passphrase");
    let path = format!("/tunnels/{tunnel}");
    let give = |passphrase: &str| {
        let mut object = testbed.api().get(&path).expect("tunnel");
        object["key_passphrase"] = json!(passphrase);
        testbed.api().put(&path, &object).expect("passphrase given");
    };
    give(PASSWORD);
    wait_for_reason(&testbed, &tunnel, "error", "the passphrase of the key is wrong");
    wait_ok(SOON, "its process to end", || {
        let left = processes(&testbed);
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .expect("ended");
    give("through the \"looking\" glass");
    testbed.bring_up(&tunnel).expect("up");
    let log = std::fs::read_to_string(testbed.daemon.log_file()).expect("log");
    assert!(!log.contains(PASSWORD) && !log.contains("looking"), "a passphrase is in the log");
}

#[test]
fn a_cipher_that_the_server_has_not_is_reported() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let server = Server::start(&network.exit_a, &network.prefix, "data-ciphers AES-256-GCM").expect("server");
    let file = server.file("data-ciphers CHACHA20-POLY1305").expect("file");
    let object = json!({"name": "nl", "type": "openvpn", "config": file});
    let tunnel = create(testbed.api(), "/tunnels", &object).expect("tunnel");
    wait_for_reason(&testbed, &tunnel, "error", "cipher");
}

#[test]
fn a_server_with_a_foreign_certificate_is_not_believed() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let server = Server::start(&network.exit_a, &network.prefix, "").expect("server");
    // The same keys with another authority, as a man in the middle could present.
    let other = Server::start(&network.exit_b, &network.prefix, "").expect("other server");
    let (file, foreign) = (server.file("").expect("file"), other.file("").expect("file"));
    let authority = |file: &str| {
        let (from, to) = (file.find("<ca>").expect("block"), file.find("</ca>").expect("block"));
        file[from..to].to_owned()
    };
    let config = file.replace(&authority(&file), &authority(&foreign));
    let object = json!({"name": "nl", "type": "openvpn", "config": config});
    let tunnel = create(testbed.api(), "/tunnels", &object).expect("tunnel");
    wait_ok(SOON, "the certificate to be refused", || {
        let object = testbed.api().get(&format!("/tunnels/{tunnel}"))?;
        let why = object["last_error"].as_str().unwrap_or_default();
        ensure!(why.contains("certificate is not accepted") && object["healthy"] == false, "{object}");
        Ok(())
    })
    .expect("refused");
}

#[test]
fn a_tunnel_that_is_taken_down_under_load_leaks_nothing() {
    let bound = Bound::start("");
    let network = &bound.testbed.network;
    let load = Load::start(&network.laptop).expect("load");
    for ipv6 in FAMILIES {
        load.wait_for_answer_to(network.exit_a.address(ipv6), SOON).expect("load through the tunnel");
    }
    bound.testbed.bring_down(&bound.tunnel).expect("down");
    load.run_for(400).expect("load");
    assert_blocked(&network.laptop);
    wait_for_reason(&bound.testbed, &bound.tunnel, "down", "down");
    assert_eq!(processes(&bound.testbed), [0; 0]);
    bound.testbed.bring_up(&bound.tunnel).expect("up");
    wait_until_through(&network.laptop, &network.exit_a);
    load.stop();
    assert_through(&network.laptop, &network.exit_a);
    assert_nothing_leaked(&bound.testbed);
}
