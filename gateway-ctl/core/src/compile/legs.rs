//! Numbers and state of uplinks and tunnels.
//!
//! Counters, round robins and legs are arrays with a small stable index of each object, because look-ups by hash would
//! cost time on every packet. The mark has the index of a tunnel, so adding or removing one moves no flow of another.

use std::borrow::Cow;

use gateway_model::kinds::tunnel::TunnelType;
use gateway_model::{RoutingPolicy, Tunnel};
use ipnet::IpNet;

use super::leg::{Leg, LegKind, Legs, Underlay, leg_number, tunnel_interface};
use super::well_known::is_link_local;
use super::{Input, bridges, default_route, draining, openvpn, underlays, wireguard};
use crate::facts::MeshLeg;
use crate::network::UplinkSettings;

/// Numbers the uplinks and tunnels, and decides their underlays and which of them drain, by the policies in their order.
pub(super) fn lower(input: &Input<'_>, in_trial: &[Cow<'_, RoutingPolicy>]) -> Legs {
    let mut legs = Legs::default();
    for uplink in &input.network.uplinks {
        legs.add_uplink(uplink_leg(input, uplink));
    }
    for tunnel in input.state.tunnels.iter() {
        if let Some(leg) = tunnel_leg(input, tunnel) {
            legs.add_tunnel(&tunnel.name, leg);
        }
    }
    for (name, fact) in input.facts.mesh.iter().flat_map(|mesh| &mesh.legs) {
        legs.add_mesh_peer(name, mesh_leg(input, name, fact));
    }
    legs.default = default_route::uplink(input, &legs);
    underlays::resolve(input, in_trial, &mut legs);
    draining::set_drain_deadlines(input, in_trial, &mut legs);
    legs
}

fn uplink_leg(input: &Input<'_>, uplink: &UplinkSettings) -> Leg {
    let UplinkSettings { number, interface, name, gateway, weight, .. } = uplink;
    let link = input.facts.links.get(interface);
    let has_route = |ipv6: bool| {
        gateway.is_some_and(|gateway| gateway.is_ipv6() == ipv6)
            || input.facts.default_routes.iter().any(|r| r.interface == *interface && r.ipv6 == ipv6)
    };
    let (ipv4, ipv6) = (has_route(false), has_route(true));
    let failed = input.facts.uplinks.failed.get(number).map_or("", String::as_str);
    let reason = match link {
        None => "the interface does not exist",
        Some(link) if !link.up => "the interface is down",
        Some(_) if !ipv4 && !ipv6 => "no default route leads over it",
        Some(_) => failed,
    };
    Leg {
        number: *number,
        kind: LegKind::Uplink,
        interface: interface.clone(),
        uplink_name: name.clone(),
        ipv4,
        ipv6,
        usable: reason.is_empty(),
        reason: reason.to_owned(),
        draining: None,
        underlay: Underlay::Default,
        weight: u32::from(*weight).max(1),
        mtu: link
            .filter(|link| link.mtu > 0)
            .map_or(1500, |link| u16::try_from(link.mtu).unwrap_or(u16::MAX)),
    }
}

fn tunnel_leg(input: &Input<'_>, tunnel: &Tunnel) -> Option<Leg> {
    let number = leg_number(tunnel)?;
    let interface = tunnel_interface(tunnel);
    let fact = input.facts.tunnels.get(&tunnel.meta.id.to_string());
    let reason = if !tunnel.enabled {
        "it is disabled".to_owned()
    } else if !tunnel.wanted_up() {
        "it is down by an administrator's choice".to_owned()
    } else if let Some(reason) = bridges::bridge_refusal(input.state, input.facts, tunnel) {
        reason
    } else if let Some(reason) = wireguard::refusal(input, &interface, tunnel) {
        reason
    } else if !input.facts.links.contains_key(&interface) {
        "its interface does not exist".to_owned()
    } else {
        match fact {
            Some(fact) if fact.usable => openvpn::refusal(input, &interface, fact).unwrap_or_default(),
            Some(fact) => fact.reason.clone(),
            None => "it is not up yet".to_owned(),
        }
    };
    let has = |ipv6: bool| match tunnel.r#type {
        TunnelType::Wireguard => {
            tunnel.addresses.iter().any(|address| matches!(address.net(), IpNet::V6(_)) == ipv6)
        }
        // Its server gives out the addresses.
        TunnelType::Openvpn => {
            let observed = input.facts.addresses.get(&interface).into_iter().flatten();
            observed.map(IpNet::addr).any(|address| address.is_ipv6() == ipv6 && !is_link_local(address))
        }
    };
    let (ipv4, ipv6) = (has(false), has(true));
    Some(Leg {
        number,
        kind: LegKind::Tunnel(tunnel.meta.id),
        interface,
        uplink_name: String::new(),
        ipv4,
        ipv6,
        usable: reason.is_empty(),
        reason,
        draining: None,
        underlay: Underlay::Default,
        weight: u32::from(tunnel.weight),
        mtu: 0,
    })
}

fn mesh_leg(input: &Input<'_>, name: &str, fact: &MeshLeg) -> Leg {
    let mesh = input.facts.mesh.as_ref();
    let has = |ipv6: bool| {
        let has_address = mesh.is_some_and(|mesh| mesh.addresses.iter().any(|at| at.is_ipv6() == ipv6));
        has_address && fact.routes.iter().any(|net| net.addr().is_ipv6() == ipv6)
    };
    let reason = if !fact.usable {
        fact.reason.as_str()
    } else if !input.facts.links.contains_key(&fact.interface) {
        "its interface does not exist"
    } else {
        ""
    };
    Leg {
        number: fact.number,
        kind: LegKind::MeshPeer(name.to_owned()),
        interface: fact.interface.clone(),
        uplink_name: String::new(),
        ipv4: has(false),
        ipv6: has(true),
        usable: reason.is_empty(),
        reason: reason.to_owned(),
        draining: None,
        // One socket sends the packets of all peers, like other traffic of this host.
        underlay: Underlay::Default,
        weight: 1,
        mtu: mesh.map_or(0, |mesh| mesh.mtu),
    }
}
