//! OpenVPN tunnels: their processes, and the pushed options that are accepted.
//!
//! A server assigns addresses, and it may be hostile. Only the address itself is set, never a network, and not each one
//! is ([`tunnel_addresses`]).

use gateway_model::Secret;
use gateway_model::kinds::tunnel::TunnelType;
use gateway_model::ovpn::{Run, run_text};
use ipnet::IpNet;

use super::leg::{Leg, is_present};
use super::{Input, tunnel_addresses};
use crate::facts::TunnelFact;
use crate::plan::{AddressKey, LinkSettings, OpenVpnProcess, Plan};

pub(super) fn lower(input: &Input<'_>, legs: &[Leg], plan: &mut Plan) {
    let tunnels = input.state.tunnels.iter();
    let tunnels = tunnels.filter(|t| t.r#type == TunnelType::Openvpn && is_present(t, legs));
    for tunnel in tunnels {
        let Some(leg) = legs.iter().find(|leg| leg.is_of(tunnel.meta.id)) else { continue };
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
            randomises_hostname: file.has("remote-random-hostname"),
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

/// Returns the reason for which the addresses of the server are refused.
pub(super) fn refusal(input: &Input<'_>, interface: &str, fact: &TunnelFact) -> Option<String> {
    let refused = tunnel_addresses::first_refusal(input, interface, fact.addresses.iter().copied());
    refused.map(|(address, why)| format!("its server gives out {address}, which {why}"))
}
