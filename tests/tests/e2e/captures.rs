//! Packet captures with the packets of real clients.

mod limits;
mod paths;
mod process;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use gateway_tests::services::IDENT;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{UdpFlow, ask_server, ping};
use gateway_tests::wait::wait_until;
use serde_json::{Value, json};

use crate::e2e::SOON;

/// LAN interface, and uplink.
const LAN: &str = "eth1";
const UPLINK: &str = "eth0";

/// Starts a capture and returns its id.
fn start(testbed: &Testbed, request: &Value) -> String {
    let session = testbed.api().post("/diagnostics/capture", request).expect("a capture");
    assert_eq!(session["state"], "running", "{session}");
    session["id"].as_str().expect("an id").to_owned()
}

fn detail(testbed: &Testbed, id: &str) -> Value {
    testbed.api().get(&format!("/diagnostics/capture/{id}?limit=1000")).expect("the capture")
}

/// Returns the summaries that have a property, as soon as there is one.
fn wait_for_packets(
    testbed: &Testbed,
    id: &str,
    what: &str,
    is_wanted: impl Fn(&Value) -> bool,
) -> Vec<Value> {
    wait_until(SOON, what, || {
        let shown = detail(testbed, id);
        let all = shown["summaries"].as_array().expect("a list").clone();
        let wanted: Vec<Value> = all.into_iter().filter(|packet| is_wanted(packet)).collect();
        (!wanted.is_empty()).then_some(wanted)
    })
    .unwrap_or_else(|error| panic!("{error}: {}", detail(testbed, id)))
}

fn stop(testbed: &Testbed, id: &str) -> Value {
    let stopped = testbed.api().delete(&format!("/diagnostics/capture/{id}")).expect("stopped");
    assert_eq!(stopped, json!({"id": id, "deleted": false}));
    detail(testbed, id)
}

/// Returns fields of each packet in a download, as tshark reads them.
fn read_by_tshark(testbed: &Testbed, id: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let bytes = testbed.api().bytes(&format!("/diagnostics/capture/{id}/pcapng")).expect("a download");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("capture.pcapng");
    std::fs::write(&path, bytes).expect("written");
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields"]).args(fields.iter().flat_map(|field| ["-e", field]));
    let output = command.arg("-r").arg(&path).output().expect("tshark of `cargo xtask setup`");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn capture_shows_packets_with_their_device_decision_and_leg() {
    let testbed = Testbed::start().expect("scene");
    let laptop = &testbed.network.laptop;
    let device = testbed.device(laptop).expect("device");
    testbed.tunnel("a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("all by a", 10, ("device", &device), &["a"])).expect("policy");
    let lan = start(&testbed, &json!({"interface": LAN}));
    let tunnel = start(&testbed, &json!({"interface": "wg-a"}));
    assert!(ping(laptop, server(false)), "an answer");
    ask_server(laptop, server(true));

    let is_request =
        |packet: &Value| packet["info"].as_str().is_some_and(|info| info.starts_with("echo request"));
    let requests = wait_for_packets(&testbed, &lan, "the request of the laptop", is_request);
    let request = &requests[0];
    assert_eq!((&request["proto"], &request["src"]), (&json!("ICMP"), &json!(laptop.v4.to_string())));
    assert_eq!((&request["direction"], &request["device"]), (&json!("in"), &json!("laptop")));
    let decision = &request["decision"];
    assert_eq!(
        (&decision["decision"], &decision["egress"]),
        (&json!("tunnel"), &json!("vpn:a")),
        "{request}"
    );
    assert_eq!(decision["policy"], "all by a");
    let replies = wait_for_packets(&testbed, &lan, "the reply", |packet| packet["direction"] == "out");
    assert!(replies.iter().all(|packet| packet["decision"].is_null()), "{replies:?}");

    let requests = wait_for_packets(&testbed, &tunnel, "the request in the tunnel", is_request);
    assert_eq!((&requests[0]["leg"], &requests[0]["direction"]), (&json!("a"), &json!("out")));
    let stopped = stop(&testbed, &lan);
    assert_eq!((&stopped["state"], &stopped["end"]), (&json!("stopped"), &json!("stopped")));
    assert_eq!((&stopped["dropped"], &stopped["error"]), (&json!(0), &Value::Null));

    let packets =
        read_by_tshark(&testbed, &lan, &["frame.interface_name", "frame.protocols", "frame.comment"]);
    assert_eq!(json!(packets.len()), stopped["packets"], "{packets:?}");
    assert!(packets.iter().all(|packet| packet[0] == LAN), "{packets:?}");
    let is_icmp =
        |packet: &&Vec<String>| packet[1].ends_with("icmp:data") && packet[2].contains("egress=\"vpn:a\"");
    assert!(packets.iter().any(|packet| is_icmp(&packet)), "{packets:?}");
    // While it runs, and without a header of the link.
    let packets = read_by_tshark(&testbed, &tunnel, &["frame.interface_name", "frame.protocols"]);
    assert!(packets.iter().any(|packet| packet[..] == ["wg-a", "raw:ip:icmp:data"]), "{packets:?}");
    stop(&testbed, &tunnel);
}

#[test]
fn filters_and_presets_decide_what_is_captured() {
    let testbed = Testbed::start().expect("scene");
    let laptop = &testbed.network.laptop;
    let filtered = start(&testbed, &json!({"interface": "lan", "filter": "icmp6 and ip6[40] = 128"}));
    let preset = start(&testbed, &json!({"interface": LAN, "preset": "icmp", "filter": "ip", "snaplen": 64}));
    for ipv6 in [false, true] {
        assert!(ping(laptop, server(ipv6)), "an answer");
        ask_server(laptop, server(ipv6));
    }
    wait_for_packets(&testbed, &filtered, "a request", |packet| packet["proto"] == "ICMPv6");
    wait_for_packets(&testbed, &preset, "a reply", |packet| packet["direction"] == "out");
    let all = stop(&testbed, &filtered)["summaries"].as_array().expect("a list").clone();
    assert!(
        all.iter().all(|packet| packet["info"].as_str().is_some_and(|info| info.starts_with("echo request"))),
        "{all:?}"
    );
    let all = stop(&testbed, &preset)["summaries"].as_array().expect("a list").clone();
    assert!(all.iter().all(|packet| packet["proto"] == "ICMP" && packet["length"] == 98), "{all:?}");
    let lengths = read_by_tshark(&testbed, &preset, &["frame.len", "frame.cap_len"]);
    assert!(lengths.iter().all(|packet| packet[..] == ["98", "64"]), "{lengths:?}");

    let presets = testbed.api().get("/diagnostics/capture/presets").expect("presets");
    let presets = presets.as_array().expect("a list");
    assert_eq!(presets.len(), 14);
    for preset in presets {
        let id = start(&testbed, &json!({"interface": LAN, "preset": preset["name"]}));
        stop(&testbed, &id);
        testbed.api().delete(&format!("/diagnostics/capture/{id}")).expect("deleted");
    }
}

#[test]
fn invalid_filter_is_refused_with_the_words_of_libpcap() {
    let testbed = Testbed::start().expect("scene");
    for (filter, words) in [("port 53 and and", "syntax error"), ("host nowhere.example", "unknown host")] {
        let request = json!({"interface": LAN, "filter": filter});
        let refused = testbed.api().send("POST", "/diagnostics/capture", Some(&request)).expect("an answer");
        let error = &refused.body["error"];
        assert_eq!((refused.status, &error["code"]), (422, &json!("validation_failed")), "{}", refused.body);
        let field = &error["details"]["fields"][0];
        let message = field["message"].as_str().expect("a message");
        assert!(field["path"] == "filter" && message.contains(words), "{field}");
    }
    for (request, path) in [
        (json!({}), "interface"),
        (json!({"interface": "eth77"}), "interface"),
        (json!({"interface": LAN, "count": 50_001}), "count"),
        (json!({"interface": LAN, "duration_sec": 3601}), "duration_sec"),
        (json!({"interface": LAN, "snaplen": 10}), "snaplen"),
    ] {
        let refused = testbed.api().send("POST", "/diagnostics/capture", Some(&request)).expect("an answer");
        assert_eq!(refused.status, 422, "{request}: {}", refused.body);
        assert_eq!(refused.body["error"]["details"]["fields"][0]["path"], path, "{}", refused.body);
    }
    assert_eq!(testbed.api().get("/diagnostics/captures").expect("a list"), json!([]));
}

#[test]
fn filter_without_libpcap_is_refused_with_what_it_needs() {
    let mut testbed = Testbed::prepare().expect("a fresh network");
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("gatewayd");
    let script = format!(
        "#!/bin/sh\nexec unshare --mount sh -c 'for library in $(ldconfig -p | sed -n \"s/.*libpcap.* => //p\"); do \
         mount --bind /dev/null \"$library\" || exit; done; exec {} \"$@\"' gatewayd \"$@\"\n",
        gateway_tests::daemon::find_program().expect("a daemon").display()
    );
    std::fs::write(&program, script).expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
    testbed.daemon.use_program(program);
    testbed.daemon.start().expect("a daemon");
    let request = json!({"interface": LAN, "filter": "icmp"});
    let refused = testbed.api().send("POST", "/diagnostics/capture", Some(&request)).expect("an answer");
    let error = &refused.body["error"];
    assert_eq!((refused.status, &error["code"]), (501, &json!("not_supported")), "{}", refused.body);
    let needs = error["details"]["needs"].as_str().expect("what it needs");
    assert!(needs.contains("libpcap0.8"), "{}", refused.body);
    assert_eq!(testbed.api().get("/diagnostics/captures").expect("a list"), json!([]));
    // Without a filter it works.
    let id = start(&testbed, &json!({"interface": LAN}));
    assert!(ping(&testbed.network.laptop, server(false)), "an answer");
    wait_for_packets(&testbed, &id, "a packet", |packet| packet["proto"] == "ICMP");
    stop(&testbed, &id);
    let metrics =
        testbed.network.gateway.run("curl", &["-s", "http://127.0.0.1:8080/metrics"]).expect("metrics");
    for line in [
        "gateway_captures_running 0",
        "gateway_captures_started_total 1",
        "gateway_captures_ended_total{cause=\"stopped\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    let captured = metrics.lines().find_map(|line| line.strip_prefix("gateway_captured_packets_total "));
    assert!(captured.is_some_and(|count| count != "0"), "{metrics}");
}

#[test]
fn stream_shows_packets_as_they_come_and_the_end() {
    let testbed = Testbed::start().expect("scene");
    let flow = UdpFlow::open(&testbed.network.laptop, (server(false), IDENT).into()).expect("a flow");
    let id = start(&testbed, &json!({"interface": LAN, "filter": format!("udp port {IDENT}"), "count": 20}));
    let mut lines = testbed.api().json_lines(&format!("/diagnostics/capture/{id}/stream")).expect("a stream");
    for no in 1..=20 {
        if no % 2 == 1 {
            flow.ask(SOON).expect("an answer");
        }
        // The next one is not sent before this one is here.
        let packet = lines.find(|line| !line["no"].is_null()).expect("a packet");
        assert_eq!((&packet["no"], &packet["proto"]), (&json!(no), &json!("UDP")), "{packet}");
    }
    let last = lines.last().expect("the end");
    assert_eq!(
        (&last["session"]["state"], &last["session"]["end"]),
        (&json!("done"), &json!("count")),
        "{last}"
    );
}
