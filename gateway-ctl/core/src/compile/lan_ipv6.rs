//! IPv6 prefixes of the LANs: a /64 of the static prefix and of each delegated one, with an address of the gateway.
//!
//! Decision 0117 says why.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use gateway_model::settings::bootstrap::is_for_hosts;
use gateway_model::validated::Host;
use ipnet::{IpNet, Ipv6Net};
use jiff::Timestamp;

use super::leg::Legs;
use super::{Finding, Input, public_services};
use crate::doh_servers;
use crate::facts::{DelegatedPrefix, LinkLayer};
use crate::plan::{AddressKey, LanIpv6, LanPrefix, Plan};

/// Prefix length of a LAN: hosts make addresses only in such prefixes (RFC 4862, RFC 7421).
const LAN_LENGTH: u8 = 64;
/// Providers delegate /48 at most (RFC 6177).
const MIN_DELEGATED_LENGTH: u8 = 48;

/// Reports whether hosts may begin connections from addresses of a prefix that an uplink has delegated.
fn is_usable(legs: &Legs, uplink: &str) -> bool {
    legs.uplink(uplink).is_some_and(|leg| leg.usable && leg.ipv6)
}

pub(super) fn lower(input: &Input<'_>, legs: &Legs, plan: &mut Plan) {
    let Some(settings) = &input.network.ipv6 else { return };
    let is_router = legs.by_number.values().any(|leg| leg.usable && leg.ipv6);
    let mut lan_ipv6 = LanIpv6 { is_router, ..LanIpv6::default() };
    for (position, name) in input.network.lan.iter().enumerate() {
        let link = input.facts.links.get(name);
        if !link.is_some_and(|link| link.link_layer == LinkLayer::Ethernet) {
            continue;
        }
        let of_settings = settings.prefix.and_then(|net| subnet(net, position)).map(|net| LanPrefix {
            net,
            address: gateway_address(input, name, net),
            uplink: None,
            is_preferred: true,
            preferred_until: None,
            valid_until: None,
        });
        let delegated = live(input).filter_map(|(uplink, delegated)| {
            let net = subnet(delegated.net, position)?;
            Some(LanPrefix {
                net,
                address: gateway_address(input, name, net),
                uplink: Some(uplink.clone()),
                is_preferred: is_usable(legs, uplink),
                preferred_until: Some(delegated.preferred_until),
                valid_until: Some(delegated.valid_until),
            })
        });
        let prefixes: Vec<LanPrefix> = of_settings.into_iter().chain(delegated).collect();
        for LanPrefix { net, address, .. } in &prefixes {
            let address = Ipv6Net::new(*address, LAN_LENGTH).expect("a valid length");
            // An address that an administrator has set stays as it is.
            if address.addr() == first_host(*net) {
                plan.addresses.insert(AddressKey { interface: name.clone(), address: address.into() }, ());
            }
        }
        lan_ipv6.prefixes.insert(name.clone(), prefixes);
    }
    plan.lan_ipv6 = Some(lan_ipv6);
}

/// Returns the delegated prefixes that are valid now, by uplink.
pub(super) fn live<'a>(input: &'a Input<'_>) -> impl Iterator<Item = (&'a String, &'a DelegatedPrefix)> {
    let is_wanted = input.network.ipv6.as_ref().is_some_and(|settings| settings.delegation);
    let is_uplink =
        |interface: &String| input.network.uplinks.iter().any(|uplink| uplink.interface == *interface);
    let all = input.facts.delegations.iter().filter(move |_| is_wanted);
    all.filter(move |(uplink, delegated)| {
        is_uplink(uplink) && delegated.valid_until > input.now && refusal(input, delegated.net).is_none()
    })
}

/// Returns why a delegated prefix is refused. It is a claim of the uplink: what the LANs have of it counts as LAN, so traffic
/// to it enters no tunnel, and a hostile network would delegate what the traffic of hosts is for.
fn refusal(input: &Input<'_>, net: Ipv6Net) -> Option<String> {
    let is_trusted = input.network.ipv6.as_ref().is_some_and(|settings| settings.trust_delegation);
    let unusual = || {
        let why = unusual(net).filter(|_| !is_trusted)?;
        Some(format!("{why} (network.ipv6.trust_delegation takes it)"))
    };
    impossible(input, net).or_else(unusual)
}

/// Returns why a prefix is none that an honest provider delegates to most of its customers.
fn unusual(net: Ipv6Net) -> Option<String> {
    if net.prefix_len() < MIN_DELEGATED_LENGTH {
        return Some(format!("is shorter than /{MIN_DELEGATED_LENGTH}"));
    }
    public_services::owner_of(net).map(|owner| format!("is a network of {owner}"))
}

/// Returns why a prefix cannot be used, whatever the settings are.
fn impossible(input: &Input<'_>, net: Ipv6Net) -> Option<String> {
    if !is_for_hosts(net.addr()) {
        return Some("is no prefix for hosts".to_owned());
    }
    let is_in = |address: &IpAddr| matches!(address, IpAddr::V6(address) if net.contains(address));
    let peers = input.state.tunnels.iter().flat_map(|tunnel| &tunnel.peers);
    let peers = peers.filter_map(|peer| match &peer.endpoint.as_ref()?.host {
        Host::Address(address) => Some(*address),
        Host::Name(_) => None,
    });
    let endpoints = input.facts.endpoints.values().map(SocketAddr::ip);
    let probed = input.network.uplinks.iter().flat_map(|uplink| uplink.probe_targets.iter().copied());
    let public = doh_servers::networks().map(|known| known.addr());
    let resolvers = input.network.resolvers.iter().copied().chain(public);
    let holds =
        |mut addresses: Box<dyn Iterator<Item = IpAddr> + '_>| addresses.find(|address| is_in(address));
    let found = [
        ("a resolver", holds(Box::new(resolvers))),
        ("the endpoint of a tunnel", holds(Box::new(peers.chain(endpoints)))),
        ("a target of probes", holds(Box::new(probed))),
    ];
    found.into_iter().find_map(|(what, address)| Some(format!("holds {what}, {}", address?)))
}

/// Reports delegated prefixes that are refused.
pub(super) fn refused_delegations(input: &Input<'_>) -> Vec<Finding> {
    let refused = input.facts.delegations.iter().filter_map(|(uplink, delegated)| {
        let why = refusal(input, delegated.net)?;
        let message = format!("The prefix {} that {uplink} delegates {why}: it is not used.", delegated.net);
        Some(Finding { code: "delegated_prefix_refused", policy: None, message })
    });
    refused.collect()
}

/// Returns the next end of a delegated prefix.
pub(super) fn next_end(input: &Input<'_>) -> Option<Timestamp> {
    live(input).map(|(_, delegated)| delegated.valid_until).min()
}

/// Returns the /64 of a LAN. `None` if the prefix has too few.
fn subnet(net: Ipv6Net, position: usize) -> Option<Ipv6Net> {
    let spare = LAN_LENGTH.checked_sub(net.prefix_len())?;
    let number = u128::try_from(position).ok().filter(|number| spare >= 64 || *number >> spare == 0)?;
    let first = u128::from(net.network()) | number << (128 - LAN_LENGTH);
    Ipv6Net::new(first.into(), LAN_LENGTH).ok()
}

fn first_host(net: Ipv6Net) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(net.network()) | 1)
}

/// Returns the first address of a /64, or another one that the interface has in it already.
fn gateway_address(input: &Input<'_>, interface: &str, net: Ipv6Net) -> Ipv6Addr {
    let present = input.facts.addresses.get(interface).into_iter().flatten().map(IpNet::addr);
    let present: Vec<Ipv6Addr> = present
        .filter_map(|address| match address {
            IpAddr::V6(address) => Some(address).filter(|address| net.contains(address)),
            IpAddr::V4(_) => None,
        })
        .collect();
    let first = first_host(net);
    if present.contains(&first) { first } else { present.first().copied().unwrap_or(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lan_has_a_prefix_while_there_are_some() {
        let net = |text: &str| -> Ipv6Net { text.parse().unwrap() };
        let of = |prefix: &str, position| subnet(net(prefix), position);
        assert_eq!(of("2001:db8:1:20::/62", 0), Some(net("2001:db8:1:20::/64")));
        assert_eq!(of("2001:db8:1:20::/62", 3), Some(net("2001:db8:1:23::/64")));
        assert_eq!(of("2001:db8:1:20::/62", 4), None);
        assert_eq!(of("2001:db8:1:20::/64", 0), Some(net("2001:db8:1:20::/64")));
        assert_eq!(of("2001:db8:1:20::/64", 1), None);
        assert_eq!(of("2001:db8::/65", 0), None);
        assert_eq!(of("::/0", 2), Some(net("0:0:0:2::/64")));
    }
}
