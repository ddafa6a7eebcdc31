//! Interfaces that have their addresses from the configuration or from a DHCP client of the daemon.
//!
//! What a DHCP server says stays out of the main table: network and router of a lease are in a table of the interface,
//! which only packets from its address look up. So no server draws other packets to its network, whatever it claims.
//!
//! Decision 0107 says why.

use std::net::IpAddr;

use gateway_common::wire::Mark;
use gateway_model::settings::groups::InterfaceMethod;
use ipnet::IpNet;

use super::well_known::{default4, default6};
use super::{Finding, Input};
use crate::interfaces::{InterfaceRole, lease_refusal, role};
use crate::network::InterfaceSettings;
use crate::plan::{
    AddressKey, Family, LinkSettings, Plan, RouteKey, RouteValue, RuleAction, RuleKey, RuleValue, names,
};

const METRIC: u32 = 100;
/// Default routes of uplinks, by the number of the leg: before those of other programs.
const METRIC_UPLINK: u32 = 10;
/// The same of uplinks of last resort: behind those of other programs.
const METRIC_ON_DEMAND: u32 = 65_000;
/// Two rules of each interface, behind those of the addresses of tunnels.
const RULES: u32 = names::RULE_INTERFACES;
const MAX_INTERFACES: u32 = names::MAX_INTERFACES;

/// Adds addresses, routes and rules of the configured interfaces.
pub(super) fn lower(input: &Input<'_>, plan: &mut Plan, findings: &mut Vec<Finding>) {
    for (position, (name, settings)) in (0..MAX_INTERFACES).zip(&input.network.interfaces) {
        let role = role(input.state, input.network, input.facts, name);
        let Some(link) = input.facts.links.get(name) else {
            if !settings.on_demand {
                findings.push(missing(name));
            }
            continue;
        };
        let (address, gateway) = match (settings.method, role) {
            (InterfaceMethod::None, _)
            | (_, InterfaceRole::Tunnel | InterfaceRole::Loopback | InterfaceRole::Port)
            | (InterfaceMethod::Dhcp, InterfaceRole::Lan) => continue,
            (InterfaceMethod::Dhcp, InterfaceRole::Uplink) if !settings.on_demand => continue,
            (InterfaceMethod::Static, _) => (settings.address, settings.gateway),
            (InterfaceMethod::Dhcp, InterfaceRole::Other | InterfaceRole::Uplink) => {
                let lease = input.facts.leases.get(name);
                let lease = lease.filter(|lease| lease_refusal(input, name, lease).is_none());
                let gateway = lease.and_then(|lease| lease.gateway).map(IpAddr::from);
                (lease.map(|lease| IpNet::from(lease.address)), gateway)
            }
        };
        let mtu = settings.mtu.map_or(link.mtu, u32::from);
        plan.links.insert(name.clone(), LinkSettings { up: true, mtu });
        plan.configured.insert(name.clone());
        // Otherwise the kernel removes the new address together with the old one.
        let path = name.replace('.', "/");
        plan.sysctls.insert(format!("net.ipv4.conf.{path}.promote_secondaries"), "1".to_owned());
        let Some(address) = address.filter(|address| !gives_way(input, name, settings, address)) else {
            continue;
        };
        plan.addresses.insert(AddressKey { interface: name.clone(), address }, ());
        if !link.up {
            continue;
        }
        let is_static = settings.method == InterfaceMethod::Static;
        if is_static {
            add_network(plan, names::TABLE_MAIN, name, address);
        }
        match (role, gateway) {
            (InterfaceRole::Uplink, Some(gateway)) => {
                let uplink = input.network.uplinks.iter().find(|uplink| uplink.interface == *name);
                let number = uplink.map_or(0, |uplink| u32::from(uplink.number));
                let base = if settings.on_demand { METRIC_ON_DEMAND } else { METRIC_UPLINK };
                add_default(plan, (names::TABLE_MAIN, base + number), name, gateway);
                if !is_static {
                    add_router(plan, name, gateway);
                }
            }
            (InterfaceRole::Other, gateway) => {
                let table = names::TABLE_INTERFACES + link.index;
                add_network(plan, table, name, address);
                if let Some(gateway) = gateway {
                    add_default(plan, (table, METRIC), name, gateway);
                }
                add_rules(plan, RULES + 2 * position, address.addr(), table);
            }
            _ => {}
        }
    }
}

/// Reports whether the address of an interface gives way to another one that the interface has in its network.
fn gives_way(input: &Input<'_>, name: &str, settings: &InterfaceSettings, address: &IpNet) -> bool {
    let present = input.facts.addresses.get(name).into_iter().flatten();
    settings.yields && present.into_iter().any(|have| have != address && address.contains(&have.addr()))
}

fn missing(name: &str) -> Finding {
    Finding {
        code: "interface_missing",
        policy: None,
        message: format!("interface {name} is configured, but does not exist"),
    }
}

fn add_network(plan: &mut Plan, table: u32, interface: &str, address: IpNet) {
    if address.prefix_len() == address.max_prefix_len() {
        return;
    }
    let key = RouteKey { table, destination: address.trunc(), metric: METRIC };
    let route = || RouteValue::Unicast { interface: interface.to_owned(), gateway: None };
    plan.routes.entry(key).or_insert_with(route);
}

/// Adds the router of a lease, and nothing else of the network that the lease claims.
fn add_router(plan: &mut Plan, interface: &str, gateway: IpAddr) {
    let key = RouteKey { table: names::TABLE_MAIN, destination: IpNet::from(gateway), metric: METRIC };
    let route = || RouteValue::Unicast { interface: interface.to_owned(), gateway: None };
    plan.routes.entry(key).or_insert_with(route);
}

fn add_default(plan: &mut Plan, (table, metric): (u32, u32), interface: &str, gateway: IpAddr) {
    let destination = if gateway.is_ipv4() { default4() } else { default6() };
    let value = RouteValue::Unicast { interface: interface.to_owned(), gateway: Some(gateway) };
    plan.routes.insert(RouteKey { table, destination, metric }, value);
}

/// Adds the rules of what the host sends from the address: to local networks, else by the table of the interface.
fn add_rules(plan: &mut Plan, priority: u32, source: IpAddr, table: u32) {
    let family = if source.is_ipv4() { Family::V4 } else { Family::V6 };
    for (priority, table) in [(priority, names::TABLE_LAN), (priority + 1, table)] {
        let value = RuleValue {
            source: Some(IpNet::from(source)),
            // A mark of the gateway goes first.
            fwmark: Some((0, Mark::OURS_MASK)),
            input_interface: Some("lo".to_owned()),
            output_interface: None,
            action: RuleAction::Table(table),
            suppress_prefix_length: None,
        };
        plan.rules.insert(RuleKey { family, priority }, value);
    }
}
