//! The daemon as coordinator of a mesh of stock clients: who joins, what they reach, and how access ends.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::ensure;
use gateway_tests::mesh::{MeshNetwork, MeshServer, StockClient};
use gateway_tests::wait::{wait_for, wait_ok};
use jiff::Timestamp;
use serde_json::json;

/// Time for a client to find a path, or to come back. Clients repeat with growing pauses.
const SOON: Duration = Duration::from_secs(60);

struct Mesh {
    // Field order is drop order.
    clients: Vec<StockClient>,
    server: MeshServer,
    network: MeshNetwork,
    addresses: Vec<IpAddr>,
}

fn start(nodes: usize) -> Mesh {
    let network = MeshNetwork::create(nodes).expect("network");
    let server = MeshServer::start(&network).expect("coordinator");
    Mesh { clients: Vec::new(), server, network, addresses: Vec::new() }
}

/// Starts a mesh of two nodes.
fn joined(prepare: impl Fn(&MeshNetwork)) -> Mesh {
    let mut mesh = start(2);
    prepare(&mesh.network);
    let key = mesh.server.key(true, false).expect("key");
    for number in [1, 2] {
        mesh.clients.push(mesh.client(number, &key));
    }
    for number in [1, 2] {
        mesh.addresses.push(mesh.server.wait_for(&format!("node-{number}")).expect("join"));
    }
    mesh
}

impl Mesh {
    fn client(&self, number: usize, key: &str) -> StockClient {
        let namespace = &self.network.nodes[number - 1];
        let name = format!("node-{number}");
        let authority = self.server.authority();
        StockClient::start(namespace, &name, self.server.port(), key, &authority).expect("client")
    }

    /// Waits until node 1 and node 2 exchange pages.
    fn wait_for_exchange(&self) {
        for (from, to) in [(0, 1), (1, 0)] {
            wait_ok(SOON, "a page through the mesh", || {
                let page = self.clients[from].ask(&self.network.nodes[from], self.addresses[to])?;
                ensure!(page == format!("page of node-{}", to + 1), "{page}");
                Ok(())
            })
            .expect("exchange");
        }
    }

    fn relayed_packets(&self) -> u64 {
        let name = "gateway_mesh_relayed_packets_total";
        self.server.metric(&self.network.hub, name).expect("metric")
    }
}

#[test]
fn stock_clients_exchange_pages_directly_even_without_coordinator() {
    let mut mesh = joined(|_| {});
    mesh.wait_for_exchange();
    let status = mesh.server.api().get("/mesh/status").expect("status");
    assert_eq!((&status["peers"]["total"], &status["peers"]["online"]), (&json!(2), &json!(2)), "{status}");
    // Neither coordinator nor relay is there any more: what still passes goes directly.
    mesh.server.kill().expect("kill");
    mesh.wait_for_exchange();
}

#[test]
fn stock_clients_exchange_pages_by_the_relay() {
    let mesh = joined(|network| network.block_direct_paths().expect("filter"));
    mesh.wait_for_exchange();
    let before = mesh.relayed_packets();
    assert!(before > 0);
    assert_eq!(mesh.server.metric(&mesh.network.hub, "gateway_mesh_relay_clients").expect("metric"), 2);
    mesh.wait_for_exchange();
    assert!(mesh.relayed_packets() > before);
    let peer = mesh.server.peer("node-1").expect("peers").expect("a peer");
    assert_eq!(peer["relay_region"], 999, "{peer}");
}

#[test]
fn node_without_a_valid_key_is_refused_with_the_reason() {
    let mut mesh = start(4);
    let once = mesh.server.key(false, false).expect("key");
    let other = mesh.server.key(true, false).expect("key");
    // The last one: a new key makes the coordinator forget those that have ended.
    let expired = mesh.server.create_key(&json!({"reusable": true, "expires_in": 1})).expect("key");
    let wrong = format!("{}AAAA", &other[..other.len() - 4]);
    let first = mesh.client(1, &once);
    mesh.server.wait_for("node-1").expect("join");
    mesh.clients.push(first);
    let end: Timestamp = expired["expires_at"].as_str().expect("a time").parse().expect("a time");
    wait_for(SOON, "the end of the key", || Timestamp::now() > end).expect("end");
    let expired = expired["key"].as_str().expect("a key");
    for (number, key, reason) in
        [(2, once.as_str(), "is used up"), (3, expired, "has expired"), (4, &wrong, "is not known")]
    {
        let refused = mesh.client(number, key);
        wait_for(SOON, "the client to learn why it is refused", || refused.log().contains(reason))
            .unwrap_or_else(|error| panic!("{error}: {}", refused.log()));
    }
    assert_eq!(mesh.server.peers().expect("peers").len(), 1);
    let log = std::fs::read_to_string(mesh.server.daemon.log_file()).expect("log");
    assert!(!log.contains(&once) && !log.contains(expired), "a key is in the log");
}

#[test]
fn ephemeral_node_ends_with_its_client() {
    let mut mesh = start(1);
    let key = mesh.server.key(true, true).expect("key");
    let mut client = mesh.client(1, &key);
    mesh.server.wait_for("node-1").expect("join");
    assert_eq!(mesh.server.peer("node-1").expect("peers").expect("it is connected")["ephemeral"], true);
    client.terminate().expect("end");
    wait_ok(SOON, "the ephemeral node to end", || {
        ensure!(mesh.server.peer("node-1")?.is_none(), "it is there");
        Ok(())
    })
    .expect("end");
    mesh.clients.push(client);
}

#[test]
fn removed_node_loses_access_at_once_and_stays_away_after_a_restart() {
    let mut mesh = joined(|_| {});
    mesh.wait_for_exchange();
    let id = mesh.server.peer("node-2").expect("peers").expect("node")["id"].clone();
    let path = format!("/mesh/peers/{}", id.as_str().expect("an id"));
    mesh.server.api().delete(&path).expect("removal");
    let entries = mesh.server.api().get("/audit?action=delete_mesh_peer").expect("entries");
    assert_eq!(
        (entries.as_array().map(Vec::len), &entries[0]["result"]),
        (Some(1), &json!("success")),
        "{entries}"
    );
    wait_for(Duration::from_secs(5), "the removed node to be cut off", || {
        let [first, second] = [(0, 1), (1, 0)].map(|(from, to): (usize, usize)| {
            mesh.clients[from].ask(&mesh.network.nodes[from], mesh.addresses[to]).is_ok()
        });
        !first && !second
    })
    .expect("revocation");
    mesh.server.kill().expect("kill");
    mesh.server.start_again().expect("restart");
    mesh.server.wait_for("node-1").expect("return");
    assert!(mesh.server.peer("node-2").expect("peers").is_none(), "it cannot come back without a key");
    let again = mesh.server.api().send("DELETE", &path, None).expect("answer");
    assert_eq!(again.status, 404, "{}", again.body);
}

#[test]
fn nodes_come_back_after_a_crash_of_the_daemon() {
    let mut mesh = joined(|network| network.block_direct_paths().expect("filter"));
    mesh.wait_for_exchange();
    mesh.server.kill().expect("kill");
    mesh.server.start_again().expect("restart");
    for (number, address) in [(1, mesh.addresses[0]), (2, mesh.addresses[1])] {
        let name = format!("node-{number}");
        wait_ok(SOON, "the node to come back", || {
            let peer = mesh.server.peer(&name)?;
            ensure!(peer.as_ref().is_some_and(|peer| peer["online"] == true), "{peer:?}");
            ensure!(peer.as_ref().is_some_and(|peer| peer["ips"][0] == address.to_string()), "{peer:?}");
            Ok(())
        })
        .expect("return");
    }
    mesh.wait_for_exchange();
}
