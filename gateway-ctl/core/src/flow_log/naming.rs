//! Names of the numbers in the tables of the kernel, by the plan and the state of one instant.

use std::collections::HashMap;
use std::net::IpAddr;

use gateway_common::verdict::Reason;
use gateway_common::wire::{ClientKey, Mac, Mark};
use gateway_model::kinds::privacy_class::QueryLog;
use gateway_model::{Device, Id, State};
use ipnet::IpNet;

use super::observation::{EvaluatedFlow, Tuple};
use super::record::{Client, FlowPath};
use crate::compile::{Compiled, Input, lan_prefixes};
use crate::indexes::{LegId, PolicyIndex, ProxyIndex};

/// Egress of flows by the default route of the main routing table.
const AUTO: &str = "auto";

/// Names for the records of flows.
#[derive(Debug, Default)]
pub struct FlowNames {
    /// By index: the policy and its hops.
    policies: HashMap<PolicyIndex, (Id, Vec<String>)>,
    legs: HashMap<LegId, String>,
    proxies: HashMap<ProxyIndex, String>,
    /// By index.
    devices: HashMap<u32, LoggedDevice>,
    /// By index.
    interfaces: HashMap<u32, String>,
    lans: Vec<IpNet>,
    own: Vec<IpAddr>,
}

#[derive(Clone, Debug)]
struct LoggedDevice {
    id: Id,
    trust_class: Option<String>,
    log: QueryLog,
}

impl FlowNames {
    pub fn new(input: &Input<'_>, compiled: &Compiled) -> FlowNames {
        let state = input.state;
        let policies = compiled.policies.iter().filter_map(|policy| {
            let hops = policy.hops.iter().map(|hop| format!("{}:{}", hop.hop.r#type, hop.hop.target));
            Some((policy.number?, (policy.id, hops.collect())))
        });
        let legs = compiled.legs.by_number.values();
        let links = input.facts.links.iter();
        FlowNames {
            policies: policies.collect(),
            legs: legs.map(|leg| (leg.number, leg.name(state).to_owned())).collect(),
            proxies: compiled.plan.proxies.iter().map(|(number, to)| (*number, to.name.clone())).collect(),
            devices: state.devices.iter().map(|device| (device.meta.slot, logged(state, device))).collect(),
            interfaces: links.map(|(name, link)| (link.index, name.clone())).collect(),
            lans: input.network.lan.iter().flat_map(|name| lan_prefixes(input, name)).collect(),
            own: input.facts.addresses.values().flatten().map(IpNet::addr).collect(),
        }
    }

    /// Returns the detail that is logged of a device. All of hosts that are no device.
    pub fn log_of(&self, device: u32) -> QueryLog {
        self.devices.get(&device).map_or(QueryLog::Full, |device| device.log)
    }

    pub fn client(&self, flow: &EvaluatedFlow) -> Client {
        let device = self.devices.get(&flow.device);
        Client {
            mac: flow.key.mac,
            address: flow.key.source,
            port: flow.key.source_port,
            interface: flow.key.interface,
            interface_name: self.interfaces.get(&flow.key.interface).cloned(),
            vlan: flow.key.vlan,
            device: device.map(|device| device.id),
            trust_class: device.and_then(|device| device.trust_class.clone()),
        }
    }

    /// Returns the path that the flow table has for a flow.
    pub fn path(&self, flow: &EvaluatedFlow) -> FlowPath {
        let (policy, hops) = match flow.policy.and_then(|policy| self.policies.get(&policy)) {
            Some((id, hops)) => (Some(*id), hops.clone()),
            None => (None, Vec::new()),
        };
        let decision = flow.decision();
        let leg = flow.leg.filter(|_| decision.is_permitted());
        FlowPath {
            at: flow.seen_at,
            generation: flow.generation,
            decision,
            reason: flow.reason,
            policy,
            hops,
            leg: leg.map(LegId::get),
            egress: if decision.is_permitted() { self.egress(flow, leg) } else { None },
        }
    }

    fn egress(&self, flow: &EvaluatedFlow, leg: Option<LegId>) -> Option<String> {
        if let Some((proxy, _)) = flow.mark.as_proxy() {
            return ProxyIndex::new(proxy).and_then(|proxy| self.proxies.get(&proxy).cloned());
        }
        match leg {
            Some(leg) => self.legs.get(&leg).cloned(),
            None if flow.mark == Mark::DIRECT => Some(AUTO.to_owned()),
            None => None,
        }
    }

    /// Reports whether a tuple is from a LAN, and not of this host.
    pub fn is_from_lan(&self, tuple: &Tuple) -> bool {
        self.lans.iter().any(|net| net.contains(&tuple.source)) && !self.own.contains(&tuple.source)
    }
}

fn logged(state: &State, device: &Device) -> LoggedDevice {
    let class = state.trust_class_of(device).map(|class| class.name.to_string());
    LoggedDevice { id: device.meta.id, trust_class: class, log: state.query_log_of(device) }
}

/// Returns the number by which the resolver knows the client of a flow.
pub(super) fn client_number(flow: &EvaluatedFlow) -> u64 {
    ClientKey::new(flow.device, Mac::new(flow.key.mac.octets()), &flow.key.source.into()).number()
}

/// Reports whether flows of a reason are logged. Permitted traffic to the gateway itself, such as DNS queries, has logs of
/// its own, and a packet without a decision is no flow.
pub(super) fn is_logged(flow: &EvaluatedFlow) -> bool {
    let own = [Reason::ToGateway, Reason::LinkLocal, Reason::ForcedDns, Reason::ForcedNtp, Reason::QuicHeld];
    !own.iter().any(|reason| *reason as u8 == flow.reason)
}
