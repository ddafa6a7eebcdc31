//! OpenVPN tunnels through a real server: permitted traffic passes, and nothing else.

mod failures;
mod hostile;
mod process;

use std::fs;

use gateway_tests::openvpn::Server;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{TcpFlow, transfer};
use gateway_tests::wait::wait_for;
use serde_json::{Value, json};

use crate::e2e::{FAMILIES, SOON, assert_nothing_leaked, assert_the_tap_sees, assert_through};

/// A laptop that may leave through an OpenVPN server at exit A only.
struct Bound {
    server: Server,
    testbed: Testbed,
    tunnel: String,
}

impl Bound {
    /// Starts it. `options` are lines of the server's configuration.
    fn start(options: &str) -> Self {
        let testbed = Testbed::start().expect("scene");
        let server =
            Server::start(&testbed.network.exit_a, &testbed.network.prefix, options).expect("server");
        let object = server.tunnel("nl").expect("tunnel");
        Self::over(testbed, server, &object)
    }

    fn over(testbed: Testbed, server: Server, object: &Value) -> Self {
        let laptop = testbed.device(&testbed.network.laptop).expect("device");
        let tunnel = create(testbed.api(), "/tunnels", object).expect("tunnel made");
        testbed.bring_up(&tunnel).expect("up");
        testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["nl"])).expect("policy");
        assert_the_tap_sees(&testbed, &testbed.network.tv);
        Self { server, testbed, tunnel }
    }

    fn object(&self) -> Value {
        self.testbed.api().get(&format!("/tunnels/{}", self.tunnel)).expect("tunnel")
    }
}

/// Returns the openvpn processes of this scene's daemon, including those of an earlier instance.
pub(super) fn processes(testbed: &Testbed) -> Vec<i32> {
    let folder = testbed.daemon.state_directory().with_file_name("run").join("openvpn");
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let ours = |pid: &i32| {
        fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at.starts_with(&folder))
            && fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "openvpn")
    };
    pids.filter(ours).collect()
}

/// Returns the only process.
#[track_caller]
fn only_process(testbed: &Testbed) -> i32 {
    match processes(testbed)[..] {
        [pid] => pid,
        ref pids => panic!("not one process: {pids:?}"),
    }
}

#[test]
fn traffic_of_a_policy_goes_through_the_server_in_both_families() {
    let bound = Bound::start("");
    let network = &bound.testbed.network;
    assert_through(&network.laptop, &network.exit_a);
    let counts = assert_nothing_leaked(&bound.testbed);
    assert!(counts.tunnel.v4 > 0, "{counts}");
    let object = bound.object();
    assert_eq!(object["interface"], "ov-nl", "{object}");
    assert_eq!(object["remotes"], json!(["198.51.100.7:1194/udp"]), "{object}");
    assert_eq!(object["cipher"], "AES-256-GCM", "{object}");
    assert_eq!(object["endpoint_ip"], "198.51.100.7", "{object}");
    wait_for(SOON, "the bytes to be counted", || bound.object()["rx_bytes"].as_u64() > Some(1000))
        .expect("bytes");
    let services = bound.testbed.api().get("/services").expect("services");
    let service =
        services.as_array().and_then(|list| list.iter().find(|service| service["name"] == "openvpn"));
    let service = service.unwrap_or_else(|| panic!("openvpn is missing in {services}"));
    assert!(service["installed"] == true && service["running"] == true, "{service}");
    assert_eq!(service["required_by"], json!(["tunnel nl"]));
    let egress = bound.testbed.api().get("/tunnels/egress").expect("egress");
    assert_eq!((&egress[0]["tunnel"], &egress[0]["state"]), (&json!("nl"), &json!("up")), "{egress}");
}

/// Returns a policy over a tunnel to a server that listens with `transport`. `change` modifies the client's file.
fn over_transport(transport: &'static str, change: impl Fn(&str) -> String) -> Bound {
    let testbed = Testbed::start().expect("scene");
    let mut server = Server::start(&testbed.network.exit_a, &testbed.network.prefix, "").expect("server");
    server.kill9().expect("ended");
    server.set_transport(transport);
    server.start_again().expect("server");
    let file = change(&server.file("").expect("file"));
    let object = json!({"name": "nl", "type": "openvpn", "config": file});
    Bound::over(testbed, server, &object)
}

#[test]
fn a_server_is_reached_by_ipv6() {
    let bound = over_transport("udp6", |file| {
        file.replace("proto udp\n", "proto udp6\n").replace("remote 198.51.100.7", "remote 2001:db8:a::7")
    });
    let network = &bound.testbed.network;
    assert_through(&network.laptop, &network.exit_a);
    let counts = assert_nothing_leaked(&bound.testbed);
    assert!(counts.tunnel.v6 > 0 && counts.tunnel.v4 == 0, "{counts}");
}

#[test]
fn a_server_is_reached_by_tcp() {
    let bound = over_transport("tcp-server", |file| file.replace("proto udp\n", "proto tcp\n"));
    let network = &bound.testbed.network;
    assert_through(&network.laptop, &network.exit_a);
    let counts = assert_nothing_leaked(&bound.testbed);
    assert!(counts.tunnel.v4 > 0, "{counts}");
    assert_eq!(bound.object()["remotes"], json!(["198.51.100.7:1194/tcp"]));
}

#[test]
fn full_packets_fit_the_uplink_unbroken() {
    let bound = Bound::start("");
    let network = &bound.testbed.network;
    for ipv6 in FAMILIES {
        transfer(&network.laptop, server(ipv6), 2_000_000).expect("transfer");
    }
    let counts = assert_nothing_leaked(&bound.testbed);
    assert_eq!(counts.fragments, 0, "{counts}");
    assert!(counts.tunnel.v4 > 1000, "{counts}");
}

#[test]
fn a_flow_outlives_new_keys() {
    let bound = Bound::start("reneg-sec 2");
    let network = &bound.testbed.network;
    let mut flows: Vec<TcpFlow> =
        FAMILIES.map(|ipv6| TcpFlow::open(&network.laptop, server(ipv6)).expect("connection")).into();
    let renewals = || bound.server.log().matches("Control Channel: TLSv1").count();
    let before = renewals();
    wait_for(SOON * 2, "three new sets of keys, and answers on the flows all the time", || {
        for (flow, ipv6) in flows.iter_mut().zip(FAMILIES) {
            assert_eq!(flow.ask(SOON).seen(), Some(network.exit_a.address(ipv6)));
        }
        renewals() >= before + 3
    })
    .expect("keys");
    assert_nothing_leaked(&bound.testbed);
}

#[test]
fn a_tunnel_in_a_tunnel_shows_the_uplink_the_outer_one_only() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let server = Server::start(&network.exit_a, &network.prefix, "").expect("server");
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-b", &network.exit_b).expect("outer tunnel");
    let inner =
        create(testbed.api(), "/tunnels", &server.tunnel("nl").expect("tunnel")).expect("inner tunnel");
    testbed.policy(&policy("path", 10, ("device", &laptop), &["wg-b", "nl"])).expect("policy");
    testbed.bring_up(&inner).expect("up");
    crate::e2e::wait_until_through(&network.laptop, &network.exit_a);
    network.settle().expect("silence");
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_a);
    let counts = assert_nothing_leaked(&testbed);
    let outer: Vec<_> = counts.endpoints.keys().copied().collect();
    assert_eq!(outer, [network.exit_b.address(false)], "{counts}");
}
