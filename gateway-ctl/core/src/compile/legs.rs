//! Ways out: which uplinks and tunnels there are, by what number, and whether they can be used.

use std::collections::{BTreeMap, BTreeSet};

use gateway_model::Tunnel;
use gateway_model::id::Id;
use gateway_model::kinds::routing_policy::{Hop, HopType};
use gateway_model::kinds::tunnel::{TunnelType, Uplink};
use ipnet::IpNet;

use super::Input;

/// Uplinks have the numbers before, tunnels those after it.
const FIRST_TUNNEL: u32 = 16;

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
    /// The leg that carries this one's outer packets; none is the default way.
    pub carrier: Option<u8>,
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

/// Overhead of WireGuard over IPv6: 40 + 8 + 32.
const WIREGUARD_OVERHEAD: u32 = 80;

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
        legs.set_carriers(input);
        legs.settle();
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

    fn by_hop(&self, hop: &Hop) -> Option<u8> {
        match hop.r#type {
            HopType::Vpn => self.tunnels.get(&hop.target).copied(),
            HopType::Interface => self.uplinks.get(&hop.target).copied(),
            HopType::Proxy | HopType::MeshPeer => None,
        }
    }

    /// What carries what: applied policies say so, else the tunnel's own setting.
    fn set_carriers(&mut self, input: &Input<'_>) {
        for tunnel in input.state.tunnels.iter() {
            let Some(number) = self.tunnels.get(&tunnel.name).copied() else { continue };
            let Uplink::Interface(name) = &tunnel.uplink else { continue };
            let carrier = self.uplinks.get(name.as_str()).copied();
            if let Some(leg) = self.by_number.get_mut(&number) {
                leg.carrier = carrier;
                if carrier.is_none() {
                    leg.usable = false;
                    leg.reason = format!("its uplink {name} is not configured");
                }
            }
        }
        for policy in input.state.applied.policies.iter().filter(|policy| policy.in_force(input.now)) {
            for (tunnel, under) in policy.underlays() {
                let (Some(number), carrier) = (self.tunnels.get(tunnel).copied(), self.by_hop(under)) else {
                    continue;
                };
                if let Some(leg) = self.by_number.get_mut(&number) {
                    leg.carrier = carrier;
                    if carrier.is_none() {
                        leg.usable = false;
                        leg.reason = format!("{} {} below it is missing", under.r#type, under.target);
                    }
                }
            }
        }
    }

    /// A leg inside another one is usable only with it, and smaller than it.
    fn settle(&mut self) {
        for number in self.by_number.keys().copied().collect::<Vec<_>>() {
            let mut seen = BTreeSet::from([number]);
            let mut depth = 0u32;
            let mut at = self.by_number.get(&number).and_then(|leg| leg.carrier);
            let mut broken = None;
            while let Some(carrier) = at {
                let Some(below) = self.by_number.get(&carrier) else {
                    broken = Some("what carries it is missing".to_owned());
                    break;
                };
                if !seen.insert(carrier) {
                    broken = Some("it would be carried inside itself".to_owned());
                    break;
                }
                if !below.usable && broken.is_none() {
                    broken = Some(format!("{} below it is unavailable: {}", below.interface, below.reason));
                }
                depth += u32::from(below.kind != LegKind::Uplink);
                at = below.carrier;
            }
            let Some(leg) = self.by_number.get_mut(&number) else { continue };
            let overhead = u16::try_from(depth.saturating_mul(WIREGUARD_OVERHEAD)).unwrap_or(u16::MAX);
            leg.mtu = leg.mtu.saturating_sub(overhead).max(1280);
            if let Some(reason) = broken.filter(|_| leg.usable) {
                leg.usable = false;
                leg.reason = reason;
            }
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
        carrier: None,
        weight: 1,
        mtu: link.map_or(1500, |link| u16::try_from(link.mtu).unwrap_or(u16::MAX)),
    }
}

fn tunnel_leg(input: &Input<'_>, tunnel: &Tunnel) -> Option<Leg> {
    // Numbers end at 255; the model does not give out more slots than there are numbers.
    let number = u8::try_from(FIRST_TUNNEL - 1 + tunnel.meta.slot).ok()?;
    let interface = tunnel_interface(tunnel);
    let fact = input.facts.tunnels.get(&tunnel.meta.id.to_string());
    let reason = if tunnel.r#type != TunnelType::Wireguard {
        format!("tunnels of type {} are not supported", tunnel.r#type)
    } else if !tunnel.enabled {
        "it is disabled".to_owned()
    } else if !tunnel.wanted_up() {
        "it is down by an administrator's choice".to_owned()
    } else if !input.facts.links.contains_key(&interface) {
        "its interface does not exist".to_owned()
    } else {
        match fact {
            Some(fact) if fact.usable => String::new(),
            Some(fact) => fact.reason.clone(),
            None => "it is not up yet".to_owned(),
        }
    };
    let has = |ipv6: bool| tunnel.addresses.iter().any(|a| matches!(a.net(), IpNet::V6(_)) == ipv6);
    Some(Leg {
        number,
        kind: LegKind::Tunnel(tunnel.meta.id),
        interface,
        ipv4: has(false),
        ipv6: has(true),
        usable: reason.is_empty(),
        reason,
        carrier: None,
        weight: u32::from(tunnel.weight),
        mtu: tunnel.mtu.unwrap_or(1420),
    })
}

/// Name of a tunnel's interface: `wg-` and the tunnel's name. A long name is cut and numbered, with
/// dots, which no tunnel's name has.
pub fn tunnel_interface(tunnel: &Tunnel) -> String {
    const LONGEST: usize = 15;
    let plain = format!("wg-{}", tunnel.name);
    if plain.len() <= LONGEST {
        return plain;
    }
    let tail = format!(".{}", tunnel.meta.slot);
    let head: String = tunnel.name.chars().take(LONGEST - 3 - tail.len()).collect();
    format!("wg.{head}{tail}")
}
