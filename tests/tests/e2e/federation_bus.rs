//! Federation over a hub: Debian's NATS server beside the main gateway, with the configuration that this gateway writes.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use gateway_core::federation::bus::publication::subject;
use gateway_model::kinds::SyncKind;
use gateway_tests::certificate::ServerCertificate;
use gateway_tests::daemon::Api;
use gateway_tests::process::Process;
use gateway_tests::testbed::create;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::federation::{Gateways, node};
use crate::e2e::SOON;

const ADDRESS: &str = "192.168.10.1";
const HUB: &str = "192.168.10.1:4222";

/// NATS server in the namespace of the main gateway.
struct Hub<'g> {
    gateways: &'g Gateways,
    files: TempDir,
    process: Option<Process>,
}

impl<'g> Hub<'g> {
    /// Starts a server with this configuration, whose folder of the store is replaced.
    fn start(gateways: &'g Gateways, configuration: &str) -> Hub<'g> {
        let files = tempfile::tempdir().expect("a folder");
        let store = files.path().join("store").display().to_string();
        let text = configuration.replace("/var/lib/gateway-federation-hub", &store);
        assert!(text.contains(&store), "{text}");
        fs::write(files.path().join("hub.conf"), text).expect("a file");
        let mut hub = Hub { gateways, files, process: None };
        hub.run();
        hub
    }

    fn run(&mut self) {
        let namespace = &self.gateways.main.network.gateway;
        let log = fs::File::create(self.log()).expect("a log");
        let mut command = namespace.command("nats-server");
        command.arg("-c").arg(self.files.path().join("hub.conf")).stdout(Stdio::null()).stderr(log);
        self.process = Some(namespace.spawn(command).expect("nats-server"));
    }

    fn log(&self) -> std::path::PathBuf {
        self.files.path().join("log")
    }

    fn kill9(&mut self) {
        self.process.take().expect("a process").kill9().expect("killed");
    }

    /// Makes both gateways use the hub, and waits until they do.
    fn join(&self, url: &str, authority: &str) {
        for api in [self.gateways.main.api(), self.gateways.branch.api()] {
            let settings = json!({"enabled": true, "url": url, "ca_certificate": authority});
            api.put("/federation/bus", &settings).expect("stored");
            self.wait(api, "connected");
        }
    }

    fn wait(&self, api: &Api, state: &str) {
        wait_ok(SOON * 3, state, || {
            let bus = bus(api)?;
            ensure!(bus["state"] == state, "{bus}");
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error:#}\n{}", fs::read_to_string(self.log()).unwrap_or_default()));
    }
}

fn bus(api: &Api) -> Result<Value> {
    Ok(api.get("/federation/status")?["bus"].clone())
}

fn count(api: &Api, name: &str) -> u64 {
    bus(api).expect("a status")[name].as_u64().expect("a number")
}

fn configuration(api: &Api, query: &str) -> String {
    let hub = api.get(&format!("/federation/hub?listen={HUB}{query}")).expect("a configuration");
    assert!(hub["unit"].as_str().expect("a unit").contains("nats-server -c"), "{hub}");
    hub["configuration"].as_str().expect("a text").to_owned()
}

/// Creates a device at the main gateway. Its name is in the last byte of the MAC address as well.
fn device(gateways: &Gateways, number: u8) -> String {
    let device = json!({"name": format!("device {number}"), "mac": format!("02:00:00:aa:00:{number:02x}")});
    create(gateways.main.api(), "/devices", &device).expect("a device")
}

/// Creates devices until one arrives over the hub: a pull may be faster by chance. Returns its id.
fn device_over_the_hub(gateways: &Gateways, numbers: std::ops::Range<u8>) -> String {
    let before = count(gateways.branch.api(), "taken");
    for number in numbers {
        let id = device(gateways, number);
        wait_for_device(gateways, &id);
        if count(gateways.branch.api(), "taken") > before || is_taken(gateways, before) {
            return id;
        }
    }
    panic!("nothing came over the hub: {}", bus(gateways.branch.api()).expect("a status"));
}

/// Reports whether a change was confirmed after it came over the hub.
fn is_taken(gateways: &Gateways, before: u64) -> bool {
    wait_ok(SOON, "the change to be confirmed", || {
        let branch = gateways.branch.api();
        let taken = count(branch, "taken") > before;
        let completed = branch.get("/federation/recent-events?limit=1")?;
        ensure!(taken || completed[0]["kind"] == "sync_completed", "{completed}");
        Ok(taken)
    })
    .expect("the change is confirmed")
}

fn wait_for_device(gateways: &Gateways, id: &str) {
    wait_ok(SOON * 2, "the device to arrive", || gateways.branch.api().get(&format!("/devices/{id}")))
        .unwrap_or_else(|error| panic!("{error:#}\n{}", gateways.branch.last_words()));
}

/// The hub is made of the nodes with their keys, with TLS. It is killed, and changes go on by pulls; it is back, and they
/// go over it again.
#[test]
fn changes_arrive_over_the_hub_and_by_pulls_while_it_is_dead() {
    let gateways = Gateways::synced();
    let (main, branch) = (gateways.main.api(), gateways.branch.api());
    let certificate = ServerCertificate::issue(&[ADDRESS]).expect("a certificate");
    let query = format!(
        "&tls_certificate={}&tls_key={}",
        certificate.file().display(),
        certificate.key_file().display()
    );
    let mut hub = Hub::start(&gateways, &configuration(main, &query));
    let authority = fs::read_to_string(certificate.file()).expect("a certificate");
    hub.join(&format!("tls://{HUB}"), &authority);

    let first = device_over_the_hub(&gateways, 1..4);
    let arrived = branch.get(&format!("/devices/{first}")).expect("the device");
    assert_eq!(arrived["origin_node"], node(branch)["id"], "{arrived}");
    let events = branch.get("/federation/recent-events?kind=sync_completed&limit=1").expect("events");
    assert_eq!(events[0]["message"], "Took devices over the hub.", "{events}");
    assert_eq!(count(main, "rejected") + count(branch, "rejected"), 0);

    hub.kill9();
    hub.wait(branch, "connecting");
    let taken = count(branch, "taken");
    let second = device(&gateways, 10);
    gateways.sync().expect("a pull");
    wait_for_device(&gateways, &second);
    assert_eq!(count(branch, "taken"), taken);
    let lost = branch.get("/federation/recent-events?kind=bus_lost").expect("events");
    assert_eq!(lost.as_array().map(Vec::len), Some(1), "{lost}");

    hub.run();
    hub.wait(main, "connected");
    hub.wait(branch, "connected");
    device_over_the_hub(&gateways, 20..23);
    main.delete(&format!("/devices/{second}")).expect("deleted");
    wait_ok(SOON * 2, "the deletion to arrive", || {
        ensure!(branch.send("GET", &format!("/devices/{second}"), None)?.status == 404, "it is there");
        Ok(())
    })
    .expect("the deletion");
    let metrics = gateways.main.network.gateway.run("curl", &["-s", "http://127.0.0.1:8080/metrics"]);
    let metrics = metrics.expect("metrics");
    assert!(metrics.contains("federation_bus_connected 1"), "{metrics}");
}

/// Publishes a message as any host that may sign in.
fn publish(gateways: &Gateways, subject: &str, payload: &str) -> Result<()> {
    let mut stream = gateways.main.network.gateway.within(|| TcpStream::connect(HUB))?;
    stream.set_read_timeout(Some(SOON))?;
    let text = format!("CONNECT {{}}\r\nPUB {subject} {}\r\n{payload}\r\nPING\r\n", payload.len());
    stream.write_all(text.as_bytes())?;
    let mut received = Vec::new();
    while !received.ends_with(b"PONG\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).context("no answer of the hub")?;
        received.push(byte[0]);
    }
    Ok(())
}

/// A hub that lets everyone in: messages that the node has not signed are counted and dropped, and so are those of an
/// earlier state.
#[test]
fn forged_and_repeated_messages_change_nothing() {
    let gateways = Gateways::synced();
    let (main, branch) = (gateways.main.api(), gateways.branch.api());
    let open = format!(
        "listen: \"{HUB}\"\nmax_payload: 8388608\njetstream {{\n store_dir: \"/var/lib/gateway-federation-hub\"\n}}\n"
    );
    let hub = Hub::start(&gateways, &open);
    hub.join(&format!("nats://{HUB}"), "");
    let key = node(branch)["public_key"].as_str().expect("a key").to_owned();
    let subject = subject(SyncKind::Devices, key.parse().expect("a key"));

    let offer = json!({"revision": 1_000_000, "hash": "00", "objects": {"devices": []}});
    let payload =
        json!({"schema": 1, "node_id": "x", "version": "1", "kind": "devices", "heads": {}, "offer": offer});
    let own_key = node(main)["public_key"].clone();
    for public_key in [json!(key), own_key] {
        let forged =
            json!({"payload": payload.to_string(), "public_key": public_key, "signature": "A".repeat(88)});
        publish(&gateways, &subject, &forged.to_string()).expect("published");
    }
    publish(&gateways, &subject, "not a message").expect("published");
    wait_ok(SOON, "the messages to be rejected", || {
        let bus = bus(branch)?;
        ensure!(bus["rejected"] == 3, "{bus}");
        Ok(())
    })
    .expect("rejected");
    let events = branch.get("/federation/recent-events?kind=resource_rejected").expect("events");
    assert!(events[0]["message"].as_str().is_some_and(|text| text.contains("devices")), "{events}");

    // The true state still arrives.
    let first = device(&gateways, 1);
    wait_for_device(&gateways, &first);
    // A kind that is not followed any more is not taken, even though the hub has it.
    gateways.follow("routing");
    device(&gateways, 2);
    gateways.sync().expect("a pull");
    hub.wait(branch, "connected");
    assert_eq!(branch.get("/devices").expect("devices").as_array().map(Vec::len), Some(1));
}
