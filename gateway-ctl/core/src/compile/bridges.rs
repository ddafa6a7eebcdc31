//! Bridges in the plan: transports for the outer packets of tunnels that name one.
//!
//! The WireGuard device of such a tunnel knows only a loopback address, and its mark is rejected on every other path.
//! Whatever the state of the bridge, the tunnel never bypasses it. The bridge sends the outer packets, which carry the
//! mark of the tunnel's underlay.
//!
//! The loopback address follows from the index of the tunnel, because WireGuard follows its peer to a new address. Each
//! tunnel has its own connection to the bridge, since tunnels may use different underlays. The connection is a fact by
//! which the leg is evaluated, so policies fail over when it breaks, and not minutes later by the age of a handshake.
//! Datagrams that waited during an outage are dropped.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use gateway_model::kinds::bridge::{Bridge, BridgeKind, Transport, TransportType};
use gateway_model::kinds::tunnel::TunnelType;
use gateway_model::{State, Tunnel};

use super::Input;
use super::leg::{Leg, is_present, leg_number};
use crate::facts::Facts;
use crate::indexes::LegId;
use crate::plan::{Plan, TransportKind, TransportTarget, names};

/// The transport that a tunnel names, or why there is none; nothing if the tunnel names no bridge.
pub fn transport<'a>(
    state: &'a State,
    tunnel: &Tunnel,
) -> Option<Result<(&'a Bridge, &'a Transport), String>> {
    let name = tunnel.bridge.as_ref()?;
    let Some(bridge) = state.referred::<Bridge>(&tunnel.bridge) else {
        return Some(Err(format!("its bridge {name} does not exist")));
    };
    Some(match &bridge.transport {
        Some(_) if !bridge.enabled => Err(format!("its bridge {} is disabled", bridge.name)),
        Some(transport) if bridge.kind == BridgeKind::Transport => Ok((bridge.as_ref(), transport)),
        _ => Err(format!("its bridge {} is no transport", bridge.name)),
    })
}

/// Returns the reason for which a tunnel cannot use its bridge. `None` if it can, or has no bridge.
pub fn bridge_refusal(state: &State, facts: &Facts, tunnel: &Tunnel) -> Option<String> {
    let (bridge, transport) = match transport(state, tunnel)? {
        Ok(both) => both,
        Err(reason) => return Some(reason),
    };
    let refusal = |reason: &str| Some(format!("its bridge {} is not connected: {reason}", bridge.name));
    if transport.r#type == TransportType::Socks5 && destination(tunnel).is_none() {
        return refusal("the tunnel's peer has no endpoint");
    }
    match facts.transports.get(&tunnel.meta.id.to_string()) {
        Some(fact) if fact.connected => None,
        Some(fact) => refusal(&fact.reason),
        None => refusal("it has not been tried yet"),
    }
}

/// Returns the address at which the bridge of a tunnel takes its datagrams.
pub(super) fn near(leg: LegId) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 71, 0, leg.get())), names::BRIDGE_PORT)
}

/// Returns the destination that a proxy gets for the peer of a tunnel.
fn destination(tunnel: &Tunnel) -> Option<String> {
    tunnel.peers.iter().find_map(|peer| peer.endpoint.as_ref()).map(ToString::to_string)
}

pub(super) fn lower(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    let tunnels = input.state.tunnels.iter();
    for tunnel in tunnels.filter(|tunnel| tunnel.r#type == TunnelType::Wireguard) {
        if !is_present(tunnel, legs) {
            continue;
        }
        let Some(Ok((bridge, transport))) = self::transport(input.state, tunnel) else { continue };
        let Some(leg) = legs.iter().find(|leg| leg.is_of(tunnel.meta.id)) else { continue };
        let kind = match (transport.r#type, destination(tunnel)) {
            (TransportType::Udp2Tcp, _) => TransportKind::Udp2Tcp,
            (TransportType::Socks5, Some(to)) => TransportKind::Socks5 { to },
            (TransportType::Socks5, None) => continue,
        };
        let Some(number) = leg_number(tunnel) else { continue };
        let address = match transport.endpoint_name() {
            Some(name) => input.facts.endpoints.get(&name).copied(),
            None => transport.address.parse().ok().map(|ip| SocketAddr::new(ip, transport.port)),
        };
        let target = TransportTarget {
            bridge_id: bridge.meta.id.to_string(),
            kind,
            near: near(number),
            address,
            mark: Some(leg.underlay.mark()),
        };
        plan.transports.insert(tunnel.meta.id.to_string(), target);
    }
}

/// Returns the bytes that a transport adds to a datagram, without IP.
pub(super) fn overhead(transport: &Transport, tunnel: &Tunnel) -> u16 {
    match transport.r#type {
        // TCP with timestamps, and the length.
        TransportType::Udp2Tcp => 20 + 12 + 2,
        // UDP, and the header of RFC 1928: an address of IPv6, or a name with its length.
        TransportType::Socks5 => {
            let name = destination(tunnel).map_or(0, |to| u16::try_from(to.len()).unwrap_or(255));
            8 + 6 + name.max(16)
        }
    }
}
