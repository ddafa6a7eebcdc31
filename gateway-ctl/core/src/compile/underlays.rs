//! Underlays: the leg for the outer packets of each tunnel, the resulting state of the tunnel, and its MTU.
//!
//! A tunnel has one underlay at a time. Applied policies demand it; without a demand the tunnel's own setting applies.
//! A policy that fails degraded skips a hop that is unavailable, so its tunnel moves to the hop before, or to the
//! tunnel's own uplink. Other policies then see another underlay than they demand, and take their failure policy.
//!
//! Nothing stores the underlay. A tunnel without one keeps its sessions, but its outer packets have a mark that is
//! rejected: the default route would show the uplink to the remote end.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use gateway_model::kinds::hops::before;
use gateway_model::kinds::routing_policy::{FailPolicy, Hop, RoutingPolicy};
use gateway_model::kinds::tunnel::{TunnelType, Uplink};
use gateway_model::{State, Tunnel};

use crate::facts::Facts;
use crate::indexes::LegId;

use super::leg::{Leg, Legs, Underlay};
use super::{Input, bridges};

/// Underlay that a policy demands for a tunnel.
#[derive(Debug)]
struct Demand {
    /// The hops before the tunnel, nearest last.
    before: Vec<Hop>,
    degrades: bool,
}

/// Sets underlay and MTU of all tunnels, and marks those whose underlay is unavailable.
pub(super) fn resolve(input: &Input<'_>, in_trial: &[Cow<'_, RoutingPolicy>], legs: &mut Legs) {
    let mut demands: BTreeMap<LegId, Vec<Demand>> = BTreeMap::new();
    // Applied policies in their order; exceptions and others have to fit in.
    let (policies, exceptions): (Vec<_>, Vec<_>) =
        in_trial.iter().partition(|policy| matches!(policy, Cow::Borrowed(_)));
    for policy in policies.into_iter().chain(exceptions).filter(|policy| policy.in_force(input.now)) {
        note(policy, legs, &mut demands);
    }
    let tunnels = input.state.tunnels.iter().filter_map(|tunnel| {
        let leg = legs.by_number.values().find(|leg| leg.is_of(tunnel.meta.id))?;
        Some((leg.number, tunnel))
    });
    let tunnels: BTreeMap<LegId, &Tunnel> = tunnels.collect();
    let mut settling = UnderlayResolver {
        state: input.state,
        facts: input.facts,
        tunnels: &tunnels,
        demands: &demands,
        legs,
        done: BTreeSet::new(),
    };
    for number in tunnels.keys() {
        settling.resolve(*number, &mut Vec::new());
    }
}

fn note(policy: &RoutingPolicy, legs: &Legs, demands: &mut BTreeMap<LegId, Vec<Demand>>) {
    let degrades = policy.fail_policy == Some(FailPolicy::Degraded);
    for tunnel in policy.underlays().keys() {
        let Some(leg) = legs.tunnel(tunnel) else { continue };
        let before = before(&policy.hops, tunnel, policy.splitting).to_vec();
        demands.entry(leg.number).or_default().push(Demand { before, degrades });
    }
}

struct UnderlayResolver<'a> {
    state: &'a State,
    facts: &'a Facts,
    tunnels: &'a BTreeMap<LegId, &'a Tunnel>,
    demands: &'a BTreeMap<LegId, Vec<Demand>>,
    legs: &'a mut Legs,
    done: BTreeSet<LegId>,
}

impl<'a> UnderlayResolver<'a> {
    /// Settles a leg and its possible underlays. Returns whether it is usable. `inside` holds the legs that wait for
    /// it.
    fn resolve(&mut self, number: LegId, inside: &mut Vec<LegId>) -> bool {
        let Some(tunnel) = self.tunnels.get(&number).copied() else {
            return self.legs.get(number).is_some_and(|leg| leg.usable);
        };
        if inside.contains(&number) {
            return false;
        }
        if self.done.insert(number) {
            inside.push(number);
            let (underlay, broken) = self.underlay(number, tunnel, inside);
            inside.pop();
            let agreed = self.facts.tunnels.get(&tunnel.meta.id.to_string()).and_then(|fact| fact.mtu);
            let mtu = self.mtu(tunnel, underlay).min(agreed.unwrap_or(u16::MAX));
            if let Some(leg) = self.legs.by_number.get_mut(&number) {
                (leg.underlay, leg.mtu) = (underlay, mtu);
                if let Some(reason) = broken.filter(|_| leg.usable) {
                    leg.usable = false;
                    leg.reason = reason;
                }
            }
        }
        self.legs.get(number).is_some_and(|leg| leg.usable)
    }

    /// Returns the underlay of a tunnel, and the reason for which the tunnel cannot use it.
    fn underlay(
        &mut self,
        number: LegId,
        tunnel: &Tunnel,
        inside: &mut Vec<LegId>,
    ) -> (Underlay, Option<String>) {
        let demands: &'a BTreeMap<LegId, Vec<Demand>> = self.demands;
        let demands = demands.get(&number).map_or(&[] as &[Demand], Vec::as_slice);
        let Some(wanted) = demands.first().and_then(|demand| demand.before.last()) else {
            return self.own(tunnel);
        };
        let wanted_leg = self.legs.of_hop(wanted).map(|leg| leg.number);
        let by_itself = wanted_leg.is_some_and(|leg| inside.contains(&leg));
        if let Some(leg) = wanted_leg
            && self.resolve(leg, inside)
        {
            return (Underlay::Leg(leg), None);
        }
        if demands.iter().any(|demand| demand.degrades) {
            for hop in demands.iter().filter(|demand| demand.degrades).flat_map(|d| d.before.iter().rev()) {
                if let Some(leg) = self.legs.of_hop(hop).map(|leg| leg.number)
                    && self.resolve(leg, inside)
                {
                    return (Underlay::Leg(leg), None);
                }
            }
            return self.own(tunnel);
        }
        match wanted_leg.and_then(|leg| self.legs.get(leg)) {
            None => {
                (Underlay::Nowhere, Some(format!("{} {} below it is missing", wanted.r#type, wanted.target)))
            }
            // Its packets would go round for ever.
            Some(_) if by_itself => (Underlay::Nowhere, Some("it would be carried inside itself".to_owned())),
            Some(below) => {
                let reason = format!("{} below it is unavailable: {}", below.interface, below.reason);
                (Underlay::Leg(below.number), Some(reason))
            }
        }
    }

    /// Returns the underlay of the tunnel's own setting.
    fn own(&self, tunnel: &Tunnel) -> (Underlay, Option<String>) {
        let Uplink::Interface(name) = &tunnel.uplink else {
            // An underlay of its own, so that a change of the active uplink is one of the underlay.
            return (self.legs.active_uplink().map_or(Underlay::Default, Underlay::Leg), None);
        };
        match self.legs.uplink(name.as_str()) {
            Some(uplink) => {
                let broken =
                    (!uplink.usable).then(|| format!("{name} below it is unavailable: {}", uplink.reason));
                (Underlay::Leg(uplink.number), broken)
            }
            None => (Underlay::Nowhere, Some(format!("its uplink {name} is not configured"))),
        }
    }

    /// Returns the size of the largest inner packet whose outer packet fits the underlay.
    fn mtu(&self, tunnel: &Tunnel, underlay: Underlay) -> u16 {
        let outer = match underlay.leg().and_then(|leg| self.legs.get(leg)) {
            Some(leg) => leg.mtu,
            // Whichever uplink is the default route at a time.
            None => self.legs.uplinks().map(|leg: &Leg| leg.mtu).min().unwrap_or(ETHERNET_MTU),
        };
        let state = self.state;
        let fits = |outer: u16, ipv6| outer.saturating_sub(overhead(state, tunnel, ipv6));
        match tunnel.mtu {
            Some(own) => own.min(fits(outer, !ends_in_ipv4(state, tunnel)).max(MIN_MTU.min(own))),
            None => fits(outer.min(ETHERNET_MTU), true).max(MIN_MTU),
        }
    }
}

/// MTU of the internet, however large packets of an uplink may be.
const ETHERNET_MTU: u16 = 1500;
/// IPv6 needs so much. A tunnel that is left with less sends outer packets in fragments.
const MIN_MTU: u16 = 1280;

/// Returns the bytes that a tunnel adds to a packet.
fn overhead(state: &State, tunnel: &Tunnel, ipv6: bool) -> u16 {
    let ip = if ipv6 { 40 } else { 20 };
    if let Some(Ok((_, transport))) = bridges::transport(state, tunnel) {
        return ip + bridges::overhead(transport, tunnel) + 32;
    }
    match tunnel.r#type {
        // UDP, and the header and authenticator of a data message.
        TunnelType::Wireguard => ip + 8 + 32,
        // UDP or TCP, opcode and peer, packet id, and the overhead of the worst cipher.
        TunnelType::Openvpn => ip + 20 + 4 + 4 + 32,
    }
}

fn ends_in_ipv4(state: &State, tunnel: &Tunnel) -> bool {
    if let Some(Ok((_, transport))) = bridges::transport(state, tunnel) {
        return transport.address.parse::<std::net::Ipv4Addr>().is_ok();
    }
    let literal =
        |peer: &gateway_model::kinds::tunnel::Peer| peer.endpoint.as_ref()?.to_string().parse().ok();
    tunnel.r#type == TunnelType::Wireguard
        && tunnel.peers.iter().all(|peer| literal(peer).is_some_and(|at: std::net::SocketAddr| at.is_ipv4()))
}
