//! The present world with other tunnels: up, down, one hop missing, none left; each really compiled.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_model::kinds::proxy::Proxy;
use gateway_model::kinds::routing_policy::{Hop, HopType};
use gateway_model::kinds::tunnel::TunnelType;
use ipnet::IpNet;

use crate::compile::{Compiled, Input, compile, compile_egress, tunnel_interface};
use crate::evaluate::route::{Exits, Kernel};
use crate::facts::{Facts, Link, ProxyFact, TunnelFact};
use crate::indexes::LegId;

/// Facts and the plan they lead to.
///
/// Only the plan of [`Scenarios::up`] and of [`up_and_down`] matches packets. The state of hops does not change which
/// policy matches, so the plans of the other scenarios say only where traffic leaves.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub facts: Facts,
    pub compiled: Compiled,
}

/// Scenarios for the states of the matrix.
#[derive(Debug)]
pub(super) struct Scenarios {
    /// All tunnels work that should be up.
    pub up: Scenario,
    /// No tunnel works.
    pub down: Scenario,
    /// Neither tunnels nor uplinks work.
    pub nothing: Scenario,
    /// Everything works except this hop. Only first hops of policies are here.
    pub without: BTreeMap<Hop, Scenario>,
}

impl Scenario {
    fn of(input: &Input<'_>, facts: Facts) -> Scenario {
        let compiled = compile(&Input { facts: &facts, ..*input });
        Scenario { facts, compiled }
    }

    fn egress_of(input: &Input<'_>, facts: Facts) -> Scenario {
        let compiled = compile_egress(&Input { facts: &facts, ..*input });
        Scenario { facts, compiled }
    }

    /// Returns the scenario in which one hop is down beside those that are.
    pub(crate) fn without(&self, input: &Input<'_>, hop: &Hop) -> Scenario {
        let mut facts = self.facts.clone();
        take_down(input, &mut facts, hop.r#type, &hop.target);
        Scenario::egress_of(input, facts)
    }

    pub(crate) fn exits(&self) -> Exits<'_> {
        Exits::of(Kernel::new(&self.compiled, &self.facts))
    }

    /// Interfaces of tunnels that end with the daemon: all but those of the kernel's WireGuard.
    pub(crate) fn carried_by_the_daemon(&self) -> BTreeSet<String> {
        let legs = self.compiled.legs.by_number.values();
        let tunnels = legs.filter(|leg| leg.is_tunnel()).map(|leg| &leg.interface);
        let in_kernel =
            |name: &String| self.facts.links.get(name).is_some_and(|link| link.kind == "wireguard");
        tunnels.filter(|name| !in_kernel(name)).cloned().collect()
    }
}

/// The worlds in which all tunnels work and in which none does.
pub(crate) fn up_and_down(input: &Input<'_>) -> [Scenario; 2] {
    let up = all_up(input);
    let down = all_down(input, &up);
    [Scenario::of(input, up), Scenario::of(input, down)]
}

fn all_down(input: &Input<'_>, up: &Facts) -> Facts {
    let mut facts = up.clone();
    for proxy in input.state.proxies.iter() {
        take_down(input, &mut facts, HopType::Proxy, &proxy.name);
    }
    for tunnel in input.state.tunnels.iter() {
        take_down(input, &mut facts, HopType::Vpn, &tunnel.name);
    }
    for peer in input.facts.mesh.iter().flat_map(|mesh| mesh.legs.keys()) {
        take_down(input, &mut facts, HopType::MeshPeer, peer);
    }
    facts
}

impl Scenarios {
    pub(super) fn of(input: &Input<'_>) -> Scenarios {
        let all_up = all_up(input);
        let all_down = all_down(input, &all_up);
        let mut nothing = all_down.clone();
        for uplink in &input.network.uplinks {
            take_down(input, &mut nothing, HopType::Interface, &uplink.interface);
        }
        let up = Scenario::of(input, all_up);
        let first: BTreeSet<&Hop> = up
            .compiled
            .policies
            .iter()
            .filter_map(|policy| policy.hops.first())
            .map(|hop| &hop.hop)
            .collect();
        let without = first.into_iter().map(|hop| (hop.clone(), up.without(input, hop)));
        let without = without.collect();
        let down = Scenario::egress_of(input, all_down);
        Scenarios { down, nothing: Scenario::egress_of(input, nothing), without, up }
    }
}

fn all_up(input: &Input<'_>) -> Facts {
    let mut facts = input.facts.clone();
    for fact in facts.proxies.values_mut().flat_map(BTreeMap::values_mut) {
        fact.usable = true;
    }
    let mut index = facts.links.values().map(|link| link.index).max().unwrap_or(0);
    for tunnel in input.state.tunnels.iter() {
        let usable = TunnelFact { usable: true, ..TunnelFact::default() };
        facts.tunnels.insert(tunnel.meta.id.to_string(), usable);
        let link = facts.links.entry(tunnel_interface(tunnel)).or_insert_with(|| {
            index = index.saturating_add(1);
            Link { index, mtu: 1420, kind: "tun".to_owned(), ..Link::default() }
        });
        link.up = true;
        if tunnel.r#type == TunnelType::Openvpn {
            // Until the server's addresses are known, either address family is possible.
            let known = facts.addresses.entry(tunnel_interface(tunnel)).or_default();
            if known.is_empty() {
                known.extend([IpNet::from(SUPPOSED_V4), IpNet::from(SUPPOSED_V6)]);
            }
        }
    }
    for leg in facts.mesh.iter_mut().flat_map(|mesh| mesh.legs.values_mut()) {
        (leg.usable, leg.reason) = (true, String::new());
        let link = facts.links.entry(leg.interface.clone()).or_insert_with(|| {
            index = index.saturating_add(1);
            Link { index, mtu: 1280, kind: "tun".to_owned(), ..Link::default() }
        });
        link.up = true;
    }
    facts
}

/// Addresses of the documentation networks (RFC 5737, RFC 3849).
const SUPPOSED_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const SUPPOSED_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

fn take_down(input: &Input<'_>, facts: &mut Facts, kind: HopType, target: &str) {
    match kind {
        HopType::Vpn => {
            let Some(tunnel) = input.state.tunnel_by_name(target) else { return };
            let down = TunnelFact { reason: "it is down".to_owned(), ..TunnelFact::default() };
            facts.tunnels.insert(tunnel.meta.id.to_string(), down);
        }
        HopType::Interface => {
            let called = input.network.uplinks.iter().find(|uplink| uplink.is_called(target));
            let interface = called.map_or(target, |uplink| uplink.interface.as_str());
            if let Some(link) = facts.links.get_mut(interface) {
                link.up = false;
            }
            facts.default_routes.retain(|route| route.interface != interface);
        }
        HopType::Proxy => {
            let Some(proxy) = input.state.find::<Proxy>(target) else { return };
            let down = ProxyFact { usable: false, reason: "it is down".to_owned(), udp: false };
            let ways = (0..=u8::MAX).map(|leg| (LegId::new(leg), down.clone()));
            facts.proxies.insert(proxy.meta.id.to_string(), ways.collect());
        }
        HopType::MeshPeer => {
            let Some(leg) = facts.mesh.as_mut().and_then(|mesh| mesh.legs.get_mut(target)) else { return };
            (leg.usable, leg.reason) = (false, "it is down".to_owned());
        }
    }
}
