//! Route of a mark: rules, routes and guards of a plan, followed as the kernel follows them.
//!
//! Covers external destinations only: of all prefixes it uses the default routes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use gateway_common::wire::{EgressAllowKey, Mark};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::compile::{Compiled, Leg, Underlay};
use crate::facts::Facts;
use crate::indexes::{LegId, ProxyIndex};
use crate::plan::{Attachment, Family, RouteKey, RouteValue, RuleAction, RuleValue, names};

/// A kernel that has a plan, and some interfaces fewer than the plan was made for.
#[derive(Debug)]
pub struct Kernel<'a> {
    pub compiled: &'a Compiled,
    pub facts: &'a Facts,
    /// Interfaces that vanished since.
    pub gone: BTreeSet<String>,
    /// The relay that takes traffic for proxies has ended since.
    pub relay_gone: bool,
}

/// Egress of a packet, or the reason why it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Routing table that had the answer, if one had.
    pub table: Option<u32>,
    /// The interface, or why the packet stays.
    pub out: Result<String, String>,
}

impl<'a> Kernel<'a> {
    pub fn new(compiled: &'a Compiled, facts: &'a Facts) -> Kernel<'a> {
        Kernel { compiled, facts, gone: BTreeSet::new(), relay_gone: false }
    }

    /// Follows LAN traffic with this mark, and the outer packets if it enters a tunnel.
    pub fn follow(&self, mark: Mark, ipv6: bool) -> Exit {
        if let Some((proxy, leg)) = mark.as_proxy() {
            return self.relayed(ProxyIndex::new(proxy), leg);
        }
        let mut exit = self.route(mark, ipv6, true);
        if let Ok(interface) = &exit.out
            && let Err(reason) = self.guard(mark, interface).and_then(|()| self.carried(interface))
        {
            exit.out = Err(reason);
        }
        exit
    }

    /// Returns the interface by which the traffic of a leg leaves this host at last: its own for an uplink, that of the
    /// outer packets for a tunnel. `None` if there is none at present.
    pub fn uplink_of(&self, leg: &Leg) -> Option<String> {
        let legs = &self.compiled.legs;
        let mut leg = leg;
        for _ in 0..=legs.by_number.len() {
            if leg.is_uplink() {
                return Some(leg.interface.clone());
            }
            match leg.underlay {
                Underlay::Nowhere => return None,
                Underlay::Leg(number) => leg = legs.get(number)?,
                Underlay::Default => {
                    let by_family = |ipv6| self.route(Underlay::Default.mark(), ipv6, false).out.ok();
                    return [false, true].into_iter().find_map(by_family);
                }
            }
        }
        None
    }

    /// Follows the relay's own connection to a proxy, in the families that the proxy's address can have.
    fn relayed(&self, proxy: Option<ProxyIndex>, leg: u8) -> Exit {
        let table = Some(names::TABLE_RELAY);
        let Some(target) =
            proxy.and_then(|proxy| self.compiled.plan.proxies.get(&proxy)).filter(|_| !self.relay_gone)
        else {
            return Exit { table, out: Err("no relay takes traffic for this proxy".to_owned()) };
        };
        let families = [false, true].into_iter();
        let families =
            families.filter(|ipv6| target.address.is_none_or(|address| address.is_ipv6() == *ipv6));
        let mut outs = families.map(|ipv6| {
            let out = self.route(Mark::carried_by(leg), ipv6, false).out;
            out.and_then(|interface| self.carried(&interface).map(|()| interface))
        });
        let first = outs.next().unwrap_or_else(|| Err("it has no address".to_owned()));
        let out = if first.is_ok() { first } else { outs.find(Result::is_ok).unwrap_or(first) };
        Exit { table, out }
    }

    fn route(&self, mark: Mark, ipv6: bool, from_lan: bool) -> Exit {
        let family = if ipv6 { Family::V6 } else { Family::V4 };
        let rules = self.compiled.plan.rules.iter().filter(|(key, _)| key.family == family);
        for (_, rule) in rules.filter(|(_, rule)| applies(rule, mark, from_lan)) {
            match rule.action {
                RuleAction::Prohibit => {
                    return Exit { table: None, out: Err("an ip rule prohibits it".to_owned()) };
                }
                RuleAction::Unreachable => {
                    return Exit { table: None, out: Err("an ip rule makes it unreachable".to_owned()) };
                }
                // The default routes of the main table are suppressed.
                RuleAction::Table(names::TABLE_MAIN) if rule.suppress_prefix_length.is_some() => {}
                RuleAction::Table(table) => {
                    if let Some(out) = self.look_up(table, ipv6) {
                        return Exit { table: Some(table), out };
                    }
                }
            }
        }
        let out = self.look_up(names::TABLE_MAIN, ipv6);
        let family = if ipv6 { "IPv6" } else { "IPv4" };
        Exit {
            table: out.is_some().then_some(names::TABLE_MAIN),
            out: out.unwrap_or_else(|| Err(format!("there is no default route for {family}"))),
        }
    }

    fn look_up(&self, table: u32, ipv6: bool) -> Option<Result<String, String>> {
        if table == names::TABLE_MAIN {
            let routes = self.facts.default_routes.iter();
            let there = routes.filter(|route| route.ipv6 == ipv6 && self.is_up(&route.interface));
            return there.min_by_key(|route| route.metric).map(|route| Ok(route.interface.clone()));
        }
        let destination = if ipv6 { IpNet::V6(Ipv6Net::default()) } else { IpNet::V4(Ipv4Net::default()) };
        let first = RouteKey { table, destination, metric: 0 };
        let last = RouteKey { table, destination, metric: u32::MAX };
        if let Some(interface) = self.partial(table, ipv6) {
            return Some(Ok(interface));
        }
        self.compiled.plan.routes.range(first..=last).find_map(|(_, route)| match route {
            RouteValue::Unicast { interface, .. } => self.is_up(interface).then(|| Ok(interface.clone())),
            RouteValue::Unreachable => Some(Err(format!("table {table} has no route at present"))),
            RouteValue::Prohibit => Some(Err(format!("table {table} prohibits it"))),
            RouteValue::Local => Some(Err("the gateway itself takes it".to_owned())),
        })
    }

    /// Returns the tunnel of a table that has no default route, but routes to some destinations.
    fn partial(&self, table: u32, ipv6: bool) -> Option<String> {
        let leg = u8::try_from(table.checked_sub(names::TABLE_BASE)?).ok().and_then(LegId::new)?;
        let leg = self.compiled.legs.get(leg).filter(|leg| leg.is_tunnel())?;
        let leads = |(key, route): (&RouteKey, &RouteValue)| {
            key.table == table
                && key.destination.addr().is_ipv6() == ipv6
                && matches!(route, RouteValue::Unicast { .. })
        };
        let leads = self.compiled.plan.routes.iter().any(leads);
        (leads && self.is_up(&leg.interface)).then(|| leg.interface.clone())
    }

    /// Returns why a tunnel does not take a destination, though it is up. `None` if it does, or if the mark is none of a
    /// tunnel's.
    pub fn refusal(&self, mark: Mark, destination: IpAddr) -> Option<String> {
        let leg = self.compiled.legs.get(mark.as_leg().and_then(LegId::new)?)?;
        if !self.is_up(&leg.interface) {
            return None;
        }
        if let Some(peer) = self.facts.mesh.as_ref().and_then(|mesh| mesh.leg_of(&leg.interface)) {
            let is_behind = peer.routes.iter().any(|net| net.contains(&destination));
            return (!is_behind).then(|| format!("its approved routes do not include {destination}"));
        }
        let device = self.compiled.plan.wireguard.get(&leg.interface)?;
        let mut allowed = device.peers.values().flat_map(|peer| &peer.allowed_ips);
        let is_allowed = allowed.any(|net| net.contains(&destination));
        (!is_allowed).then(|| format!("its AllowedIPs do not include {destination}"))
    }

    /// A route lasts as long as its interface is up.
    fn is_up(&self, interface: &str) -> bool {
        !self.gone.contains(interface) && self.facts.links.get(interface).is_some_and(|link| link.up)
    }

    fn guard(&self, mark: Mark, interface: &str) -> Result<(), String> {
        let plan = &self.compiled.plan;
        if plan.attach.get(interface) != Some(&Attachment::Guard) {
            return Ok(());
        }
        let index = self.facts.links.get(interface).map_or(0, |link| link.index);
        if plan.dataplane.authorised.contains_key(&EgressAllowKey { mark: mark.0, index }) {
            Ok(())
        } else {
            Err(format!("the guard of {interface} does not let this mark pass"))
        }
    }

    /// Checks that the outer packets of a tunnel, and of those around it, leave.
    fn carried(&self, interface: &str) -> Result<(), String> {
        let legs = &self.compiled.legs;
        let mut at = legs.by_number.values().find(|leg| leg.interface == interface);
        for _ in 0..legs.by_number.len() {
            let Some(leg) = at else { return Ok(()) };
            let Some(underlay) = leg.underlay.leg() else {
                let lost = leg.underlay == Underlay::Nowhere;
                return if lost { Err("its underlay is missing".to_owned()) } else { Ok(()) };
            };
            let outer = leg.underlay.mark();
            // Either family may carry the outer packets.
            let ways = [false, true].map(|ipv6| self.route(outer, ipv6, false).out);
            if let [Err(reason), Err(_)] = ways {
                let below = legs.get(underlay).map_or("what carries it", |leg| leg.interface.as_str());
                return Err(format!("{below} below it is unavailable: {reason}"));
            }
            at = legs.get(underlay);
        }
        Err("it would be carried inside itself".to_owned())
    }
}

fn applies(rule: &RuleValue, mark: Mark, from_lan: bool) -> bool {
    rule.fwmark.is_none_or(|(value, mask)| mark.0 & mask == value & mask)
        && match rule.input_interface.as_deref() {
            None => true,
            // What this host sends itself; rules for its own addresses do not concern it.
            Some("lo") => !from_lan && rule.source.is_none(),
            Some(_) => from_lan,
        }
}

/// Remembers the exits of marks: there are few marks and many policies.
#[derive(Debug)]
pub struct Exits<'a> {
    pub kernel: Kernel<'a>,
    known: BTreeMap<(Mark, bool), Exit>,
}

impl<'a> Exits<'a> {
    pub fn of(kernel: Kernel<'a>) -> Exits<'a> {
        Exits { kernel, known: BTreeMap::new() }
    }

    pub fn of_mark(&mut self, mark: Mark, ipv6: bool) -> &Exit {
        self.known.entry((mark, ipv6)).or_insert_with(|| self.kernel.follow(mark, ipv6))
    }
}
