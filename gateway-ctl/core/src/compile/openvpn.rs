//! OpenVPN tunnels: their processes, and the pushed options that are accepted.
//!
//! A server assigns addresses, and it may be hostile. Only the address itself is set, never a network. An address that
//! this host or its LAN already has is refused: packets of the host from such an address would enter the tunnel.

use std::net::IpAddr;

use gateway_model::Secret;
use gateway_model::kinds::tunnel::TunnelType;
use gateway_model::ovpn::{Run, run_text};
use ipnet::IpNet;

use super::Input;
use super::leg::{Leg, LegKind, is_present};
use super::well_known::is_link_local;
use crate::facts::TunnelFact;
use crate::plan::{AddressKey, LinkSettings, OpenVpnProcess, Plan};

pub fn lower(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    let tunnels = input.state.tunnels.iter();
    let tunnels = tunnels.filter(|t| t.r#type == TunnelType::Openvpn && is_present(t, legs));
    for tunnel in tunnels {
        let Some(leg) = legs.iter().find(|leg| leg.kind == LegKind::Tunnel(tunnel.meta.id)) else { continue };
        let id = tunnel.meta.id.to_string();
        // A tunnel whose secrets cannot be read must not come up without them.
        let readable = tunnel.password.is_readable() && tunnel.key_passphrase.is_readable();
        let Some(file) = tunnel.openvpn_file().filter(|_| readable) else { continue };
        let (username, password) = match (&tunnel.username, &file.credentials) {
            (Some(username), _) => (Secret::new(username.as_str()), tunnel.password.clone()),
            (None, Some(credentials)) => (credentials.username.clone(), credentials.password.clone()),
            (None, None) => Default::default(),
        };
        let process = OpenVpnProcess {
            interface: leg.interface.clone(),
            config: Secret::new(run_text(&file, Run { ping: tunnel.keepalive }).as_str()),
            username,
            password,
            key_passphrase: tunnel.key_passphrase.clone(),
            mtu: file.tun_mtu(),
            fwmark: leg.underlay.mark(),
        };
        plan.openvpn.insert(id.clone(), process);
        // The process creates the link. Its properties are set as soon as it exists.
        if !input.facts.links.contains_key(&leg.interface) {
            continue;
        }
        let fact = input.facts.tunnels.get(&id);
        plan.links.insert(leg.interface.clone(), LinkSettings { up: true, mtu: u32::from(leg.mtu) });
        let Some(fact) = fact.filter(|fact| refusal(input, &leg.interface, fact).is_none()) else { continue };
        for address in &fact.addresses {
            let key = AddressKey { interface: leg.interface.clone(), address: IpNet::from(*address) };
            plan.addresses.insert(key, ());
        }
    }
}

/// Returns the reason for which the addresses and routes of the server are refused.
pub fn refusal(input: &Input<'_>, interface: &str, fact: &TunnelFact) -> Option<String> {
    fact.addresses.iter().find_map(|address| {
        let why = refused(input, interface, *address)?;
        Some(format!("its server gives out {address}, which {why}"))
    })
}

fn refused(input: &Input<'_>, interface: &str, address: IpAddr) -> Option<String> {
    let broadcast = matches!(address, IpAddr::V4(four) if four.is_broadcast());
    if address.is_unspecified() || address.is_loopback() || address.is_multicast() || broadcast {
        return Some("cannot be the address of an interface".to_owned());
    }
    if is_link_local(address) {
        return Some("leads nowhere".to_owned());
    }
    if matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some()) {
        return Some("is an IPv4 address in disguise".to_owned());
    }
    let others = input.facts.addresses.iter().filter(|(name, _)| *name != interface);
    for (name, nets) in others {
        let lan = input.network.lan.contains(name);
        for net in nets {
            if net.addr() == address {
                return Some(format!("is this host's own on {name}"));
            }
            if lan && net.contains(&address) {
                return Some(format!("is of the network of {name}"));
            }
        }
    }
    let is_gateway = input.facts.default_routes.iter().any(|route| route.gateway == Some(address));
    is_gateway.then(|| "is the address of a router".to_owned())
}
