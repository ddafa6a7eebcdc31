//! Connections to relays: one to the home relay, at which peers reach this gateway, and one to each other relay that packets
//! for peers go to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gateway_mesh::KeyPair;
use gateway_mesh::client::{RelayClient, RelayedPacket, relay_packets};
use gateway_mesh::wire::{DerpMap, DerpRegion};
use gateway_outbound::backoff::Backoff;
use gateway_outbound::causes::with_causes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::dial::{Connector, Target};
use super::layer::Layer;
use super::observed::Observed;

/// Packets that wait for a relay.
const QUEUE: usize = 256;
const HTTPS: u16 = 443;
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// Connections to relays by region.
pub(super) struct Relays {
    parts: RelayParts,
    links: BTreeMap<u32, RelayLink>,
    regions: BTreeMap<u32, DerpRegion>,
    home: Option<u32>,
}

/// Surroundings of all connections.
#[derive(Clone)]
pub(super) struct RelayParts {
    pub connector: Arc<Connector>,
    /// Authorities that are trusted instead of those of the system, in PEM.
    pub authorities: String,
    pub node: KeyPair,
    pub layer: Arc<Layer>,
    pub observed: Arc<Observed>,
}

struct RelayLink {
    region: DerpRegion,
    queue: mpsc::Sender<RelayedPacket>,
    task: JoinHandle<()>,
}

impl Drop for RelayLink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Relays {
    pub(super) fn new(parts: RelayParts) -> Relays {
        Relays { parts, links: BTreeMap::new(), regions: BTreeMap::new(), home: None }
    }

    /// Takes over the relays of the map. Connections to those that have changed end.
    pub(super) fn set_map(&mut self, map: &DerpMap) {
        self.regions.clone_from(&map.regions);
        let regions = &self.regions;
        self.links.retain(|id, link| regions.get(id) == Some(&link.region));
        self.home = self.home.filter(|home| regions.contains_key(home));
        self.parts.observed.update(|seen| seen.relay_failures.retain(|id, _| regions.contains_key(id)));
    }

    pub(super) fn regions(&self) -> &BTreeMap<u32, DerpRegion> {
        &self.regions
    }

    pub(super) fn home(&self) -> Option<u32> {
        self.home
    }

    /// Makes a relay the home. Returns whether it was none before.
    pub(super) fn set_home(&mut self, region: u32) -> bool {
        if self.home == Some(region) || !self.regions.contains_key(&region) {
            return false;
        }
        if let Some(before) = self.home.replace(region) {
            self.links.remove(&before);
        }
        self.links.remove(&region);
        self.parts.observed.update(|seen| seen.home_region = None);
        let _ = self.queue(region);
        true
    }

    /// Returns the queue of a relay; none if the map has no such relay. A connection begins with the first packet, and that to
    /// the home relay at once.
    pub(super) fn queue(&mut self, region: u32) -> Option<mpsc::Sender<RelayedPacket>> {
        if let Some(link) = self.links.get(&region) {
            return Some(link.queue.clone());
        }
        let described = self.regions.get(&region)?.clone();
        let is_home = self.home == Some(region);
        let (queue, outgoing) = mpsc::channel(QUEUE);
        let task = tokio::spawn(run(self.parts.clone(), described.clone(), is_home, outgoing));
        self.links.insert(region, RelayLink { region: described, queue: queue.clone(), task });
        Some(queue)
    }
}

/// Keeps the connection to a relay until it is aborted.
async fn run(
    parts: RelayParts,
    region: DerpRegion,
    is_home: bool,
    mut outgoing: mpsc::Receiver<RelayedPacket>,
) {
    let id = region.region_id;
    let targets: Vec<Target> = region.nodes.iter().map(target).collect();
    let mut failures = 0_u32;
    for target in targets.iter().cycle() {
        let mut waiting = None;
        if !is_home {
            waiting = outgoing.recv().await;
            if waiting.is_none() {
                return;
            }
        }
        let mut was_open = false;
        let ended = match parts.connector.connect(target, &parts.authorities).await {
            Ok(socket) => {
                let client = RelayClient { host: target.authority(), node: parts.node.clone(), is_home };
                let opened = || {
                    was_open = true;
                    parts.observed.update(|seen| {
                        seen.relay_failures.remove(&id);
                        if is_home {
                            seen.home_region = Some(id);
                        }
                    });
                };
                let received = |packet| parts.layer.take_relayed(packet);
                relay_packets(socket, &client, &mut outgoing, waiting, opened, received)
                    .await
                    .map_err(|error| with_causes(&error))
            }
            Err(error) => Err(error),
        };
        failures = if was_open { 1 } else { failures + 1 };
        let reason = ended.err().unwrap_or_else(|| "the connection ended".to_owned());
        tracing::debug!(region = id, error = reason, "relay of the mesh");
        parts.observed.update(|seen| {
            seen.relay_failures.insert(id, reason);
            if is_home {
                seen.home_region = None;
            }
        });
        tokio::time::sleep(RETRY.after(failures)).await;
    }
}

fn target(node: &gateway_mesh::wire::DerpNode) -> Target {
    Target {
        host: node.host_name.clone(),
        address: node.ipv4.map(|address| address.to_string()),
        port: if node.derp_port == 0 { HTTPS } else { node.derp_port },
        is_secure: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateway_mesh::wire::DerpNode;

    #[test]
    fn relays_without_a_port_are_those_of_https() {
        let node = |port| DerpNode {
            host_name: "relay.example.net".to_owned(),
            derp_port: port,
            ..DerpNode::default()
        };
        assert_eq!((target(&node(0)).port, target(&node(8443)).port), (443, 8443));
        assert_eq!(target(&node(0)).authority(), "relay.example.net");
    }
}
