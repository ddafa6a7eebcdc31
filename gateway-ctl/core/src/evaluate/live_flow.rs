//! Verdicts of a plan on flows that exist already.

use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use gateway_common::decide::decide_ip;
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_common::wire::{FlowKey, FlowValue, Mac};

use super::test_packet::Entry;
use super::verdict::decide_with;
use crate::facts::Facts;
use crate::indexes::LegId;
use crate::network::Network;
use crate::plan::Dataplane;
use crate::plan_maps::PlanMaps;

/// Flow of a LAN host, by its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveFlow {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    /// 0 where the protocol has no ports.
    pub source_port: u16,
    pub destination_port: u16,
}

/// Returns the leg of a flow by the plan. `None` if its source is not a LAN address, or if it has no leg. FQDN policies
/// are left out, because the names that its client resolved are not known here.
pub fn leg_of(plan: &Dataplane, facts: &Facts, network: &Network, flow: &LiveFlow) -> Option<LegId> {
    let is_near = |name: &&String| {
        let nets = facts.addresses.get(*name).into_iter().flatten();
        nets.into_iter().any(|net| net.contains(&flow.source) && net.addr() != flow.source)
    };
    let entry = Entry::of(facts, network.lan.iter().find(is_near)?);
    let neighbour = facts.neighbours.iter().find(|(_, addresses)| addresses.contains(&flow.source));
    let packet = IpPacket {
        source: flow.source.into(),
        destination: flow.destination.into(),
        interface: entry.index,
        source_port: flow.source_port,
        destination_port: flow.destination_port,
        mac: Mac::new(neighbour.map_or([0; 6], |(mac, _)| *mac)),
        protocol: flow.protocol,
        ipv6: flow.destination.is_ipv6(),
        ..IpPacket::default()
    };
    let verdict = decide_with(plan, &packet, &[]);
    LegId::new(verdict.leg).filter(|_| verdict.action == Action::Mark)
}

/// Reports whether a plan resets a connection of the flow table, because it has another egress now. FQDN policies are left
/// out, as above.
pub fn is_reset(plan: &Dataplane, key: &FlowKey, flow: &FlowValue) -> bool {
    let packet = IpPacket {
        source: key.source,
        destination: key.destination,
        interface: key.interface,
        source_port: key.source_port,
        destination_port: key.destination_port,
        mac: key.mac,
        vlan: key.vlan,
        protocol: key.protocol,
        ipv6: !key.source.is_mapped(),
        ..IpPacket::default()
    };
    let maps = PlanMaps::new(Some(plan));
    maps.generation.set(flow.generation.wrapping_add(1));
    maps.flows.borrow_mut().insert(*key, *flow);
    let mut verdict = Verdict::DROP;
    decide_ip(&packet, &maps, &mut verdict);
    verdict.reason == Reason::PolicyReset
}

#[cfg(test)]
mod tests;
