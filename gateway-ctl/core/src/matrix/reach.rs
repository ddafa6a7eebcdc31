//! Destinations of a policy's traffic and of its DNS queries in one scenario.

use std::collections::BTreeSet;
use std::net::IpAddr;

use gateway_common::classify::{IpPacket, TCP};
use gateway_common::decide::decide;
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_common::wire::{Choice, ChoiceKind, Mac, Mark};
use gateway_model::Device;
use gateway_model::id::MacAddr;
use gateway_model::kinds::policy_source::Source;
use gateway_model::kinds::routing_policy::{HopType, RoutingPolicy};
use ipnet::IpNet;

use super::cell::{Cell, Outcome};
use super::scenarios::Scenario;
use crate::compile::{Compiled, CompiledPolicy, Input, lan_prefixes};
use crate::evaluate::route::{Exits, Kernel};
use crate::evaluate::{
    Entry, Protocol, decide_packet, host_of, interface_of_vlan, leg_name, legs_of, packet, public_address,
};
use crate::indexes::{LegId, ProxyIndex, Rank};
use crate::plan::Plan;
use crate::plan_maps::PlanMaps;

/// Egress of one address family of a policy's traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// Legs that lead out.
    pub legs: BTreeSet<LegId>,
    /// Proxies that are reached, with the leg to them.
    pub proxies: BTreeSet<(ProxyIndex, Option<LegId>)>,
    /// Something goes out without a tunnel.
    pub direct: bool,
    /// By the default route and not by an uplink of the policy's choice.
    pub by_default: bool,
}

impl Reach {
    pub(super) fn of_policy(exits: &mut Exits<'_>, policy: &CompiledPolicy, ipv6: bool) -> Reach {
        Reach::of_choice(exits, if ipv6 { &policy.v6 } else { &policy.v4 }, ipv6)
    }

    /// Returns the egress of datagrams, which not every proxy takes.
    pub(super) fn of_datagrams(exits: &mut Exits<'_>, policy: &CompiledPolicy, ipv6: bool) -> Reach {
        let action = policy.action();
        let choice = if ipv6 { action.v6 } else { action.v4 };
        if choice.kind() == ChoiceKind::Proxy && !action.proxy_takes_udp() {
            return Reach::of_unproxied(exits, policy, ipv6);
        }
        Reach::of_choice(exits, &choice, ipv6)
    }

    /// Returns the egress of traffic that no proxy takes, such as echo requests.
    pub(super) fn of_unproxied(exits: &mut Exits<'_>, policy: &CompiledPolicy, ipv6: bool) -> Reach {
        let action = policy.action();
        let choice = if ipv6 { action.v6 } else { action.v4 };
        Reach::of_choice(exits, &Choice { kind: action.unproxied() as u8, proxy: 0, ..choice }, ipv6)
    }

    fn of_choice(exits: &mut Exits<'_>, choice: &Choice, ipv6: bool) -> Reach {
        let mut reach = Reach::default();
        match choice.kind() {
            ChoiceKind::Drop => {}
            ChoiceKind::Reject => reach.note_mark(exits, Mark::REJECT, ipv6),
            ChoiceKind::Direct => reach.note_mark(exits, Mark::DIRECT, ipv6),
            ChoiceKind::Legs => {
                legs_of(choice).iter().flatten().for_each(|leg| reach.note_mark(exits, leg.mark(), ipv6));
            }
            ChoiceKind::Proxy => {
                for leg in legs_of(choice) {
                    if exits.of_mark(Mark::proxy(choice.proxy, LegId::raw(leg), false), ipv6).out.is_ok() {
                        reach.proxies.extend(ProxyIndex::new(choice.proxy).map(|proxy| (proxy, leg)));
                    }
                }
            }
        }
        reach
    }

    fn note_mark(&mut self, exits: &mut Exits<'_>, mark: Mark, ipv6: bool) {
        if mark == Mark::DIRECT {
            // Even without a default route at present: one may come at any time.
            (self.direct, self.by_default) = (true, true);
            return;
        }
        let compiled = exits.kernel.compiled;
        let Ok(interface) = &exits.of_mark(mark, ipv6).out else { return };
        let leg = mark.as_leg().and_then(LegId::new).and_then(|leg| compiled.legs.get(leg));
        match leg {
            Some(leg) if leg.interface == *interface => {
                self.legs.insert(leg.number);
                self.direct |= leg.is_uplink();
            }
            // Not where the mark was meant to lead.
            _ => (self.direct, self.by_default) = (true, true),
        }
    }

    /// The outcome, against where the traffic goes when everything works.
    pub(super) fn outcome(&self, usual: &Reach) -> Outcome {
        let same = (&self.legs, &self.proxies) == (&usual.legs, &usual.proxies);
        match (self.direct, self.legs.is_empty() && self.proxies.is_empty()) {
            (true, _) => Outcome::Direct,
            (false, true) => Outcome::Blocked,
            (false, false) if same => Outcome::Tunnel,
            (false, false) => Outcome::NextHop,
        }
    }

    pub(super) fn via(&self, input: &Input<'_>, compiled: &Compiled) -> Option<String> {
        let mut names: Vec<String> = self.legs.iter().map(|leg| leg_name(input, compiled, *leg)).collect();
        for (proxy, leg) in &self.proxies {
            let by = leg.map_or_else(String::new, |leg| format!(" by {}", leg_name(input, compiled, leg)));
            names.push(format!("{}{by}", compiled.proxy_name(*proxy)));
        }
        if self.by_default {
            names.push("default".to_owned());
        }
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// Treatment of a DNS query to an external resolver from a source of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DnsPath {
    /// The policy of this rank has it.
    Policy(Rank),
    Direct,
    Blocked,
}

impl DnsPath {
    /// Returns the treatment of the query. The matching policy does not depend on the state of the tunnels, so one
    /// verdict serves all states.
    ///
    /// `rank` is the rank of the policy.
    pub(super) fn of(
        queries: &ExternalQueries<'_>,
        policy: &RoutingPolicy,
        rank: Rank,
        ipv6: bool,
    ) -> DnsPath {
        let ExternalQueries { input, compiled, .. } = queries;
        let mut packets = input.sources(policy).into_iter();
        let Some(mut packet) = packets.find_map(|source| queries.packet(&source, ipv6)) else {
            return DnsPath::Blocked;
        };
        let only = input.only_for(policy.meta.id).and_then(|device| input.state.devices.get(device));
        if let Some(mac) = only.and_then(mac_of) {
            packet.mac = Mac::new(mac.0);
        }
        let Verdict { rank: winner, action, reason, .. } = decide_packet(compiled, &packet, &[]);
        match (Rank::of_wire(winner), action, reason) {
            (Some(winner), ..) => DnsPath::Policy(winner),
            // The resolver of the gateway uses the route of the client.
            (None, _, Reason::ForcedDns) => DnsPath::Policy(rank),
            (None, Action::Mark, Reason::NoPolicy) => DnsPath::Direct,
            (None, ..) => DnsPath::Blocked,
        }
    }

    /// The outcome, and whether the policy that has it means its traffic for a tunnel. `usual` is where the
    /// traffic of the policy at hand, of rank `rank`, goes when everything works.
    pub(super) fn outcome(
        &self,
        exits: &mut Exits<'_>,
        usual: &Reach,
        rank: usize,
        ipv6: bool,
    ) -> (Outcome, bool) {
        match *self {
            DnsPath::Direct => (Outcome::Direct, false),
            DnsPath::Blocked => (Outcome::Blocked, false),
            DnsPath::Policy(winner) => {
                let compiled = exits.kernel.compiled;
                let Some(policy) = compiled.policy(winner) else { return (Outcome::Blocked, false) };
                let reach = Reach::of_datagrams(exits, policy, ipv6);
                let own = winner.index() == rank;
                let outcome = reach.outcome(if own { usual } else { &reach });
                (outcome, is_bound(policy))
            }
        }
    }
}

/// Reports whether a policy sends its traffic to anything but an uplink.
pub(super) fn is_bound(policy: &CompiledPolicy) -> bool {
    policy.hops.iter().any(|hop| hop.hop.r#type != HopType::Interface)
}

/// DNS queries to a server outside, as the sources of policies would send them.
pub(super) struct ExternalQueries<'a> {
    input: &'a Input<'a>,
    /// Plan that matches packets.
    compiled: &'a Compiled,
    /// A server outside for each address family. Finding one takes longer than a verdict.
    servers: [IpAddr; 2],
    /// The first LAN interface.
    entry: Entry,
}

impl<'a> ExternalQueries<'a> {
    pub(super) fn new(input: &'a Input<'a>, compiled: &'a Compiled) -> ExternalQueries<'a> {
        let servers = [false, true].map(|ipv6| public_address(compiled, ipv6, 53, &mut Vec::new()));
        let lan = input.network.lan.first().map_or("", String::as_str);
        ExternalQueries { input, compiled, servers, entry: Entry::at(input, lan) }
    }

    /// Returns the packet of a source: UDP to port 53.
    fn packet(&self, source: &Source, ipv6: bool) -> Option<IpPacket> {
        let input = self.input;
        let mut entry = self.entry.clone();
        let mut mac = None;
        let mut from = None;
        let mut to = self.servers[usize::from(ipv6)];
        match source {
            // Any client may query the domain.
            Source::All | Source::Domain(_) => {}
            Source::Interface(name) => entry = Entry::at(input, name.as_str()),
            Source::Vlan(id) => match interface_of_vlan(input, None, *id) {
                Some(name) => entry = Entry::at(input, name),
                None => entry.vlan = *id,
            },
            Source::Subnet(net) => {
                let leads_there = |name: &&String| {
                    lan_prefixes(input, name).any(|lan| lan.contains(net) || net.contains(&lan))
                };
                if let Some(name) = input.network.lan.iter().find(leads_there) {
                    entry = Entry::at(input, name);
                }
                from = Some(of_family(net, ipv6)?);
            }
            Source::Device(id) => mac = Some(mac_of(input.state.devices.get(*id)?)?),
            Source::DeviceGroup(id) => {
                let members = &input.state.device_groups.get(*id)?.members;
                mac = Some(members.iter().find_map(|id| mac_of(input.state.devices.get(*id)?))?);
            }
            Source::Destination { net, .. } => to = of_family(net, ipv6)?,
        }
        let from = from.or_else(|| host_of(input, &entry, ipv6))?;
        Some(packet(mac, &entry, from, to, Protocol::Udp, 53))
    }
}

fn of_family(net: &IpNet, ipv6: bool) -> Option<IpAddr> {
    (net.addr().is_ipv6() == ipv6).then(|| net.network())
}

fn mac_of(device: &std::sync::Arc<Device>) -> Option<MacAddr> {
    device.all_macs().first().copied()
}

/// Returns the treatment before a plan is loaded, with the rules of an earlier run and without.
pub(super) fn without_plan(up: &Scenario) -> Cell {
    let packet = IpPacket { protocol: TCP, destination_port: 443, ..IpPacket::default() };
    let verdict = decide(&Ok(gateway_common::classify::Classified::Ip(packet)), &PlanMaps::default());
    let bare = Compiled {
        plan: Plan { attach: up.compiled.plan.attach.clone(), ..Plan::default() },
        ..Compiled::default()
    };
    let leaves = |ipv6: bool| {
        verdict.action != Action::Drop
            && [&up.compiled, &bare]
                .iter()
                .any(|compiled| Kernel::new(compiled, &up.facts).follow(Mark(verdict.mark), ipv6).out.is_ok())
    };
    let outcome = |ipv6| if leaves(ipv6) { Outcome::Direct } else { Outcome::Blocked };
    let (four, six) = (outcome(false), outcome(true));
    let out = four.max(six) == Outcome::Direct;
    Cell { outcome: four, via: out.then(|| "default".to_owned()), leak: out, dns: four.max(six), ipv6: six }
}
