//! Work of the engine: it applies maps, passes messages between sockets, paths and relays, and observes the peers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::facts::MeshLink;
use gateway_mesh::NodeKey;
use gateway_mesh::network_map::NetworkMap;
use gateway_mesh::packet_filter::PacketFilter;
use gateway_mesh::paths::{Action, PathPeer, Paths, is_mesh_prefix};
use gateway_mesh::wire::PeerNode;
use ipnet::IpNet;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

use super::endpoints::Endpoints;
use super::legs::PeerLegs;
use super::parts::{Announcement, EngineParts};
use crate::os::wireguard::{DeviceConfig, Key, MeshDevice, PeerConfig, relayed_address};
use crate::reconcile::Reason;
use crate::services::mesh_member::layer::{Event, Layer, RelayedPeer, RelayedPeers};
use crate::services::mesh_member::map_reader::{approved, label};
use crate::services::mesh_member::membership::Membership;
use crate::services::mesh_member::observed::PeerTraffic;
use crate::services::mesh_member::relays::{RelayParts, Relays};

/// Interface of the mesh.
const INTERFACE: &str = "mesh0";
/// The least that IPv6 needs: packets fit the relay and most tunnels.
const MTU: u16 = 1280;
const TICK: Duration = Duration::from_secs(1);
/// Time without packets after which the path to a peer is not looked after any more.
const ACTIVE: Duration = Duration::from_secs(120);

type Events = (mpsc::Sender<Event>, mpsc::Receiver<Event>);

pub(super) struct Worker {
    parts: EngineParts,
    paths: Paths,
    layer: Arc<Layer>,
    relays: Relays,
    endpoints: Endpoints,
    announced: watch::Sender<Announcement>,
    /// Configuration of the device. Its peers are those of the map.
    config: DeviceConfig,
    device: Option<MeshDevice>,
    link: MeshLink,
    legs: PeerLegs,
    map: NetworkMap,
    /// Prefixes that the settings offer.
    offered: BTreeSet<IpNet>,
    /// True if the map lets this node have a device.
    is_admitted: bool,
    traffic: BTreeMap<NodeKey, (u64, Instant)>,
}

impl Worker {
    pub(super) fn new(
        membership: &Membership,
        parts: EngineParts,
        paths: Paths,
        layer: Arc<Layer>,
        announced: watch::Sender<Announcement>,
    ) -> Worker {
        let record = &membership.record;
        let relays = Relays::new(RelayParts {
            connector: parts.connector.clone(),
            authorities: record.ca_certificate.clone(),
            node: membership.node.clone(),
            layer: layer.clone(),
            observed: parts.observed.clone(),
        });
        let config = DeviceConfig {
            name: INTERFACE.to_owned(),
            private_key: Key::new(*membership.node.expose()),
            listen_port: Some(record.listen_port),
            // Like other traffic of this host: peers can be in a LAN as well as behind an uplink.
            fwmark: 0,
            mtu: MTU,
            peers: Vec::new(),
        };
        let link = MeshLink {
            interface: INTERFACE.to_owned(),
            mtu: MTU,
            port: record.listen_port,
            ..MeshLink::default()
        };
        Worker {
            endpoints: Endpoints::new(record.listen_port),
            parts,
            paths,
            layer,
            relays,
            announced,
            config,
            device: None,
            link,
            legs: PeerLegs::default(),
            map: NetworkMap::default(),
            offered: BTreeSet::new(),
            is_admitted: false,
            traffic: BTreeMap::new(),
        }
    }

    /// Runs until it is closed.
    pub(super) async fn run(
        mut self,
        mut maps: watch::Receiver<NetworkMap>,
        (events, mut incoming): Events,
        mut closed: oneshot::Receiver<()>,
    ) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = &mut closed => break,
                changed = maps.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let map = maps.borrow_and_update().clone();
                    self.apply(&map).await;
                }
                Some(event) = incoming.recv() => self.handle(event),
                _ = ticks.tick() => self.tick(&events).await,
            }
        }
        self.close_device().await;
    }

    async fn apply(&mut self, map: &NetworkMap) {
        let Some(node) = &map.node else { return };
        let own: BTreeSet<IpAddr> = mesh_addresses(node).map(|net| net.addr()).collect();
        self.is_admitted = node.machine_authorized && !own.is_empty();
        let peers: BTreeMap<NodeKey, (u64, Vec<IpNet>, &PeerNode)> = map
            .peers
            .values()
            .filter(|peer| !peer.expired && !peer.key.is_zero() && peer.key != node.key)
            .map(|peer| {
                let addresses = mesh_addresses(peer).filter(|net| !own.contains(&net.addr())).collect();
                (peer.key, (peer.id, addresses, peer))
            })
            .collect();
        self.legs.set_map(map);
        self.relays.set_map(&map.derp_map);
        self.choose_home();
        self.set_relayed(&peers);
        self.paths.set_peers(peers.iter().filter_map(|(key, (_, _, peer))| {
            Some(PathPeer { key: *key, disco: peer.disco_key?, endpoints: peer.endpoints.clone() })
        }));
        self.config.peers =
            peers.iter().map(|(key, (id, addresses, _))| peer_config(*key, *id, addresses)).collect();
        self.map = map.clone();
        self.link.names = names(map);
        self.link.addresses = own;
        self.set_filter(self.parts.offered());
        self.link.peers = peers.values().flat_map(|(_, addresses, _)| addresses.iter().copied()).collect();
        self.settle_device().await;
    }

    /// Applies the packet filter of the map, and sets the prefixes that this gateway routes for peers: offered, and approved.
    fn set_filter(&mut self, offered: BTreeSet<IpNet>) {
        self.link.offered = approved(&self.map, &offered);
        self.offered = offered;
        let own = self.link.addresses.iter().copied().map(IpNet::from);
        let local = own.chain(self.link.offered.iter().copied()).collect();
        self.layer.set_filter(PacketFilter::new(self.map.filter_rules(), local));
    }

    /// Creates, changes or closes the device, as the map says.
    async fn settle_device(&mut self) {
        if !self.is_admitted {
            self.close_device().await;
            return;
        }
        let result = match &mut self.device {
            Some(device) => device.change(&self.config).await,
            None => match MeshDevice::create(&self.config, self.layer.clone()).await {
                Ok(device) => {
                    self.layer.set_device(Some(device.relayed()));
                    self.device = Some(device);
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        let failure = result.err().map(|error| gateway_outbound::causes::with_causes(&error));
        if let Some(error) = &failure {
            tracing::warn!(error, "the device of the mesh");
        }
        self.parts.observed.update(|seen| seen.device_failure = failure);
        self.settle_legs().await;
    }

    /// Brings the devices of peers that hops name to what is wanted, and publishes their state with that of the interface.
    async fn settle_legs(&mut self) {
        let accepts_routes = self.parts.membership_settings().accept_routes;
        self.legs.set_state(&self.parts.worlds.last().state, accepts_routes);
        let Some(device) = &mut self.device else { return };
        if let Err(error) = device.change_peer_tuns(&self.legs.tuns(MTU)).await {
            tracing::warn!(%error, "the device of a peer of the mesh");
        }
        (self.link.legs, self.link.missing) = self.legs.facts(Instant::now());
        self.publish_link(Some(self.link.clone()));
    }

    async fn close_device(&mut self) {
        self.layer.set_device(None);
        let Some(device) = self.device.take() else { return };
        if let Err(error) = device.close().await {
            tracing::warn!(%error, "the device of the mesh does not end");
        }
        self.publish_link(None);
    }

    /// Makes the interface a fact of the plan.
    fn publish_link(&self, link: Option<MeshLink>) {
        if self.parts.link.set(link) {
            let enforcement = self.parts.enforcement.clone();
            tokio::spawn(async move {
                // A loop that has stopped needs no facts.
                let _ = enforcement.reconcile(Reason::Facts).await;
            });
        }
    }

    fn set_relayed(&mut self, peers: &BTreeMap<NodeKey, (u64, Vec<IpNet>, &PeerNode)>) {
        let mut relayed = RelayedPeers::default();
        for (key, (id, _, peer)) in peers {
            let address = relayed_address(*id);
            let queue = self.relays.queue(peer.home_derp);
            relayed.by_address.insert(address, RelayedPeer::new(*key, queue));
            relayed.addresses.insert(*key, address);
        }
        self.layer.set_peers(relayed);
    }

    fn handle(&mut self, event: Event) {
        let now = self.layer.now();
        let actions = match event {
            Event::Disco { origin, datagram } => self.paths.receive(now, origin, &datagram),
            Event::Relaying(peer) => self.paths.wake(peer, now),
            Event::Stun { datagram } => {
                self.endpoints.take_answer(&datagram, now);
                Vec::new()
            }
            Event::StunServers(servers) => {
                for (to, datagram) in self.endpoints.requests(servers, now) {
                    self.send(&datagram, to);
                }
                Vec::new()
            }
        };
        self.act(actions);
    }

    fn act(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { to, datagram } => self.send(&datagram, to),
                Action::Relay { peer, datagram } => self.layer.send_by_relay(peer, datagram),
                Action::UsePath { peer, direct } => {
                    let endpoint = direct.or_else(|| self.layer.address(peer));
                    if let (Some(device), Some(endpoint)) = (&self.device, endpoint) {
                        tracing::debug!(peer = %peer, is_direct = direct.is_some(), "path to a peer of the mesh");
                        device.use_path(&peer.0, endpoint);
                    }
                }
            }
        }
    }

    /// Sends a datagram that is not one of WireGuard. One that does not leave is lost, as on any network.
    fn send(&self, datagram: &[u8], to: std::net::SocketAddr) {
        if let Some(device) = &self.device
            && let Err(error) = device.try_send(datagram, to)
        {
            tracing::trace!(%to, %error, "cannot send");
        }
    }

    async fn tick(&mut self, events: &mpsc::Sender<Event>) {
        if self.device.as_mut().is_some_and(MeshDevice::is_lost) {
            tracing::warn!("others have removed the interface of the mesh");
            self.close_device().await;
        }
        if self.is_admitted && self.device.is_none() {
            self.settle_device().await;
        }
        let now = self.layer.now();
        self.observe_peers();
        let offered = self.parts.offered();
        if offered != self.offered {
            self.set_filter(offered);
        }
        self.settle_legs().await;
        self.probe_legs();
        let traffic = &self.traffic;
        let is_active = |peer| traffic.get(&peer).is_some_and(|(_, last)| last.elapsed() < ACTIVE);
        let actions = self.paths.tick(now, is_active);
        self.act(actions);
        self.choose_home();
        if self.endpoints.is_due(now) {
            self.endpoints.look_up(self.relays.regions(), &self.parts.connector, events.clone());
        }
        self.announce();
    }

    /// Sends the echo requests that show whether a peer is an egress.
    fn probe_legs(&mut self) {
        let Some(device) = &self.device else { return };
        for (peer, packet) in self.legs.probes(&self.link.addresses) {
            device.send_to_peer(&peer.0, &packet);
        }
    }

    /// Notes which peers exchange packets, and by which paths.
    fn observe_peers(&mut self) {
        let status = self.device.as_ref().map(MeshDevice::status);
        if let Some(status) = &status {
            self.legs.observe(status, Instant::now());
        }
        let mut observed = BTreeMap::new();
        let mut traffic = BTreeMap::new();
        for peer in status.into_iter().flat_map(|status| status.peers) {
            let key = NodeKey(peer.public_key);
            let sum = peer.rx_bytes.saturating_add(peer.tx_bytes);
            let last = match self.traffic.get(&key) {
                Some((before, last)) if *before == sum => Some(*last),
                _ if sum == 0 => None,
                _ => Some(Instant::now()),
            };
            traffic.extend(last.map(|last| (key, (sum, last))));
            let is_active = last.is_some_and(|last| last.elapsed() < ACTIVE);
            let direct = self.paths.direct(key).map(|path| path.latency);
            observed.insert(key, PeerTraffic { direct, is_active, rx: peer.rx_bytes, tx: peer.tx_bytes });
        }
        self.traffic = traffic;
        let latencies = self.endpoints.latencies().clone();
        self.parts.observed.update(|seen| (seen.traffic, seen.latencies) = (observed, latencies));
    }

    /// Chooses the nearest relay. Without a measurement it is the first one of the map.
    fn choose_home(&mut self) {
        let nearest = self.endpoints.nearest(self.relays.regions());
        if let Some(region) = nearest.filter(|_| self.relays.home().is_none()) {
            self.relays.set_home(region);
        }
    }

    fn announce(&mut self) {
        let endpoints = self.endpoints.all(&self.parts.worlds.last(), INTERFACE);
        self.paths.set_endpoints(endpoints.clone());
        let routes = self.offered.clone();
        let announcement = Announcement { endpoints, home: self.relays.home(), routes };
        self.announced.send_if_modified(|before| {
            let is_news = *before != announcement;
            *before = announcement;
            is_news
        });
    }
}

/// Addresses of all nodes by their names.
fn names(map: &NetworkMap) -> BTreeMap<String, BTreeSet<IpAddr>> {
    let mut names: BTreeMap<String, BTreeSet<IpAddr>> = BTreeMap::new();
    for node in map.node.iter().chain(map.peers.values()) {
        let addresses = mesh_addresses(node).map(|net| net.addr());
        names.entry(label(&node.name, &map.domain)).or_insert_with(|| addresses.collect());
    }
    names
}

/// Addresses of a node. Those outside the prefixes of meshes are ignored, so that no coordinator takes others over.
fn mesh_addresses(node: &PeerNode) -> impl Iterator<Item = IpNet> {
    let is_host = |net: &IpNet| net.prefix_len() == net.max_prefix_len();
    node.addresses.iter().copied().filter(move |net| is_host(net) && is_mesh_prefix(net))
}

fn peer_config(key: NodeKey, id: u64, addresses: &[IpNet]) -> PeerConfig {
    PeerConfig {
        public_key: key.0,
        preshared_key: None,
        endpoint: Some(relayed_address(id)),
        allowed_ips: addresses.to_vec(),
        persistent_keepalive: None,
    }
}
