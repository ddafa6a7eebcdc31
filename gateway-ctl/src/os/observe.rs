//! Netlink observation of links, addresses, default routes and neighbours, and of their changes.
//!
//! This module draws no conclusions. The caller decides which links are LAN, and other modules determine tunnel
//! health.

mod subscription;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_core::facts::{DefaultRoute, Facts, Link, LinkLayer};
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::link::{
    InfoData, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use rtnetlink::packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteNextHopFlags, RouteType,
};
use tokio::sync::watch;

pub use subscription::{KernelChanges, NFTABLES_GROUP, ROUTING_GROUPS};

use super::netlink::{self, Error, Netlink, collect};
use super::{address, route};
use crate::supervise::Supervisor;
use subscription::Subscription;

/// Observer that watches from its creation until its drop.
#[derive(Debug)]
pub struct Observer {
    netlink: Netlink,
    subscription: Subscription,
}

impl Observer {
    pub fn new(netlink: Netlink) -> Result<Self, Error> {
        Self::supervised(netlink, &Supervisor::default())
    }

    /// Creates an observer whose tasks this supervisor restarts and reports.
    pub fn supervised(netlink: Netlink, supervisor: &Supervisor) -> Result<Self, Error> {
        Ok(Self { netlink, subscription: Subscription::open(supervisor).map_err(Error::Open)? })
    }

    /// Returns the counters of changes. Changes in quick succession count once.
    pub fn changes(&self) -> watch::Receiver<KernelChanges> {
        self.subscription.changed()
    }

    /// Returns the facts that the kernel knows. Neighbours are those behind the links for which `is_lan` holds.
    pub async fn facts(&self, is_lan: impl Fn(&str) -> bool) -> Result<Facts, Error> {
        let messages = self.netlink.links().await?;
        let names: BTreeMap<u32, String> = messages
            .iter()
            .filter_map(|message| Some((message.header.index, netlink::name(message)?.to_owned())))
            .collect();
        let links = messages.iter().filter_map(|message| {
            let name = netlink::name(message)?.to_owned();
            Some((name, link(message, &names)))
        });
        let Routes { default_routes, prefixes, mtus } = self.routes(&names).await?;
        Ok(Facts {
            links: links.collect(),
            addresses: self.addresses(&names).await?,
            default_routes,
            prefixes,
            route_mtus: mtus,
            neighbours: self.neighbours(&names, is_lan).await?,
            ..Facts::default()
        })
    }

    async fn addresses(
        &self,
        names: &BTreeMap<u32, String>,
    ) -> Result<BTreeMap<String, BTreeSet<ipnet::IpNet>>, Error> {
        let messages = collect("addresses", self.netlink.handle()?.address().get().execute()).await?;
        let mut addresses = BTreeMap::<String, BTreeSet<ipnet::IpNet>>::new();
        for message in &messages {
            if let (Some(name), Some(address)) = (names.get(&message.header.index), address::address(message))
            {
                addresses.entry(name.clone()).or_default().insert(address);
            }
        }
        Ok(addresses)
    }

    async fn routes(&self, names: &BTreeMap<u32, String>) -> Result<Routes, Error> {
        let (mut routes, mut prefixes, mut mtus) = (Vec::new(), Prefixes::new(), BTreeMap::new());
        for (ipv6, request) in [
            (false, RouteMessageBuilder::<Ipv4Addr>::new().build()),
            (true, RouteMessageBuilder::<Ipv6Addr>::new().build()),
        ] {
            let messages = collect("routes", self.netlink.handle()?.route().get(request).execute()).await?;
            routes.extend(messages.iter().flat_map(|message| default_routes(message, ipv6, names)));
            for (interface, prefix) in messages.iter().filter_map(|message| prefix(message, names)) {
                prefixes.entry(interface).or_default().insert(prefix);
            }
            for (interface, mtu) in messages.iter().flat_map(|message| route_mtus(message, names)) {
                let lowest: &mut u32 = mtus.entry(interface).or_insert(mtu);
                *lowest = mtu.min(*lowest);
            }
        }
        routes.sort_by(|a, b| (a.ipv6, a.metric, &a.interface).cmp(&(b.ipv6, b.metric, &b.interface)));
        Ok(Routes { default_routes: routes, prefixes, mtus })
    }

    async fn neighbours(
        &self,
        names: &BTreeMap<u32, String>,
        is_lan: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<[u8; 6], BTreeSet<IpAddr>>, Error> {
        let messages = collect("neighbours", self.netlink.handle()?.neighbours().get().execute()).await?;
        let mut neighbours = BTreeMap::<[u8; 6], BTreeSet<IpAddr>>::new();
        for message in &messages {
            if !names.get(&message.header.ifindex).is_some_and(|name| is_lan(name)) {
                continue;
            }
            if let Some((mac, address)) = neighbour(message) {
                neighbours.entry(mac).or_default().insert(address);
            }
        }
        Ok(neighbours)
    }
}

fn link(message: &LinkMessage, names: &BTreeMap<u32, String>) -> Link {
    let flags = message.header.flags;
    let mut link = Link {
        index: message.header.index,
        // Administratively up, and with a carrier.
        up: flags.contains(LinkFlags::Up) && flags.contains(LinkFlags::LowerUp),
        link_layer: match message.header.link_layer_type {
            LinkLayerType::Ether => LinkLayer::Ethernet,
            LinkLayerType::Loopback => LinkLayer::Loopback,
            _ => LinkLayer::Other,
        },
        ..Link::default()
    };
    let (mut parent, mut vlan_id, mut parent_is_elsewhere) = (None, None, false);
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::Address(bytes) => link.mac = mac(bytes),
            LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
            LinkAttribute::Link(index) => parent = names.get(index),
            LinkAttribute::Controller(index) => link.master = names.get(index).cloned(),
            LinkAttribute::LinkNetNsId(_) => parent_is_elsewhere = true,
            LinkAttribute::LinkInfo(infos) => {
                for info in infos {
                    match info {
                        LinkInfo::Kind(kind) => link.kind = kind.to_string(),
                        LinkInfo::Data(InfoData::Vlan(data)) => {
                            vlan_id = data.iter().find_map(|item| match item {
                                InfoVlan::Id(id) => Some(*id),
                                _ => None,
                            });
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let parent = parent.filter(|_| !parent_is_elsewhere);
    link.vlan = parent.cloned().zip(vlan_id);
    // The same attribute is the peer of a veth pair.
    let is_stacked = matches!(link.kind.as_str(), "vlan" | "macvlan" | "ipvlan" | "macsec");
    link.lower = parent.filter(|_| is_stacked).cloned();
    link
}

/// Content of the routes of the kernel.
struct Routes {
    /// Those of the main table.
    default_routes: Vec<DefaultRoute>,
    /// Other prefixes of the main table, by interface.
    prefixes: Prefixes,
    /// Lowest MTU of routes of all tables, by interface.
    mtus: BTreeMap<String, u32>,
}

/// Returns the interfaces of a route of any table that has an MTU of its own, with this MTU.
fn route_mtus(message: &RouteMessage, names: &BTreeMap<u32, String>) -> Vec<(String, u32)> {
    let (mut mtu, mut indexes) = (None, Vec::new());
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Metrics(metrics) => {
                mtu = metrics.iter().find_map(|metric| match metric {
                    RouteMetric::Mtu(mtu) => Some(*mtu),
                    _ => None,
                });
            }
            RouteAttribute::Oif(index) => indexes.push(*index),
            RouteAttribute::MultiPath(hops) => indexes.extend(hops.iter().map(|hop| hop.interface_index)),
            _ => {}
        }
    }
    let Some(mtu) = mtu.filter(|mtu| *mtu != 0) else { return Vec::new() };
    indexes.iter().filter_map(|index| Some((names.get(index)?.clone(), mtu))).collect()
}

type Prefixes = BTreeMap<String, BTreeSet<ipnet::IpNet>>;

/// Returns the interface and the prefix of a unicast route of the main table that is no default route.
fn prefix(message: &RouteMessage, names: &BTreeMap<u32, String>) -> Option<(String, ipnet::IpNet)> {
    let header = &message.header;
    let mut table = u32::from(header.table);
    let (mut interface, mut destination) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(number) => table = *number,
            RouteAttribute::Oif(index) => interface = names.get(index),
            RouteAttribute::Destination(address) => destination = route::ip(address),
            _ => {}
        }
    }
    if header.kind != RouteType::Unicast || table != u32::from(RouteHeader::RT_TABLE_MAIN) {
        return None;
    }
    let net = ipnet::IpNet::new(destination?, header.destination_prefix_length).ok()?;
    (net.prefix_len() > 0).then_some((interface?.clone(), net.trunc()))
}

/// Returns the default routes of the main table in a message, one for each next hop. Dead next hops are omitted.
fn default_routes(message: &RouteMessage, ipv6: bool, names: &BTreeMap<u32, String>) -> Vec<DefaultRoute> {
    let header = &message.header;
    let usable = header.destination_prefix_length == 0
        && header.source_prefix_length == 0
        && header.kind == RouteType::Unicast
        && !header.flags.intersects(RouteFlags::Dead | RouteFlags::Linkdown);
    let mut table = u32::from(header.table);
    let (mut interface, mut gateway, mut metric) = (None, None, 0);
    let mut hops = Vec::new();
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(number) => table = *number,
            RouteAttribute::Priority(number) => metric = *number,
            RouteAttribute::Oif(index) => interface = names.get(index),
            RouteAttribute::Gateway(address) => gateway = route::ip(address),
            RouteAttribute::Via(via) => gateway = route::via(via),
            RouteAttribute::MultiPath(parts) => {
                for hop in parts {
                    if hop.flags.intersects(RouteNextHopFlags::Dead | RouteNextHopFlags::Linkdown) {
                        continue;
                    }
                    let gateway = hop.attributes.iter().find_map(|attribute| match attribute {
                        RouteAttribute::Gateway(address) => route::ip(address),
                        RouteAttribute::Via(via) => route::via(via),
                        _ => None,
                    });
                    hops.push((names.get(&hop.interface_index), gateway));
                }
            }
            _ => {}
        }
    }
    if !usable || table != u32::from(RouteHeader::RT_TABLE_MAIN) {
        return Vec::new();
    }
    hops.push((interface, gateway));
    let named = hops.into_iter().filter_map(|(interface, gateway)| Some((interface?.clone(), gateway)));
    named.map(|(interface, gateway)| DefaultRoute { interface, gateway, metric, ipv6 }).collect()
}

/// Returns a neighbour that has answered at some time.
pub(super) fn neighbour(message: &NeighbourMessage) -> Option<([u8; 6], IpAddr)> {
    let known = matches!(
        message.header.state,
        NeighbourState::Reachable
            | NeighbourState::Stale
            | NeighbourState::Delay
            | NeighbourState::Probe
            | NeighbourState::Permanent
    );
    let ip = matches!(message.header.family, AddressFamily::Inet | AddressFamily::Inet6);
    let (mut address, mut hardware) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(ip)) => address = Some(IpAddr::V4(*ip)),
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(ip)) => address = Some(IpAddr::V6(*ip)),
            NeighbourAttribute::LinkLayerAddress(bytes) => hardware = mac(bytes),
            _ => {}
        }
    }
    (known && ip).then_some((hardware?, address?))
}

fn mac(bytes: &[u8]) -> Option<[u8; 6]> {
    bytes.try_into().ok().filter(|mac| *mac != [0; 6])
}
