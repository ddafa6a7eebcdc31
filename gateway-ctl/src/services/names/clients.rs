//! Who is behind an address: devices as the plan knows them, and all others by their cards.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use gateway_common::wire::{ClientKey, Mac};
use gateway_core::compile::{Compiled, Input};
use gateway_core::dns::Asker;
use gateway_core::outgoing;
use gateway_dns::seam::{Client, Clients, Logged, Way};
use gateway_model::id::MacAddr;
use gateway_model::kinds::privacy_class::QueryLog;
use gateway_model::{Device, State};

use super::ways::Ways;
use crate::effects::neighbour;

/// Of all tables, so that no two have the same.
static VERSION: AtomicU64 = AtomicU64::new(1);

pub struct Table {
    by_address: HashMap<IpAddr, Arc<Client>>,
    by_mac: HashMap<[u8; 6], Arc<Client>>,
    /// Addresses that came in between: their cards were asked for.
    late: ArcSwap<HashMap<IpAddr, Arc<Client>>>,
    /// The gateway itself.
    own: Arc<Client>,
    /// The way of those whose card nobody knows, by the policies for all.
    stranger: Arc<Way>,
    version: u64,
}

/// So many addresses without a known card are remembered.
const LATE: usize = 4096;

impl Table {
    pub fn new(input: &Input<'_>, compiled: &Compiled, resolver: IpAddr, ways: &Ways) -> Table {
        let way = |mac: Option<MacAddr>, address: IpAddr| {
            ways.of(outgoing::of_client(input, compiled, mac, address, resolver).0)
        };
        let mut by_address = HashMap::new();
        let mut by_mac = HashMap::new();
        for (mac, addresses) in &input.facts.neighbours {
            for address in addresses {
                let client =
                    client(input.state, compiled, Some(*mac), *address, way(Some(MacAddr(*mac)), *address));
                by_mac.insert(*mac, client.clone());
                by_address.insert(*address, client);
            }
        }
        // A device may ask before it was seen.
        for device in input.state.devices.iter() {
            for mac in device.all_macs() {
                let address = IpAddr::from([0, 0, 0, 0]);
                by_mac.entry(mac.octets()).or_insert_with(|| {
                    client(input.state, compiled, Some(mac.octets()), address, way(Some(mac), address))
                });
            }
        }
        let own = Client {
            number: 0,
            asker: Asker::default(),
            name: Some("gateway".into()),
            way: ways.of(outgoing::Outgoing::Default),
            logged: Logged::Full,
            filtered: true,
            near: true,
        };
        let version = VERSION.fetch_add(1, Ordering::Relaxed);
        let stranger = way(None, IpAddr::from([0, 0, 0, 0]));
        Table { by_address, by_mac, late: ArcSwap::default(), own: Arc::new(own), stranger, version }
    }

    fn late(&self, address: IpAddr) -> Arc<Client> {
        if let Some(known) = self.late.load().get(&address) {
            return known.clone();
        }
        let mac = neighbour::card_of(address);
        let of_card = mac.and_then(|mac| self.by_mac.get(&mac)).map(|known| {
            let asker = Asker { address: Some(address), ..known.asker.clone() };
            Arc::new(Client { asker, ..Client::clone(known) })
        });
        let found = of_card.unwrap_or_else(|| {
            let near = mac.is_some();
            let mac = Mac::new(mac.unwrap_or_default());
            let number = ClientKey::new(0, mac, &address.into()).number();
            Arc::new(Client {
                number,
                name: None,
                near,
                way: self.stranger.clone(),
                ..Client::clone(&self.own)
            })
        });
        self.late.rcu(|late| {
            let mut late = if late.len() < LATE { HashMap::clone(late) } else { HashMap::new() };
            late.insert(address, found.clone());
            late
        });
        found
    }
}

impl Clients for Table {
    fn client(&self, address: IpAddr) -> Arc<Client> {
        let address = address.to_canonical();
        match self.by_address.get(&address) {
            Some(client) => client.clone(),
            None if address.is_loopback() => self.own.clone(),
            None => self.late(address),
        }
    }

    fn version(&self) -> u64 {
        self.version
    }
}

fn client(
    state: &State,
    compiled: &Compiled,
    mac: Option<[u8; 6]>,
    address: IpAddr,
    way: Arc<Way>,
) -> Arc<Client> {
    let plan = &compiled.plan.dataplane;
    // As the dataplane finds the device.
    let by_mac = mac.and_then(|mac| plan.devices_by_mac.get(&mac));
    let number = by_mac.or_else(|| plan.devices_by_address.get(&address)).map_or(0, |value| value.number);
    let device = mac.and_then(|mac| state.device_by_mac(MacAddr(mac))).map(AsRef::as_ref);
    let device =
        device.or_else(|| state.devices.iter().find(|device| number != 0 && device.meta.slot == number));
    let key = ClientKey::new(number, Mac::new(mac.unwrap_or_default()), &address.into());
    Arc::new(Client {
        number: key.number(),
        asker: device.map(|device| asker(state, device, address)).unwrap_or_default(),
        name: device.map(|device| device.name.as_str().into()),
        way,
        logged: device.map_or(Logged::Full, |device| logged(state, device)),
        filtered: true,
        near: true,
    })
}

fn asker(state: &State, device: &Device, address: IpAddr) -> Asker {
    Asker {
        address: Some(address),
        device: Some(device.meta.id),
        groups: state.groups_of(device.meta.id).map(|group| group.meta.id).collect(),
        privacy_class: state.privacy_class_of(device).map(|class| class.meta.id),
    }
}

fn logged(state: &State, device: &Device) -> Logged {
    match state.privacy_class_of(device).map(|class| class.query_log) {
        None | Some(QueryLog::Full) => Logged::Full,
        Some(QueryLog::Anonymous) => Logged::Anonymous,
        Some(QueryLog::Off) => Logged::Off,
    }
}
