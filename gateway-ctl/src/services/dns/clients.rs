//! Client of an address: devices as the plan identifies them, and all other hosts by MAC address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway_common::wire::{ClientKey, Mac};
use gateway_core::dns::ClientIdentity;
use gateway_core::host_egress;
use gateway_dns::hooks::{Client, ClientLookup, Logged};
use gateway_model::id::MacAddr;
use gateway_model::kinds::privacy_class::{Ech, QueryLog};
use gateway_model::settings::groups::PrivacyBlocks;
use gateway_model::{Device, State};
use ipnet::IpNet;

use super::inputs::{ResolverInputs, is_link_local};
use super::query_routes::QueryRoutes;
use super::upstream_selection::{ClientQuery, UpstreamSelection};
use crate::os::neighbour;

/// Version counter shared by all tables, so that each has a unique version.
static VERSION: AtomicU64 = AtomicU64::new(1);

/// Maximum number of late addresses that are cached.
const MAX_LATE_LOOKUPS: usize = 4096;

pub struct Table {
    inputs: Arc<ResolverInputs>,
    /// Representative upstream, for policies with destinations.
    resolver: IpAddr,
    routes: Arc<QueryRoutes>,
    choice: Arc<UpstreamSelection>,
    blocks: PrivacyBlocks,
    by_address: HashMap<IpAddr, Arc<Client>>,
    /// Addresses that appeared after the table was built, resolved through the kernel. Addresses without a host are
    /// cached here, too, until the next table.
    late: Mutex<HashMap<IpAddr, Arc<Client>>>,
    /// Interface indexes of the LAN.
    links: Vec<u32>,
    /// Client for the gateway itself.
    own: Arc<Client>,
    version: u64,
}

impl Table {
    pub fn new(
        inputs: Arc<ResolverInputs>,
        resolver: IpAddr,
        routes: Arc<QueryRoutes>,
        choice: Arc<UpstreamSelection>,
    ) -> Table {
        let (outgoing, resolvers) = choice.usual(host_egress::HostEgress::Default, None);
        let own = Client {
            number: 0,
            asker: ClientIdentity::default(),
            name: Some("gateway".into()),
            route: routes.of(outgoing, resolvers),
            rank: u32::MAX,
            logged: Logged::Full,
            filtered: true,
            strips_ech: false,
            near: true,
        };
        let version = VERSION.fetch_add(1, Ordering::Relaxed);
        let (by_address, late, own) = (HashMap::new(), Mutex::default(), Arc::new(own));
        let links = inputs.lan_links();
        let blocks = inputs.world.state.group();
        let mut table =
            Table { inputs, resolver, routes, choice, blocks, by_address, late, links, own, version };
        let mut by_address = HashMap::new();
        for (mac, addresses) in &table.inputs.world.facts.neighbours {
            // A link-local address does not identify the network of the query.
            for address in addresses.iter().filter(|address| !is_link_local(**address)) {
                by_address.insert(*address, table.describe(Some(*mac), *address, None));
            }
        }
        // Queries of this host to another resolver, which are redirected here, keep their source.
        let own = table.inputs.world.facts.addresses.values().flatten().map(IpNet::addr);
        by_address.extend(own.filter(|address| !is_link_local(*address)).map(|own| (own, table.own.clone())));
        table.by_address = by_address;
        table
    }

    fn late(&self, address: IpAddr) -> Arc<Client> {
        if let Some(known) = lock(&self.late).get(&address) {
            return known.clone();
        }
        let neighbour = neighbour::at(address, &self.links);
        let interface = neighbour.map(|neighbour| neighbour.interface);
        let found = self.describe(neighbour.map(|neighbour| neighbour.mac), address, interface);
        let mut late = lock(&self.late);
        if late.len() >= MAX_LATE_LOOKUPS {
            late.clear();
        }
        late.insert(address, found.clone());
        found
    }

    fn describe(&self, mac: Option<[u8; 6]>, address: IpAddr, interface: Option<u32>) -> Arc<Client> {
        let (state, plan) = (&self.inputs.world.state, &self.inputs.world.compiled().plan.dataplane);
        // Same lookup as in the dataplane.
        let by_mac = mac.and_then(|mac| plan.devices_by_mac.get(&mac));
        let number = by_mac.or_else(|| plan.devices_by_address.get(&address)).map_or(0, |value| value.number);
        let of_number = || state.devices.iter().find(|device| number != 0 && device.meta.slot == number);
        let of_card = mac.and_then(|mac| state.device_by_mac(MacAddr(mac))).map(AsRef::as_ref);
        let device = of_card.or_else(of_number);
        let asks = host_egress::Client { mac: mac.map(MacAddr), address, interface };
        let input = self.inputs.world.input();
        let (outgoing, rank) =
            host_egress::of_client(&input, self.inputs.world.compiled(), &asks, self.resolver);
        let compiled = self.inputs.world.compiled();
        let asking = ClientQuery { input, compiled, rank, from: Some(address) };
        let (outgoing, resolvers) = self.choice.of(&asking, outgoing);
        let key = ClientKey::new(number, Mac::new(mac.unwrap_or_default()), &address.into());
        let stranger = || ClientIdentity { address: Some(address), ..ClientIdentity::default() };
        Arc::new(Client {
            number: key.number(),
            asker: device.map_or_else(stranger, |device| asker(state, device, address)),
            name: device.map(|device| device.name.as_str().into()),
            route: self.routes.of(outgoing, resolvers),
            rank,
            logged: device.map_or(Logged::Full, |device| logged(state, device)),
            filtered: true,
            strips_ech: device.map_or(self.blocks.all, |device| self.blocks.of(device, state)).ech
                == Ech::Strip,
            near: mac.is_some(),
        })
    }
}

impl ClientLookup for Table {
    fn client(&self, address: IpAddr) -> Arc<Client> {
        let address = address.to_canonical();
        match self.by_address.get(&address) {
            Some(client) => client.clone(),
            None if address.is_loopback() => self.own.clone(),
            None => self.late(address),
        }
    }

    fn known(&self, address: IpAddr) -> Option<Arc<Client>> {
        let address = address.to_canonical();
        match self.by_address.get(&address) {
            Some(client) => Some(client.clone()),
            None if address.is_loopback() => Some(self.own.clone()),
            None => lock(&self.late).get(&address).cloned(),
        }
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// Locks the map; a panic between two statements leaves it consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
