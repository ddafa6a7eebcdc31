//! Health of functions whose process is well: each failure is seen in `/health`, `/observer`, the verdict, the metrics,
//! the log and `gatewayd preflight`, and so is its end.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gateway_tests::name_server::{self, NameServer};
use gateway_tests::netns::Namespace;
use gateway_tests::testbed::Testbed;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

/// Timeout for a check to show a change: the daemon may have to notice that nothing answers.
const NOTICED: Duration = Duration::from_secs(120);

/// Name of this program, as the kernel has it.
fn own_name() -> String {
    let name = fs::read_to_string("/proc/self/comm").expect("the name of this program");
    name.trim().to_owned()
}

/// Takes a UDP port in the namespace of the gateway, as another program there would.
fn take_port(gateway: &Namespace, port: u16) -> UdpSocket {
    gateway.within(|| UdpSocket::bind(("0.0.0.0", port))).expect("the port")
}

/// Returns the entry of a check in `/observer`.
fn observed(testbed: &Testbed, check: &str) -> Result<Value> {
    let observer = testbed.api().get("/observer")?;
    let entries = observer.as_array().context("a list")?;
    let entry = entries.iter().find(|entry| entry["subsystem"] == check && !entry["code"].is_null());
    entry.cloned().with_context(|| format!("no {check} in {observer}"))
}

/// Waits until a check has a state with a code everywhere. Returns its entry in `/observer`.
fn wait_for_check(testbed: &Testbed, check: &str, state: &str, code: &str) -> Value {
    wait_ok(NOTICED, &format!("{check} to be {state} ({code})"), || {
        let entry = observed(testbed, check)?;
        ensure!(entry["state"] == state && entry["code"] == code, "{entry}");
        let health = testbed.api().get("/health")?;
        let checks = health["checks"].as_array().context("checks")?;
        let same =
            |other: &&Value| other["name"] == check && other["state"] == state && other["code"] == code;
        ensure!(checks.iter().any(|other| same(&other)), "{health}");
        let verdict = testbed.api().get("/status")?["verdict"].clone();
        let named =
            verdict["checks"].as_array().context("checks")?.iter().any(|other| other["name"] == check);
        let message = entry["message"].as_str().unwrap_or_default();
        let is_impaired = matches!(state, "degraded" | "failed");
        let says = verdict["sentence"].as_str().unwrap_or_default().contains(message);
        ensure!(named == is_impaired && (says || !is_impaired), "{entry} in {verdict}");
        Ok(entry)
    })
    .unwrap_or_else(|error| panic!("{error:#}\n{}", testbed.daemon.last_words()))
}

/// Returns the status of `/health?full=true`.
fn full_status(testbed: &Testbed) -> u16 {
    testbed.api().send("GET", "/health?full=true", None).expect("an answer").status
}

fn log(testbed: &Testbed) -> String {
    fs::read_to_string(testbed.daemon.log_file()).expect("a log")
}

/// Returns the line of `gatewayd preflight` that contains a text.
fn preflight(testbed: &Testbed, what: &str) -> String {
    let output = testbed.daemon.command(&["preflight"]).output().expect("preflight");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = table.lines().find(|line| line.contains(what));
    line.unwrap_or_else(|| panic!("no {what} in {table}")).to_owned()
}

#[test]
fn a_program_at_port_53_is_named_and_the_resolver_recovers_when_it_ends() {
    let mut testbed = Testbed::prepare().expect("scene");
    let taken = take_port(&testbed.network.gateway, 53);
    let program = own_name();
    let line = preflight(&testbed, "dns.listen_addr UDP 0.0.0.0:53");
    assert!(line.contains("FAILED") && line.contains(&program), "{line}");
    testbed.daemon.start().expect("the daemon runs without its resolver");
    let entry = wait_for_check(&testbed, "dns", "failed", "port_taken");
    assert_eq!(entry["params"]["program"], json!(program), "{entry}");
    assert_eq!(entry["params"]["pid"], json!(std::process::id().to_string()), "{entry}");
    assert!(entry["remedy"].as_str().is_some_and(|remedy| remedy.contains(&program)), "{entry}");
    assert_eq!(testbed.api().get("/health").expect("health")["status"], "ok", "the daemon itself is well");
    assert_eq!(full_status(&testbed), 503);
    let lines = |text: &str| log(&testbed).lines().filter(|line| line.contains(text)).count();
    assert_eq!(lines("health check: failed check=\"dns\""), 1, "one line for the change");
    drop(taken);
    wait_for_check(&testbed, "dns", "ok", "ok");
    // The query of the LAN comes some seconds later.
    wait_for_check(&testbed, "dns_lan", "ok", "ok");
    assert_eq!(full_status(&testbed), 200);
    assert_eq!(lines("health check passes again check=\"dns\""), 1);
    let line = preflight(&testbed, "dns.listen_addr UDP 0.0.0.0:53");
    assert!(line.contains("ok: the running daemon has it"), "{line}");
}

#[test]
fn a_gateway_without_upstream_and_with_a_silent_one_says_so() {
    let testbed = Testbed::start().expect("scene");
    let entry = wait_for_check(&testbed, "dns_upstreams", "degraded", "no_upstream");
    assert!(
        entry["remedy"].as_str().is_some_and(|remedy| remedy.contains("dns.upstream_servers")),
        "{entry}"
    );
    let line = preflight(&testbed, "no upstream is set");
    assert!(line.contains("note"), "{line}");
    assert_eq!(full_status(&testbed), 200, "degraded is not failed");
    let place = testbed.network.exit_a.place.v4;
    let server = NameServer::start(&testbed.network.internet, place).expect("a name server");
    let servers = json!({"value": [name_server::ADDRESS]});
    testbed.api().put("/settings/dns.upstream_servers", &servers).expect("stored");
    // No host asks anything: the daemon itself has to find out.
    wait_for_check(&testbed, "dns_upstreams", "ok", "ok");
    server.answer(None);
    let entry = wait_for_check(&testbed, "dns_upstreams", "failed", "all_upstreams_down");
    assert!(entry["message"].as_str().is_some_and(|text| text.contains("192.0.2.53")), "{entry}");
    assert_eq!(full_status(&testbed), 503);
    let gateway = &testbed.network.gateway;
    let metrics = gateway.run("curl", &["-s", "http://127.0.0.1:8080/metrics"]).expect("metrics");
    let failed = "gateway_health_check{check=\"dns_upstreams\",state=\"failed\"} 1";
    assert!(metrics.contains(failed), "{metrics}");
    server.answer(Some(place));
    wait_for_check(&testbed, "dns_upstreams", "ok", "ok");
}

#[test]
fn dhcp_that_cannot_give_addresses_is_seen() {
    let testbed = Testbed::start().expect("scene");
    let settings = |first: &str, last: &str| json!({"enabled": true, "interface": "eth1", "range_start": first, "range_end": last});
    let outside = settings("10.9.0.10", "10.9.0.18");
    let refused = testbed.api().send("PUT", "/dhcp", Some(&outside)).expect("an answer");
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert_eq!(refused.body["error"]["details"]["fields"][0]["path"], "range_start", "{}", refused.body);
    testbed.api().put("/dhcp", &settings("192.168.10.100", "192.168.10.109")).expect("stored");
    wait_for_check(&testbed, "dhcp", "ok", "ok");
    // The address of the interface changes later.
    let gateway = &testbed.network.gateway;
    gateway.ip("address del 192.168.10.1/24 dev eth1\naddress add 192.168.11.1/24 dev eth1").expect("moved");
    let entry = wait_for_check(&testbed, "dhcp", "failed", "network_not_served");
    let says = entry["message"].as_str().unwrap_or_default();
    assert!(says.contains("outside of the network of eth1 (192.168.11.1/24)"), "{entry}");
    gateway.ip("address add 192.168.10.1/24 dev eth1").expect("moved back");
    wait_for_check(&testbed, "dhcp", "ok", "ok");
    // Another program takes the port while the server is off.
    let off = json!({"enabled": false, "interface": "eth1", "range_start": "192.168.10.100", "range_end": "192.168.10.109"});
    testbed.api().put("/dhcp", &off).expect("stored");
    let taken = wait_ok(NOTICED, "the port to be free", || {
        gateway.within(|| UdpSocket::bind(("0.0.0.0", 67))).context("the port")
    })
    .expect("free");
    let line = preflight(&testbed, "DHCP server UDP 0.0.0.0:67");
    assert!(line.contains("note") && line.contains(&own_name()), "{line}");
    testbed.api().put("/dhcp", &settings("192.168.10.100", "192.168.10.109")).expect("stored");
    let entry = wait_for_check(&testbed, "dhcp", "failed", "port_taken");
    assert_eq!(entry["params"]["program"], json!(own_name()), "{entry}");
    drop(taken);
    wait_for_check(&testbed, "dhcp", "ok", "ok");
}

#[test]
fn a_rule_that_drops_queries_of_the_lan_is_found_by_a_query_that_takes_their_way() {
    let testbed = Testbed::start().expect("scene");
    let gateway = &testbed.network.gateway;
    wait_for_check(&testbed, "dns_lan", "ok", "ok");
    let before = testbed.api().get("/dns/status").expect("status")["queries_today"].clone();
    for (hook, detail) in
        [("input", "does not reach the resolver"), ("output", "does not leave by the interface")]
    {
        let port = if hook == "input" { "dport" } else { "sport" };
        let interface = if hook == "input" { "iifname" } else { "oifname" };
        let rule = format!(
            "table inet stranger {{\nchain dns {{\ntype filter hook {hook} priority -300;\n\
             {interface} \"eth1\" udp {port} 53 drop\n}}\n}}\n"
        );
        gateway.nft(&rule).expect("a rule of another program");
        let entry = wait_for_check(&testbed, "dns_lan", "failed", "no_answer");
        assert_eq!(entry["params"]["interface"], "eth1", "{hook}: {entry}");
        assert!(entry["message"].as_str().is_some_and(|text| text.contains(detail)), "{hook}: {entry}");
        assert_eq!(full_status(&testbed), 503, "{hook}");
        gateway.nft("delete table inet stranger\n").expect("the rule is gone");
        wait_for_check(&testbed, "dns_lan", "ok", "ok");
    }
    let after = testbed.api().get("/dns/status").expect("status")["queries_today"].clone();
    assert_eq!(before, after, "probes are no queries of hosts");
}
