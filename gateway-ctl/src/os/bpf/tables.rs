//! Entries of the policy maps that a plan wants in a slot, and those that this process has written.
//!
//! Decision 0129 says why.

use std::collections::BTreeMap;

use gateway_common::wire::*;
use gateway_core::plan::Dataplane;
use ipnet::{IpNet, Ipv4Net};

use super::Error;
use super::maps::{Entries, Maps};
use super::slot::PlanSlot;

type Prefixes<K, V> = BTreeMap<(u32, K), V>;

/// Entries of a plan in a slot. Arrays are not among them, nor what both slots share.
pub(super) struct Tables {
    slot: PlanSlot,
    interfaces: BTreeMap<InterfaceKey, InterfaceValue>,
    vlans: BTreeMap<VlanKey, u32>,
    device_macs: BTreeMap<MacKey, DeviceValue>,
    device_addresses: BTreeMap<AddressKey, DeviceValue>,
    sources: (Prefixes<Prefix4, u32>, Prefixes<Prefix6, u32>),
    destinations: (Prefixes<Prefix4, u32>, Prefixes<Prefix6, u32>),
    lan_sources: (Prefixes<Prefix4, u32>, Prefixes<Prefix6, u32>),
    locals: (Prefixes<Prefix4, LocalValue>, Prefixes<Prefix6, LocalValue>),
    shared_addresses: BTreeMap<SharedAddressKey, u32>,
    doh_servers: (Prefixes<Prefix4, u32>, Prefixes<Prefix6, u32>),
    doh_names: BTreeMap<DomainKey, u32>,
    destination_ports: (Prefixes<PortPrefix4, u32>, Prefixes<PortPrefix6, u32>),
}

/// Operation on each map of a slot.
pub(super) trait Visit {
    /// Visits a map with the wanted entries, and those that it has in this slot. `None`: they are not known.
    fn visit<E: Entries>(
        &mut self,
        map: &mut E,
        want: &BTreeMap<E::Key, E::Value>,
        have: Option<&BTreeMap<E::Key, E::Value>>,
        ours: impl Fn(&E::Key) -> bool,
    ) -> Result<(), Error>;
}

/// Entries that this process has written into the slots.
#[derive(Default)]
pub(super) struct Written(BTreeMap<PlanSlot, Tables>);

impl Written {
    /// Removes the entries of a slot.
    pub(super) fn take(&mut self, slot: PlanSlot) -> Option<Tables> {
        self.0.remove(&slot)
    }

    pub(super) fn note(&mut self, tables: Tables) {
        self.0.insert(tables.slot, tables);
    }
}

impl Tables {
    pub(super) fn new(plan: &Dataplane, plan_slot: PlanSlot) -> Tables {
        let slot = plan_slot.get();
        let mut destinations = prefixes(slot, &plan.destinations);
        for ((list, prefix), rank) in &plan.list_destinations {
            add(&mut destinations, slot_of_list(slot, u32::from(*list)), *prefix, *rank);
        }
        let mut lan_sources = Default::default();
        for ((scope, prefix), kind) in &plan.lan_sources {
            add(&mut lan_sources, slot_of_scope(slot, *scope), *prefix, *kind);
        }
        let macs = plan.devices_by_mac.iter();
        let addresses = plan.devices_by_address.iter();
        let names = plan.doh_names.keys();
        let shared = plan.shared_addresses.iter();
        Tables {
            slot: plan_slot,
            interfaces: plan.interfaces.iter().map(|(key, v)| (InterfaceKey { slot, ..*key }, *v)).collect(),
            vlans: plan.vlans.iter().map(|(vlan, v)| (VlanKey { slot, vlan: *vlan, _pad: 0 }, *v)).collect(),
            device_macs: macs
                .map(|(mac, v)| (MacKey { slot: slot as u16, mac: Mac::new(*mac) }, *v))
                .collect(),
            device_addresses: addresses
                .map(|(address, v)| (AddressKey { slot, address: (*address).into() }, *v))
                .collect(),
            sources: prefixes(slot, &plan.sources),
            destinations,
            lan_sources,
            locals: prefixes(slot, &plan.locals),
            shared_addresses: shared
                .map(|(leg, address)| {
                    (SharedAddressKey { slot, leg: u32::from(*leg), address: (*address).into() }, 1)
                })
                .collect(),
            doh_servers: prefixes(slot, &plan.doh_servers),
            doh_names: names.map(|hash| (DomainKey { slot, _pad: 0, hash: *hash }, 1)).collect(),
            destination_ports: destination_ports(slot, plan),
        }
    }

    /// Visits each map with its entries, and those of `have`, which are in the same slot.
    pub(super) fn each<V: Visit>(
        &self,
        maps: &mut Maps,
        have: Option<&Tables>,
        visit: &mut V,
    ) -> Result<(), Error> {
        macro_rules! visit {
            ($map:ident, $($field:tt).+, $ours:expr) => {
                visit.visit(&mut maps.$map, &self.$($field).+, have.map(|have| &have.$($field).+), $ours)?
            };
        }
        let slot = self.slot.get();
        let in_slot = |slot_and_list: u32| list_of_slot(slot_and_list).0 == slot;
        let in_scope = |slot_and_scope: u32| scope_of_slot(slot_and_scope).0 == slot;
        visit!(interfaces, interfaces, |key| key.slot == slot);
        visit!(vlans, vlans, |key| key.slot == slot);
        visit!(device_macs, device_macs, |key| u32::from(key.slot) == slot);
        visit!(device_addresses, device_addresses, |key| key.slot == slot);
        visit!(sources4, sources.0, |(_, key)| key.slot == slot);
        visit!(sources6, sources.1, |(_, key)| key.slot == slot);
        visit!(destinations4, destinations.0, |(_, key)| in_slot(key.slot));
        visit!(destinations6, destinations.1, |(_, key)| in_slot(key.slot));
        visit!(lan_sources4, lan_sources.0, |(_, key)| in_scope(key.slot));
        visit!(lan_sources6, lan_sources.1, |(_, key)| in_scope(key.slot));
        visit!(locals4, locals.0, |(_, key)| key.slot == slot);
        visit!(locals6, locals.1, |(_, key)| key.slot == slot);
        visit!(shared_addresses, shared_addresses, |key| key.slot == slot);
        visit!(doh_servers4, doh_servers.0, |(_, key)| key.slot == slot);
        visit!(doh_servers6, doh_servers.1, |(_, key)| key.slot == slot);
        visit!(doh_names, doh_names, |key| key.slot == slot);
        visit!(destination_ports4, destination_ports.0, |(_, key)| in_slot(u32::from(key.slot)));
        visit!(destination_ports6, destination_ports.1, |(_, key)| in_slot(u32::from(key.slot)));
        Ok(())
    }
}

fn prefixes<V: Copy>(
    slot: Slot,
    wanted: &BTreeMap<IpNet, V>,
) -> (Prefixes<Prefix4, V>, Prefixes<Prefix6, V>) {
    let mut both = Default::default();
    for (prefix, value) in wanted {
        add(&mut both, slot, *prefix, *value);
    }
    both
}

/// Adds a prefix. `slot` includes the number of a list or of a scope.
fn add<V>(
    (four, six): &mut (Prefixes<Prefix4, V>, Prefixes<Prefix6, V>),
    slot: u32,
    prefix: IpNet,
    value: V,
) {
    let length = PREFIX_BASE + u32::from(prefix.prefix_len());
    match prefix.trunc() {
        IpNet::V4(net) => {
            four.insert((length, Prefix4 { slot, address: word(net) }), value);
        }
        IpNet::V6(net) => {
            six.insert((length, Prefix6 { slot, address: Address::v6(net.addr().octets()) }), value);
        }
    }
}

fn destination_ports(
    slot: Slot,
    plan: &Dataplane,
) -> (Prefixes<PortPrefix4, u32>, Prefixes<PortPrefix6, u32>) {
    let (mut four, mut six) = (BTreeMap::new(), BTreeMap::new());
    let plain = plan.destination_ports.iter().map(|((port, prefix), rank)| (0, *port, prefix, rank));
    let listed = plan.list_ports.iter().map(|((list, port, prefix), rank)| (*list, *port, prefix, rank));
    for (list, port, prefix, rank) in plain.chain(listed) {
        let slot = slot_of_list(slot, u32::from(list)) as u16;
        let length = PREFIX_BASE + u32::from(prefix.prefix_len());
        match prefix.trunc() {
            IpNet::V4(net) => {
                let key = PortPrefix4 { slot, port, address: word(net) };
                four.insert((length, key), *rank);
            }
            IpNet::V6(net) => {
                let key = PortPrefix6 { slot, port, address: Address::v6(net.addr().octets()) };
                six.insert((length, key), *rank);
            }
        }
    }
    (four, six)
}

/// Returns the address as an integer in memory order.
fn word(net: Ipv4Net) -> u32 {
    u32::from_ne_bytes(net.addr().octets())
}
