//! The coordinator of the mesh with stock clients: who joins, what they reach, and how access ends.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::ensure;
use gateway_tests::mesh::{MeshNetwork, MeshServer, StockClient};
use gateway_tests::wait::{wait_for, wait_ok};
use jiff::SignedDuration;

/// Time for a client to find a path, or to come back. Clients repeat with growing pauses.
const SOON: Duration = Duration::from_secs(60);
const HOUR: SignedDuration = SignedDuration::from_hours(1);

struct Mesh {
    // Field order is drop order.
    clients: Vec<StockClient>,
    server: MeshServer,
    network: MeshNetwork,
    addresses: Vec<IpAddr>,
}

fn start(nodes: usize) -> Mesh {
    let network = MeshNetwork::create(nodes).expect("network");
    let server = MeshServer::start(&network.hub, SignedDuration::from_secs(1)).expect("coordinator");
    Mesh { clients: Vec::new(), server, network, addresses: Vec::new() }
}

/// Starts a mesh of two nodes.
fn joined(prepare: impl Fn(&MeshNetwork)) -> Mesh {
    let mut mesh = start(2);
    prepare(&mesh.network);
    let key = mesh.server.key(true, false, HOUR).expect("key");
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
}

#[test]
fn stock_clients_exchange_pages_directly_even_without_coordinator() {
    let mut mesh = joined(|_| {});
    mesh.wait_for_exchange();
    // Neither coordinator nor relay is there any more: what still passes goes directly.
    mesh.server.kill();
    mesh.wait_for_exchange();
}

#[test]
fn stock_clients_exchange_pages_by_the_relay() {
    let mesh = joined(|network| network.block_direct_paths().expect("filter"));
    mesh.wait_for_exchange();
    let before = mesh.server.coordinator().switch().counters();
    assert!(before.clients == 2 && before.relayed_packets > 0, "{before:?}");
    mesh.wait_for_exchange();
    let after = mesh.server.coordinator().switch().counters();
    assert!(after.relayed_packets > before.relayed_packets, "{after:?}");
}

#[test]
fn node_without_a_valid_key_is_refused_with_the_reason() {
    let mut mesh = start(4);
    let once = mesh.server.key(false, false, HOUR).expect("key");
    let other = mesh.server.key(true, false, HOUR).expect("key");
    // The last one: a new key makes the coordinator forget those that have ended.
    let expired = mesh.server.key(true, false, SignedDuration::from_secs(-1)).expect("key");
    let wrong = format!("{}AAAA", &other[..other.len() - 4]);
    let first = mesh.client(1, &once);
    mesh.server.wait_for("node-1").expect("join");
    mesh.clients.push(first);
    for (number, key, reason) in
        [(2, &once, "is used up"), (3, &expired, "has expired"), (4, &wrong, "is not known")]
    {
        let refused = mesh.client(number, key);
        wait_for(SOON, "the client to learn why it is refused", || refused.log().contains(reason))
            .unwrap_or_else(|error| panic!("{error}: {}", refused.log()));
    }
    assert_eq!(mesh.server.coordinator().members().len(), 1);
}

#[test]
fn ephemeral_node_ends_with_its_client() {
    let mut mesh = start(1);
    let key = mesh.server.key(true, true, HOUR).expect("key");
    let mut client = mesh.client(1, &key);
    mesh.server.wait_for("node-1").expect("join");
    mesh.server.coordinator().tick().expect("tick");
    assert!(mesh.server.member("node-1").is_some(), "it is connected");
    client.terminate().expect("end");
    wait_for(SOON, "the ephemeral node to end", || {
        mesh.server.coordinator().tick().expect("tick");
        mesh.server.member("node-1").is_none()
    })
    .expect("end");
    mesh.clients.push(client);
}

#[test]
fn removed_node_loses_access_at_once() {
    let mesh = joined(|_| {});
    mesh.wait_for_exchange();
    let id = mesh.server.member("node-2").expect("node").node.id;
    assert!(mesh.server.coordinator().remove(id).expect("removal"));
    wait_for(Duration::from_secs(5), "the removed node to be cut off", || {
        let [first, second] = [(0, 1), (1, 0)].map(|(from, to): (usize, usize)| {
            mesh.clients[from].ask(&mesh.network.nodes[from], mesh.addresses[to]).is_ok()
        });
        !first && !second
    })
    .expect("revocation");
    assert!(mesh.server.member("node-2").is_none(), "it cannot come back without a key");
}

#[test]
fn nodes_come_back_after_a_crash_of_the_coordinator() {
    let mut mesh = joined(|network| network.block_direct_paths().expect("filter"));
    mesh.wait_for_exchange();
    mesh.server.kill();
    mesh.server.start_again(&mesh.network.hub).expect("restart");
    for (number, address) in [(1, mesh.addresses[0]), (2, mesh.addresses[1])] {
        let name = format!("node-{number}");
        wait_for(SOON, "the node to come back", || {
            mesh.server.member(&name).is_some_and(|member| member.presence.stream.is_some())
        })
        .expect("return");
        assert_eq!(mesh.server.member(&name).map(|member| member.node.addresses[0]), Some(address));
    }
    mesh.wait_for_exchange();
}
