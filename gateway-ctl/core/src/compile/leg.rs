//! Legs: numbered uplinks and tunnels with their underlays.

use std::collections::BTreeMap;

use gateway_common::wire::Mark;
use gateway_model::id::Id;
use gateway_model::kinds::routing_policy::{Hop, HopType, Sticky};
use gateway_model::kinds::tunnel::TunnelType;
use gateway_model::{State, Tunnel};
use jiff::Timestamp;
use serde::Serialize;

use crate::indexes::LegId;

const FIRST_TUNNEL: u32 = gateway_common::leg_selection::FIRST_TUNNEL as u32;

/// All legs by number.
#[derive(Clone, Debug, Default)]
pub struct Legs {
    pub by_number: BTreeMap<LegId, Leg>,
    /// Number of a tunnel's leg by the tunnel's name.
    tunnels: BTreeMap<String, LegId>,
    /// Number of a mesh peer's leg by the peer's name.
    mesh_peers: BTreeMap<String, LegId>,
    pub default: DefaultUplink,
}

/// Uplink of traffic that has none of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultUplink {
    /// That of the default route in the main routing table.
    #[default]
    MainTable,
    Leg(LegId),
    /// All uplinks are disabled.
    Nowhere,
}

/// Returns the scope of a sticky leg as the programs know it.
pub(super) fn sticky(scope: Sticky) -> gateway_common::wire::Sticky {
    match scope {
        Sticky::Flow => gateway_common::wire::Sticky::Flow,
        Sticky::Source => gateway_common::wire::Sticky::Source,
        Sticky::SourceDest => gateway_common::wire::Sticky::SourceDestination,
    }
}

#[derive(Clone, Debug)]
pub struct Leg {
    pub number: LegId,
    pub kind: LegKind,
    pub interface: String,
    /// Name of an uplink, by which it may be called, too. Empty without one.
    pub uplink_name: String,
    pub ipv4: bool,
    pub ipv6: bool,
    pub usable: bool,
    /// Human-readable reason for which the leg is not usable. Empty if it is.
    pub reason: String,
    /// It takes no new flows, and keeps until then those it has.
    pub draining: Option<Timestamp>,
    pub underlay: Underlay,
    /// Share in a pool.
    pub weight: u32,
    /// Bytes of an inner packet.
    pub mtu: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LegKind {
    Uplink,
    Tunnel(Id),
    /// A peer of the mesh, by its name there.
    MeshPeer(String),
}

/// Underlay of the outer packets of a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Underlay {
    /// The default route.
    Default,
    Leg(LegId),
    /// The required underlay is missing: the packets do not leave.
    Nowhere,
}

impl Underlay {
    /// Mark of the outer packets.
    pub fn mark(self) -> Mark {
        match self {
            Underlay::Nowhere => Mark::OWN_NOWHERE,
            Underlay::Default | Underlay::Leg(_) => LegId::host_mark(self.leg()),
        }
    }

    pub fn leg(self) -> Option<LegId> {
        match self {
            Underlay::Leg(number) => Some(number),
            Underlay::Default | Underlay::Nowhere => None,
        }
    }
}

/// Differences between kinds of legs. Another kind adds its own here.
impl Leg {
    pub fn is_uplink(&self) -> bool {
        self.kind == LegKind::Uplink
    }

    /// Reports whether packets enter a tunnel of the gateway, or that to a peer of the mesh.
    pub fn is_tunnel(&self) -> bool {
        !self.is_uplink()
    }

    /// Returns the ID of its tunnel.
    pub fn tunnel(&self) -> Option<Id> {
        match self.kind {
            LegKind::Uplink | LegKind::MeshPeer(_) => None,
            LegKind::Tunnel(id) => Some(id),
        }
    }

    /// Returns the name of its peer in the mesh.
    pub fn mesh_peer(&self) -> Option<&str> {
        match &self.kind {
            LegKind::Uplink | LegKind::Tunnel(_) => None,
            LegKind::MeshPeer(name) => Some(name),
        }
    }

    /// Reports whether it is the leg of this tunnel.
    pub fn is_of(&self, tunnel: Id) -> bool {
        self.tunnel() == Some(tunnel)
    }

    /// Returns its kind as hops of policies say it.
    pub fn hop_type(&self) -> HopType {
        match self.kind {
            LegKind::Uplink => HopType::Interface,
            LegKind::Tunnel(_) => HopType::Vpn,
            LegKind::MeshPeer(_) => HopType::MeshPeer,
        }
    }

    /// Returns its name as policies write it: that of the tunnel or the mesh peer, or the interface of the uplink.
    pub fn name<'a>(&'a self, state: &'a State) -> &'a str {
        let tunnel = self.tunnel().and_then(|id| state.tunnels.get(id));
        let name = tunnel.map(|tunnel| tunnel.name.as_str()).or_else(|| self.mesh_peer());
        name.unwrap_or(&self.interface)
    }
}

impl Legs {
    /// Returns the number of the uplink that was selected. `None` if the main routing table decides, or if all uplinks
    /// are disabled.
    pub fn active_uplink(&self) -> Option<LegId> {
        match self.default {
            DefaultUplink::Leg(number) => Some(number),
            DefaultUplink::MainTable | DefaultUplink::Nowhere => None,
        }
    }

    pub(super) fn add_uplink(&mut self, leg: Leg) {
        self.by_number.insert(leg.number, leg);
    }

    pub(super) fn add_tunnel(&mut self, name: &str, leg: Leg) {
        self.tunnels.insert(name.to_owned(), leg.number);
        self.by_number.insert(leg.number, leg);
    }

    /// Adds the leg of a mesh peer, unless a tunnel has its number.
    pub(super) fn add_mesh_peer(&mut self, name: &str, leg: Leg) {
        if !self.by_number.contains_key(&leg.number) {
            self.mesh_peers.insert(name.to_owned(), leg.number);
            self.by_number.insert(leg.number, leg);
        }
    }

    pub fn get(&self, number: LegId) -> Option<&Leg> {
        self.by_number.get(&number)
    }

    pub fn tunnel(&self, name: &str) -> Option<&Leg> {
        self.by_number.get(self.tunnels.get(name)?)
    }

    pub fn mesh_peer(&self, name: &str) -> Option<&Leg> {
        self.by_number.get(self.mesh_peers.get(name)?)
    }

    /// Returns the uplink with an interface, or else with a name.
    pub fn uplink(&self, called: &str) -> Option<&Leg> {
        uplink(self.by_number.values(), called)
    }

    pub fn of_tunnel(&self, id: Id) -> Option<&Leg> {
        self.by_number.values().find(|leg| leg.is_of(id))
    }

    pub fn uplinks(&self) -> impl Iterator<Item = &Leg> {
        self.by_number.values().filter(|leg| leg.is_uplink())
    }

    /// The leg that a hop is. Proxies are none.
    pub fn of_hop(&self, hop: &Hop) -> Option<&Leg> {
        match hop.r#type {
            HopType::Vpn => self.tunnel(&hop.target),
            HopType::Interface => self.uplink(&hop.target),
            HopType::MeshPeer => self.mesh_peer(&hop.target),
            HopType::Proxy => None,
        }
    }
}

/// Number of a tunnel's leg. Numbers end at 255; the model does not give out more slots than there are.
pub fn leg_number(tunnel: &Tunnel) -> Option<LegId> {
    u8::try_from(FIRST_TUNNEL - 1 + tunnel.meta.slot).ok().and_then(LegId::new)
}

/// Name of a tunnel's interface: `wg-` or, for OpenVPN, `ov-` and the tunnel's name. A long name is cut and numbered,
/// with dots, which no tunnel's name has.
pub fn tunnel_interface(tunnel: &Tunnel) -> String {
    const MAX_NAME_BYTES: usize = 15;
    let kind = match tunnel.r#type {
        TunnelType::Wireguard => "wg",
        TunnelType::Openvpn => "ov",
    };
    let plain = format!("{kind}-{}", tunnel.name);
    if plain.len() <= MAX_NAME_BYTES {
        return plain;
    }
    let tail = format!(".{}", tunnel.meta.slot);
    let head: String = tunnel.name.chars().take(MAX_NAME_BYTES - 3 - tail.len()).collect();
    format!("{kind}.{head}{tail}")
}

/// Returns whether a tunnel is there: it is wanted up, or flows may still end in it.
pub(super) fn is_present(tunnel: &Tunnel, legs: &[Leg]) -> bool {
    let drains = |leg: &Leg| leg.is_of(tunnel.meta.id) && leg.draining.is_some();
    tunnel.wanted_up() || legs.iter().any(drains)
}

/// The leg of a tunnel or an uplink that is named.
pub fn named_leg<'a>(state: &State, mut legs: impl Iterator<Item = &'a Leg>, name: &str) -> Option<&'a Leg> {
    match state.tunnel_by_name(name) {
        Some(tunnel) => legs.find(|leg| leg.is_of(tunnel.meta.id)),
        None => uplink(legs, name),
    }
}

fn uplink<'a>(legs: impl Iterator<Item = &'a Leg>, called: &str) -> Option<&'a Leg> {
    let is_called = |leg: &&Leg| {
        leg.is_uplink()
            && (leg.interface == called || !leg.uplink_name.is_empty() && leg.uplink_name == called)
    };
    // An interface goes before a name.
    legs.filter(is_called).min_by_key(|leg| leg.interface != called)
}
