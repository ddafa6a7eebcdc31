//! A plan as the environment of the decision: what the kernel program finds in maps, found in the
//! plan. This is what `/policy/evaluate` runs and what the kernel is compared with.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use gateway_common::verdict::Environment;
use gateway_common::wire::*;
use ipnet::IpNet;

use crate::plan::Dataplane;

/// One live plan with flows and round robins of its own.
#[derive(Debug, Default)]
pub struct PlanEnvironment<'a> {
    /// None is the resting state.
    pub plan: Option<&'a Dataplane>,
    pub generation: Cell<u32>,
    pub now: Cell<u64>,
    pub flows: RefCell<BTreeMap<FlowKey, FlowValue>>,
    pub turns: RefCell<BTreeMap<u32, u64>>,
    /// What clients learned from the resolver.
    pub domains: RefCell<BTreeMap<(ClientKey, Address), DomainValue>>,
}

const SLOT: Slot = 1;

impl<'a> PlanEnvironment<'a> {
    pub fn new(plan: Option<&'a Dataplane>) -> PlanEnvironment<'a> {
        PlanEnvironment { plan, generation: Cell::new(1), ..PlanEnvironment::default() }
    }

    fn at<T: Copy>(&self, find: impl FnOnce(&'a Dataplane) -> Option<T>) -> Option<T> {
        self.plan.and_then(find)
    }
}

/// The longest stored prefix of an address.
pub fn longest<V: Copy>(prefixes: &BTreeMap<IpNet, V>, address: IpAddr) -> Option<V> {
    longest_with(address, |net| prefixes.get(net).copied())
}

fn longest_with<V>(address: IpAddr, find: impl Fn(&IpNet) -> Option<V>) -> Option<V> {
    let longest = IpNet::from(address).prefix_len();
    (0..=longest).rev().find_map(|length| find(&IpNet::new(address, length).ok()?.trunc()))
}

/// The plan's own destinations, or those of the list that the slot names.
fn destination(plan: &Dataplane, slot: u32, address: IpAddr) -> Option<u32> {
    match list_of_slot(slot).1 {
        0 => longest(&plan.destinations, address),
        list => {
            let list = u16::try_from(list).ok()?;
            longest_with(address, |net| plan.list_destinations.get(&(list, *net)).copied())
        }
    }
}

fn destination_port(plan: &Dataplane, slot: u16, port: u16, address: IpAddr) -> Option<u32> {
    match list_of_slot(u32::from(slot)).1 {
        0 => longest_with(address, |net| plan.destination_ports.get(&(port, *net)).copied()),
        list => {
            let list = u16::try_from(list).ok()?;
            longest_with(address, |net| plan.list_ports.get(&(list, port, *net)).copied())
        }
    }
}

fn four(word: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(word.to_ne_bytes()))
}

fn six(address: Address) -> IpAddr {
    // Not canonical: an address of the IPv6 tries stays one.
    IpAddr::V6(address.octets().into())
}

impl Environment for PlanEnvironment<'_> {
    fn live(&self) -> Slot {
        if self.plan.is_some() { SLOT } else { SLOT_RESTING }
    }

    fn plan(&self, _slot: Slot) -> Option<PlanValue> {
        self.at(|plan| Some(PlanValue { generation: self.generation.get(), ..plan.header }))
    }

    fn interface(&self, key: &InterfaceKey) -> Option<InterfaceValue> {
        self.at(|plan| plan.interfaces.get(&InterfaceKey { slot: 0, ..*key }).copied())
    }

    fn vlan(&self, key: &VlanKey) -> Option<u32> {
        self.at(|plan| plan.vlans.get(&key.vlan).copied())
    }

    fn device_by_mac(&self, key: &MacKey) -> Option<DeviceValue> {
        self.at(|plan| plan.devices_by_mac.get(&key.mac.octets()).copied())
    }

    fn device_by_address(&self, key: &AddressKey) -> Option<DeviceValue> {
        self.at(|plan| plan.devices_by_address.get(&key.address.into()).copied())
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

    fn domain(&self, key: &DomainKey) -> Option<DomainValue> {
        self.domains.borrow().get(&(key.client, key.address)).copied()
    }

    fn local4(&self, key: &Prefix4) -> Option<LocalValue> {
        self.at(|plan| longest(&plan.locals, four(key.address)))
    }

    fn local6(&self, key: &Prefix6) -> Option<LocalValue> {
        self.at(|plan| longest(&plan.locals, six(key.address)))
    }

    fn action(&self, _slot: Slot, rank: u32) -> Option<&ActionValue> {
        self.plan.and_then(|plan| plan.actions.get(usize::try_from(rank).ok()?))
    }

    fn turn(&self, policy: u32) -> u64 {
        let mut turns = self.turns.borrow_mut();
        let turn = turns.entry(policy).or_default();
        let now = *turn;
        *turn = turn.wrapping_add(1);
        now
    }

    fn flow(&self, key: &FlowKey) -> Option<FlowValue> {
        self.flows.borrow().get(key).copied()
    }

    fn remember(&self, key: &FlowKey, value: &FlowValue) {
        self.flows.borrow_mut().insert(*key, *value);
    }

    fn now(&self) -> u64 {
        self.now.get()
    }
}

#[cfg(test)]
mod tests {
    use gateway_common::classify::{Classified, IpPacket, UDP};
    use gateway_common::verdict::decide;

    use super::*;

    #[test]
    fn a_flow_keeps_its_leg_until_it_was_idle_for_too_long() {
        let choice = Choice::legs(&[16, 17]);
        let plan = Dataplane {
            header: PlanValue { all: 0, ..PlanValue::default() },
            actions: vec![ActionValue { v4: choice, v6: choice, policy: 1, ..ActionValue::default() }],
            ..Dataplane::default()
        };
        let environment = PlanEnvironment::new(Some(&plan));
        let leg_at = |seconds: u64| {
            environment.now.set(seconds * 1_000_000_000);
            let packet = IpPacket { protocol: UDP, ..IpPacket::default() };
            decide(&Ok(Classified::Ip(packet)), &environment).leg
        };
        assert_eq!(leg_at(10_000), 16);
        assert_eq!(leg_at(9_990), 16, "by a clock that is behind");
        assert_eq!(leg_at(10_250), 16);
        assert_eq!(leg_at(10_500), 16, "each packet counts");
        assert_eq!(leg_at(10_900), 17, "another flow with the same ports");
    }
}
