//! Proxies as last hops: the legs by which they are usable, the relay's configuration, and the diversion of their
//! traffic to the relay.
//!
//! Such traffic bears a mark that names the proxy and the leg to it. What the relay's socket takes gets one more bit,
//! and only with it a packet is routed to this host; without a relay it is unreachable.
//!
//! Decision 0037 says why.

use std::net::SocketAddr;

use gateway_common::wire::Mark;
use gateway_model::kinds::proxy::Proxy;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::{Compiled, HopState, Input};
use crate::indexes::{LegId, ProxyIndex};
use crate::plan::{
    Family, Plan, ProxyLogin, ProxyTarget, RouteKey, RouteValue, RuleAction, RuleKey, RuleValue, names,
};

const RULE_ANSWERS: u32 = names::RULE_FIRST + 3;
const RULE_ANSWERS_END: u32 = names::RULE_FIRST + 4;
const RULE_TAKEN: u32 = names::RULE_FIRST + 5;
const RULE_NOT_TAKEN: u32 = names::RULE_FIRST + 6;

/// The number that marks give a proxy.
pub(super) fn number(proxy: &Proxy) -> Option<ProxyIndex> {
    // The model gives out no number beyond; none blocks.
    u8::try_from(proxy.meta.slot).ok().and_then(ProxyIndex::new)
}

/// User name and password, if it has them.
pub fn proxy_login(proxy: &Proxy) -> Option<ProxyLogin> {
    let username = proxy.username.clone()?;
    Some(ProxyLogin { username, password: proxy.password.clone() })
}

/// Literal address, or the address its name was last resolved to.
pub fn proxy_address(input: &Input<'_>, proxy: &Proxy) -> Option<SocketAddr> {
    match proxy.endpoint_name() {
        Some(name) => input.facts.endpoints.get(&name).copied(),
        None => proxy.address.parse().ok().map(|address| SocketAddr::new(address, proxy.port)),
    }
}

/// Reports whether a proxy is usable by a leg (`None` is the default route): whether it takes datagrams there, or the
/// reason.
///
/// A proxy that was not probed yet counts as usable: the relay detects a failure, and a restart interrupts nothing.
pub fn by_leg(input: &Input<'_>, proxy: &Proxy, leg: Option<LegId>) -> Result<bool, String> {
    if !proxy.enabled {
        return Err("it is disabled".to_owned());
    }
    if !proxy.password.is_readable() {
        return Err("its password cannot be read".to_owned());
    }
    match input.facts.proxies.get(&proxy.meta.id.to_string()).and_then(|ways| ways.get(&leg)) {
        None => Ok(proxy.udp),
        Some(fact) if fact.usable => Ok(proxy.udp && fact.udp),
        Some(fact) => Err(fact.reason.clone()),
    }
}

pub(super) fn lower(input: &Input<'_>, compiled: &mut Compiled) {
    for hop in compiled.policies.iter().flat_map(|policy| &policy.hops) {
        if let Some(number) = hop.proxy {
            note(input, hop, number, &mut compiled.plan);
        }
    }
    if !compiled.plan.proxies.is_empty() {
        hand_over(&mut compiled.plan);
    }
}

fn note(input: &Input<'_>, hop: &HopState, number: ProxyIndex, plan: &mut Plan) {
    let Some(proxy) = input.state.find::<Proxy>(&hop.hop.target).filter(|proxy| proxy.enabled) else {
        return;
    };
    let target = plan.proxies.entry(number).or_insert_with(|| ProxyTarget {
        proxy_id: proxy.meta.id.to_string(),
        name: proxy.name.clone(),
        address: proxy_address(input, proxy),
        login: proxy_login(proxy),
        udp: proxy.udp,
        legs: std::collections::BTreeSet::new(),
        connections: proxy.max_connections,
    });
    target.legs.extend(&hop.by);
}

fn hand_over(plan: &mut Plan) {
    plan.nft.proxied = true;
    let taken = (Mark::PROXY | Mark::PROXY_TAKEN, Mark::PROXY_MASK | Mark::PROXY_TAKEN);
    let all = (Mark::PROXY, Mark::PROXY_MASK);
    for (family, default) in
        [(Family::V4, IpNet::V4(Ipv4Net::default())), (Family::V6, IpNet::V6(Ipv6Net::default()))]
    {
        let key = RouteKey { table: names::TABLE_RELAY, destination: default, metric: 0 };
        plan.routes.insert(key, RouteValue::Local);
        let mut rule = |priority, fwmark, from_here: bool, action, suppress_prefix_length| {
            let value = RuleValue {
                source: None,
                fwmark: Some(fwmark),
                input_interface: from_here.then(|| "lo".to_owned()),
                output_interface: None,
                action,
                suppress_prefix_length,
            };
            plan.rules.insert(RuleKey { family, priority }, value);
        };
        // Replies of the relay carry the mark as well. They go to on-link networks only.
        rule(RULE_ANSWERS, taken, true, RuleAction::Table(names::TABLE_MAIN), Some(0));
        rule(RULE_ANSWERS_END, taken, true, RuleAction::Unreachable, None);
        rule(RULE_TAKEN, taken, false, RuleAction::Table(names::TABLE_RELAY), None);
        rule(RULE_NOT_TAKEN, all, false, RuleAction::Unreachable, None);
    }
}
