//! Endpoints of this gateway: addresses of its interfaces, and those that STUN servers see.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use gateway_mesh::stun::{Transaction, parse_response, request};
use gateway_mesh::wire::DerpRegion;
use gateway_outbound::Resolver;
use tokio::sync::mpsc;

use crate::services::mesh_member::dial::Connector;
use crate::services::mesh_member::layer::Event;
use crate::world::World;

/// Interval of requests. NATs keep a mapping for half a minute at least.
const INTERVAL: Duration = Duration::from_secs(20);
/// Time after which an address that a server saw is taken for old.
const LIFETIME: Duration = Duration::from_secs(60);
const STUN_PORT: u16 = 3478;
/// Regions that are asked.
const MOST_REGIONS: usize = 64;
const MOST_ENDPOINTS: usize = 16;

/// Endpoints, and what is known of STUN servers.
#[derive(Debug)]
pub(super) struct Endpoints {
    port: u16,
    asked: Option<Duration>,
    pending: BTreeMap<[u8; 12], (u32, Duration)>,
    latencies: BTreeMap<u32, Duration>,
    /// Addresses that servers saw, with the time of the last answer.
    mapped: BTreeMap<SocketAddr, Duration>,
    now: Duration,
}

impl Endpoints {
    pub(super) fn new(port: u16) -> Endpoints {
        let (pending, latencies, mapped) = Default::default();
        Endpoints { port, asked: None, pending, latencies, mapped, now: Duration::ZERO }
    }

    /// Reports whether servers are to be asked again.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        self.now = now;
        let is_due = self.asked.is_none_or(|last| now.saturating_sub(last) >= INTERVAL);
        if is_due {
            self.asked = Some(now);
        }
        is_due
    }

    /// Looks the servers of all regions up. They come back as an event.
    pub(super) fn look_up(
        &mut self,
        regions: &BTreeMap<u32, DerpRegion>,
        connector: &Arc<Connector>,
        events: mpsc::Sender<Event>,
    ) {
        if regions.is_empty() {
            // The map comes later.
            self.asked = None;
            return;
        }
        let servers: Vec<(u32, String)> = regions
            .iter()
            .take(MOST_REGIONS)
            .filter_map(|(id, region)| Some((*id, region.nodes.iter().find_map(server)?)))
            .collect();
        let connector = connector.clone();
        tokio::spawn(async move {
            let found = resolve(connector.names(), servers).await;
            // An engine that has ended asks no more.
            let _ = events.send(Event::StunServers(found)).await;
        });
    }

    /// Returns the requests to servers.
    pub(super) fn requests(
        &mut self,
        servers: Vec<(u32, SocketAddr)>,
        now: Duration,
    ) -> Vec<(SocketAddr, Vec<u8>)> {
        self.pending.retain(|_, (_, sent)| now.saturating_sub(*sent) < INTERVAL);
        let mut requests = Vec::new();
        for (region, to) in servers {
            let mut transaction = [0; 12];
            if getrandom::fill(&mut transaction).is_err() {
                break;
            }
            self.pending.insert(transaction, (region, now));
            requests.push((to, request(Transaction(transaction))));
        }
        requests
    }

    /// Takes an answer of a server. One that was not asked for has no effect.
    pub(super) fn take_answer(&mut self, datagram: &[u8], now: Duration) {
        let Some((Transaction(transaction), mapped)) = parse_response(datagram) else { return };
        let Some((region, sent)) = self.pending.remove(&transaction) else { return };
        self.latencies.insert(region, now.saturating_sub(sent));
        self.mapped.retain(|_, last| now.saturating_sub(*last) < LIFETIME);
        if self.mapped.len() < MOST_ENDPOINTS {
            self.mapped.insert(mapped, now);
        }
    }

    pub(super) fn latencies(&self) -> &BTreeMap<u32, Duration> {
        &self.latencies
    }

    /// Returns the region with the lowest latency, else the first one that has a relay.
    pub(super) fn nearest(&self, regions: &BTreeMap<u32, DerpRegion>) -> Option<u32> {
        let usable = |id: &u32| regions.get(id).is_some_and(|region| !region.nodes.is_empty());
        let measured =
            self.latencies.iter().filter(|(id, _)| usable(id)).min_by_key(|(_, latency)| **latency);
        measured.map(|(id, _)| *id).or_else(|| regions.keys().copied().find(usable))
    }

    /// Returns all endpoints: those of the LAN and the uplinks, and those that servers saw.
    pub(super) fn all(&self, world: &World, mesh: &str) -> Vec<SocketAddr> {
        let input = world.input();
        let uplinks = input.network.uplinks.iter().map(|uplink| &uplink.interface);
        let interfaces: BTreeSet<&String> =
            input.network.lan.iter().chain(uplinks).filter(|name| *name != mesh).collect();
        let addresses = interfaces.into_iter().filter_map(|name| input.facts.addresses.get(name)).flatten();
        let own =
            addresses.map(|net| SocketAddr::new(net.addr(), self.port)).filter(|own| is_reachable(own.ip()));
        let mapped = self.mapped.iter().filter(|(_, last)| self.now.saturating_sub(**last) < LIFETIME);
        let all: BTreeSet<SocketAddr> = own.chain(mapped.map(|(mapped, _)| *mapped)).collect();
        all.into_iter().take(MOST_ENDPOINTS).collect()
    }
}

fn is_reachable(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_link_local && !address.is_loopback() && !address.is_unspecified()
}

/// Returns the STUN server of a relay, with its port; none if it has none.
fn server(node: &gateway_mesh::wire::DerpNode) -> Option<String> {
    let port = match node.stun_port {
        0 => STUN_PORT,
        port => u16::try_from(port).ok()?,
    };
    let host = node.ipv4.map_or_else(|| node.host_name.clone(), |address| address.to_string());
    Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

async fn resolve(names: &Resolver, servers: Vec<(u32, String)>) -> Vec<(u32, SocketAddr)> {
    let mut found = Vec::new();
    for (region, server) in servers {
        match names.resolve(&server, None).await {
            Ok(addresses) => found.extend(addresses.first().map(|address| (region, *address))),
            Err(error) => tracing::debug!(region, %error, "STUN server of the mesh"),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateway_mesh::stun::{parse_request, response};
    use gateway_mesh::wire::DerpNode;

    const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 3478);

    #[test]
    fn answers_name_the_endpoint_and_the_nearest_relay() {
        let mut endpoints = Endpoints::new(41641);
        let mapped = SocketAddr::from(([198, 51, 100, 7], 5000));
        let start = Duration::from_secs(10);
        let requests = endpoints.requests(vec![(1, SERVER.into()), (2, SERVER.into())], start);
        for ((_, datagram), wait) in requests.into_iter().zip([30, 20]) {
            let transaction = parse_request(&datagram).expect("a request");
            endpoints.take_answer(&response(transaction, mapped), start + Duration::from_millis(wait));
        }
        let region = DerpRegion { nodes: vec![DerpNode::default()], ..DerpRegion::default() };
        let regions = BTreeMap::from([(1, region.clone()), (2, region)]);
        assert_eq!(endpoints.nearest(&regions), Some(2));
        assert_eq!(endpoints.mapped.keys().copied().collect::<Vec<_>>(), [mapped]);
        endpoints.take_answer(&response(Transaction([1; 12]), SERVER.into()), start);
        assert_eq!(endpoints.mapped.len(), 1, "an answer that was not asked for");
    }

    #[test]
    fn relays_name_their_stun_servers() {
        let node = |host: &str, port| DerpNode {
            host_name: host.to_owned(),
            stun_port: port,
            ..DerpNode::default()
        };
        assert_eq!(server(&node("relay.example.net", 0)).as_deref(), Some("relay.example.net:3478"));
        assert_eq!(server(&node("2001:db8::1", 3479)).as_deref(), Some("[2001:db8::1]:3479"));
        assert_eq!(server(&node("relay.example.net", -1)), None);
    }
}
