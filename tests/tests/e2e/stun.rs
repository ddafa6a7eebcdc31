//! `webrtc` with a STUN and TURN client and server of others, at a port that is not theirs.

use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use gateway_tests::process::Process;
use gateway_tests::topology::{Host, Topology, server};
use gateway_tests::wait::wait_until;
use serde_json::json;

use crate::e2e::SOON;
use crate::e2e::dns_policy::resolving;

pub(crate) const PORT: &str = "50000";
/// Client that asks for the visible address, without the address of the server.
pub(crate) const BINDING: [&str; 3] = ["turnutils_stunclient", "-p", PORT];
/// Time after which a client that has not succeeded counts as stopped. The TURN client pauses for five seconds.
const DEADLINE: Duration = Duration::from_secs(20);
const SHORT_DEADLINE: Duration = Duration::from_secs(4);

/// The STUN and TURN server in the internet. Its files end with it.
pub(crate) struct Turn {
    _process: Process,
    _directory: tempfile::TempDir,
}

impl Turn {
    pub(crate) fn start(network: &Topology) -> Turn {
        Turn::start_at(network, &[server(false)])
    }

    /// Starts it at several addresses, where `turnutils_stunclient` does not succeed.
    pub(crate) fn start_at(network: &Topology, addresses: &[IpAddr]) -> Turn {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str| directory.path().join(name).display().to_string();
        let mut command = network.internet.command("turnserver");
        command
            .args(["-n", "--no-tls", "--no-dtls", "--no-cli", "-p", PORT])
            .args(addresses.iter().flat_map(|address| ["-L".to_owned(), address.to_string()]))
            .args(["-a", "-r", "example", "-u", "anna:secret", "--min-port", "51000", "--max-port", "51100"])
            .args(["--log-file", "stdout", "--pidfile", &file("pid"), "--userdb", &file("users")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = network.internet.spawn(command).expect("a TURN server");
        Turn { _process: process, _directory: directory }
    }
}

/// Runs a client, which ends without an error if it succeeds.
pub(crate) fn succeeds(host: &Host, client: &[&str], deadline: Duration) -> bool {
    let mut command = host.namespace.command(client[0]);
    command.args(&client[1..]).arg(server(false).to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = host.namespace.spawn(command).expect("a client");
    let ended = wait_until(deadline, "the client to end", || process.ended());
    let _ = process.kill_group();
    ended.is_ok_and(|status| status.success())
}

#[test]
fn stun_and_turn_clients_are_stopped_at_any_port() {
    let (testbed, _upstream) = resolving();
    let network = &testbed.network;
    let _turn = Turn::start(network);
    let laptop = testbed.device(&network.laptop).expect("a device");
    testbed.device(&network.tv).expect("a device");
    let mut device = testbed.api().get(&format!("/devices/{laptop}")).expect("the device").clone();
    let relay = ["turnutils_uclient", "-u", "anna", "-w", "secret", "-p", PORT, "-y", "-n", "1", "-m", "1"];
    let relay_by_tcp = [&relay[..], &["-t"]].concat();
    let clients = [&BINDING[..], &relay, &relay_by_tcp];
    wait_until(SOON, "the TURN server", || succeeds(&network.laptop, &BINDING, SHORT_DEADLINE).then_some(()))
        .expect("a server");
    device["privacy_class"] = json!("isolated");
    testbed.api().put(&format!("/devices/{laptop}"), &device).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    std::thread::scope(|scope| {
        let blocked = clients
            .map(|client| scope.spawn(move || (client, succeeds(&network.laptop, client, SHORT_DEADLINE))));
        let open =
            clients.map(|client| scope.spawn(move || (client, succeeds(&network.tv, client, DEADLINE))));
        for client in blocked {
            let (client, succeeded) = client.join().expect("ended");
            assert!(!succeeded, "{client:?} of the laptop");
        }
        for client in open {
            let (client, succeeded) = client.join().expect("ended");
            assert!(succeeded, "{client:?} of the tv");
        }
    });
}

/// STUN of the gateway itself, such as that of a mesh, is not that of a LAN host.
#[test]
fn stun_of_the_gateway_is_never_blocked() {
    let (testbed, _upstream) = resolving();
    let network = &testbed.network;
    let _turn = Turn::start(network);
    testbed.api().post("/privacy/block-webrtc", &json!({"enabled": true})).expect("switched");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    let at = SocketAddr::new(server(false), PORT.parse().expect("a port"));
    let run = || network.gateway.run("turnutils_stunclient", &["-p", PORT, &at.ip().to_string()]).ok();
    let answer = wait_until(SOON, "an answer to the gateway", run).expect("an answer");
    assert!(answer.contains("reflexive addr"), "{answer}");
}
