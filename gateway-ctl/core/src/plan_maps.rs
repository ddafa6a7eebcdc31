//! Plan as the map lookups of the decision: the content of the kernel's maps, read from the plan. `/policy/evaluate`
//! runs on it, and tests compare the kernel with it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use gateway_common::policy_maps::PolicyMaps;
use gateway_common::wire::*;
use ipnet::IpNet;

use crate::indexes::LegId;
use crate::plan::Dataplane;

/// One live plan with flows and round robins of its own.
#[derive(Debug, Default)]
pub struct PlanMaps<'a> {
    /// None is default deny.
    pub plan: Option<&'a Dataplane>,
    /// Ignores privacy blocks: for traffic that the gateway sends on behalf of a host.
    pub ignores_blocks: bool,
    pub generation: Cell<u32>,
    pub now: Cell<u64>,
    /// Nanoseconds since boot, for deadlines.
    pub since_boot: Cell<u64>,
    pub flows: RefCell<BTreeMap<FlowKey, FlowValue>>,
    /// Connections with a ClientHello of several segments.
    pub hellos: RefCell<BTreeMap<FlowKey, HelloProgress>>,
    /// New flows of each budget.
    pub new_flows: RefCell<BTreeMap<u32, NewFlows>>,
    pub turns: RefCell<BTreeMap<u32, u64>>,
    /// Addresses that clients resolved.
    pub domains: RefCell<BTreeMap<(ClientKey, Address), FqdnIpValue>>,
}

const SLOT: Slot = 1;
/// Index of a LAN interface that does not exist. No packet has it; explanations assume that the interface is there,
/// with any source.
const ABSENT: u32 = 0;
const ABSENT_SCOPE: u16 = u16::MAX;

impl<'a> PlanMaps<'a> {
    pub fn new(plan: Option<&'a Dataplane>) -> PlanMaps<'a> {
        PlanMaps { plan, generation: Cell::new(1), ..PlanMaps::default() }
    }

    /// Returns the flags without those that are ignored.
    fn flags(&self, flags: u32) -> u32 {
        if self.ignores_blocks { flags & !block_flags::ALL } else { flags }
    }

    fn device(&self, device: DeviceValue) -> DeviceValue {
        DeviceValue { flags: self.flags(device.flags), ..device }
    }

    fn at<T: Copy>(&self, find: impl FnOnce(&'a Dataplane) -> Option<T>) -> Option<T> {
        self.plan.and_then(find)
    }
}

/// The longest stored prefix of an address.
pub fn longest<V: Copy>(prefixes: &BTreeMap<IpNet, V>, address: IpAddr) -> Option<V> {
    longest_with(address, |keys| value_of(prefixes.range(keys).next_back()))
}

fn value_of<K: Copy, V: Copy>(entry: Option<(&K, &V)>) -> Option<(K, V)> {
    entry.map(|(key, value)| (*key, *value))
}

/// Finds the longest prefix of an address in an ordered map without host bits. `last` returns the last entry in a range
/// of prefixes.
///
/// A prefix follows those that contain it. So if the last entry before an address does not contain it, those that do
/// contain what both have in common, and the search goes on there.
fn longest_with<V>(address: IpAddr, last: impl Fn(RangeInclusive<IpNet>) -> Option<(IpNet, V)>) -> Option<V> {
    let prefix = |length| IpNet::new(address, length).map(|net| net.trunc()).ok();
    let first = prefix(0)?;
    let mut end = IpNet::from(address);
    loop {
        let (net, value) = last(first..=end)?;
        if net.contains(&address) {
            return Some(value);
        }
        end = prefix(common_bits(net.network(), address))?;
    }
}

/// Returns the number of leading bits that two addresses of one family have in common.
fn common_bits(one: IpAddr, other: IpAddr) -> u8 {
    let bits = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => 0,
    };
    u8::try_from(bits).unwrap_or(0)
}

/// The plan's own destinations, or those of the list that the slot names.
fn destination(plan: &Dataplane, slot: u32, address: IpAddr) -> Option<u32> {
    match list_of_slot(slot).1 {
        0 => longest(&plan.destinations, address),
        list => {
            let list = u16::try_from(list).ok()?;
            longest_of(&plan.list_destinations, list, address)
        }
    }
}

fn destination_port(plan: &Dataplane, slot: u16, port: u16, address: IpAddr) -> Option<u32> {
    match list_of_slot(u32::from(slot)).1 {
        0 => longest_of(&plan.destination_ports, port, address),
        list => {
            let list = u16::try_from(list).ok()?;
            let ports = &plan.list_ports;
            longest_with(address, |keys| {
                let keys = (list, port, *keys.start())..=(list, port, *keys.end());
                value_of(ports.range(keys).next_back()).map(|((.., net), rank)| (net, rank))
            })
        }
    }
}

fn lan_source(plan: &Dataplane, slot: u32, address: IpAddr) -> Option<u32> {
    let scope = scope_of_slot(slot).1;
    if scope == ABSENT_SCOPE {
        return Some(SourceKind::Lan as u32);
    }
    longest_of(&plan.lan_sources, scope, address)
}

/// The longest prefix of an address that is stored for a list, port or scope.
pub fn longest_of<V: Copy>(prefixes: &BTreeMap<(u16, IpNet), V>, of: u16, address: IpAddr) -> Option<V> {
    longest_with(address, |keys| {
        let entry = prefixes.range((of, *keys.start())..=(of, *keys.end())).next_back();
        value_of(entry).map(|((_, net), value)| (net, value))
    })
}

fn four(word: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(word.to_ne_bytes()))
}

fn six(address: Address) -> IpAddr {
    // Not canonical: an address of the IPv6 tries stays one.
    IpAddr::V6(address.octets().into())
}

impl PolicyMaps for PlanMaps<'_> {
    fn live(&self) -> Slot {
        if self.plan.is_some() { SLOT } else { SLOT_NONE }
    }

    fn plan(&self, _slot: Slot) -> Option<PlanValue> {
        let flags = |header: PlanValue| self.flags(header.flags);
        self.at(|plan| {
            let header = plan.header;
            Some(PlanValue { generation: self.generation.get(), flags: flags(header), ..header })
        })
    }

    fn interface(&self, key: &InterfaceKey) -> Option<InterfaceValue> {
        if key.index == ABSENT {
            return self.at(|_| {
                Some(InterfaceValue { rank: RANK_NONE, scope: ABSENT_SCOPE, ..InterfaceValue::default() })
            });
        }
        self.at(|plan| plan.interfaces.get(&InterfaceKey { slot: 0, ..*key }).copied())
    }

    fn vlan(&self, key: &VlanKey) -> Option<u32> {
        self.at(|plan| plan.vlans.get(&key.vlan).copied())
    }

    fn device_by_mac(&self, key: &MacKey) -> Option<DeviceValue> {
        self.at(|plan| plan.devices_by_mac.get(&key.mac.octets()).copied()).map(|device| self.device(device))
    }

    fn device_by_address(&self, key: &AddressKey) -> Option<DeviceValue> {
        self.at(|plan| plan.devices_by_address.get(&key.address.into()).copied())
            .map(|device| self.device(device))
    }

    fn source4(&self, key: &Prefix4) -> Option<u32> {
        self.at(|plan| longest(&plan.sources, four(key.address)))
    }

    fn source6(&self, key: &Prefix6) -> Option<u32> {
        self.at(|plan| longest(&plan.sources, six(key.address)))
    }

    fn destination4(&self, key: &Prefix4) -> Option<u32> {
        self.at(|plan| destination(plan, key.slot, four(key.address)))
    }

    fn destination6(&self, key: &Prefix6) -> Option<u32> {
        self.at(|plan| destination(plan, key.slot, six(key.address)))
    }

    fn destination_port4(&self, key: &PortPrefix4) -> Option<u32> {
        self.at(|plan| destination_port(plan, key.slot, key.port, four(key.address)))
    }

    fn destination_port6(&self, key: &PortPrefix6) -> Option<u32> {
        self.at(|plan| destination_port(plan, key.slot, key.port, six(key.address)))
    }

    fn domain(&self, key: &FqdnIpKey) -> Option<FqdnIpValue> {
        self.domains.borrow().get(&(key.client, key.address)).copied()
    }

    fn lan_source4(&self, key: &Prefix4) -> Option<u32> {
        self.at(|plan| lan_source(plan, key.slot, four(key.address)))
    }

    fn lan_source6(&self, key: &Prefix6) -> Option<u32> {
        self.at(|plan| lan_source(plan, key.slot, six(key.address)))
    }

    fn local4(&self, key: &Prefix4) -> Option<LocalValue> {
        self.at(|plan| longest(&plan.locals, four(key.address)))
    }

    fn local6(&self, key: &Prefix6) -> Option<LocalValue> {
        self.at(|plan| longest(&plan.locals, six(key.address)))
    }

    fn is_shared(&self, key: &SharedAddressKey) -> bool {
        let Some(leg) = u8::try_from(key.leg).ok().and_then(LegId::new) else { return false };
        self.at(|plan| plan.shared_addresses.contains(&(leg, key.address.into())).then_some(())).is_some()
    }

    fn doh_server4(&self, key: &Prefix4) -> Option<u32> {
        self.at(|plan| longest(&plan.doh_servers, four(key.address)))
    }

    fn doh_server6(&self, key: &Prefix6) -> Option<u32> {
        self.at(|plan| longest(&plan.doh_servers, six(key.address)))
    }

    fn doh_name(&self, key: &DomainKey) -> Option<u32> {
        self.at(|plan| plan.doh_names.contains_key(&key.hash).then_some(1))
    }

    fn hello(&self, key: &FlowKey) -> Option<HelloProgress> {
        self.hellos.borrow().get(key).copied()
    }

    fn remember_hello(&self, key: &FlowKey, progress: &HelloProgress) {
        self.hellos.borrow_mut().insert(*key, *progress);
    }

    fn action(&self, _slot: Slot, rank: u32) -> Option<&ActionValue> {
        self.plan.and_then(|plan| plan.actions.get(usize::try_from(rank).ok()?))
    }

    fn next_turn(&self, policy: u32) -> u64 {
        let mut turns = self.turns.borrow_mut();
        let turn = turns.entry(policy).or_default();
        let now = *turn;
        *turn = turn.wrapping_add(1);
        now
    }

    fn read_flow(&self, key: &FlowKey, _: u64, value: &mut FlowValue) -> bool {
        self.flows.borrow().get(key).map(|flow| *value = *flow).is_some()
    }

    fn remember(&self, key: &FlowKey, _: u64, value: &FlowValue) {
        self.flows.borrow_mut().insert(*key, *value);
    }

    fn count_new_flow(&self, index: u32, window: u32) -> NewFlows {
        let mut counted = self.new_flows.borrow_mut();
        let flows = counted.entry(index).or_default();
        *flows = flows.next(window);
        *flows
    }

    fn now(&self) -> u64 {
        self.now.get()
    }

    fn since_boot(&self) -> u64 {
        self.since_boot.get()
    }
}

#[cfg(test)]
mod tests;
