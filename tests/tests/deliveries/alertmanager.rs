//! Debian's Alertmanager, over TLS.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use gateway_tests::certificate::ServerCertificate;
use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::SOON;
use super::testbed::Testbed;

struct Alertmanager {
    port: u16,
    folder: TempDir,
    certificate: ServerCertificate,
    process: Option<Process>,
}

impl Alertmanager {
    fn start() -> Alertmanager {
        let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let mut server = Alertmanager {
            port: listener.expect("a port").port(),
            folder: tempfile::tempdir().expect("a folder"),
            certificate: ServerCertificate::issue(&["localhost", "127.0.0.1"]).expect("a certificate"),
            process: None,
        };
        server.restart();
        server
    }

    /// Starts without what it knew.
    fn restart(&mut self) {
        self.process = None;
        let folder = self.folder.path();
        let (config, web, data) = (folder.join("config.yml"), folder.join("web.yml"), folder.join("data"));
        let _ = fs::remove_dir_all(&data);
        fs::write(&config, "route: {receiver: none}\nreceivers: [{name: none}]\n").expect("a file");
        let tls = json!({"tls_server_config":
            {"cert_file": self.certificate.file(), "key_file": self.certificate.key_file()}});
        fs::write(&web, tls.to_string()).expect("a file");
        let mut command = Command::new("prometheus-alertmanager");
        command.arg(format!("--config.file={}", config.display()));
        command.arg(format!("--web.config.file={}", web.display()));
        command.arg(format!("--storage.path={}", data.display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{}", self.port)).arg("--cluster.listen-address=");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(Process::spawn(command).expect("an Alertmanager"));
        wait_ok(SOON, "the Alertmanager", || self.alerts()).expect("it answers");
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// Returns the active alerts.
    fn alerts(&self) -> Result<Vec<Value>> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail", "--cacert"]).arg(self.certificate.file());
        let output = command.arg(format!("{}/api/v2/alerts", self.url())).output().context("curl")?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    fn wait(&self, what: &str, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        wait_ok(SOON, what, || {
            let alerts = self.alerts()?;
            anyhow::ensure!(holds(&alerts), "{alerts:?}");
            Ok(alerts)
        })
        .expect("the alerts")
    }

    fn certificate(&self) -> String {
        fs::read_to_string(self.certificate.file()).expect("a certificate")
    }
}

fn time(value: &Value) -> Timestamp {
    value.as_str().expect("a text").parse().expect("a time")
}

#[test]
fn alertmanager_has_an_alert_as_long_as_it_is_active() {
    let mut server = Alertmanager::start();
    let testbed = Testbed::new();
    let more = json!({"format": "alertmanager-v2", "ca_certificate": server.certificate()});
    testbed.configure(&server.url(), more);
    testbed.raise("berlin");
    let alerts = server.wait("the alert", |alerts| alerts.len() == 1);
    let labels = &alerts[0]["labels"];
    assert_eq!((&labels["alertname"], &labels["instance"]), (&json!("tunnel_down"), &json!("berlin")));
    assert_eq!(alerts[0]["annotations"]["summary"], "Tunnel down: berlin");
    let first_end = time(&alerts[0]["endsAt"]);
    let lifetime = first_end.duration_since(testbed.now());
    let bounds = SignedDuration::from_secs(200)..=SignedDuration::from_secs(240);
    assert!(bounds.contains(&lifetime), "{lifetime}");
    server.wait("a later end", |alerts| alerts.len() == 1 && time(&alerts[0]["endsAt"]) > first_end);
    // One that has lost its alerts gets them again.
    server.restart();
    server.wait("the alert after a restart", |alerts| alerts.len() == 1);
    testbed.resolve("berlin");
    server.wait("its end", |alerts| alerts.is_empty());
}

#[test]
fn alertmanager_with_an_unknown_certificate_gets_nothing() {
    let server = Alertmanager::start();
    let testbed = Testbed::new();
    testbed.configure(&server.url(), json!({"format": "alertmanager-v2"}));
    let result = testbed.test_webhook();
    assert_eq!((&result["delivered"], &result["status"]), (&json!(false), &Value::Null), "{result}");
    assert!(result["error"].as_str().is_some_and(|error| error.contains("certificate")), "{result}");
    assert_eq!(server.alerts().expect("alerts").len(), 0);
    testbed.configure(
        &server.url(),
        json!({"format": "alertmanager-v2", "ca_certificate": server.certificate()}),
    );
    assert_eq!(testbed.test_webhook()["delivered"], true);
    let clients = testbed.get("/pq-crypto")["clients"].to_string();
    assert!(clients.contains("alert webhook"), "{clients}");
}
