//! A gateway as a member of the mesh of another one, with a stock client as a further node.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::ensure;
use gateway_tests::mesh::{MeshGateway, MeshNetwork, MeshServer, StockClient};
use gateway_tests::netns::Namespace;
use gateway_tests::wait::{wait_for, wait_ok};

const SOON: Duration = Duration::from_secs(60);

/// A member at node 1, and a stock client at node 2.
struct Mesh {
    // Field order is drop order.
    client: StockClient,
    gateway: MeshGateway,
    server: MeshServer,
    network: MeshNetwork,
    page: IpAddr,
}

impl Mesh {
    fn start(prepare: impl Fn(&MeshNetwork)) -> Mesh {
        let network = MeshNetwork::create(2).expect("network");
        prepare(&network);
        let server = MeshServer::start(&network).expect("coordinator");
        let key = server.key(true, false).expect("key");
        let gateway = MeshGateway::start(&network, 1).expect("gateway");
        gateway.join(&server, &key).expect("join");
        let authority = server.authority();
        let client = StockClient::start(&network.nodes[1], "node-2", server.port(), &key, &authority);
        let client = client.expect("client");
        let page = server.wait_for("node-2").expect("join of the client");
        Mesh { client, gateway, server, network, page }
    }

    fn own(&self) -> &Namespace {
        &self.network.nodes[0]
    }

    fn wait_for_page(&self) {
        wait_ok(SOON, "the page of the stock client", || {
            let page = self.gateway.ask(self.own(), self.page)?;
            ensure!(page == "page of node-2", "{page}");
            Ok(())
        })
        .unwrap_or_else(|error| {
            let log = self.client.log();
            let lines: Vec<_> = log.lines().rev().take(30).collect();
            panic!("{error:?}\n{:?}\n{}", self.gateway.status(), lines.join("\n"))
        });
    }
}

#[test]
fn member_reaches_a_stock_client_directly_even_without_coordinator() {
    let mut mesh = Mesh::start(|_| {});
    mesh.wait_for_page();
    let peer = mesh.gateway.wait_for_connection("node-2", "direct").expect("a direct path");
    assert!(peer["latency_ms"].is_number() && peer["rx"].as_u64() > Some(0), "{peer}");
    let seen = mesh.server.peer("gateway-1").expect("peers").expect("the member");
    assert_eq!(seen["online"], true, "{seen}");
    mesh.server.kill().expect("kill");
    mesh.wait_for_page();
    mesh.gateway.wait_for_state("error").expect("the loss of the coordinator");
    mesh.server.start_again().expect("restart");
    mesh.gateway.wait_for_state("up").expect("return");
}

#[test]
fn member_reaches_a_stock_client_by_the_relay() {
    let mesh = Mesh::start(|network| network.block_direct_paths().expect("filter"));
    mesh.wait_for_page();
    let peer = mesh.gateway.wait_for_connection("node-2", "relay").expect("a path by the relay");
    assert_eq!(peer["relay_region"], 999, "{peer}");
    let relayed = mesh.server.metric(&mesh.network.hub, "gateway_mesh_relayed_packets_total");
    assert!(relayed.expect("metric") > 0);
    let status = mesh.gateway.status().expect("status");
    assert_eq!(status["derp"]["home"], 999, "{status}");
}

#[test]
fn members_reach_each_other_and_serve_nothing_else() {
    let network = MeshNetwork::create(2).expect("network");
    let server = MeshServer::start(&network).expect("coordinator");
    let key = server.key(true, false).expect("key");
    let gateways = [1, 2].map(|number| MeshGateway::start(&network, number).expect("gateway"));
    let addresses = gateways.each_ref().map(|gateway| gateway.join(&server, &key).expect("join"));
    for (from, to) in [(0, 1), (1, 0)] {
        let address = addresses[to].to_string();
        wait_ok(SOON, "an answer to a ping", || {
            network.nodes[from].run("ping", &["-c", "1", "-W", "2", &address])
        })
        .unwrap_or_else(|error| panic!("{error:?} {:?}", gateways[from].status()));
    }
    gateways[0].wait_for_connection("gateway-2", "direct").expect("a direct path");
    let mut command = network.nodes[1].command("python3");
    command.args(["-m", "http.server", "8000", "--directory", "/sys/class"]);
    let _server = network.nodes[1].spawn(command).expect("a web server");
    wait_ok(SOON, "the web server", || {
        network.nodes[1].run("curl", &["--silent", "--fail", "http://127.0.0.1:8000/"])
    })
    .expect("it serves its own host");
    let url = format!("http://{}:8000/", addresses[1]);
    let refused = network.nodes[0].run("curl", &["--silent", "--fail", "--max-time", "3", &url]);
    assert!(refused.is_err(), "the mesh reaches services of the gateway: {refused:?}");
}

#[test]
fn removed_member_loses_its_interface() {
    let mesh = Mesh::start(|_| {});
    mesh.wait_for_page();
    assert!(mesh.gateway.has_interface(mesh.own()));
    let id = mesh.server.peer("gateway-1").expect("peers").expect("the member")["id"].clone();
    mesh.server.api().delete(&format!("/mesh/peers/{}", id.as_str().expect("an id"))).expect("removal");
    mesh.gateway.wait_for_state("needs_login").expect("the end of the membership");
    wait_for(SOON, "the end of the interface", || !mesh.gateway.has_interface(mesh.own())).expect("end");
    assert!(mesh.gateway.ask(mesh.own(), mesh.page).is_err(), "the page is there without a membership");
    let key = mesh.server.key(false, false).expect("key");
    mesh.gateway.join(&mesh.server, &key).expect("return with a new key");
    mesh.wait_for_page();
}

#[test]
fn member_is_off_after_down_and_returns_after_a_crash() {
    let mut mesh = Mesh::start(|_| {});
    mesh.wait_for_page();
    mesh.gateway.daemon.kill9().expect("kill");
    let gone = |mesh: &Mesh| !mesh.gateway.has_interface(mesh.own());
    wait_for(SOON, "the end of the interface", || gone(&mesh)).expect("end");
    assert!(mesh.gateway.ask(mesh.own(), mesh.page).is_err(), "the page is there without the daemon");
    mesh.gateway.daemon.start().expect("restart");
    mesh.gateway.wait_for_state("up").expect("return");
    mesh.wait_for_page();
    mesh.gateway.api().act("/mesh/down").expect("down");
    mesh.gateway.wait_for_state("down").expect("down");
    wait_for(SOON, "the end of the interface", || gone(&mesh)).expect("end");
    mesh.gateway.api().act("/mesh/up").expect("up");
    mesh.gateway.wait_for_state("up").expect("return");
    mesh.wait_for_page();
}
