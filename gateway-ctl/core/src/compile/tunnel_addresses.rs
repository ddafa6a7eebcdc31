//! Addresses that a tunnel may have: those of a file or of a server, which both come from elsewhere.
//!
//! An address that this host or its LAN already has is refused: packets of the host from such an address would enter
//! the tunnel, and packets to it would never reach the LAN. Several tunnels may have the same address.
//!
//! Decision 0166 says why.

use std::net::IpAddr;

use super::leg::tunnel_interface;
use super::well_known::is_link_local;
use super::{Input, lan_sources};

/// Returns why an interface of a tunnel cannot have an address, or `None` if it can.
pub(super) fn refusal(input: &Input<'_>, interface: &str, address: IpAddr) -> Option<String> {
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
    let others = input.facts.addresses.iter();
    let others = others.filter(|(name, _)| *name != interface && !is_tunnel(input, name));
    for (name, nets) in others {
        if nets.iter().any(|net| net.addr() == address) {
            return Some(format!("is this host's own on {name}"));
        }
    }
    let is_of = |name: &&String| lan_sources::prefixes(input, name).any(|net| net.contains(&address));
    if let Some(lan) = input.network.lan.iter().find(is_of) {
        return Some(format!("is of the network of {lan}"));
    }
    let is_gateway = input.facts.default_routes.iter().any(|route| route.gateway == Some(address));
    is_gateway.then(|| "is the address of a router".to_owned())
}

/// Returns the first address of a list that the interface cannot have, and why.
pub(super) fn first_refusal(
    input: &Input<'_>,
    interface: &str,
    addresses: impl IntoIterator<Item = IpAddr>,
) -> Option<(IpAddr, String)> {
    let mut addresses = addresses.into_iter();
    addresses.find_map(|address| Some((address, refusal(input, interface, address)?)))
}

/// Reports whether an interface is of a tunnel, or of a deleted one that is not removed yet.
pub(super) fn is_tunnel(input: &Input<'_>, name: &str) -> bool {
    input.state.tunnels.iter().any(|tunnel| tunnel_interface(tunnel) == name) || is_left_behind(input, name)
}

/// Reports whether an interface has the name and the kind of a tunnel's. Without a tunnel it is left behind.
pub(super) fn is_left_behind(input: &Input<'_>, name: &str) -> bool {
    let named = name.starts_with("wg-") || name.starts_with("ov-");
    named && input.facts.links.get(name).is_some_and(|link| matches!(link.kind.as_str(), "wireguard" | "tun"))
}
