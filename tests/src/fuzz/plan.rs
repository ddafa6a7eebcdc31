//! The compiler and the policy decision under arbitrary states and facts.

use gateway_common::classify::classify;
use gateway_common::decide::decide;
use gateway_common::leg_selection;
use gateway_common::verdict::{Action, Reason};
use gateway_common::wire::*;
use gateway_core::compile::{Compiled, Input, LegKind, Underlay, compile, shared_uplinks};
use gateway_core::indexes::{LegId, PolicyIndex, Rank};
use gateway_core::plan::{Dataplane, Family, RouteKey, RuleAction, names};
use gateway_core::plan_maps::PlanMaps;
use ipnet::IpNet;

use super::inputs::{Inputs, PRESHARED, PRIVATE};

/// Checks that a state and facts give exactly one plan, that every index in it is valid, and that it shows no key.
pub fn plan(data: &[u8]) {
    let mut said = String::new();
    let world = Inputs::decode(data, |error| said.push_str(&format!("{error} {error:?}\n")));
    let input = Input { state: &world.state, network: &world.network, facts: &world.facts, now: world.now };
    let compiled = compile(&input);
    assert_same(&compiled, &compile(&input));
    bounds(&compiled);
    carriers(&compiled, world.facts.uplinks.active);
    routes(&compiled);
    assert!(compiled.plan.valid_until.is_none_or(|end| end > world.now), "the plan has ended already");
    said.push_str(&format!("{compiled:?} {:?}", world.state));
    assert_no_key(&said);
    decisions(&compiled, &world.packets);
}

fn assert_same(a: &Compiled, b: &Compiled) {
    let (p, q) = (&a.plan, &b.plan);
    assert_eq!(p.dataplane, q.dataplane);
    // Debug forms hide keys, so these are compared as values.
    assert!(p.wireguard == q.wireguard, "the WireGuard devices differ");
    assert_eq!((&p.attach, &p.links, &p.addresses), (&q.attach, &q.links, &q.addresses));
    assert_eq!((&p.routes, &p.rules, &p.sysctls), (&q.routes, &q.rules, &q.sysctls));
    assert_eq!((&p.nft, p.valid_until), (&q.nft, q.valid_until));
    assert_eq!(format!("{a:?}"), format!("{b:?}"), "what explains the plan differs");
}

fn ranks(plan: &Dataplane) -> impl Iterator<Item = u32> {
    std::iter::once(plan.header.all)
        .chain(plan.interfaces.values().map(|value| value.rank))
        .chain(plan.vlans.values().copied())
        .chain(plan.devices_by_mac.values().map(|value| value.rank))
        .chain(plan.devices_by_address.values().map(|value| value.rank))
        .chain(plan.sources.values().copied())
        .chain(plan.destinations.values().copied())
        .chain(plan.destination_ports.values().copied())
        .chain(plan.list_destinations.values().copied())
        .chain(plan.list_ports.values().copied())
}

fn bounds(compiled: &Compiled) {
    let plan = &compiled.plan.dataplane;
    let count = u32::try_from(compiled.policies.len()).expect("few policies");
    // The action of traffic by the default route follows those of the policies.
    let direct = plan.header.direct.checked_sub(1);
    assert!(direct.is_none_or(|rank| rank == count), "{direct:?} behind {count} policies");
    assert_eq!(plan.actions.len(), compiled.policies.len() + usize::from(direct.is_some()));
    for rank in ranks(plan) {
        assert!(rank < count || rank == RANK_NONE, "rank {rank} of {count}");
    }
    for (rank, action) in (0u32..).zip(&plan.actions) {
        if direct == Some(rank) {
            default_route(compiled, action);
            continue;
        }
        let policy =
            Rank::of_wire(rank).and_then(|rank| compiled.policy(rank)).expect("an action has its policy");
        assert_eq!((policy.rank.get(), PolicyIndex::raw(policy.number)), (rank, action.policy));
        assert_eq!((policy.v4, policy.v6), (action.v4, action.v6));
        // Exceptions and device profiles have no counters of their own.
        let is_policy = (0..=1_000_000).contains(&policy.priority);
        assert!(action.policy < gateway_common::maps::POLICIES && (action.policy > 0) == is_policy);
        assert!(action.sticky <= Sticky::SourceDestination as u8);
        assert_eq!(
            ActionValue::rest_of(action.unproxied(), action.proxy_takes_udp()),
            action.rest,
            "{action:?}"
        );
        assert!(action.lasting4 <= action.v4.kept && action.lasting6 <= action.v6.kept, "{action:?}");
        for (choice, ipv6) in [(&action.v4, false), (&action.v6, true)] {
            legs(compiled, choice, ipv6);
        }
    }
    for vlan in plan.vlans.keys().chain(plan.interfaces.keys().map(|key| &key.vlan)) {
        assert!(*vlan < 4095, "VLAN {vlan}");
    }
    for value in plan.locals.values() {
        assert_eq!(LocalValue::new(value.kind()).kind, value.kind, "a number that means another kind");
        assert!(LegId::new(value.leg as u8).is_none_or(|leg| compiled.legs.get(leg).is_some()), "{value:?}");
    }
    for net in plan.sources.keys().chain(plan.destinations.keys()).chain(plan.locals.keys()) {
        assert_eq!(net.trunc(), *net, "a prefix with host bits");
    }
    for key in plan.authorised.keys() {
        assert!(key.mark & Mark::OURS_MASK == Mark::OURS && key.index > 0, "{key:?}");
        let is_of_leg = [Mark::leg, Mark::carried_by, Mark::arrived_by].iter().any(|mark| {
            mark(key.mark as u8).0 == key.mark
                && LegId::new(key.mark as u8).and_then(|leg| compiled.legs.get(leg)).is_some()
        });
        assert!(is_of_leg || [Mark::DIRECT.0, Mark::OWN.0].contains(&key.mark), "{key:?}");
    }
}

/// Checks the action of traffic by the default route. It has uplinks with a route only; the active one stays when it fails, and
/// flows stay on others as they are set.
fn default_route(compiled: &Compiled, action: &ActionValue) {
    assert_eq!((action.policy, action.until), (0, 0), "{action:?}");
    for (choice, ipv6) in [(&action.v4, false), (&action.v6, true)] {
        assert!([ChoiceKind::Legs, ChoiceKind::Reject].contains(&choice.kind()), "{choice:?}");
        assert_eq!(choice.kind() == ChoiceKind::Legs, choice.count > 0, "{choice:?}");
        for number in choice.all() {
            let leg = LegId::new(*number).and_then(|leg| compiled.legs.get(leg)).expect("a leg that exists");
            assert!(leg.kind == LegKind::Uplink && if ipv6 { leg.ipv6 } else { leg.ipv4 }, "{leg:?}");
        }
    }
}

fn legs(compiled: &Compiled, choice: &Choice, ipv6: bool) {
    assert!(choice.kind <= ChoiceKind::Proxy as u8, "{choice:?}");
    let proxied = choice.kind() == ChoiceKind::Proxy;
    assert_eq!(proxied, choice.proxy != 0, "{choice:?}");
    let used = choice.all();
    assert_eq!(choice.kind() == ChoiceKind::Legs || proxied, choice.count > 0, "{choice:?}");
    assert!(choice.kept == 0 || choice.count > 0 && !proxied, "{choice:?}");
    assert!(choice.legs[used.len()..].iter().all(|leg| *leg == 0), "{choice:?}");
    // The default egress to a proxy is no leg, and a proxy transports either family over any leg.
    for number in used.iter().filter(|number| !(proxied && **number == 0)) {
        let number = LegId::new(*number).expect("a leg");
        let leg = compiled.legs.get(number).expect("a leg that exists");
        assert!(leg.usable && (proxied || if ipv6 { leg.ipv6 } else { leg.ipv4 }), "{leg:?} carries nothing");
        assert!(compiled.legs_in_use().contains(&number));
    }
    assert_eq!(
        leg_selection::choose(choice, choice.kept, Sticky::Flow, |_| 0, 0, || u64::MAX).is_some(),
        choice.count > 0
    );
}

/// Checks that no tunnel is its own underlay, directly or indirectly, and that the mark of its outer packets leads to
/// its underlay. A tunnel by the active uplink stays as its own health says: its traffic goes nowhere else meanwhile.
fn carriers(compiled: &Compiled, active: Option<LegId>) {
    let legs = &compiled.legs;
    for leg in legs.by_number.values() {
        let mut at = leg.underlay;
        for _ in 0..=legs.by_number.len() {
            at = at.leg().and_then(|number| legs.get(number)).map_or(Underlay::Default, |leg| leg.underlay);
        }
        assert_eq!(at, Underlay::Default, "{leg:?} goes round");
        if let Some(underlay) = leg.underlay.leg() {
            let below = legs.get(underlay).expect("a leg that exists");
            assert!(!leg.usable || below.usable || active == Some(underlay), "{leg:?} on {below:?}");
            let bears = |mark: u32, mask: u32| leg.underlay.mark().0 & mask == mark & mask;
            let table = RuleAction::Table(names::TABLE_BASE + u32::from(underlay));
            for family in [Family::V4, Family::V6] {
                let mut rules = compiled.plan.rules.iter().filter(|(key, _)| key.family == family);
                let first = rules.find(|(_, rule)| rule.fwmark.is_some_and(|(mark, mask)| bears(mark, mask)));
                let action = first.map(|(_, rule)| &rule.action);
                assert!(action == Some(&table) || action == Some(&RuleAction::Unreachable), "{leg:?}");
            }
        }
    }
}

/// Checks that the routes of every leg end in an unreachable route, in both families.
fn routes(compiled: &Compiled) {
    for leg in compiled.legs.by_number.values() {
        for default in ["0.0.0.0/0", "::/0"] {
            let destination: IpNet = default.parse().expect("a network");
            let table = names::TABLE_BASE + u32::from(leg.number);
            let last = RouteKey { table, destination, metric: names::METRIC_LAST };
            assert!(compiled.plan.routes.contains_key(&last), "{leg:?} falls through");
        }
    }
    for key in compiled.plan.rules.keys() {
        assert!((names::RULE_FIRST..=names::RULE_LAST).contains(&key.priority), "{key:?}");
    }
    for key in compiled.plan.routes.keys() {
        assert!((names::TABLE_BASE..=names::TABLE_REJECT).contains(&key.table), "{key:?}");
    }
}

fn assert_no_key(text: &str) {
    for key in [PRIVATE, PRESHARED] {
        // In base64, and as a list of bytes.
        let bytes = gateway_model::wgconf::decode_key(key).expect("a key");
        let list = format!("{bytes:?}");
        for form in [key, list.trim_matches(['[', ']'])] {
            assert!(!text.contains(form), "a key is shown");
        }
    }
}

fn decisions(compiled: &Compiled, packets: &[Vec<u8>]) {
    let plan = &compiled.plan.dataplane;
    let environment = PlanMaps::new(Some(plan));
    let no_plan = PlanMaps::new(None);
    for packet in packets {
        let classified = classify(packet.as_slice(), 2);
        let verdict = decide(&classified, &environment);
        let again = decide(&classified, &environment);
        assert_eq!(
            (verdict.action, verdict.reason, verdict.mark, verdict.leg, verdict.device),
            (again.action, again.reason, again.mark, again.leg, again.device),
            "the same packet a second time"
        );
        // The flow table does not store the rank of an established flow.
        let by_default_route = [Reason::NoPolicy, Reason::PolicyDirect].contains(&verdict.reason);
        if verdict.leg != 0 && verdict.new && by_default_route {
            let is_shared = LegId::new(verdict.leg).is_some_and(|leg| shared_uplinks(plan).contains(&leg));
            assert!(is_shared && verdict.mark == Mark::leg(verdict.leg).0, "{verdict:?}");
        } else if verdict.leg != 0 && verdict.new {
            let policy = compiled.policy_of(&verdict).expect("a leg is a policy's");
            let choices = [policy.v4, policy.v6];
            assert!(choices.iter().any(|c| c.legs[..usize::from(c.count)].contains(&verdict.leg)));
            let of_leg = match Mark(verdict.mark).as_proxy() {
                Some((_, leg)) => leg == verdict.leg,
                None => verdict.mark == Mark::leg(verdict.leg).0,
            };
            assert!(of_leg && verdict.policy == PolicyIndex::raw(policy.number), "{verdict:?}");
        }
        let passes = decide(&classified, &no_plan);
        assert!(passes.action != Action::Mark || passes.mark == Mark::BLOCK.0, "default deny lets it pass");
    }
}
