//! Leak checks with STUN servers: which address a server sees by the egress of a device, and by the uplinks.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use gateway_tests::dns::Upstream;
use gateway_tests::name_server;
use gateway_tests::netns::Namespace;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{other_wan, server, wan};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::stun::{PORT, Turn};
use crate::e2e::{FAMILIES, SOON};

/// Port of servers that are no STUN servers.
const OTHER_PORT: u16 = 50_001;
const POLL: Duration = Duration::from_millis(100);

fn at(ipv6: bool) -> String {
    SocketAddr::new(server(ipv6), PORT.parse().expect("a port")).to_string()
}

fn set_servers(testbed: &Testbed, servers: &[String]) {
    let settings = json!({"value": {"stun_servers": servers}});
    testbed.api().put("/settings/privacy.leak_check", &settings).expect("stored");
}

fn check(testbed: &Testbed, device: &str) -> Value {
    let request = json!({"device_id": device, "checks": ["ipv4", "ipv6"]});
    testbed.api().post("/privacy/leak-check", &request).expect("a report")
}

fn exit_address(report: &Value, ipv6: bool) -> Option<IpAddr> {
    report["results"][usize::from(ipv6)]["exit_address"]
        .as_str()
        .map(|text| text.parse().expect("an address"))
}

fn detail(report: &Value, ipv6: bool) -> &str {
    report["results"][usize::from(ipv6)]["detail"].as_str().expect("text")
}

/// Repeats the check until the server, which has just been started, answers in both families.
fn answered(testbed: &Testbed, device: &str) -> Value {
    wait_ok(SOON, "an answer of the STUN server", || {
        let report = check(testbed, device);
        anyhow::ensure!(FAMILIES.iter().all(|ipv6| exit_address(&report, *ipv6).is_some()), "{report:#}");
        Ok(report)
    })
    .expect("answered")
}

fn wait_for_exit_ip(testbed: &Testbed, tunnel: &str, expected: &Value) {
    wait_ok(SOON, "the exit's address in the state of the tunnel", || {
        let state = testbed.api().get(&format!("/tunnels/{tunnel}"))?;
        anyhow::ensure!(state["exit_ip"] == *expected, "{}", state["exit_ip"]);
        Ok(())
    })
    .expect("shown");
}

/// Returns a socket in the internet that takes requests and answers none.
fn silent_server(internet: &Namespace) -> UdpSocket {
    let socket = internet.within(|| UdpSocket::bind((server(false), OTHER_PORT))).expect("a socket");
    socket.set_read_timeout(Some(POLL)).expect("a timeout");
    socket
}

#[test]
fn a_server_sees_the_uplink_of_direct_traffic_and_the_exit_of_a_tunnel() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let _turn = Turn::start_at(network, &FAMILIES.map(server));
    let laptop = testbed.device(&network.laptop).expect("device");
    let unasked = check(&testbed, &laptop);
    assert!(FAMILIES.iter().all(|ipv6| exit_address(&unasked, *ipv6).is_none()), "{unasked:#}");
    assert!(unasked["remaining_risks"].to_string().contains("which IPv4 address servers see"));

    set_servers(&testbed, &FAMILIES.map(at));
    let direct = answered(&testbed, &laptop);
    assert_eq!(direct["verdict"], "pass", "{direct:#}");
    for ipv6 in FAMILIES {
        // The laptop's unique local address is translated like its IPv4 address.
        assert_eq!(exit_address(&direct, ipv6), Some(wan(ipv6)), "{direct:#}");
    }

    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    let bound = check(&testbed, &laptop);
    assert_eq!(bound["verdict"], "pass", "{bound:#}");
    for ipv6 in FAMILIES {
        let (exit, uplink) = (network.exit_a.address(ipv6), wan(ipv6));
        assert_eq!(exit_address(&bound, ipv6), Some(exit), "{bound:#}");
        let seen = format!("Servers saw {exit} by wg-a, {uplink} by eth0.");
        assert!(detail(&bound, ipv6).contains(&seen), "{bound:#}");
    }
    assert!(!bound["remaining_risks"].to_string().contains("address servers see"), "{bound:#}");
    wait_for_exit_ip(&testbed, &tunnel, &json!(network.exit_a.address(false)));
    testbed.bring_down(&tunnel).expect("down");
    wait_for_exit_ip(&testbed, &tunnel, &Value::Null);
}

#[test]
fn a_server_that_does_not_answer_is_reported_and_blocked_traffic_asks_none() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    let silent = silent_server(&network.internet);
    set_servers(&testbed, &[SocketAddr::new(server(false), OTHER_PORT).to_string()]);
    let report = check(&testbed, &laptop);
    assert_eq!(report["verdict"], "pass", "{report:#}");
    for (ipv6, reason) in [(false, "no answer (within 2 s)"), (true, "no server has an IPv6 address")] {
        assert_eq!(exit_address(&report, ipv6), None, "{report:#}");
        let text = detail(&report, ipv6);
        assert!(
            text.contains("not known which address servers see by wg-a") && text.contains(reason),
            "{text}"
        );
    }
    let mut sources = BTreeSet::new();
    let mut buffer = [0; 100];
    let mut requests = 0;
    while let Ok((length, from)) = silent.recv_from(&mut buffer) {
        assert_eq!((length, &buffer[..8]), (20, &[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..]));
        sources.insert(from.ip());
        requests += 1;
    }
    assert_eq!(
        sources,
        [network.exit_a.address(false), wan(false)].into(),
        "by the tunnel and by the uplink"
    );
    assert!(requests > 2, "no request was repeated");

    testbed.bring_down(&tunnel).expect("down");
    let cut_off = check(&testbed, &laptop);
    assert_eq!(cut_off["verdict"], "pass", "{cut_off:#}");
    assert!(detail(&cut_off, false).ends_with("probes were treated as expected."), "{cut_off:#}");
    assert!(silent.recv_from(&mut buffer).is_err(), "asked although the traffic is blocked");
}

#[test]
fn a_tunnel_behind_which_the_uplink_is_seen_fails() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    // A server for which all clients have the address of the uplink.
    let socket = silent_server(&network.internet);
    set_servers(&testbed, &[SocketAddr::new(server(false), OTHER_PORT).to_string()]);
    let mut buffer = [0; 100];
    let report = std::thread::scope(|scope| {
        let checking = scope.spawn(|| check(&testbed, &laptop));
        while !checking.is_finished() {
            if let Ok((20, from)) = socket.recv_from(&mut buffer) {
                let mut answer = [&buffer[..20], &[0, 1, 0, 8, 0, 1, 0, 7, 203, 0, 113, 2]].concat();
                (answer[0], answer[3]) = (1, 12);
                socket.send_to(&answer, from).expect("sent");
            }
        }
        checking.join().expect("checked")
    });
    assert_eq!(report["verdict"], "fail", "{report:#}");
    assert_eq!((&report["results"][0]["pass"], &report["results"][1]["pass"]), (&json!(false), &json!(true)));
    assert_eq!(exit_address(&report, false), Some(wan(false)));
    assert!(
        detail(&report, false).contains("wg-a does not hide 203.0.113.2 of the uplink eth0"),
        "{report:#}"
    );
}

/// Each egress resolves the name by itself, with two uplinks as well.
#[test]
fn names_of_servers_are_resolved_by_the_egress_that_asks() {
    let mut testbed = Testbed::prepare().expect("scene");
    testbed.network.add_uplink().expect("a second uplink");
    let upstream = Upstream::start(&testbed.network.internet).expect("a name server");
    let wans = json!([{"name": "one", "interface": "eth0"}, {"name": "two", "interface": "eth2"}]);
    let servers = json!({"bootstrap_servers": [name_server::ADDRESS]});
    testbed.daemon.configure(&json!({"network": {"wans": wans}, "dns": servers})).expect("configured");
    testbed.daemon.start().expect("daemon");
    let network = &testbed.network;
    let _turn = Turn::start_at(network, &FAMILIES.map(server));
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    set_servers(&testbed, &[format!("stun.example:{PORT}")]);
    let report = answered(&testbed, &laptop);
    assert_eq!(report["verdict"], "pass", "{report:#}");
    for ipv6 in FAMILIES {
        let (exit, first, second) = (network.exit_a.address(ipv6), wan(ipv6), other_wan(ipv6));
        let seen = format!("Servers saw {exit} by wg-a, {first} by eth0, {second} by eth2.");
        assert!(detail(&report, ipv6).contains(&seen), "{report:#}");
    }
    let askers: BTreeSet<IpAddr> = upstream.askers("stun.example").into_iter().collect();
    assert_eq!(askers, [network.exit_a.address(false), wan(false), other_wan(false)].into());
}
