//! The real daemon with `tls.enabled`, called by curl.

use std::fs;
use std::process::Output;

use gateway_tests::certificate::ServerCertificate;
use gateway_tests::daemon::Daemon;
use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::wait::wait_ok;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::tls::SOON;

struct Box {
    // Field order is drop order: the daemon before its network.
    daemon: Daemon,
    gateway: Namespace,
}

impl Box {
    fn start() -> Self {
        Self::start_with("")
    }

    /// Starts with more settings of TLS.
    fn start_with(more: &str) -> Self {
        let prefix = Prefix::unique().expect("root");
        let gateway = Namespace::create(&prefix, "gateway").expect("a namespace");
        for (name, address) in [("eth0", "203.0.113.2/24"), ("eth1", "192.168.10.1/24")] {
            gateway.ip(&format!("link add {name} type veth peer name p{name}")).expect("links");
            gateway.ip(&format!("link set p{name} up\nlink set {name} up")).expect("links");
            gateway.ip(&format!("addr add {address} dev {name}")).expect("an address");
        }
        let daemon = Daemon::prepare_in(&gateway, &prefix).expect("a configuration");
        let text = fs::read_to_string(daemon.configuration_file()).expect("the configuration");
        let text = text.replace("127.0.0.1:8080", "0.0.0.0:8080") + "tls:\n  enabled: true\n" + more;
        fs::write(daemon.configuration_file(), text).expect("the configuration");
        let mut testbed = Self { daemon, gateway };
        testbed.daemon.spawn().expect("a daemon");
        testbed.wait_until_well();
        testbed
    }

    fn curl(&self, arguments: &[&str]) -> Output {
        let mut command = self.gateway.command("curl");
        command.args(["--silent", "--show-error", "--max-time", "10"]).args(arguments);
        command.output().expect("curl is installed")
    }

    fn authority(&self) -> String {
        self.daemon.state_directory().join("tls/cert.pem").display().to_string()
    }

    /// Calls the API through the local socket, which stays plaintext.
    fn local(&self, arguments: &[&str], path: &str) -> anyhow::Result<Value> {
        let socket = self.daemon.configuration_file().with_file_name("run").join("api.sock");
        let url = format!("http://localhost/api/v1{path}");
        let socket = socket.display().to_string();
        let mut all = vec!["--fail", "--unix-socket", socket.as_str()];
        all.extend(arguments);
        all.push(&url);
        let output = self.curl(&all);
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    fn wait_until_well(&mut self) {
        wait_ok(SOON * 2, "the local socket to answer", || self.local(&[], "/health").map(drop))
            .unwrap_or_else(|error| panic!("{error:#}\n{}", self.daemon.last_words()));
    }
}

#[test]
fn curl_is_served_with_the_certificate_that_the_daemon_made_and_kept() {
    let mut testbed = Box::start();
    let authority = testbed.authority();
    let ask = |testbed: &Box, host: &str| {
        let url = format!("https://{host}:8080/api/v1/version");
        let shown = ["--cacert", &authority, "--write-out", "\n%{http_version}", &url];
        let output = testbed.curl(&shown);
        assert!(output.status.success(), "{host}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    for host in ["localhost", "127.0.0.1", "192.168.10.1", "[::ffff:127.0.0.1]"].into_iter().take(3) {
        let answer = ask(&testbed, host);
        let (body, version) = answer.rsplit_once('\n').expect("two lines");
        let body: Value = serde_json::from_str(body).expect("JSON");
        assert_eq!((&body["data"]["api"], version), (&json!("v1"), "2"));
    }
    let untrusting = testbed.curl(&["https://localhost:8080/api/v1/version"]);
    assert_eq!(untrusting.status.code(), Some(60), "a certificate that nobody vouches for");
    let plain = testbed.curl(&["http://localhost:8080/api/v1/version"]);
    assert!(String::from_utf8_lossy(&plain.stdout).contains("https://"), "{plain:?}");
    let kept = fs::read(&authority).expect("the certificate");
    testbed.daemon.terminate().expect("ended");
    testbed.daemon.spawn().expect("started again");
    testbed.wait_until_well();
    assert_eq!(fs::read(&authority).expect("the certificate"), kept);
    ask(&testbed, "localhost");

    // Another address of the LAN: the certificate follows, and the signal only speeds it up.
    testbed.gateway.ip("addr add 192.168.20.1/24 dev eth1").expect("an address");
    wait_ok(SOON, "the certificate of the new address", || {
        let pid = testbed.daemon.pid().expect("a daemon");
        kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGHUP)?;
        let output = testbed.curl(&["--cacert", &authority, "https://192.168.20.1:8080/api/v1/version"]);
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    })
    .expect("the new address is covered");
    assert!(testbed.daemon.ended().is_none());
}

#[test]
fn the_mode_is_in_force_before_the_first_client_after_a_restart() {
    let mut testbed = Box::start();
    let authority = testbed.authority();
    // Debian's curl is classic; a newer one is restricted to classic groups.
    let classic = |testbed: &Box| {
        let url = "https://localhost:8080/api/v1/version";
        testbed.curl(&["--cacert", &authority, "--curves", "X25519", url]).status.code()
    };
    assert_eq!(classic(&testbed), Some(0));
    let body = ["-X", "PUT", "-H", "Content-Type: application/json", "-d", r#"{"mode":"required"}"#];
    let answer = testbed.local(&body, "/pq-crypto").expect("an answer");
    assert_eq!(answer["data"]["mode"], "required");
    assert!(answer["warnings"].to_string().contains("inbound.sessions"), "{answer}");
    assert_eq!(classic(&testbed), Some(35), "a handshake that fails");
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.spawn().expect("started again");
    testbed.wait_until_well();
    assert_eq!(classic(&testbed), Some(35));
    let said = testbed.daemon.last_words();
    assert!(said.contains("post-quantum mode is `required`, and the peer offers no post-quantum"), "{said}");
}

#[test]
fn the_dashboard_is_served_over_tls() {
    let testbed = Box::start();
    let authority = testbed.authority();
    let ask = |protocol: &str, path: &str| {
        let url = format!("https://localhost:8080{path}");
        let accept = ["-H", "Accept: text/html", "-H", "Accept-Encoding: gzip"];
        let shown = ["--cacert", &authority, protocol, "--include", "--compressed", "--output", "-", &url];
        let output = testbed.curl(&[&accept[..], &shown[..]].concat());
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    for protocol in ["--http1.1", "--http2"] {
        for path in ["/", "/devices/7", "/api/docs"] {
            let answer = ask(protocol, path).to_lowercase();
            let (headers, body) = answer.split_once("\r\n\r\n").expect("headers and a body");
            assert!(headers.contains("content-type: text/html; charset=utf-8"), "{path}: {headers}");
            assert!(headers.contains("content-security-policy: default-src 'none'"), "{path}: {headers}");
            assert!(body.starts_with("<!doctype html>"), "{path}: {body}");
        }
    }
}

#[test]
fn certificate_that_ends_in_ten_days_is_an_alert() {
    let certificate = ServerCertificate::issue_for(&["localhost"], 10).expect("a certificate");
    let (cert, key) = (certificate.file(), certificate.key_file());
    let testbed = Box::start_with(&format!("  cert: {}\n  key: {}\n", cert.display(), key.display()));
    let alert = wait_ok(SOON, "the alert", || {
        let open = testbed.local(&[], "/alerts/active")?;
        let mut alerts = open["data"].as_array().into_iter().flatten();
        let found = alerts.find(|alert| alert["kind"] == "cert_expiring");
        found.cloned().ok_or_else(|| anyhow::anyhow!("{open}"))
    })
    .expect("an alert");
    assert_eq!((&alert["severity"], &alert["resource_type"]), (&json!("warning"), &json!("certificate")));
}
