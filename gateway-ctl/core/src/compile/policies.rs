//! The ordered list of policies to winners per key of each dimension, and to one action per rank.
//!
//! An allowlist is the only condition that combines a device with a destination. Its destinations are in the tries of
//! all destinations, under a slot with the number of the list in its upper bits, so it needs no map of its own and
//! costs two look-ups for the devices that have one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use gateway_common::leg_selection::{spread, spread_over};
use gateway_common::wire::{
    ActionValue, CHOICE_SLOTS, Choice, ChoiceKind, InterfaceKey, InterfaceValue, LISTS, OWN_INTERFACE,
    RANK_NONE,
};
use gateway_model::RoutingPolicy;
use gateway_model::id::Id;
use gateway_model::kinds::policy_source::Source;
use gateway_model::kinds::routing_policy::{FailPolicy, PolicyStatus, Reject};
use ipnet::IpNet;
use jiff::Timestamp;

use super::fallback::{self, Choices};
use super::hops::{ResolvedEgress, resolve_egress, states};
use super::lan_sources::scope_of;
use super::own_interfaces::own_interfaces;
use super::segment_classes;
use super::{Compiled, CompiledPolicy, Finding, HopState, Input, Leg, Legs};
use crate::indexes::{LegId, PolicyIndex, Rank};
use crate::plan::DomainRule;

/// The best rank for every key that a policy names.
pub(super) struct Ranks {
    pub all: Option<Rank>,
    pub interfaces: BTreeMap<InterfaceKey, InterfaceValue>,
    pub vlans: BTreeMap<u16, Rank>,
    pub devices: BTreeMap<Id, Rank>,
    /// Ranks of devices with exceptions, after their exceptions.
    pub devices_after: BTreeMap<Id, Rank>,
    pub sources: BTreeMap<IpNet, Rank>,
    pub destinations: BTreeMap<IpNet, Rank>,
    pub destination_ports: BTreeMap<u16, BTreeMap<IpNet, Rank>>,
    pub domains: Vec<DomainRule>,
    /// Destination lists of devices that have their own.
    pub lists: BTreeMap<Id, List>,
}

/// The destinations of one device.
#[derive(Default)]
pub(super) struct List {
    /// Number of the list, from 1.
    pub number: u16,
    pub destinations: BTreeMap<IpNet, Rank>,
    pub ports: BTreeMap<u16, BTreeMap<IpNet, Rank>>,
}

pub(super) fn lower(
    input: &Input<'_>,
    in_trial: &[Cow<'_, RoutingPolicy>],
    compiled: &mut Compiled,
) -> Ranks {
    let mut ranks = Ranks {
        all: None,
        interfaces: interfaces(input, &compiled.legs),
        vlans: BTreeMap::new(),
        devices: BTreeMap::new(),
        devices_after: BTreeMap::new(),
        sources: BTreeMap::new(),
        destinations: BTreeMap::new(),
        destination_ports: BTreeMap::new(),
        domains: Vec::new(),
        lists: BTreeMap::new(),
    };
    for (rank, policy) in in_force(in_trial, input.now) {
        let only = input.only_for(policy.meta.id);
        let is_exception = input.exception_end(policy.meta.id).is_some();
        for source in input.sources(policy) {
            match only {
                Some(device) => ranks.note_of(input, device, &source, rank),
                None => ranks.note(input, policy, &source, rank, &mut compiled.findings),
            }
            if !is_exception {
                ranks.note_after(input, &source, rank);
            }
        }
        put_to_work(input, policy, rank, compiled);
    }
    ranks.number_lists(&mut compiled.findings);
    ranks
}

/// Lowers only the egress of the policies, and not what they match.
pub(super) fn lower_egress(input: &Input<'_>, in_trial: &[Cow<'_, RoutingPolicy>], compiled: &mut Compiled) {
    for (rank, policy) in in_force(in_trial, input.now) {
        put_to_work(input, policy, rank, compiled);
    }
}

/// Returns the policies in force with their ranks.
fn in_force<'a>(
    in_trial: &'a [Cow<'_, RoutingPolicy>],
    now: Timestamp,
) -> impl Iterator<Item = (Rank, &'a RoutingPolicy)> {
    let policies = in_trial.iter().map(|policy| &**policy);
    Rank::all().zip(policies.filter(move |policy| policy.in_force(now)))
}

/// Adds a policy and its action.
fn put_to_work(input: &Input<'_>, policy: &RoutingPolicy, rank: Rank, compiled: &mut Compiled) {
    let exception_until = input.exception_end(policy.meta.id);
    let end = exception_until.or(policy.expires_at);
    let (policy, mut action) = policy_at_work(input, policy, rank, &compiled.legs);
    action.until = end.map_or(0, |end| input.deadline(end));
    if exception_until.is_some() {
        // Whether a class allows exceptions is decided when they are made.
        (action.fallback4, action.fallback6, action.fallback_rest) = (0, 0, 0);
    }
    compiled.policies.push(CompiledPolicy { exception_until, ..policy });
    compiled.plan.dataplane.actions.push(action);
}

/// The LAN interfaces, and VLANs whose packets the programs of the parent leave alone.
fn interfaces(input: &Input<'_>, legs: &Legs) -> BTreeMap<InterfaceKey, InterfaceValue> {
    let mut interfaces = BTreeMap::new();
    for name in &input.network.lan {
        let Some(link) = input.facts.links.get(name) else { continue };
        let vlan = link.vlan.as_ref().map_or(0, |(_, id)| *id);
        let (flags, default_flags) = segment_classes::flags_of(input, name, link);
        let scope = scope_of(input, name);
        let value = InterfaceValue { rank: RANK_NONE, vlan, scope, flags, default_flags };
        // The tag is gone here, unless the VLAN keeps it in the frame (`reorder_hdr off`).
        interfaces.extend([0, vlan].map(|tag| (key_of(link.index, tag), value)));
    }
    let egress = legs.by_number.values().map(|leg| leg.interface.as_str()).collect();
    let own = own_interfaces(input.network, input.facts, &egress).into_iter();
    interfaces.extend(own.map(|(parent, vlan)| {
        let scope = OWN_INTERFACE;
        (key_of(parent, vlan), InterfaceValue { rank: RANK_NONE, vlan, scope, ..InterfaceValue::default() })
    }));
    interfaces
}

const fn key_of(index: u32, vlan: u16) -> InterfaceKey {
    InterfaceKey { slot: 0, index, vlan, _pad: 0 }
}

impl Ranks {
    /// Notes a destination for one device.
    fn note_of(&mut self, input: &Input<'_>, device: Id, source: &Source, rank: Rank) {
        if let Source::Domain(pattern) = source {
            if let Some(device) = input.state.devices.get(device) {
                let device = Some(device.meta.slot);
                self.domains.push(DomainRule { pattern: pattern.clone(), rank, device });
            }
            return;
        }
        let list = self.lists.entry(device).or_default();
        match source {
            Source::Destination { net, port: None } => better(list.destinations.entry(*net), rank),
            Source::Destination { net, port: Some(port) } => {
                better(list.ports.entry(*port).or_default().entry(*net), rank);
            }
            // Only destinations are ever limited to a device.
            _ => {}
        }
    }

    /// Records the ranks of devices after the end of their exceptions.
    fn note_after(&mut self, input: &Input<'_>, source: &Source, rank: Rank) {
        match source {
            Source::Device(id) => better(self.devices_after.entry(*id), rank),
            Source::DeviceGroup(id) => {
                for member in input.state.device_groups.get(*id).iter().flat_map(|group| &group.members) {
                    better(self.devices_after.entry(*member), rank);
                }
            }
            _ => {}
        }
    }

    fn number_lists(&mut self, findings: &mut Vec<Finding>) {
        let most = usize::try_from(LISTS).unwrap_or(usize::MAX);
        while self.lists.len() > most {
            self.lists.pop_last();
            let message = format!("Only {LISTS} devices can have destinations of their own at a time.");
            let finding = Finding { code: "too_many_lists", policy: None, message };
            if findings.last() != Some(&finding) {
                findings.push(finding);
            }
        }
        for (list, number) in self.lists.values_mut().zip(1..) {
            list.number = number;
        }
    }

    fn note(
        &mut self,
        input: &Input<'_>,
        policy: &RoutingPolicy,
        source: &Source,
        rank: Rank,
        findings: &mut Vec<Finding>,
    ) {
        let mut find = |code, message| {
            let finding = Finding { code, policy: Some(policy.meta.id), message };
            // A problem of all elements of a list is reported once.
            if findings.last() != Some(&finding) {
                findings.push(finding);
            }
        };
        match source {
            Source::All => self.all = Some(self.all.map_or(rank, |best| best.min(rank))),
            Source::Interface(name) => match input.facts.links.get(name.as_str()) {
                Some(link) if self.interfaces.contains_key(&key_of(link.index, 0)) => {
                    let vlan = link.vlan.as_ref().map_or(0, |(_, id)| *id);
                    for tag in [0, vlan] {
                        if let Some(value) = self.interfaces.get_mut(&key_of(link.index, tag)) {
                            value.rank = value.rank.min(rank.get());
                        }
                    }
                }
                Some(_) => find(
                    "not_a_lan_interface",
                    format!("{name} is not a LAN interface: the policy matches nothing there."),
                ),
                None => find(
                    "interface_missing",
                    format!(
                        "The interface {name} does not exist: the policy matches nothing there until it does."
                    ),
                ),
            },
            Source::Vlan(id) => better(self.vlans.entry(*id), rank),
            Source::Subnet(net) => better(self.sources.entry(*net), rank),
            Source::Device(id) => better(self.devices.entry(*id), rank),
            Source::DeviceGroup(id) => match input.state.device_groups.get(*id) {
                Some(group) => {
                    for member in &group.members {
                        better(self.devices.entry(*member), rank);
                    }
                }
                None => find("group_missing", format!("The device group {id} does not exist any more.")),
            },
            Source::Destination { net, port: None } => better(self.destinations.entry(*net), rank),
            Source::Destination { net, port: Some(port) } => {
                better(self.destination_ports.entry(*port).or_default().entry(*net), rank);
            }
            Source::Domain(pattern) => {
                self.domains.push(DomainRule { pattern: pattern.clone(), rank, device: None });
            }
        }
    }
}

fn better<K: Ord>(entry: std::collections::btree_map::Entry<'_, K, Rank>, rank: Rank) {
    let best = entry.or_insert(rank);
    *best = rank.min(*best);
}

/// Hops of a policy, and the egress of its traffic through them.
struct Egress {
    hops: Vec<HopState>,
    resolved: ResolvedEgress,
    v4: Choice,
    v6: Choice,
    rest: u8,
}

impl Egress {
    fn choices(&self) -> Choices {
        (self.v4, self.v6, self.rest)
    }
}

fn egress(input: &Input<'_>, policy: &RoutingPolicy, legs: &Legs) -> Egress {
    let hops = states(input, policy, legs);
    let resolved = resolve_egress(input, policy, &hops);
    let weight = |leg: Option<LegId>| {
        let hop = hops.iter().find(|hop| hop.leg == leg && leg.is_some());
        hop.map_or(1, |hop| hop.weight)
    };
    let choose = |has: fn(&Leg) -> bool| {
        let able = |numbers: &mut dyn Iterator<Item = LegId>| -> Vec<(u8, u32)> {
            let legs = numbers.filter_map(|number| legs.get(number).filter(|leg| has(leg)));
            legs.map(|leg| (leg.number.get(), weight(Some(leg.number)))).collect()
        };
        if let Some(proxy) = resolved.proxy {
            // A proxy takes either address family, whatever families the leg towards it has.
            let weighted: Vec<(u8, u32)> =
                resolved.legs.iter().map(|leg| (LegId::raw(*leg), weight(*leg))).collect();
            return spread(&weighted).to_proxy(proxy.get());
        }
        let new = able(&mut resolved.legs.iter().copied().flatten());
        if new.is_empty() {
            return failed(policy);
        }

        let kept = able(&mut resolved.kept.iter().copied()).into_iter().map(|(number, _)| number);
        let (draining, lasting): (Vec<u8>, Vec<u8>) =
            kept.partition(|leg| drain_end(&hops, LegId::new(*leg)).is_some());
        let room = CHOICE_SLOTS.saturating_sub(draining.len() + lasting.len()).max(new.len());
        spread_over(&new, room).with_draining_legs(&lasting).with_draining_legs(&draining)
    };
    let (v4, v6) = (choose(|leg| leg.ipv4), choose(|leg| leg.ipv6));
    let rest = if resolved.proxy.is_none() {
        0
    } else {
        ActionValue::rest_of(unproxied_choice(policy, &resolved, legs), resolved.udp)
    };
    Egress { hops, resolved, v4, v6, rest }
}

fn policy_at_work(
    input: &Input<'_>,
    policy: &RoutingPolicy,
    rank: Rank,
    legs: &Legs,
) -> (CompiledPolicy, ActionValue) {
    let found = egress(input, policy, legs);
    let fallback = fallback::needed(policy, &found.choices(), |strict| egress(input, strict, legs).choices());
    let Egress { hops, resolved, v4, v6, rest } = found;
    let lasting = |choice: &Choice| {
        let kept = choice.all().iter().skip(usize::from(choice.count));
        u8::try_from(kept.filter(|leg| drain_end(&hops, LegId::new(**leg)).is_none()).count()).unwrap_or(0)
    };
    let drained = resolved.kept.iter().filter_map(|leg| drain_end(&hops, Some(*leg))).min();
    let active_hop = resolved.active.and_then(|place| hops.get(place)).map(|state| state.hop.clone());
    let fail_policy = policy.fail_policy.unwrap_or_default();
    let status = match (resolved.active.is_none(), fail_policy) {
        (true, FailPolicy::Open) => PolicyStatus::Fallback,
        (true, FailPolicy::Closed | FailPolicy::Degraded) => PolicyStatus::Blocked,
        (false, _) if hops.iter().any(|hop| !hop.usable) => PolicyStatus::Degraded,
        (false, _) => PolicyStatus::Active,
    };
    let action = ActionValue {
        v4,
        v6,
        policy: policy.meta.slot,
        sticky: super::leg::sticky(policy.sticky.unwrap_or_default()) as u8,
        rest,
        lasting4: lasting(&v4),
        lasting6: lasting(&v6),
        until: 0,
        kept_until: drained.map_or(0, |end| input.deadline(end)),
        fallback4: fallback.v4 as u8,
        fallback6: fallback.v6 as u8,
        fallback_rest: fallback.rest as u8,
        _pad: 0,
    };
    let compiled = CompiledPolicy {
        id: policy.meta.id,
        name: policy.name.clone(),
        priority: policy.priority,
        rank,
        number: PolicyIndex::new(policy.meta.slot),
        fail_policy,
        hops,
        v4,
        v6,
        rest,
        status,
        active_hop,
        exception_until: None,
    };
    (compiled, action)
}

/// Returns the time until which flows keep a leg. `None` if it stays.
fn drain_end(hops: &[HopState], leg: Option<LegId>) -> Option<Timestamp> {
    hops.iter().find(|hop| hop.leg == leg && leg.is_some()).and_then(|hop| hop.draining)
}

/// Returns the action for traffic that the last hop, a proxy, does not take. A policy that fails degraded uses the
/// tunnels before the proxy if they exist and carry both families.
fn unproxied_choice(policy: &RoutingPolicy, egress: &ResolvedEgress, legs: &Legs) -> ChoiceKind {
    let carries = |leg: &Leg| leg.is_tunnel() && leg.ipv4 && leg.ipv6;
    let all = egress.legs.iter().all(|leg| leg.and_then(|leg| legs.get(leg)).is_some_and(carries));
    if policy.fail_policy == Some(FailPolicy::Degraded) && all && !egress.legs.is_empty() {
        return ChoiceKind::Legs;
    }
    failed(policy).kind()
}

/// Returns the action if no egress is usable.
fn failed(policy: &RoutingPolicy) -> Choice {
    match (policy.fail_policy.unwrap_or_default(), policy.reject) {
        (FailPolicy::Open, _) => Choice::DIRECT,
        (FailPolicy::Closed | FailPolicy::Degraded, Reject::Unreachable) => Choice::REJECT,
        (FailPolicy::Closed | FailPolicy::Degraded, Reject::Drop) => Choice::DROP,
    }
}
