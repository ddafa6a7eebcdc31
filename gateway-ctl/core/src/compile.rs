//! State and facts to a plan: total, synchronous, deterministic.
//!
//! Routing follows the *applied* policies; devices, groups, classes, tunnels and exceptions count as they are.

mod attachments;
mod bridges;
mod carriers;
mod devices;
mod draining;
mod exceptions;
mod hops;
mod lan_sources;
mod legs;
mod openvpn;
mod policies;
mod prefixes;
mod profiles;
mod proxies;
mod system;

use std::collections::BTreeSet;

use gateway_common::wire::{ActionValue, Choice, PlanValue, RANK_NONE, plan_flags};
use gateway_model::State;
use gateway_model::id::Id;
use gateway_model::kinds::routing_policy::{FailPolicy, Hop, PolicyStatus};
use gateway_model::settings::groups::{DnsMode, PrivacyMode};
use jiff::Timestamp;
use serde::Serialize;

use crate::facts::Facts;
use crate::network::Network;
use crate::plan::Plan;

pub use attachments::attachments;
pub use bridges::{bridge_refusal, transport};
pub use draining::DRAIN;
pub use lan_sources::prefixes as lan_prefixes;
pub use legs::{Carrier, Leg, LegKind, Legs, leg_number, tunnel_interface};
pub use proxies::{by_leg, proxy_address, proxy_login};

/// What is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub state: &'a State,
    pub network: &'a Network,
    pub facts: &'a Facts,
    pub now: Timestamp,
}

impl Input<'_> {
    /// A point in time as a deadline of the dataplane ([`gateway_common::wire::deadline`]).
    pub fn deadline(&self, end: Timestamp) -> u32 {
        let since_boot = end.as_nanosecond() - i128::from(self.facts.booted_at);
        gateway_common::wire::deadline(u64::try_from(since_boot.max(0)).unwrap_or(u64::MAX))
    }
}

/// A plan and what explains it.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    pub plan: Plan,
    /// The policies in force, by rank.
    pub policies: Vec<CompiledPolicy>,
    pub legs: Legs,
    pub findings: Vec<Finding>,
}

/// A policy as it is at work.
#[derive(Clone, Debug)]
pub struct CompiledPolicy {
    pub id: Id,
    pub name: String,
    pub priority: i64,
    pub rank: u32,
    /// Index of its counters.
    pub number: u32,
    pub fail_policy: FailPolicy,
    pub hops: Vec<HopState>,
    pub v4: Choice,
    pub v6: Choice,
    /// What becomes of traffic that its proxy does not take: [`ActionValue::rest`].
    pub rest: u8,
    pub status: PolicyStatus,
    /// The hop that decides where traffic leaves now.
    pub active_hop: Option<Hop>,
    /// It is no policy but an exception of a device, which ends then.
    pub exception_until: Option<Timestamp>,
}

/// A hop and whether it can be used.
#[derive(Clone, Debug, Serialize)]
pub struct HopState {
    pub hop: Hop,
    /// Number of the leg it is, 0 if it is none.
    pub leg: u8,
    /// Number of the proxy it is, 0 if it is none.
    pub proxy: u8,
    /// The legs by which the proxy is reached, 0 for the default way; whether it can be used there is another matter.
    pub by: Vec<u8>,
    pub usable: bool,
    /// Why it is not usable, in words for people; empty when it is.
    pub reason: String,
    /// Its share of new flows in a pool.
    pub weight: u32,
    /// It takes no new flows, and keeps until then those it has.
    pub draining: Option<Timestamp>,
}

/// Something about the input that a person should know. Never an error: the plan holds without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub code: &'static str,
    pub policy: Option<Id>,
    pub message: String,
}

/// Compiles.
pub fn compile(input: &Input<'_>) -> Compiled {
    let mut compiled = Compiled { legs: Legs::of(input), ..Compiled::default() };
    let mut ranks = policies::lower(input, &mut compiled);
    let dataplane = &mut compiled.plan.dataplane;
    dataplane.header =
        PlanValue { all: ranks.all, sample_every: input.network.sample_every, ..PlanValue::default() };
    if !ranks.domains.is_empty() {
        dataplane.header.flags |= plan_flags::DOMAINS;
    }
    if input.state.group::<PrivacyMode>().mode == DnsMode::System && input.network.dns_port != 0 {
        dataplane.header.flags |= plan_flags::FORCED_DNS;
    }
    dataplane.domains = std::mem::take(&mut ranks.domains);
    devices::lower(input, &ranks, dataplane);
    lan_sources::lower(input, dataplane);
    dataplane.interfaces = std::mem::take(&mut ranks.interfaces);
    dataplane.vlans = std::mem::take(&mut ranks.vlans);
    dataplane.sources = prefixes::inherit(&ranks.sources);
    dataplane.destinations = prefixes::inherit(&ranks.destinations);
    for (port, prefixes) in &ranks.destination_ports {
        let inherited = prefixes::inherit(prefixes);
        dataplane.destination_ports.extend(inherited.into_iter().map(|(net, rank)| ((*port, net), rank)));
    }
    for list in ranks.lists.values() {
        let inherited = prefixes::inherit(&list.destinations);
        let number = list.number;
        dataplane.list_destinations.extend(inherited.into_iter().map(|(net, rank)| ((number, net), rank)));
        for (port, prefixes) in &list.ports {
            let inherited = prefixes::inherit(prefixes);
            dataplane
                .list_ports
                .extend(inherited.into_iter().map(|(net, rank)| ((number, *port, net), rank)));
        }
    }
    system::lower(input, &mut compiled);
    proxies::lower(input, &mut compiled);
    let policies = input.state.applied.policies.iter().filter(|policy| policy.in_force(input.now));
    let ends = policies.filter_map(|policy| policy.expires_at);
    let exceptions = input.active_exceptions().filter_map(|exception| exception.expires_at);
    let legs = compiled.legs.by_number.values().filter_map(|leg| leg.draining);
    let hops = compiled.policies.iter().flat_map(|policy| &policy.hops).filter_map(|hop| hop.draining);
    compiled.plan.valid_until = ends.chain(exceptions).chain(legs).chain(hops).min();
    compiled
}

impl CompiledPolicy {
    /// What the dataplane does for it.
    pub fn action(&self) -> ActionValue {
        ActionValue {
            v4: self.v4,
            v6: self.v6,
            policy: self.number,
            rest: self.rest,
            ..ActionValue::default()
        }
    }
}

impl Compiled {
    /// Name of the proxy that marks give this number.
    pub fn proxy_name(&self, number: u8) -> &str {
        self.plan.proxies.get(&number).map_or("?", |target| target.name.as_str())
    }

    /// The policy that has a rank.
    pub fn policy(&self, rank: u32) -> Option<&CompiledPolicy> {
        if rank == RANK_NONE {
            return None;
        }
        self.policies.get(usize::try_from(rank).ok()?)
    }

    /// The legs that the plan may send traffic to.
    pub fn legs_in_use(&self) -> BTreeSet<u8> {
        let choices = self.policies.iter().flat_map(|policy| [&policy.v4, &policy.v6]);
        let legs = choices.flat_map(|choice| choice.all()).copied();
        let to_proxies =
            self.policies.iter().flat_map(|policy| policy.hops.iter().flat_map(|hop| hop.by.iter().copied()));
        // The default way to a proxy is no leg.
        legs.chain(to_proxies).filter(|leg| *leg != 0).collect()
    }
}
