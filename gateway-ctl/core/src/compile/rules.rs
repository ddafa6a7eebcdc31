//! Routing rules: by mark for traffic with a policy, by source for what this host sends from a tunnel's address.
//!
//! Decision 0168 says why.

use std::collections::{BTreeMap, BTreeSet};

use gateway_common::wire::Mark;
use ipnet::IpNet;

use super::Input;
use super::leg::{DefaultUplink, Leg};
use super::well_known::is_link_local;
use crate::indexes::LegId;
use crate::plan::{Family, Plan, RuleAction, RuleKey, RuleValue, names};

const RULE_DIRECT: u32 = names::RULE_FIRST;
const RULE_LOCAL: u32 = names::RULE_FIRST + 1;
const RULE_REFLECTED: u32 = names::RULE_FIRST + 2;
const RULE_RESET: u32 = names::RULE_FIRST + 7;
const RULE_REJECT: u32 = names::RULE_FIRST + 8;
const RULE_ARRIVED: u32 = names::RULE_FIRST + 9;
const RULE_LEGS: u32 = names::RULE_FIRST + 10;
/// More LAN interfaces than a host has VLANs that people name one by one.
const MAX_LANS: u32 = 1024;
/// Above the last leg's rule.
const RULE_SOURCES: u32 = RULE_LEGS + 256;
const RULE_PROHIBIT: u32 = names::RULE_LAST - (MAX_LANS - 1);
/// Packets of this host without a mark to the LAN: they stay there, whatever the main table says.
const RULE_HOST_LAN: u32 = RULE_PROHIBIT - 6;
const RULE_OWN_LOCAL: u32 = RULE_PROHIBIT - 5;
const RULE_OWN: u32 = RULE_PROHIBIT - 4;
const RULE_OWN_END: u32 = RULE_PROHIBIT - 3;
/// Traffic of this host without a mark: to local networks, then by the active uplink.
const RULE_HOST_LOCAL: u32 = RULE_PROHIBIT - 2;
const RULE_HOST: u32 = RULE_PROHIBIT - 1;
/// Marks of a leg on LAN traffic, on its outer packets and on traffic from it differ in these bits only. So do the
/// marks of rejected traffic.
const LEG_MASK: u32 = !((Mark::OWN.0 ^ Mark::PREFIX) | (Mark::ARRIVAL.0 ^ Mark::PREFIX));

/// `needed`: the legs that traffic may be sent to.
pub(super) fn lower(
    input: &Input<'_>,
    legs: &[Leg],
    default: DefaultUplink,
    needed: &BTreeSet<LegId>,
    plan: &mut Plan,
) {
    mark_rules(input, default, needed, plan);
    source_rules(input, legs, plan);
}

fn mark_rules(input: &Input<'_>, default: DefaultUplink, needed: &BTreeSet<LegId>, plan: &mut Plan) {
    for family in [Family::V4, Family::V6] {
        let mut rule = |priority, fwmark, action, suppress_prefix_length| {
            let value = RuleValue {
                source: None,
                fwmark: Some(fwmark),
                // What this host sends itself.
                input_interface: matches!(priority, RULE_REFLECTED | RULE_HOST_LAN | RULE_OWN_END)
                    .then(|| "lo".to_owned()),
                output_interface: None,
                action,
                suppress_prefix_length,
            };
            plan.rules.insert(RuleKey { family, priority }, value);
        };
        rule(RULE_DIRECT, (Mark::DIRECT.0, u32::MAX), RuleAction::Table(names::TABLE_MAIN), None);
        // Local networks are in the main table; its default routes are not for this mark.
        rule(RULE_LOCAL, (Mark::LOCAL.0, u32::MAX), RuleAction::Table(names::TABLE_MAIN), Some(0));
        // Replies of the kernel to LAN traffic carry its mark (`fwmark_reflect`). They go to on-link networks, else by
        // the leg of the traffic, and nowhere else.
        let all = RuleAction::Table(names::TABLE_MAIN);
        rule(RULE_REFLECTED, (Mark::PREFIX, Mark::PREFIX_MASK), all.clone(), Some(0));
        // Traffic from a leg is for on-link networks. Replies to it leave by the leg.
        rule(RULE_ARRIVED, (Mark::ARRIVAL.0, Mark::PREFIX_MASK), all, Some(0));
        rule(RULE_REJECT, (Mark::REJECT.0, LEG_MASK), RuleAction::Table(names::TABLE_REJECT), None);
        rule(RULE_RESET, (Mark::RESET.0, u32::MAX), RuleAction::Table(names::TABLE_RELAY), None);
        for leg in needed {
            let table = RuleAction::Table(names::TABLE_BASE + u32::from(*leg));
            rule(RULE_LEGS + u32::from(*leg), (leg.mark().0, LEG_MASK), table, None);
        }
        // A network at an uplink may announce routes to hosts of the LAN (TunnelVision). A DHCP client of the operating
        // system writes them to the main table, and what programs of this host send to the LAN would follow them.
        let lan = RuleAction::Table(names::TABLE_LAN);
        rule(RULE_HOST_LAN, (0, Mark::OURS_MASK), lan, None);
        // What this host sends with a mark of the gateway that no rule takes goes nowhere, and never by the main table.
        let default = match default {
            DefaultUplink::MainTable => RuleAction::Table(names::TABLE_MAIN),
            DefaultUplink::Leg(leg) => RuleAction::Table(names::TABLE_BASE + u32::from(leg)),
            DefaultUplink::Nowhere => RuleAction::Unreachable,
        };
        let is_selected = default != RuleAction::Table(names::TABLE_MAIN);
        if is_selected {
            rule(RULE_OWN_LOCAL, (Mark::OWN.0, u32::MAX), RuleAction::Table(names::TABLE_MAIN), Some(0));
        }
        rule(RULE_OWN, (Mark::OWN.0, u32::MAX), default.clone(), None);
        rule(RULE_OWN_END, (Mark::OURS, Mark::OURS_MASK), RuleAction::Unreachable, None);
        if is_selected {
            // Marks of the gateway have ended before.
            for (priority, action, suppress_prefix_length) in
                [(RULE_HOST_LOCAL, RuleAction::Table(names::TABLE_MAIN), Some(0)), (RULE_HOST, default, None)]
            {
                let value = RuleValue {
                    source: None,
                    fwmark: None,
                    input_interface: Some("lo".to_owned()),
                    output_interface: None,
                    action,
                    suppress_prefix_length,
                };
                plan.rules.insert(RuleKey { family, priority }, value);
            }
        }
        for (priority, lan) in (RULE_PROHIBIT..=names::RULE_LAST).zip(&input.network.lan) {
            let value = RuleValue {
                source: None,
                fwmark: None,
                input_interface: Some(lan.clone()),
                output_interface: None,
                action: RuleAction::Prohibit,
                suppress_prefix_length: None,
            };
            plan.rules.insert(RuleKey { family, priority }, value);
        }
    }
}

/// Adds rules for packets that this host sends from a tunnel's address, such as replies to probes of the remote end.
/// They take the tunnel or are dropped: the main table would reveal the address to the uplink.
///
/// Several tunnels may have the same address. Then a socket that is bound to an interface takes that tunnel, and any
/// other the first one. The addresses of this gateway in a mesh are those of its main interface there, too: a socket that is
/// not bound takes the main table.
fn source_rules(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    let mut sources: BTreeMap<IpNet, Vec<&Leg>> = BTreeMap::new();
    for leg in legs.iter().filter(|leg| !leg.is_uplink()) {
        let ours = plan.addresses.keys().filter(|key| key.interface == leg.interface).map(|key| key.address);
        let mut of_leg: BTreeSet<IpNet> = ours.collect();
        // Those of other tunnels are known when they are there.
        if !plan.wireguard.contains_key(&leg.interface) {
            let seen = input.facts.addresses.get(&leg.interface).into_iter().flatten().map(IpNet::addr);
            of_leg.extend(seen.filter(|address| !is_link_local(*address)).map(IpNet::from));
        }
        for source in of_leg {
            sources.entry(source).or_default().push(leg);
        }
    }
    let rules = sources.iter().flat_map(|(source, legs)| {
        let is_shared = |leg: &&&Leg| legs.len() > 1 || leg.mesh_peer().is_some();
        let bound = legs.iter().filter(is_shared).map(|leg| (leg, Some(leg.interface.clone())));
        let first = legs.iter().find(|leg| leg.mesh_peer().is_none()).map(|leg| (leg, None));
        bound.chain(first).map(move |(leg, output)| (*source, leg, output))
    });
    for (priority, (source, leg, output_interface)) in (RULE_SOURCES..names::RULE_INTERFACES).zip(rules) {
        let family = if matches!(source, IpNet::V4(_)) { Family::V4 } else { Family::V6 };
        let value = RuleValue {
            source: Some(source),
            fwmark: None,
            // Packets that entered anywhere are evaluated by their marks.
            input_interface: Some("lo".to_owned()),
            output_interface,
            action: RuleAction::Table(names::TABLE_BASE + u32::from(leg.number)),
            suppress_prefix_length: None,
        };
        plan.rules.insert(RuleKey { family, priority }, value);
    }
}
