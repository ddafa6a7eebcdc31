//! Protocols whose broadcast and multicast packets the daemon reads.

use crate::classify::{ICMPV6, IpPacket, UDP};
use crate::wire::Fragment;

/// Multicast DNS (RFC 6762, section 3).
pub const MDNS_PORT: u16 = 5353;
/// SSDP (UPnP Device Architecture 2.0, section 1.2).
pub const SSDP_PORT: u16 = 1900;
/// Clients of DHCP (RFC 2131, section 4.1).
const DHCP_CLIENT_PORT: u16 = 68;
/// Types of ICMPv6 (RFC 4861, sections 4.1 and 4.2).
const ROUTER_SOLICITATION: u16 = 133;
const ROUTER_ADVERTISEMENT: u16 = 134;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LinkProtocol {
    /// Multicast DNS and SSDP, by which hosts announce their names.
    Announcement = 1,
    /// Messages of DHCP servers to clients.
    DhcpReply = 2,
    RouterSolicitation = 3,
    RouterAdvertisement = 4,
}

impl LinkProtocol {
    /// Returns the protocol of a copy.
    pub const fn of(number: u32) -> Option<LinkProtocol> {
        match number {
            1 => Some(LinkProtocol::Announcement),
            2 => Some(LinkProtocol::DhcpReply),
            3 => Some(LinkProtocol::RouterSolicitation),
            4 => Some(LinkProtocol::RouterAdvertisement),
            _ => None,
        }
    }
}

/// Returns the protocol of a packet, if the daemon reads it. Fragments are ignored.
#[inline(always)]
pub fn link_protocol(packet: &IpPacket) -> Option<LinkProtocol> {
    if !matches!(packet.fragment, Fragment::Whole) {
        return None;
    }
    match (packet.protocol, packet.destination_port) {
        (UDP, MDNS_PORT | SSDP_PORT) => Some(LinkProtocol::Announcement),
        (UDP, DHCP_CLIENT_PORT) if !packet.ipv6 => Some(LinkProtocol::DhcpReply),
        (ICMPV6, kind) if kind >> 8 == ROUTER_SOLICITATION => Some(LinkProtocol::RouterSolicitation),
        (ICMPV6, kind) if kind >> 8 == ROUTER_ADVERTISEMENT => Some(LinkProtocol::RouterAdvertisement),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_recognised_by_their_ports_and_types() {
        use LinkProtocol::{Announcement, DhcpReply, RouterAdvertisement, RouterSolicitation};
        let of = |protocol, port, ipv6| {
            let packet = IpPacket { protocol, destination_port: port, ipv6, ..IpPacket::default() };
            link_protocol(&packet)
        };
        assert_eq!(of(UDP, 5353, false), Some(Announcement));
        assert_eq!(of(UDP, 1900, true), Some(Announcement));
        assert_eq!((of(UDP, 68, false), of(UDP, 68, true)), (Some(DhcpReply), None));
        assert_eq!(of(ICMPV6, 133 << 8, true), Some(RouterSolicitation));
        assert_eq!(of(ICMPV6, 134 << 8 | 1, true), Some(RouterAdvertisement));
        assert_eq!((of(ICMPV6, 135 << 8, true), of(UDP, 67, false), of(6, 5353, false)), (None, None, None));
        let cut = IpPacket {
            protocol: UDP,
            destination_port: 5353,
            fragment: Fragment::First,
            ..IpPacket::default()
        };
        assert_eq!(link_protocol(&cut), None);
    }

    #[test]
    fn numbers_of_protocols_are_read_back() {
        for number in 0..8 {
            assert!(LinkProtocol::of(number).is_none_or(|protocol| protocol as u32 == number));
        }
    }
}
