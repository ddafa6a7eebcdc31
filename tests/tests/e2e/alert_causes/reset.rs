//! Tunnels that are reset: the time from the cause to the delivery at a receiver on the internet.

use std::time::{Duration, Instant};

use gateway_tests::openvpn::Server;
use gateway_tests::testbed::{Testbed, create};
use gateway_tests::wait::wait_ok;
use gateway_tests::webhook_receiver::WebhookReceiver;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::e2e::alert_delivery::{delivered, receiver, wait_for};

/// Deadline of a delivery, far beyond what it takes.
const DELIVERED: Duration = Duration::from_secs(15);

/// Waits until a tunnel has been up for longer than the alerts need to see it. One that was never seen up has a minute to connect.
fn wait_until_known(testbed: &Testbed, tunnel: &str) {
    wait_ok(DELIVERED, "the tunnel to be up for some time", || {
        let object = testbed.api().get(&format!("/tunnels/{tunnel}"))?;
        anyhow::ensure!(object["uptime_sec"].as_u64() >= Some(2), "{object}");
        Ok(())
    })
    .expect("up");
}

fn wait_for_first(receiver: &WebhookReceiver, reset: Instant, what: &str) {
    wait_ok(DELIVERED, "the delivery", || {
        let statuses = delivered(receiver, "tunnel_down");
        anyhow::ensure!(statuses == ["firing"], "{statuses:?}");
        Ok(())
    })
    .expect("delivered");
    println!("from {what} to the delivery: {:.2} s", reset.elapsed().as_secs_f64());
}

/// The remote end is dead already when the interface goes, and nothing was sent that would have shown it.
#[test]
fn wireguard_tunnel_whose_interface_is_deleted_is_an_alert_until_it_connects_again() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    let interface = testbed.interface(&tunnel).expect("its interface");
    let receiver = receiver(&testbed);
    wait_until_known(&testbed, &tunnel);
    network.exit_a.kill9().expect("killed");
    let reset = Instant::now();
    network.gateway.ip(&format!("link delete {interface}")).expect("deleted");
    wait_for_first(&receiver, reset, "the deletion of the interface of a WireGuard tunnel");
    network.exit_a.start().expect("started again");
    wait_for(&receiver, "tunnel_down", &["firing", "resolved"]);
}

#[test]
fn openvpn_tunnel_whose_process_is_killed_is_an_alert_until_it_connects_again() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let server = Server::start(&network.exit_a, &network.prefix, "").expect("a server");
    let tunnel = create(testbed.api(), "/tunnels", &server.tunnel("nl").expect("a tunnel")).expect("made");
    testbed.bring_up(&tunnel).expect("up");
    let receiver = receiver(&testbed);
    let processes = testbed.openvpn_processes();
    assert_eq!(processes.len(), 1, "{processes:?}");
    wait_until_known(&testbed, &tunnel);
    server.kill9().expect("killed");
    let reset = Instant::now();
    kill(Pid::from_raw(processes[0]), Signal::SIGKILL).expect("killed");
    wait_for_first(&receiver, reset, "the end of the process of an OpenVPN tunnel");
    server.start_again().expect("started again");
    wait_for(&receiver, "tunnel_down", &["firing", "resolved"]);
}
