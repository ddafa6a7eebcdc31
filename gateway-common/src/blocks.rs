//! Blocks of privacy classes: protocols that would reveal names or addresses past the policies of a device.

use crate::classify::{IpPacket, TCP, UDP};
use crate::policy_maps::{PolicyInput, PolicyMaps};
use crate::verdict::{Action, Reason, Verdict};
use crate::wire::*;

/// IPv6 in IPv4 (RFC 4213), which 6to4 uses too (RFC 3056).
const IPV6_IN_IPV4: u8 = 41;
/// Teredo (RFC 4380).
const TEREDO_PORT: u16 = 3544;

/// Returns the reason for which a packet to an address outside the LAN is blocked, as a number; 0 if it is not.
// A separate function in the kernel program, because the stack is small.
#[inline(never)]
pub fn blocked<E: PolicyMaps>(
    packet: &IpPacket,
    input: &PolicyInput,
    blocks: u32,
    device: u32,
    environment: &E,
) -> u32 {
    let port = packet.destination_port;
    let is_udp = packet.protocol == UDP && packet.has_ports();
    let is_tcp = packet.protocol == TCP && packet.has_ports();
    if is_udp && is_discovery(port) {
        return Reason::DiscoveryDropped as u32;
    }
    if blocks == 0 {
        return 0;
    }
    if blocks & block_flags::IPV6 != 0
        && (packet.ipv6 || packet.protocol == IPV6_IN_IPV4 || is_udp && port == TEREDO_PORT)
    {
        return Reason::Ipv6Blocked as u32;
    }
    if !is_udp && !is_tcp {
        return 0;
    }
    // Resolvers of the gateway on the LAN ask others by these protocols.
    if device & device_flags::RESOLVER == 0 {
        if blocks & block_flags::DOT != 0 && is_encrypted_dns(port) {
            return Reason::DotBlocked as u32;
        }
        let is_named = input.shown & flow_flags::DOH_NAME != 0;
        if blocks & block_flags::DOH != 0
            && (is_named || is_https(port) && is_doh_server(packet, input.slot, environment))
        {
            return Reason::DohBlocked as u32;
        }
    }
    let shown = input.shown | packet.payload;
    let quic = flow_flags::QUIC | flow_flags::QUIC_OTHER;
    if blocks & block_flags::QUIC != 0 && is_udp && (port == HTTPS_PORT || shown & quic != 0) {
        return Reason::QuicBlocked as u32;
    }
    if blocks & block_flags::STUN != 0 && (is_stun_port(port) || shown & flow_flags::STUN != 0) {
        return Reason::StunBlocked as u32;
    }
    let may_be_doh = blocks & block_flags::DOH != 0 && device & device_flags::RESOLVER == 0;
    // The name of the server cannot be read, so the client must use another version or TCP.
    if may_be_doh && is_udp && shown & flow_flags::QUIC_OTHER != 0 {
        return Reason::DohBlocked as u32;
    }
    if may_be_doh && is_udp && is_held(packet.payload, input.shown) {
        return Reason::QuicHeld as u32;
    }
    0
}

/// Reports whether a flow of QUIC waits until the daemon has read the name of its server: from its first Initial packet on.
#[inline(always)]
const fn is_held(payload: u8, shown: u8) -> bool {
    (payload & flow_flags::QUIC != 0 || shown & flow_flags::HELLO_OPEN != 0) && shown & flow_flags::HELLO == 0
}

/// Rejects STUN that would leave by the default route, if the device may use it only as its policy routes it.
#[inline(always)]
pub fn keep_off_default_route(packet: &IpPacket, shown: u8, blocks: u32, verdict: &mut Verdict) {
    if blocks & block_flags::STUN_DIRECT == 0 {
        return;
    }
    let is_direct =
        verdict.reason as u8 == Reason::NoPolicy as u8 || verdict.reason as u8 == Reason::PolicyDirect as u8;
    let is_stun = (shown | packet.payload) & flow_flags::STUN != 0
        || packet.has_ports() && is_stun_port(packet.destination_port);
    if is_direct && is_stun {
        verdict.set(Action::Mark, Reason::StunBlocked, rejection(packet, Reason::StunBlocked).0);
    }
}

/// Returns the mark of a packet that is stopped, by which its host gets an error.
///
/// Hosts ignore ICMP errors about TCP connections that have begun (RFC 5461), and the kernel limits their rate, so TCP gets a
/// reset. A connection by IPv6 that begins gets an ICMP error, so that the host tries IPv4.
#[inline(always)]
pub const fn rejection(packet: &IpPacket, reason: Reason) -> Mark {
    let is_tcp = packet.protocol == TCP && packet.has_ports();
    let begins_by_ipv6 = packet.opening && reason as u8 == Reason::Ipv6Blocked as u8;
    if is_tcp && !begins_by_ipv6 { Mark::RESET } else { Mark::PROHIBIT }
}

const HTTPS_PORT: u16 = 443;

#[inline(always)]
fn is_doh_server<E: PolicyMaps>(packet: &IpPacket, slot: Slot, environment: &E) -> bool {
    let destination = packet.destination;
    if packet.ipv6 {
        environment.doh_server6(&Prefix6 { slot, address: destination }).is_some()
    } else {
        environment.doh_server4(&Prefix4 { slot, address: destination.last() }).is_some()
    }
}

/// Returns what the names in a ClientHello show of the flow: [`flow_flags::DOH_NAME`] or 0.
#[inline(never)]
pub fn shown_by_name<E: PolicyMaps>(packet: &IpPacket, slot: Slot, environment: &E) -> u32 {
    if packet.payload & flow_flags::HELLO == 0 {
        return 0;
    }
    for hash in packet.names.0 {
        if hash != 0 && environment.doh_name(&DomainKey { slot, _pad: 0, hash }).is_some() {
            return flow_flags::DOH_NAME as u32;
        }
    }
    0
}

/// Ports at which public resolvers answer DNS over HTTPS.
#[inline(always)]
pub const fn is_https(port: u16) -> bool {
    matches!(port, HTTPS_PORT | 8443 | 5443)
}

/// RFC 7858 and RFC 9250; 784 and 8853 are those of drafts of DNS over QUIC.
#[inline(always)]
const fn is_encrypted_dns(port: u16) -> bool {
    matches!(port, 853 | 784 | 8853)
}

/// RFC 8489, section 18.6. Zoom uses 3479 and Microsoft Teams 3478 to 3481; 19302 to 19309 are those of Google.
#[inline(always)]
const fn is_stun_port(port: u16) -> bool {
    matches!(port, 3478..=3481 | 5349 | 19302..=19309)
}

/// mDNS (RFC 6762), LLMNR (RFC 4795), SSDP, NetBIOS (RFC 1002).
#[inline(always)]
const fn is_discovery(port: u16) -> bool {
    matches!(port, 5353 | 5355 | 1900 | 137 | 138)
}
