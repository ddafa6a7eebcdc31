//! Ways out: which uplinks and tunnels there are, by what number, and whether they can be used.

use std::collections::BTreeMap;
use std::net::IpAddr;

use gateway_common::wire::Mark;
use gateway_model::Tunnel;
use gateway_model::id::Id;
use gateway_model::kinds::routing_policy::{Hop, HopType};
use gateway_model::kinds::tunnel::TunnelType;
use ipnet::IpNet;
use jiff::Timestamp;
use serde::Serialize;

use super::{Input, bridges, carriers, draining, openvpn};

const FIRST_TUNNEL: u32 = gateway_common::hop::FIRST_TUNNEL as u32;

/// All legs by number.
#[derive(Clone, Debug, Default)]
pub struct Legs {
    pub by_number: BTreeMap<u8, Leg>,
    /// Number of a tunnel's leg by the tunnel's name.
    tunnels: BTreeMap<String, u8>,
    uplinks: BTreeMap<String, u8>,
}

#[derive(Clone, Debug)]
pub struct Leg {
    pub number: u8,
    pub kind: LegKind,
    pub interface: String,
    pub ipv4: bool,
    pub ipv6: bool,
    pub usable: bool,
    /// Why it is not usable; empty when it is.
    pub reason: String,
    /// It takes no new flows, and keeps until then those it has.
    pub draining: Option<Timestamp>,
    pub carrier: Carrier,
    /// Share in a pool.
    pub weight: u32,
    /// Bytes of an inner packet.
    pub mtu: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LegKind {
    Uplink,
    Tunnel(Id),
}

/// What takes a leg's outer packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// The default way.
    Default,
    Leg(u8),
    /// What should carry them is missing: they do not leave.
    Nowhere,
}

impl Carrier {
    /// Mark of the outer packets.
    pub fn mark(self) -> u32 {
        match self {
            Carrier::Default => Mark::OWN.0,
            Carrier::Leg(number) => Mark::OWN.0 | u32::from(number),
            Carrier::Nowhere => Mark::OWN_NOWHERE.0,
        }
    }

    pub fn leg(self) -> Option<u8> {
        match self {
            Carrier::Leg(number) => Some(number),
            Carrier::Default | Carrier::Nowhere => None,
        }
    }
}

impl Legs {
    pub(super) fn of(input: &Input<'_>) -> Legs {
        let mut legs = Legs::default();
        for (index, uplink) in input.network.uplinks.iter().enumerate().take(FIRST_TUNNEL as usize - 1) {
            legs.add(uplink_leg(input, u8::try_from(index + 1).unwrap_or(u8::MAX), &uplink.interface));
        }
        for tunnel in input.state.tunnels.iter() {
            if let Some(leg) = tunnel_leg(input, tunnel) {
                legs.tunnels.insert(tunnel.name.clone(), leg.number);
                legs.by_number.insert(leg.number, leg);
            }
        }
        carriers::settle(input, &mut legs);
        draining::settle(input, &mut legs);
        legs
    }

    fn add(&mut self, leg: Leg) {
        self.uplinks.insert(leg.interface.clone(), leg.number);
        self.by_number.insert(leg.number, leg);
    }

    pub fn get(&self, number: u8) -> Option<&Leg> {
        self.by_number.get(&number)
    }

    pub fn tunnel(&self, name: &str) -> Option<&Leg> {
        self.by_number.get(self.tunnels.get(name)?)
    }

    pub fn uplink(&self, interface: &str) -> Option<&Leg> {
        self.by_number.get(self.uplinks.get(interface)?)
    }

    pub fn of_tunnel(&self, id: Id) -> Option<&Leg> {
        self.by_number.values().find(|leg| leg.kind == LegKind::Tunnel(id))
    }

    pub fn uplinks(&self) -> impl Iterator<Item = &Leg> {
        self.by_number.values().filter(|leg| leg.kind == LegKind::Uplink)
    }

    /// The leg that a hop is. Proxies and mesh peers are none.
    pub fn of_hop(&self, hop: &Hop) -> Option<&Leg> {
        match hop.r#type {
            HopType::Vpn => self.tunnel(&hop.target),
            HopType::Interface => self.uplink(&hop.target),
            HopType::Proxy | HopType::MeshPeer => None,
        }
    }
}

fn uplink_leg(input: &Input<'_>, number: u8, interface: &str) -> Leg {
    let link = input.facts.links.get(interface);
    let settings = input.network.uplinks.iter().find(|uplink| uplink.interface == interface);
    let given = settings.and_then(|uplink| uplink.gateway);
    let has_route = |ipv6: bool| {
        given.is_some_and(|gateway| gateway.is_ipv6() == ipv6)
            || input.facts.default_routes.iter().any(|r| r.interface == interface && r.ipv6 == ipv6)
    };
    let (ipv4, ipv6) = (has_route(false), has_route(true));
    let reason = match link {
        None => "the interface does not exist",
        Some(link) if !link.up => "the interface is down",
        Some(_) if !ipv4 && !ipv6 => "no default route leads over it",
        Some(_) => "",
    };
    Leg {
        number,
        kind: LegKind::Uplink,
        interface: interface.to_owned(),
        ipv4,
        ipv6,
        usable: reason.is_empty(),
        reason: reason.to_owned(),
        draining: None,
        carrier: Carrier::Default,
        weight: 1,
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
        ipv4,
        ipv6,
        usable: reason.is_empty(),
        reason,
        draining: None,
        carrier: Carrier::Default,
        weight: u32::from(tunnel.weight),
        mtu: 0,
    })
}

/// Number of a tunnel's leg. Numbers end at 255; the model does not give out more slots than there are.
pub fn leg_number(tunnel: &Tunnel) -> Option<u8> {
    u8::try_from(FIRST_TUNNEL - 1 + tunnel.meta.slot).ok()
}

pub(super) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}

/// Name of a tunnel's interface: `wg-` or, for OpenVPN, `ov-` and the tunnel's name. A long name is cut and numbered,
/// with dots, which no tunnel's name has.
pub fn tunnel_interface(tunnel: &Tunnel) -> String {
    const LONGEST: usize = 15;
    let kind = match tunnel.r#type {
        TunnelType::Wireguard => "wg",
        TunnelType::Openvpn => "ov",
    };
    let plain = format!("{kind}-{}", tunnel.name);
    if plain.len() <= LONGEST {
        return plain;
    }
    let tail = format!(".{}", tunnel.meta.slot);
    let head: String = tunnel.name.chars().take(LONGEST - 3 - tail.len()).collect();
    format!("{kind}.{head}{tail}")
}
