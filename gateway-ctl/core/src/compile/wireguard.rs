//! WireGuard tunnels: their devices, links and addresses.
//!
//! Only the address itself is set, never its prefix: a wide one in an imported file (`8.8.8.8/1`) would become a
//! connected route of the main table.

use gateway_model::Tunnel;
use gateway_model::kinds::tunnel::TunnelType;
use ipnet::IpNet;

use super::leg::{Leg, Underlay, is_present};
use super::{Input, bridges, tunnel_addresses};
use crate::plan::{AddressKey, LinkSettings, Plan, SecretKey, WireGuardDevice, WireGuardPeer};

/// The tunnels that are there.
pub(super) fn up<'a>(input: &Input<'a>, legs: &[Leg]) -> impl Iterator<Item = &'a Tunnel> {
    input.state.tunnels.iter().filter(|t| t.r#type == TunnelType::Wireguard && is_present(t, legs))
}

/// Returns the reason for which the addresses of a tunnel are refused.
pub(super) fn refusal(input: &Input<'_>, interface: &str, tunnel: &Tunnel) -> Option<String> {
    let addresses = tunnel.addresses.iter().map(|address| address.net().addr());
    let refused = tunnel_addresses::first_refusal(input, interface, addresses);
    refused.map(|(address, why)| format!("its address {address} {why}"))
}

pub(super) fn lower(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    for tunnel in up(input, legs) {
        let Some(leg) = legs.iter().find(|leg| leg.is_of(tunnel.meta.id)) else { continue };
        // A tunnel whose secrets cannot be read must not come up without them.
        let Some(key) = tunnel.private_key.key() else { continue };
        if !tunnel.peers.iter().all(|peer| peer.preshared_key.is_readable()) {
            continue;
        }
        let peers = tunnel.peers.iter().map(|peer| {
            let endpoint = peer.endpoint.as_ref().map(ToString::to_string);
            let address = endpoint
                .as_deref()
                .and_then(|text| text.parse().ok().or_else(|| input.facts.endpoints.get(text).copied()));
            let address = if tunnel.bridge.is_some() { Some(bridges::near(leg.number)) } else { address };
            let keepalive = peer.persistent_keepalive.unwrap_or(tunnel.keepalive);
            let value = WireGuardPeer {
                preshared_key: peer.preshared_key.key().map(|key| SecretKey(*key)),
                endpoint: address,
                allowed_ips: peer.allowed_ips.iter().map(|net| net.net().trunc()).collect(),
                persistent_keepalive: (keepalive > 0).then_some(keepalive),
            };
            (peer.public_key.0, value)
        });
        let device = WireGuardDevice {
            tunnel_id: tunnel.meta.id.to_string(),
            private_key: SecretKey(*key),
            listen_port: tunnel.listen_port,
            // Behind a bridge it has nothing to send but to loopback, where marks mean nothing.
            fwmark: if tunnel.bridge.is_some() { Underlay::Nowhere } else { leg.underlay }.mark(),
            mtu: leg.mtu,
            peers: peers.collect(),
        };
        plan.wireguard.insert(leg.interface.clone(), device);
        plan.links.insert(leg.interface.clone(), LinkSettings { up: true, mtu: u32::from(leg.mtu) });
        if refusal(input, &leg.interface, tunnel).is_some() {
            continue;
        }
        for address in &tunnel.addresses {
            // The host address alone: a wide prefix in a file from elsewhere must not become a route.
            let address = IpNet::from(address.net().addr());
            plan.addresses.insert(AddressKey { interface: leg.interface.clone(), address }, ());
        }
    }
}
