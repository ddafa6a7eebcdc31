//! Metrics of the membership.

use jiff::Timestamp;
use prometheus_client::registry::Registry;

use gateway_core::facts::MeshLink;
use gateway_mesh::network_map::key_end;

use super::observed::Observation;
use crate::metrics::{counters, gauge, gauges};

/// Adds the connection to the coordinator, peers by path, traffic, peers as egresses, and the end of the own key.
pub(super) fn register(registry: &mut Registry, seen: &Observation, link: Option<&MeshLink>) {
    let help = "1 while the map of the mesh is followed, 0 while it is not";
    gauge(registry, "mesh_member_connected", help, u64::from(seen.is_connected));
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let path_of = |is_active: bool, is_direct: bool| match (is_active, is_direct) {
        (false, _) => "idle",
        (true, true) => "direct",
        (true, false) => "relay",
    };
    let paths = ["direct", "relay", "idle"].map(|path| {
        let peers =
            seen.traffic.values().filter(|peer| path_of(peer.is_active, peer.direct.is_some()) == path);
        (vec![("path", path.to_owned())], count(peers.count()))
    });
    gauges(registry, "mesh_member_peers", "Peers of this gateway in the mesh, by path", paths);
    let sum = |of: fn(&super::observed::PeerTraffic) -> u64| seen.traffic.values().map(of).sum::<u64>();
    let bytes = [("receive", sum(|peer| peer.rx)), ("transmit", sum(|peer| peer.tx))]
        .map(|(direction, bytes)| (vec![("direction", direction.to_owned())], bytes));
    counters(registry, "mesh_member_bytes", "Bytes of packets of present peers, by direction", bytes);
    let legs = link.into_iter().flat_map(|link| &link.legs);
    let legs = legs.map(|(name, leg)| (vec![("peer", name.clone())], i64::from(leg.usable)));
    gauges(
        registry,
        "mesh_member_leg_up",
        "1 if a peer that hops name is usable as an egress, 0 if it is not",
        legs,
    );
    if let Some(end) = seen.map.node.as_ref().and_then(key_end) {
        let help = "End of the key of this gateway in the mesh, in seconds since 1970";
        let seconds = u64::try_from(end.duration_since(Timestamp::UNIX_EPOCH).as_secs()).unwrap_or_default();
        gauge(registry, "mesh_member_key_expiry_timestamp_seconds", help, seconds);
    }
}
