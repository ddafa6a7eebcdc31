//! Hostile networks at the uplink: routes of a DHCP server past the tunnel (TunnelVision, CVE-2024-3661), networks that
//! claim public addresses, and false addresses of a tunnel's server (TunnelCrack, CVE-2023-36672 and CVE-2023-36673).
//!
//! The client of the uplink is one of the operating system, and writes all that the server says to the main table.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use gateway_tests::dhcp_server::{DhcpServer, Offer};
use gateway_tests::dns::{A, Client};
use gateway_tests::name_server::{self, NameServer};
use gateway_tests::process::Process;
use gateway_tests::services::HTTP;
use gateway_tests::tap::MARK;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{LAN_V4, SERVER_V4, server};
use gateway_tests::traffic::{TcpFlow, ask, ask_udp};
use gateway_tests::wait::wait_ok;
use ipnet::Ipv4Net;
use serde_json::json;
use tempfile::TempDir;

use crate::e2e::{BLOCKED, SOON, assert_nothing_leaked, assert_through};

/// The hostile router, beside that of the provider.
const HOSTILE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 66);
const OWN: &str = "203.0.113.2/24";

/// Script that does what Debian's clients do with a lease: address, default route, and classless routes in the main table.
const OS_CLIENT: &str = r#"#!/bin/sh
[ "$1" = bound ] || [ "$1" = renew ] || exit 0
ip address replace "$ip/$mask" dev "$interface"
for router in $router; do ip route replace default via "$router" dev "$interface" onlink; done
set -- $staticroutes
while [ $# -gt 1 ]; do
  if [ "$2" = 0.0.0.0 ]; then
    ip route replace "$1" dev "$interface"
  else
    ip route replace "$1" via "$2" dev "$interface" onlink
  fi
  shift 2
done
"#;

/// A client of the operating system at the uplink. It runs until the drop.
struct OsClient {
    _process: Process,
    _directory: TempDir,
}

impl OsClient {
    fn start(testbed: &Testbed) -> OsClient {
        let directory = tempfile::Builder::new().prefix("gateway-dhcp-").tempdir().expect("a folder");
        let script = directory.path().join("script");
        std::fs::write(&script, OS_CLIENT).expect("the script");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("the script");
        let mut command = testbed.network.gateway.command("busybox");
        command.args(["udhcpc", "-f", "-i", "eth0", "-O", "staticroutes", "-s"]).arg(&script);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = testbed.network.gateway.spawn(command).expect("the client");
        OsClient { _process: process, _directory: directory }
    }
}

fn net(text: &str) -> Ipv4Net {
    text.parse().expect("a network")
}

/// Gives the uplink a lease of a hostile server, and returns when its routes are in the main table.
fn join(testbed: &Testbed, offer: Offer) -> (DhcpServer, OsClient) {
    let network = &testbed.network;
    network.internet.ip(&format!("address add {HOSTILE}/24 dev up0\n")).expect("a hostile router");
    let expected: Vec<String> = offer.routes.iter().map(|(to, _)| to.to_string()).collect();
    let address = offer.address.to_string();
    let server = DhcpServer::start(&network.internet, "up0", HOSTILE, offer).expect("a server");
    let client = OsClient::start(testbed);
    wait_ok(SOON, "the routes of the server in the main table", || {
        let addresses = network.gateway.run("ip", &["-4", "address", "show", "dev", "eth0"])?;
        anyhow::ensure!(addresses.contains(&address), "{addresses}");
        let routes = network.gateway.run("ip", &["route", "show", "table", "main"])?;
        for to in &expected {
            let shown = to.strip_suffix("/32").unwrap_or(to);
            anyhow::ensure!(
                routes.lines().any(|line| line.split(' ').next() == Some(shown)),
                "{to}: {routes}"
            );
        }
        Ok(())
    })
    .expect("a lease");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    (server, client)
}

/// A device bound to exit-a, with a connection that is open before the attack.
fn bound() -> (Testbed, TcpFlow) {
    let testbed = Testbed::start().expect("a network");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("a device");
    testbed.tunnel("exit", &network.exit_a).expect("a tunnel");
    testbed.policy(&policy("vpn", 10, ("device", &laptop), &["exit"])).expect("a policy");
    assert_through(&network.laptop, &network.exit_a);
    let flow = TcpFlow::open(&network.laptop, server(false)).expect("a connection");
    network.settle().expect("silence");
    network.tap.reset();
    (testbed, flow)
}

/// Traffic of every kind that the device sends: to the server, and to the resolver of the gateway.
fn send_all(testbed: &Testbed) {
    let laptop = &testbed.network.laptop;
    for to in [server(false), server(true)] {
        ask(laptop, (to, HTTP).into(), BLOCKED);
    }
    ask_udp(laptop, (server(false), 9).into(), BLOCKED);
    ask_resolver(testbed);
}

/// Asks the resolver of the gateway for several names. An answer that is lost is no leak.
fn ask_resolver(testbed: &Testbed) {
    let client = Client::of(&testbed.network.laptop, LAN_V4.into());
    let mut client = client.and_then(|client| client.with_timeout(BLOCKED)).expect("a socket");
    for number in 0..3 {
        let _ = client.ask(&format!("n{number}.example"), A);
    }
}

/// The traffic of the gateway itself and of the client of its uplink is not that of the device.
fn assert_device_stays_in_its_tunnel(testbed: &Testbed) {
    send_all(testbed);
    testbed.network.settle().expect("silence on the LAN");
    let counts = testbed.network.tap.counts();
    assert!(counts.leaked.total() == 0 && counts.missed == 0, "{counts}");
}

#[test]
fn routes_of_a_hostile_dhcp_server_do_not_move_a_tunnel() {
    let (testbed, mut flow) = bound();
    let network = &testbed.network;
    let mut offer = Offer::of(net(OWN));
    offer.router = Some(HOSTILE);
    offer.routes = ["0.0.0.0/1", "128.0.0.0/1", "198.18.0.1/32", "198.18.0.0/15", "10.66.1.0/24"]
        .map(|to| (net(to), HOSTILE))
        .into();
    offer.routes.push((net(&format!("{}/32", network.exit_a.place.v4)), HOSTILE));
    let _attack = join(&testbed, offer);
    assert_through(&network.laptop, &network.exit_a);
    assert_eq!(flow.ask(SOON).seen(), Some(network.exit_a.address(false)), "the connection goes on");
    assert_device_stays_in_its_tunnel(&testbed);
    assert!(network.tap.counts().tunnel.total() > 0, "the tap sees the tunnel");
    // Nor when the tunnel is down: its routes are not those of the main table.
    testbed.bring_down("exit").expect("down");
    network.tap.reset();
    assert_device_stays_in_its_tunnel(&testbed);
}

#[test]
fn routes_to_hosts_of_the_lan_take_nothing_of_a_device_out() {
    let (testbed, mut flow) = bound();
    let network = &testbed.network;
    let mut offer = Offer::of(net(OWN));
    offer.router = Some(HOSTILE);
    offer.routes = vec![(net("192.168.10.10/32"), HOSTILE), (net("192.168.10.0/25"), HOSTILE)];
    let _attack = join(&testbed, offer);
    flow.ask(BLOCKED);
    assert_device_stays_in_its_tunnel(&testbed);
    // Nor do packets of other programs of the gateway, which have no mark.
    let (from, to) = ((LAN_V4, 0), (network.laptop.v4, 9));
    let sent = network.gateway.within(|| {
        let socket = UdpSocket::bind(from)?;
        (0..10).try_for_each(|_| socket.send_to(MARK, to).map(drop))
    });
    sent.expect("sent");
    assert_device_stays_in_its_tunnel(&testbed);
    // Frames of the LAN to each other pass by the gateway only if it routes them.
    ask(&network.tv, (IpAddr::from(network.laptop.v4), HTTP).into(), BLOCKED);
    assert_device_stays_in_its_tunnel(&testbed);
}

#[test]
fn network_that_claims_public_addresses_gets_nothing_of_a_device() {
    let (testbed, mut flow) = bound();
    let network = &testbed.network;
    // The server and the end of the tunnel seem to be neighbours at the uplink.
    let _attack = join(&testbed, Offer::of(net("198.18.0.77/7")));
    network.internet.sysctl("net.ipv4.conf.up0.proxy_arp", "1").expect("a neighbour for all addresses");
    // It may cut the tunnel, as it may cut the line.
    let by_tunnel = [None, Some(network.exit_a.address(false))];
    let answer = ask(&network.laptop, (server(false), HTTP).into(), BLOCKED);
    assert!(by_tunnel.contains(&answer.seen()), "{answer}");
    let answer = flow.ask(BLOCKED);
    assert!(by_tunnel.contains(&answer.seen()), "{answer}");
    assert_device_stays_in_its_tunnel(&testbed);
    testbed.bring_down("exit").expect("down");
    network.tap.reset();
    assert_device_stays_in_its_tunnel(&testbed);
}

#[test]
fn network_that_claims_the_lan_gets_nothing_of_a_device() {
    let (testbed, mut flow) = bound();
    let _attack = join(&testbed, Offer::of(net("192.168.10.77/24")));
    flow.ask(BLOCKED);
    assert_device_stays_in_its_tunnel(&testbed);
}

#[test]
fn false_address_of_a_tunnels_server_opens_no_way_to_it() {
    let mut testbed = Testbed::prepare().expect("a network");
    let names = NameServer::start(&testbed.network.internet, SERVER_V4).expect("a name server");
    let servers = json!({"dns": {"bootstrap_servers": [name_server::ADDRESS]}});
    testbed.daemon.configure(&servers).expect("configured");
    testbed.daemon.start().expect("started");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("a device");
    let mut tunnel = network.exit_a.tunnel("exit");
    let port = gateway_tests::wireguard::PORT;
    tunnel["peers"][0]["endpoint"] = json!(format!("vpn.example:{port}"));
    let id = create(testbed.api(), "/tunnels", &tunnel).expect("a tunnel");
    testbed.policy(&policy("vpn", 10, ("device", &laptop), &["exit"])).expect("a policy");
    testbed.api().act(&format!("/tunnels/{id}/up")).expect("up");
    wait_ok(SOON, "the name to be asked for", || {
        anyhow::ensure!(names.asked() > 0);
        Ok(())
    })
    .expect("asked");
    // The device asks the host that poses as the end of the tunnel.
    for _ in 0..3 {
        for to in [(server(false), HTTP), (server(false), port)] {
            assert_eq!(ask(&network.laptop, to.into(), BLOCKED).seen(), None);
        }
        ask_udp(&network.laptop, (server(false), port).into(), Duration::from_millis(200));
    }
    let seen = network.services.seen(HTTP, gateway_tests::topology::wan(false));
    assert_eq!(seen, 0, "the server saw the device by the uplink");
    // With the right address the same tunnel works.
    names.answer(Some(network.exit_a.place.v4));
    wait_ok(Duration::from_secs(90), "the tunnel to work", || {
        let answer = ask(&network.laptop, (server(false), HTTP).into(), BLOCKED);
        anyhow::ensure!(answer.seen() == Some(network.exit_a.address(false)), "{answer}");
        Ok(())
    })
    .expect("works");
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_a);
    assert_nothing_leaked(&testbed);
}
