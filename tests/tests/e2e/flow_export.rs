//! Flow records at real collectors: nfcapd, nfacctd, rsyslog, and the schema of OpenTelemetry.

use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use gateway_tests::certificate::ServerCertificate;
use gateway_tests::process::Process;
use gateway_tests::services::HTTP;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use gateway_tests::wait::wait_ok;
use gateway_tests::webhook_receiver::WebhookReceiver;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::e2e::{SOON, assert_blocked, wait_until_through};

/// Reads bodies of `/v1/logs` and `/v1/metrics` as the protocol defines them. Prints the attributes of each log record, and
/// the names of the metrics.
const READ: &str = "
import json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
given = json.load(sys.stdin)
def value(any):
    return getattr(any, any.WhichOneof('value'))
logs, names = [], set()
for path, body in given:
    if path == '/v1/logs':
        for resource in json_format.Parse(body, ExportLogsServiceRequest()).resource_logs:
            for scope in resource.scope_logs:
                for record in scope.log_records:
                    logs.append({a.key: value(a.value) for a in record.attributes if a.key != 'names' and a.key != 'hops'})
    else:
        for resource in json_format.Parse(body, ExportMetricsServiceRequest()).resource_metrics:
            for scope in resource.scope_metrics:
                names.update(m.name for m in scope.metrics if m.sum.data_points or m.gauge.data_points)
json.dump({'logs': logs, 'metrics': sorted(names)}, sys.stdout)
";

/// Returns a port that is free in this namespace.
fn free_port(host: &gateway_tests::netns::Namespace, is_udp: bool) -> u16 {
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    let address = host.within(|| match is_udp {
        true => UdpSocket::bind(any).and_then(|socket| socket.local_addr()),
        false => TcpListener::bind(any).and_then(|listener| listener.local_addr()),
    });
    address.expect("a port").port()
}

/// nfcapd in the namespace of the gateway.
struct Nfcapd {
    folder: TempDir,
    port: u16,
    process: Option<Process>,
}

impl Nfcapd {
    fn start(testbed: &Testbed) -> Nfcapd {
        let port = free_port(&testbed.network.gateway, true);
        let folder = tempfile::tempdir().expect("a folder");
        let mut nfcapd = Nfcapd { folder, port, process: None };
        nfcapd.restart(testbed);
        nfcapd
    }

    fn restart(&mut self, testbed: &Testbed) {
        self.process = None;
        let mut command = testbed.network.gateway.command("nfcapd");
        command.args(["-b", "127.0.0.1", "-p", &self.port.to_string(), "-w"]).arg(self.folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(Process::spawn(command).expect("nfcapd"));
    }

    /// Ends nfcapd, which completes its file. Returns the flows.
    fn flows(&mut self) -> anyhow::Result<Vec<Value>> {
        if let Some(mut process) = self.process.take() {
            process.terminate(SOON)?;
        }
        let mut command = Command::new("nfdump");
        command.arg("-R").arg(self.folder.path()).args(["-o", "json"]);
        let output = command.output().context("nfdump")?;
        let text = String::from_utf8(output.stdout)?;
        let list = text.find('[').zip(text.rfind(']')).and_then(|(from, to)| text.get(from..=to));
        let list =
            list.with_context(|| format!("no list: {text} {}", String::from_utf8_lossy(&output.stderr)))?;
        Ok(serde_json::from_str(list)?)
    }
}

/// nfacctd of pmacct in the namespace of the gateway. It writes what it has got once a second, as lines of JSON.
struct Nfacctd {
    folder: TempDir,
    port: u16,
    _process: Process,
}

impl Nfacctd {
    fn start(testbed: &Testbed) -> Nfacctd {
        let port = free_port(&testbed.network.gateway, true);
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let settings = format!(
            "nfacctd_ip: 127.0.0.1
nfacctd_port: {port}
plugins: print
aggregate: src_host, dst_host, src_port, dst_port, proto
print_output: json
print_output_file: {file}
print_output_file_append: true
print_refresh_time: 1
",
            file = path("flows.json"),
        );
        fs::write(path("nfacctd.conf"), settings).expect("a configuration");
        let mut command = testbed.network.gateway.command("nfacctd");
        command.args(["-f", &path("nfacctd.conf")]).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command).expect("nfacctd");
        Nfacctd { folder, port, _process: process }
    }

    fn flows(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("flows.json")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// rsyslog over TLS-less TCP, in the namespace of the gateway. Each message is a line of JSON in a file.
struct Rsyslog {
    folder: TempDir,
    port: u16,
    _process: Process,
}

impl Rsyslog {
    fn start(testbed: &Testbed) -> Rsyslog {
        let port = free_port(&testbed.network.gateway, false);
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let rules = format!(
            r#"module(load="imtcp")
module(load="mmjsonparse")
global(workDirectory="{folder}")
template(name="parsed" type="list") {{ property(name="hostname") constant(value=" ") property(name="pri") constant(value=" ") property(name="$!all-json") constant(value="\n") }}
input(type="imtcp" port="{port}" address="127.0.0.1" ruleset="flows")
ruleset(name="flows") {{
  action(type="mmjsonparse")
  if $parsesuccess == "OK" then action(type="omfile" file="{file}" template="parsed")
}}
"#,
            folder = folder.path().display(),
            file = path("flows.log"),
        );
        fs::write(path("rsyslog.conf"), rules).expect("a configuration");
        let mut command = testbed.network.gateway.command("rsyslogd");
        command.args(["-n", "-f", &path("rsyslog.conf"), "-i", &path("pid")]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command).expect("rsyslogd");
        Rsyslog { folder, port, _process: process }
    }

    /// Returns priority and fields of each record.
    fn records(&self) -> Vec<(String, Value)> {
        let text = fs::read_to_string(self.folder.path().join("flows.log")).unwrap_or_default();
        let parse = |line: &str| {
            let mut words = line.splitn(3, ' ').skip(1);
            Some((words.next()?.to_owned(), serde_json::from_str(words.next()?).ok()?))
        };
        text.lines().filter_map(parse).collect()
    }
}

/// Reads what a collector of OpenTelemetry got, by the protocol's own definition.
fn read_otlp(receiver: &WebhookReceiver) -> Value {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/schemathesis/bin/python");
    assert!(python.is_file(), "no environment of Python: run `cargo xtask setup`");
    let requests = receiver.requests();
    let given: Vec<(&str, &str)> = requests
        .iter()
        .map(|request| (request.path.as_str(), std::str::from_utf8(&request.body).expect("a text")))
        .collect();
    let mut command = Command::new(python);
    command.args(["-c", READ]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("python starts");
    serde_json::to_writer(child.stdin.take().expect("a pipe"), &given).expect("written");
    let output = child.wait_with_output().expect("python ends");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Asks the web server by the tunnel. Returns the record of the flow log, which is another one than `known`.
fn flow_of(testbed: &Testbed, device: &str, known: &Value) -> Value {
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    let query = format!("/flows?device={device}&destination={}&port={HTTP}&state=ended", server(false));
    wait_ok(SOON, "the flow in the log", || {
        let found = testbed.api().get(&query)?;
        let newest = found.as_array().context("a list")?.iter().find(|flow| flow["egress"] == "wg-a");
        let newest = newest.with_context(|| format!("{found:#?}"))?;
        anyhow::ensure!(newest["flow_id"] != *known, "no other flow");
        Ok(newest.clone())
    })
    .expect("the flow")
}

fn export(testbed: &Testbed, config: &Value) {
    testbed.api().put("/flows/export", config).expect("collectors");
}

#[test]
fn real_collectors_read_what_the_flow_log_has() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("a device");
    let tv = testbed.device(&network.tv).expect("a device");
    testbed.tunnel("wg-a", &network.exit_a).expect("a tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("a policy");
    testbed.policy(&policy("stop", 20, ("device", &tv), &[])).expect("a policy");
    let (mut nfcapd, rsyslog) = (Nfcapd::start(&testbed), Rsyslog::start(&testbed));
    let listener = network.gateway.within(|| TcpListener::bind("127.0.0.1:0")).expect("a listener");
    let receiver = WebhookReceiver::start(listener).expect("a receiver");
    export(
        &testbed,
        &json!({
            "ipfix": {"enabled": true, "host": "127.0.0.1", "port": nfcapd.port},
            "syslog": {"enabled": true, "host": "127.0.0.1", "port": rsyslog.port, "tls": false},
            "otlp": {"enabled": true, "url": receiver.url("").trim_end_matches('/'), "metrics_interval_sec": 5},
        }),
    );
    let flow = flow_of(&testbed, &laptop, &Value::Null);
    assert_blocked(&network.tv);
    let id = flow["flow_id"].clone();

    let record = wait_ok(SOON, "the record at rsyslog", || {
        let records = rsyslog.records();
        let found = records.iter().find(|(_, record)| record["flow_id"] == id).cloned();
        found.with_context(|| format!("{records:#?}"))
    });
    let (priority, record) = record.expect("a record");
    assert_eq!((priority.as_str(), &record["egress"]), ("166", &json!("wg-a")), "{record:#}");
    assert_eq!(record["sent_bytes"], flow["sent"]["bytes"], "{record:#}");

    // The collectors are served once a second, and rsyslog has its record.
    wait_ok(SOON, "records at nfcapd", || {
        let states = testbed.api().get("/flows/export/status")?;
        anyhow::ensure!(states[0]["waiting"] == 0 && states[0]["sent"].as_u64() > Some(0), "{states:#}");
        Ok(())
    })
    .expect("records were sent");
    let flows = nfcapd.flows().expect("flows");
    let is_it = |seen: &&Value| seen["dst_port"] == HTTP && seen["in_bytes"] == flow["sent"]["bytes"];
    let seen = flows.iter().find(is_it).unwrap_or_else(|| panic!("{flows:#?}"));
    assert_eq!(seen["src4_addr"], flow["client"]["ip"], "{seen:#}");
    assert_eq!((&seen["dst4_addr"], &seen["proto"]), (&json!(server(false)), &json!(6)), "{seen:#}");

    let read = wait_ok(SOON, "logs and metrics of OpenTelemetry", || {
        let read = read_otlp(&receiver);
        let is_there =
            read["logs"].as_array().is_some_and(|logs| logs.iter().any(|log| log["flow_id"] == id));
        let metrics = read["metrics"].as_array().map_or(0, Vec::len);
        anyhow::ensure!(is_there && metrics > 20, "{read:#}");
        Ok(read)
    });
    let read = read.expect("both");
    let log =
        read["logs"].as_array().expect("a list").iter().find(|log| log["flow_id"] == id).expect("the log");
    assert_eq!(
        (&log["egress"], &log["destination.port"], &log["network.transport"]),
        (&json!("wg-a"), &json!(HTTP), &json!("tcp"))
    );
    let states = testbed.api().get("/flows/export/status").expect("states");
    for state in states.as_array().expect("a list") {
        assert_eq!((&state["status"], &state["error"]), (&json!("ok"), &json!(null)), "{state:#}");
    }
}

#[test]
fn nfacctd_reads_the_records_of_ipfix() {
    let testbed = Testbed::start().expect("a testbed");
    let laptop = testbed.device(&testbed.network.laptop).expect("a device");
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("a tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("a policy");
    let nfacctd = Nfacctd::start(&testbed);
    export(&testbed, &json!({"ipfix": {"enabled": true, "host": "127.0.0.1", "port": nfacctd.port}}));
    let mut logged = vec![Value::Null];
    let seen = wait_ok(SOON, "a record at nfacctd", || {
        // Datagrams that come before nfacctd listens are lost.
        let known = logged.last().map_or(Value::Null, |flow: &Value| flow["flow_id"].clone());
        logged.push(flow_of(&testbed, &laptop, &known));
        let flows = nfacctd.flows();
        let is_logged = |seen: &&Value| {
            let is_of = |flow: &Value| {
                (&seen["bytes"], &seen["packets"]) == (&flow["sent"]["bytes"], &flow["sent"]["packets"])
            };
            seen["port_dst"] == HTTP && logged.iter().any(is_of)
        };
        flows.iter().find(is_logged).cloned().with_context(|| format!("{flows:#?} and {logged:#?}"))
    });
    let seen = seen.expect("a record");
    assert_eq!((&seen["ip_dst"], &seen["ip_proto"]), (&json!(server(false)), &json!("tcp")), "{seen:#}");
    assert_eq!(seen["ip_src"], logged[1]["client"]["ip"], "{seen:#}");
}

#[test]
fn a_collector_that_was_away_gets_what_it_missed() {
    let mut testbed = Testbed::start().expect("a testbed");
    let laptop = testbed.device(&testbed.network.laptop).expect("a device");
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("a tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("a policy");
    let port = free_port(&testbed.network.gateway, false);
    let certificate = ServerCertificate::issue(&["localhost"]).expect("a certificate");
    let authority = fs::read_to_string(certificate.file()).expect("a certificate");
    let syslog = json!({"enabled": true, "host": "localhost", "port": port, "ca_certificate": authority});
    export(&testbed, &json!({ "syslog": syslog }));
    let state = |testbed: &Testbed| -> anyhow::Result<Value> {
        let states = testbed.api().get("/flows/export/status")?;
        let found = states.as_array().and_then(|states| states.iter().find(|s| s["collector"] == "syslog"));
        found.cloned().context("no state")
    };
    wait_ok(SOON, "a failure", || {
        let state = state(&testbed)?;
        anyhow::ensure!(state["status"] == "failed" && state["error"].is_string(), "{state:#}");
        Ok(())
    })
    .expect("the failure is reported");
    let first = flow_of(&testbed, &laptop, &Value::Null);
    // The records wait in the flow log, over a restart of the daemon as well.
    testbed.daemon.terminate().expect("stopped");
    testbed.daemon.start().expect("started again");
    let second = flow_of(&testbed, &laptop, &first["flow_id"]);
    let folder = tempfile::tempdir().expect("a folder");
    let seen = folder.path().join("seen");
    let mut command = testbed.network.gateway.command("openssl");
    command.args(["s_server", "-quiet", "-accept", &format!("127.0.0.1:{port}"), "-cert"]);
    command.arg(certificate.file()).arg("-key").arg(certificate.key_file());
    command.stdin(Stdio::piped()).stdout(fs::File::create(&seen).expect("a file")).stderr(Stdio::null());
    let _server = testbed.network.gateway.spawn(command).expect("a server");
    wait_ok(SOON, "both records", || {
        let text = fs::read_to_string(&seen)?;
        for flow in [&first, &second] {
            let id = flow["flow_id"].as_str().context("an id")?;
            anyhow::ensure!(text.contains(id), "{id} is not in {text}");
        }
        Ok(())
    })
    .expect("the collector has both");
    wait_ok(SOON, "an empty queue", || {
        let state = state(&testbed)?;
        anyhow::ensure!(state["status"] == "ok" && state["waiting"] == 0 && state["lost"] == 0, "{state:#}");
        Ok(())
    })
    .expect("nothing waits");
}
