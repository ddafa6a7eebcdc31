//! Receivers of alerts behind a tunnel: webhook, mail and MQTT broker get nothing by another egress.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;

use gateway_tests::certificate::ServerCertificate;
use gateway_tests::daemon::Api;
use gateway_tests::mail_server::{Encryption, MailServer};
use gateway_tests::process::Process;
use gateway_tests::testbed::{Testbed, create};
use gateway_tests::topology::{WAN_V4, server};
use gateway_tests::wait::wait_ok;
use gateway_tests::webhook_receiver::WebhookReceiver;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::e2e::SOON;

const RECEIVERS: [&str; 3] = ["webhook", "email", "mqtt"];
const TUNNEL: &str = "wg-a";
/// Time until an attempt is repeated after some failures, with some reserve.
const REPEAT_TIME: std::time::Duration = std::time::Duration::from_secs(90);

/// Three receivers on the internet.
struct Receivers<'t> {
    testbed: &'t Testbed,
    webhook: WebhookReceiver,
    mail: MailServer,
    broker: u16,
    _files: TempDir,
    _broker: Process,
}

impl<'t> Receivers<'t> {
    fn start(testbed: &'t Testbed) -> Self {
        let internet = &testbed.network.internet;
        let listen = || internet.within(|| TcpListener::bind((server(false), 0))).expect("a port");
        let address = server(false).to_string();
        let certificate = ServerCertificate::issue(&[&address]).expect("a certificate");
        let webhook = WebhookReceiver::start(listen()).expect("a receiver");
        let mail = MailServer::start_at(listen(), Encryption::AtOnce, &certificate).expect("a mail server");
        let broker = listen().local_addr().expect("an address").port();
        let files = tempfile::tempdir().expect("a folder");
        let config = files.path().join("mosquitto.conf");
        let text = format!("listener {broker} {address}\nallow_anonymous true\nuser root\n");
        fs::write(&config, text).expect("a file");
        let mut command = internet.command("mosquitto");
        command.arg("-c").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        let process = internet.spawn(command).expect("a broker");
        let authority = fs::read_to_string(certificate.file()).expect("a certificate");
        let api = testbed.api();
        let settings = [
            json!({"url": webhook.url("/hook")}),
            json!({"host": address, "port": mail.address.port(), "security": "tls", "ca_certificate": authority,
                "from": "gw@example.net", "to": ["anna@example.net"], "min_severity": "info"}),
            json!({"host": address, "port": broker}),
        ];
        for (name, mut settings) in RECEIVERS.into_iter().zip(settings) {
            settings["enabled"] = json!(true);
            api.put(&format!("/alerts/{name}"), &settings).expect("stored");
        }
        Self { testbed, webhook, mail, broker, _files: files, _broker: process }
    }

    fn set_egress(&self, egress: &str) {
        for name in RECEIVERS {
            let path = format!("/alerts/{name}");
            let mut settings = self.testbed.api().get(&path).expect("the settings");
            settings["egress"] = json!(egress);
            self.testbed.api().put(&path, &settings).expect("stored");
        }
    }

    /// Returns the retained messages of the broker.
    fn messages(&self) -> anyhow::Result<String> {
        let address = server(false);
        let listen = format!("mosquitto_sub -h {address} -p {} -t '#' -v -W 1 || true", self.broker);
        self.testbed.network.internet.run("sh", &["-c", &listen])
    }

    /// Counts packets that reach the receivers directly from the gateway.
    fn count_direct_packets(&self) {
        let at = [self.webhook.address, self.mail.address, SocketAddr::new(server(false), self.broker)];
        let ports = at.map(|address| address.port().to_string()).join(", ");
        let rules = format!(
            "table inet direct {{\n chain in {{\n type filter hook input priority filter\n \
             ip saddr {WAN_V4} tcp dport {{ {ports} }} counter\n }}\n}}\n"
        );
        self.testbed.network.internet.nft(&rules).expect("counted");
    }

    fn direct_packets(&self) -> u64 {
        let table = self.testbed.network.internet.run("nft", &["list", "table", "inet", "direct"]);
        let table = table.expect("the table");
        let after = table.split("counter packets ").nth(1).and_then(|rest| rest.split(' ').next());
        after.and_then(|number| number.parse().ok()).expect("a counter")
    }
}

fn test(api: &Api, receiver: &str) -> Value {
    api.act(&format!("/alerts/{receiver}/test")).expect("tested")
}

fn wait_until_delivered(api: &Api, receiver: &str) {
    wait_ok(SOON, &format!("the {receiver} to answer"), || {
        let tested = test(api, receiver);
        anyhow::ensure!(tested["delivered"] == true, "{tested}");
        Ok(())
    })
    .expect("delivered");
}

#[test]
fn receivers_behind_a_tunnel_get_nothing_by_another_egress() {
    let testbed = Testbed::start().expect("scene");
    let api = testbed.api();
    let tunnel = testbed.tunnel(TUNNEL, &testbed.network.exit_a).expect("tunnel");
    let receivers = Receivers::start(&testbed);
    receivers.count_direct_packets();
    RECEIVERS.iter().for_each(|name| wait_until_delivered(api, name));
    assert!(receivers.direct_packets() > 0, "without an egress they are reached directly");

    receivers.set_egress(TUNNEL);
    // Sessions by the former egress end.
    api.act("/enforce/reconcile").expect("reconciled");
    RECEIVERS.iter().for_each(|name| wait_until_delivered(api, name));
    wait_ok(SOON, "the session of the states to move", || {
        let before = receivers.direct_packets();
        receivers.messages()?;
        anyhow::ensure!(receivers.direct_packets() == before, "packets leave directly");
        Ok(())
    })
    .expect("moved");
    let before = receivers.direct_packets();
    for name in RECEIVERS {
        let tested = test(api, name);
        assert_eq!(tested["delivered"], true, "{name}: {tested}");
    }
    assert_eq!(receivers.direct_packets(), before, "by the tunnel");

    testbed.bring_down(&tunnel).expect("down");
    let (requests, mails) = (receivers.webhook.requests().len(), receivers.mail.mails().len());
    for name in RECEIVERS {
        let tested = test(api, name);
        assert_eq!(tested["delivered"], false, "{name}: {tested}");
        assert!(tested["error"].as_str().is_some_and(|text| text.contains(TUNNEL)), "{name}: {tested}");
    }
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    let body = json!({"type": "temporary-direct", "device_id": laptop, "duration_min": 30});
    create(api, "/exceptions", &body).expect("an exception");
    wait_ok(2 * SOON, "attempts to fail", || {
        let metrics = testbed.network.gateway.run("curl", &["-s", "http://127.0.0.1:8080/metrics"])?;
        for name in ["webhook", "email"] {
            let failed = metrics.lines().find(|line| {
                line.starts_with("gateway_alert_delivery_attempts_total")
                    && line.contains("\"failed\"")
                    && line.contains(name)
            });
            // One is that of the test.
            let count = failed.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            anyhow::ensure!(count >= Some(2.0), "{name}: {failed:?}");
        }
        Ok(())
    })
    .expect("they failed");
    assert_eq!((receivers.webhook.requests().len(), receivers.mail.mails().len()), (requests, mails));
    assert!(
        !receivers.messages().expect("messages").contains("Exception started"),
        "the broker knows no alert"
    );
    assert_eq!(receivers.direct_packets(), before, "nothing leaves by the uplink");

    testbed.bring_up(&tunnel).expect("up");
    wait_ok(REPEAT_TIME, "the alert at all receivers", || {
        let is_posted = receivers
            .webhook
            .requests()
            .iter()
            .any(|request| request.json()["groupLabels"]["alertname"] == "exception_started");
        let is_mailed = receivers.mail.mails().iter().any(|mail| mail.text.contains("exception_started"));
        let messages = receivers.messages()?;
        anyhow::ensure!(is_posted && is_mailed && messages.contains("Exception started"), "{messages}");
        Ok(())
    })
    .expect("delivered");
    assert_eq!(receivers.direct_packets(), before);
}
