//! Client of a query: devices as the plan identifies them, and all other hosts by MAC address. The MAC address is that of
//! the packet, as the dataplane saw it. The neighbour table decides on no policy: it may have no entry yet, or that of
//! another host.
//!
//! Decision 0148 says why.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use gateway_common::wire::{Address, ClientKey, DnsSourceKey, DnsSourceKind, Mac};
use gateway_core::dns::ClientIdentity;
use gateway_core::host_egress;
use gateway_dns::hooks::{Arrival, ArrivalKind, Client, ClientLookup, Host, Ingress, Logged};
use gateway_model::id::MacAddr;
use gateway_model::kinds::privacy_class::{Ech, QueryLog};
use gateway_model::settings::groups::PrivacyBlocks;
use gateway_model::{Device, State};
use ipnet::IpNet;
use parking_lot::Mutex;

use super::inputs::{ResolverInputs, is_link_local};
use super::query_routes::QueryRoutes;
use super::upstream_selection::{ClientQuery, UpstreamSelection};
use crate::os::bpf::DnsSources;
use crate::os::neighbour;
use crate::services::hosts::DnsClients;

/// Version counter shared by all tables, so that each has a unique version.
static VERSION: AtomicU64 = AtomicU64::new(1);

/// Maximum number of clients that are cached beside those of the neighbours.
const MAX_FOUND: usize = 4096;

/// Prefix of the addresses that represent MAC addresses in the rate limit: the discard-only prefix (RFC 6666), which no
/// host has.
const DEVICE_LIMIT_PREFIX: u128 = 0x0100 << 112;

pub(super) struct Table {
    inputs: Arc<ResolverInputs>,
    /// Representative upstream, for policies with destinations.
    resolver: IpAddr,
    routes: Arc<QueryRoutes>,
    choice: Arc<UpstreamSelection>,
    blocks: PrivacyBlocks,
    /// Notes of the ingress program. None without the programs.
    sources: Option<Arc<DnsSources>>,
    /// Notes for the inventory of hosts.
    noted: DnsClients,
    /// Clients that were looked up.
    found: Mutex<HashMap<Host, Arc<Client>>>,
    max_found: usize,
    /// MAC addresses of the neighbours, by address.
    neighbours: OnceLock<HashMap<IpAddr, [u8; 6]>>,
    /// Interface indexes of the LAN.
    links: Vec<u32>,
    own_addresses: HashSet<IpAddr>,
    /// Client for the gateway itself.
    own: Arc<Client>,
    version: u64,
}

impl Table {
    pub(super) fn new(
        inputs: Arc<ResolverInputs>,
        resolver: IpAddr,
        routes: Arc<QueryRoutes>,
        choice: Arc<UpstreamSelection>,
        (sources, noted): (Option<Arc<DnsSources>>, DnsClients),
    ) -> Table {
        let (outgoing, resolvers) = choice.usual(host_egress::HostEgress::Default, None);
        let own = Client {
            number: 0,
            asker: ClientIdentity::default(),
            name: Some("gateway".into()),
            route: routes.of(outgoing, resolvers),
            rank: None,
            logged: Logged::Full,
            filtered: true,
            strips_ech: false,
            near: true,
        };
        let facts = &inputs.world.facts;
        // Queries of this host to another resolver, which are redirected here, keep their source.
        let own_addresses = facts.addresses.values().flatten().map(IpNet::addr);
        let own_addresses = own_addresses.filter(|address| !is_link_local(*address)).collect();
        let max_found = MAX_FOUND + 2 * facts.neighbours.values().map(BTreeSet::len).sum::<usize>();
        Table {
            resolver,
            routes,
            choice,
            blocks: inputs.world.state.group(),
            sources,
            noted,
            found: Mutex::default(),
            max_found,
            neighbours: OnceLock::new(),
            links: inputs.lan_links(),
            own_addresses,
            own: Arc::new(own),
            version: VERSION.fetch_add(1, Ordering::Relaxed),
            inputs,
        }
    }

    fn is_own(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.own_addresses.contains(&address)
    }

    /// Returns the MAC address that an address has in the neighbour table.
    fn neighbour(&self, address: IpAddr) -> Option<Ingress> {
        let by_address = self.neighbours.get_or_init(|| {
            let facts = &self.inputs.world.facts.neighbours;
            facts.iter().flat_map(|(mac, ips)| ips.iter().map(move |address| (*address, *mac))).collect()
        });
        // A link-local address does not identify the network of the query.
        let in_memory = by_address.get(&address).filter(|_| !is_link_local(address));
        match in_memory {
            Some(mac) => Some(Ingress { mac: *mac, interface: 0, vlan: 0 }),
            None => neighbour::at(address, &self.links).map(|neighbour| Ingress {
                mac: neighbour.mac,
                interface: neighbour.interface,
                vlan: 0,
            }),
        }
    }

    /// Reports whether the table of neighbours has this MAC address for this address, in memory.
    fn is_neighbour(&self, host: &Host) -> bool {
        let neighbours = &self.inputs.world.facts.neighbours;
        host.mac().and_then(|mac| neighbours.get(&mac)).is_some_and(|ips| ips.contains(&host.address))
    }

    /// Returns the device of a packet, with the lookup of the dataplane.
    fn number(&self, host: &Host) -> u32 {
        let plan = &self.inputs.world.compiled().plan.dataplane;
        let by_mac = host.mac().and_then(|mac| plan.devices_by_mac.get(&mac));
        by_mac.or_else(|| plan.devices_by_address.get(&host.address)).map_or(0, |value| value.number)
    }

    fn find(&self, host: &Host, near: bool) -> Arc<Client> {
        let client = Arc::new(self.describe(host, near));
        let mut found = self.found.lock();
        if found.len() >= self.max_found {
            found.clear();
        }
        found.insert(*host, client.clone());
        client
    }

    fn describe(&self, host: &Host, near: bool) -> Client {
        let (address, mac) = (host.address, host.mac());
        let state = &self.inputs.world.state;
        let number = self.number(host);
        let of_number = || state.devices.iter().find(|device| number != 0 && device.meta.slot == number);
        let of_card = mac.and_then(|mac| state.device_by_mac(MacAddr(mac))).map(AsRef::as_ref);
        let device = of_card.or_else(of_number);
        let interface = host.ingress.map(|ingress| ingress.interface).filter(|index| *index != 0);
        let vlan = host.ingress.map_or(0, |ingress| ingress.vlan);
        let asks = host_egress::Client { mac: mac.map(MacAddr), address, interface, vlan };
        let input = self.inputs.world.input();
        let (outgoing, rank) =
            host_egress::of_client(&input, self.inputs.world.compiled(), &asks, self.resolver);
        let compiled = self.inputs.world.compiled();
        let asking = ClientQuery { input, compiled, rank, from: Some(address) };
        let (outgoing, resolvers) = self.choice.of(&asking, outgoing);
        let key = ClientKey::new(number, Mac::new(mac.unwrap_or_default()), &address.into());
        let stranger = || ClientIdentity { address: Some(address), ..ClientIdentity::default() };
        Client {
            number: key.number(),
            asker: device.map_or_else(stranger, |device| asker(state, device, address)),
            name: device.map(|device| device.name.as_str().into()),
            route: self.routes.of(outgoing, resolvers),
            rank,
            logged: device.map_or(Logged::Full, |device| logged(state, device)),
            filtered: true,
            strips_ech: device.map_or(self.blocks.all, |device| self.blocks.of(device, state)).ech
                == Ech::Strip,
            near,
        }
    }
}

/// Keys of the notes that may be of a packet, in the order in which they are tried.
fn source_keys(arrival: &Arrival) -> [DnsSourceKey; 3] {
    let (address, port) = (Address::from(arrival.source.ip().to_canonical()), arrival.source.port());
    let key = |kind| DnsSourceKey { address, port, id: 0, kind };
    let redirected = DnsSourceKey { port: 0, ..key(DnsSourceKind::Redirected) };
    match arrival.kind {
        ArrivalKind::Datagram(id) => {
            let query = DnsSourceKey { id: u16::from_ne_bytes(id), ..key(DnsSourceKind::Query) };
            [query, key(DnsSourceKind::MergedQueries), redirected]
        }
        ArrivalKind::Connection => {
            let connection = key(DnsSourceKind::Connection);
            [connection, connection, redirected]
        }
    }
}

impl ClientLookup for Table {
    fn host(&self, arrival: &Arrival) -> Option<Host> {
        let address = arrival.source.ip().to_canonical();
        if self.is_own(address) {
            return Some(Host { address, ingress: None });
        }
        // Without the programs, nothing is forwarded, and no policy depends on the packet.
        let Some(sources) = &self.sources else {
            return self.neighbour(address).map(|ingress| Host { address, ingress: Some(ingress) });
        };
        let note = source_keys(arrival).iter().find_map(|key| sources.get(key))?;
        let ingress = Ingress { mac: note.host.octets(), interface: note.interface, vlan: note.vlan };
        let host = (note.contested == 0).then_some(Host { address, ingress: Some(ingress) })?;
        self.noted.note(&host);
        Some(host)
    }

    fn host_at(&self, address: IpAddr) -> Host {
        let address = address.to_canonical();
        let ingress = if self.is_own(address) { None } else { self.neighbour(address) };
        Host { address, ingress }
    }

    fn client(&self, host: &Host) -> Arc<Client> {
        if let Some(known) = self.known(host) {
            return known;
        }
        let is_device = host.mac().is_some_and(|mac| self.is_device(&mac));
        let in_kernel = || {
            let neighbour = neighbour::at(host.address, &self.links);
            neighbour.is_some_and(|neighbour| Some(neighbour.mac) == host.mac())
        };
        self.find(host, is_device || in_kernel())
    }

    fn known(&self, host: &Host) -> Option<Arc<Client>> {
        if host.ingress.is_none() && self.is_own(host.address) {
            return Some(self.own.clone());
        }
        let found = self.found.lock().get(host).cloned();
        found.or_else(|| self.is_neighbour(host).then(|| self.find(host, true)))
    }

    fn device_limit(&self, host: &Host) -> Option<IpAddr> {
        let mac = host.mac().filter(|mac| self.is_device(mac))?;
        let number = mac.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
        Some(Ipv6Addr::from_bits(DEVICE_LIMIT_PREFIX | number).into())
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Table {
    fn is_device(&self, mac: &[u8; 6]) -> bool {
        self.inputs.world.compiled().plan.dataplane.devices_by_mac.contains_key(mac)
    }
}

fn asker(state: &State, device: &Device, address: IpAddr) -> ClientIdentity {
    ClientIdentity {
        address: Some(address),
        device: Some(device.meta.id),
        groups: state.groups_of(device.meta.id).map(|group| group.meta.id).collect(),
        privacy_class: state.privacy_class_of(device).map(|class| class.meta.id),
    }
}

fn logged(state: &State, device: &Device) -> Logged {
    match state.query_log_of(device) {
        QueryLog::Full => Logged::Full,
        QueryLog::Anonymous => Logged::Anonymous,
        QueryLog::Off => Logged::Off,
    }
}
