//! Prefixes and names of a mesh: hosts of one LAN reach hosts of another one behind a member, and resolve names of nodes.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use gateway_tests::dns::{A, Client};
use gateway_tests::mesh::{LanHost, MeshGateway, MeshNetwork, MeshServer};
use gateway_tests::process::Process;
use gateway_tests::testbed::create;
use gateway_tests::wait::wait_ok;
use serde_json::json;

const SOON: Duration = Duration::from_secs(60);
const NXDOMAIN: u8 = 3;
/// Web server of a host that knows its clients by their addresses.
const PAGE: &str = "
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.client_address[0].encode())
http.server.ThreadingHTTPServer((sys.argv[1], 80), Page).serve_forever()
";

/// Two gateways, each with a host in its LAN.
struct Mesh {
    // Field order is drop order.
    _page: Process,
    near: MeshGateway,
    far: MeshGateway,
    server: MeshServer,
    near_host: LanHost,
    far_host: LanHost,
    far_address: IpAddr,
    _network: MeshNetwork,
}

impl Mesh {
    fn start() -> Mesh {
        let network = MeshNetwork::create(2).expect("network");
        let server = MeshServer::start(&network).expect("coordinator");
        let key = server.key(true, false).expect("key");
        let (near, near_host) = MeshGateway::start_with_host(&network, 1).expect("gateway");
        let (far, far_host) = MeshGateway::start_with_host(&network, 2).expect("gateway");
        let mut command = far_host.namespace.command("python3");
        command.args(["-c", PAGE, "192.168.78.20"]);
        let page = far_host.namespace.spawn(command).expect("server");
        far.set("mesh.member.advertise_routes", &json!(["192.168.78.0/24"])).expect("setting");
        near.join(&server, &key).expect("join");
        let far_address = far.join(&server, &key).expect("join");
        Mesh { _page: page, near, far, server, near_host, far_host, far_address, _network: network }
    }

    fn approve(&self) {
        wait_ok(SOON, "the offer", || {
            let peer = self.server.peer("gateway-2")?;
            ensure!(
                peer.as_ref().is_some_and(|peer| peer["routes"][0]["cidr"] == "192.168.78.0/24"),
                "{peer:?}"
            );
            Ok(())
        })
        .expect("an offer");
        let id = self.server.peer("gateway-2").expect("peers").expect("the member")["id"].clone();
        let path = format!("/mesh/peers/{}/routes", id.as_str().expect("an id"));
        self.server.api().post(&path, &json!({"routes": ["192.168.78.0/24"]})).expect("approval");
    }

    /// Returns the address by which the host in the other LAN sees this one.
    fn seen(&self) -> Result<String> {
        let arguments = ["--silent", "--show-error", "--fail", "--max-time", "3", "http://192.168.78.20/"];
        self.near_host.namespace.run("curl", &arguments)
    }

    fn wait_for_page(&self) {
        wait_ok(SOON, "the page behind the peer", || {
            let seen = self.seen()?;
            ensure!(seen == "192.168.78.1", "{seen}");
            Ok(())
        })
        .unwrap_or_else(|error| {
            panic!(
                "{error:?}\n{:?}\n{:?}\n{}\n{}",
                self.near.api().get("/policy/paths/graph").map(|paths| paths["hops"].clone()),
                self.far.api().get("/mesh/config"),
                self.near.daemon.last_words(),
                self.far.daemon.last_words()
            )
        });
    }

    fn wait_for_no_page(&self) {
        wait_ok(SOON, "the end of the page", || {
            let seen = self.seen();
            ensure!(seen.is_err(), "{seen:?}");
            Ok(())
        })
        .expect("an end");
    }
}

#[test]
fn hosts_reach_an_approved_prefix_of_a_peer_while_it_is_accepted_or_a_policy_names_it() {
    let mesh = Mesh::start();
    assert!(mesh.seen().is_err(), "the prefix is not approved");
    mesh.approve();
    mesh.wait_for_page();
    let config = mesh.far.api().get("/mesh/config").expect("config");
    assert_eq!(config["approved_routes"], json!(["192.168.78.0/24"]));
    // The other LAN begins nothing.
    let near = mesh.near.status().expect("status")["node"]["ips"][0].as_str().expect("an address").to_owned();
    let refused = mesh.far_host.namespace.run("ping", &["-c", "1", "-W", "2", &near]);
    assert!(refused.is_err(), "a host of the LAN reaches a node: {refused:?}");
    mesh.near.set("mesh.member.accept_routes", &json!(false)).expect("setting");
    mesh.wait_for_no_page();
    let policy = json!({
        "name": "office", "priority": 1, "enabled": true, "source_type": "destination", "source_value": "192.168.78.0/24",
        "hops": [{"type": "mesh_peer", "target": "gateway-2"}], "fail_policy": "fail-closed",
    });
    create(mesh.near.api(), "/routing/policies", &policy).expect("policy");
    mesh.near.api().act("/routing/policies/apply").expect("apply");
    mesh.wait_for_page();
    mesh.far.set("mesh.member.advertise_routes", &json!([])).expect("setting");
    mesh.wait_for_no_page();
}

#[test]
fn names_of_the_mesh_are_answered_also_while_it_is_down() {
    let mesh = Mesh::start();
    mesh.near.set("mesh.member.accept_dns", &json!(true)).expect("setting");
    let resolver = "192.168.77.1".parse().expect("an address");
    let mut client = Client::within(&mesh.near_host.namespace, resolver).expect("a client");
    wait_ok(SOON, "the name of the peer", || {
        let reply = client.ask("gateway-2.mesh.internal", A)?;
        ensure!(reply.addresses == [mesh.far_address], "{reply:?}");
        Ok(())
    })
    .unwrap_or_else(|error| panic!("{error:?} {}", mesh.near.daemon.last_words()));
    assert_eq!(client.ask("nobody.mesh.internal", A).expect("an answer").rcode, NXDOMAIN);
    mesh.near.api().act("/mesh/down").expect("down");
    wait_ok(SOON, "the end of the name", || {
        let reply = client.ask("gateway-2.mesh.internal", A)?;
        ensure!(reply.rcode == NXDOMAIN, "{reply:?}");
        Ok(())
    })
    .expect("an answer that is not of an upstream");
}
