//! States at Debian's broker for MQTT, as Home Assistant would discover them.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use gateway_tests::certificate::ServerCertificate;
use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::SOON;
use super::testbed::Testbed;

const USER: &str = "gateway";
const PASSWORD: &str = "s3cret-of-the-broker";

struct Broker {
    port: u16,
    certificate: ServerCertificate,
    _folder: TempDir,
    _process: Process,
}

impl Broker {
    fn start() -> Broker {
        let folder = tempfile::tempdir().expect("a folder");
        let certificate = ServerCertificate::issue(&["localhost"]).expect("a certificate");
        let passwords = folder.path().join("passwords");
        let mut command = Command::new("mosquitto_passwd");
        let made =
            command.args(["-b", "-c"]).arg(&passwords).args([USER, PASSWORD]).output().expect("a program");
        assert!(made.status.success(), "{made:?}");
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port")
            .port();
        let config = format!(
            "listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {}\nuser root\ncertfile {}\nkeyfile {}\n",
            passwords.display(),
            certificate.file().display(),
            certificate.key_file().display(),
        );
        let file = folder.path().join("mosquitto.conf");
        fs::write(&file, config).expect("a file");
        let mut command = Command::new("mosquitto");
        command.arg("-c").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command).expect("a broker");
        let broker = Broker { port, certificate, _folder: folder, _process: process };
        wait_ok(SOON, "the broker", || broker.retained()).expect("it answers");
        broker
    }

    fn subscription(&self, topic: &str) -> Command {
        let mut command = Command::new("mosquitto_sub");
        let port = self.port.to_string();
        command.args(["-h", "localhost", "-p", &port, "-u", USER, "-P", PASSWORD, "-t", topic, "--cafile"]);
        command.arg(self.certificate.file());
        command
    }

    /// Returns a program that ends with the first message of a topic.
    fn listen(&self, topic: &str) -> Child {
        let mut command = self.subscription(topic);
        command.args(["-C", "1", "-W", "60"]).stdout(Stdio::piped()).spawn().expect("mosquitto_sub")
    }

    /// Returns all retained messages.
    fn retained(&self) -> Result<BTreeMap<String, String>> {
        let mut command = self.subscription("#");
        command.args(["-v", "-W", "1"]);
        let output = command.output().context("mosquitto_sub")?;
        // 27: the time is over.
        anyhow::ensure!(output.status.code() == Some(27), "{output:?}");
        let text = String::from_utf8(output.stdout)?;
        let messages = text.lines().filter_map(|line| line.split_once(' '));
        Ok(messages.map(|(topic, message)| (topic.to_owned(), message.to_owned())).collect())
    }

    fn wait(
        &self,
        what: &str,
        holds: impl Fn(&BTreeMap<String, String>) -> bool,
    ) -> BTreeMap<String, String> {
        wait_ok(SOON, what, || {
            let messages = self.retained()?;
            anyhow::ensure!(holds(&messages), "{messages:?}");
            Ok(messages)
        })
        .expect("the messages")
    }

    fn configure(&self, testbed: &Testbed, more: Value) {
        let authority = fs::read_to_string(self.certificate.file()).expect("a certificate");
        let mut config = json!({"enabled": true, "host": "localhost", "port": self.port, "tls": true,
            "ca_certificate": authority, "username": USER, "password": PASSWORD});
        for (key, value) in more.as_object().expect("an object") {
            config[key] = value.clone();
        }
        let (status, body) = testbed.send("PUT", "/alerts/mqtt", Some(&config));
        assert_eq!(status, 200, "{body}");
        assert!(!body.to_string().contains(PASSWORD), "{body}");
    }
}

fn topic<'m>(messages: &'m BTreeMap<String, String>, begin: &str, end: &str) -> Option<(&'m str, &'m str)> {
    let mut found = messages.iter().filter(|(topic, _)| topic.starts_with(begin) && topic.ends_with(end));
    found.next().map(|(topic, message)| (topic.as_str(), message.as_str()))
}

#[test]
fn alerts_have_a_sensor_while_they_last_also_over_restarts() {
    let broker = Broker::start();
    let mut testbed = Testbed::new();
    broker.configure(&testbed, json!({}));
    testbed.raise("berlin");
    testbed.raise("paris");
    let messages =
        broker.wait("the sensors", |messages| topic(messages, "gateway/", "/alert_paris").is_some());
    let (_, config) =
        topic(&messages, "homeassistant/binary_sensor/", "/alert_berlin/config").expect("a sensor");
    let config: Value = serde_json::from_str(config).expect("JSON");
    assert_eq!(
        (&config["name"], &config["device_class"]),
        (&json!("Tunnel down: berlin"), &json!("problem"))
    );
    let state: Value =
        serde_json::from_str(&messages[config["state_topic"].as_str().expect("a topic")]).expect("JSON");
    assert_eq!((&state["state"], &state["severity"]), (&json!("ON"), &json!("critical")));
    assert_eq!(messages[config["availability_topic"].as_str().expect("a topic")], "online");
    testbed.resolve("berlin");
    broker.wait("the end", |messages| {
        topic(messages, "gateway/", "/alert_berlin").is_none()
            && topic(messages, "gateway/", "/alert_paris").is_some()
    });
    // The broker says that a gateway which ends without a word is gone.
    testbed = testbed.restart_after(|testbed| {
        let messages = broker.wait("the last will", |messages| {
            topic(messages, "gateway/", "/availability").is_some_and(|(_, message)| message == "offline")
        });
        assert!(topic(&messages, "homeassistant/", "/alert_paris/config").is_some());
        testbed.resolve("paris", jiff::Timestamp::UNIX_EPOCH);
    });
    broker.wait("the end of what an earlier run left", |messages| {
        topic(messages, "gateway/", "/availability").is_some_and(|(_, message)| message == "online")
            && topic(messages, "homeassistant/", "/alert_paris/config").is_none()
    });
    broker.configure(&testbed, json!({"enabled": false}));
    broker.wait("nothing", BTreeMap::is_empty);
}

#[test]
fn a_session_that_is_refused_is_tried_again_with_the_right_password() {
    let broker = Broker::start();
    let testbed = Testbed::new();
    broker.configure(&testbed, json!({"password": "wrong"}));
    testbed.raise("berlin");
    assert!(broker.retained().expect("messages").is_empty());
    let result = testbed.test_broker();
    assert_eq!(result["delivered"], false, "{result}");
    assert!(result["error"].as_str().is_some_and(|error| error.contains("refuses the session")), "{result}");
    broker.configure(&testbed, json!({"topic_prefix": "home"}));
    broker.wait("the sensor", |messages| topic(messages, "home/", "/alert_berlin").is_some());
}

#[test]
fn test_publishes_a_message_beside_the_session_of_the_states() {
    let broker = Broker::start();
    let testbed = Testbed::new();
    let (status, body) = testbed.send("POST", "/alerts/mqtt/test", None);
    assert_eq!((status, &body["error"]["code"]), (409, &json!("invalid_state")), "{body}");
    broker.configure(&testbed, json!({"enabled": false}));
    let result = testbed.test_broker();
    assert_eq!((&result["delivered"], &result["error"]), (&json!(true), &json!(null)), "{result}");
    broker.configure(&testbed, json!({}));
    testbed.raise("berlin");
    let is_online = |messages: &BTreeMap<String, String>| {
        topic(messages, "gateway/", "/availability").is_some_and(|(_, message)| message == "online")
            && topic(messages, "gateway/", "/alert_berlin").is_some()
    };
    broker.wait("the sensor", is_online);
    let mut listener = broker.listen("gateway/+/test");
    // It may not have subscribed before the first test.
    wait_ok(SOON, "a message", || {
        anyhow::ensure!(testbed.test_broker()["delivered"] == true, "it is not delivered");
        anyhow::ensure!(listener.try_wait()?.is_some(), "it has not arrived");
        Ok(())
    })
    .expect("it arrives");
    let output = listener.wait_with_output().expect("mosquitto_sub");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "test", "{output:?}");
    let messages = broker.retained().expect("messages");
    assert!(is_online(&messages) && topic(&messages, "gateway/", "/test").is_none(), "{messages:?}");
}
