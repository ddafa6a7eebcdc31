//! Metrics of the mesh.

use gateway_mesh::Coordinator;
use prometheus_client::registry::Registry;

use crate::metrics::{counter, gauge, gauges};

/// Adds nodes and relayed packets.
pub(super) fn register(registry: &mut Registry, coordinator: &Coordinator) {
    let members = coordinator.members();
    let online = members.iter().filter(|member| member.is_connected()).count();
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let nodes = [("online", online), ("offline", members.len() - online)]
        .map(|(state, number)| (vec![("state", state.to_owned())], count(number)));
    gauges(registry, "mesh_nodes", "Nodes of the mesh, by state", nodes);
    let relay = coordinator.switch().counters();
    let clients = u64::try_from(relay.clients).unwrap_or(u64::MAX);
    gauge(registry, "mesh_relay_clients", "Clients that are connected to the relay of the mesh", clients);
    counter(registry, "mesh_relayed_packets", "Packets that the relay has passed on", relay.relayed_packets);
    counter(registry, "mesh_relayed_bytes", "Bytes of these packets", relay.relayed_bytes);
    counter(
        registry,
        "mesh_relay_dropped_packets",
        "Packets that the relay has dropped, because their receiver was not there or too slow",
        relay.dropped_packets,
    );
}
