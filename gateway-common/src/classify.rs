//! Packet parser: addresses, ports, VLAN and fragment state.
//!
//! Formats: Ethernet and IEEE 802.1Q/802.1ad tags, IPv4 (RFC 791), IPv6 with extension headers
//! (RFC 8200, section 4), TCP (RFC 9293), UDP (RFC 768), ICMP (RFC 792), ICMPv6 (RFC 4443).

use core::hint::black_box;

use crate::packet::Packet;
use crate::wire::{Address, Fragment, HelloProgress, Mac, ServerNames, flow_flags};

pub const ETHERTYPE_IPV4: u16 = 0x0800;
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
pub const ETHERTYPE_VLAN: u16 = 0x8100;
pub const ETHERTYPE_QINQ: u16 = 0x88a8;
const ETHERTYPE_QINQ_OLD: u16 = 0x9100;

pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMPV6: u8 = 58;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// Port of DNS over UDP and TCP (RFC 1035, section 4.2).
pub const DNS_PORT: u16 = 53;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;

/// Maximum number of extension headers (RFC 8200 recommends six); longer chains are malformed.
const MAX_EXTENSION_HEADERS: usize = 8;
pub(crate) const MAX_VLAN_TAGS: usize = 3;

/// TCP flags (RFC 9293, section 3.1).
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classified {
    /// Not IP; the IP stack does not forward it.
    Other,
    Ip(IpPacket),
}

/// Malformed IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpPacket {
    pub source: Address,
    pub destination: Address,
    pub interface: u32,
    pub length: u32,
    /// Transport ports; for ICMP echo the identifier, for other ICMP zero.
    pub source_port: u16,
    /// Transport port; for ICMP the type and code.
    pub destination_port: u16,
    pub mac: Mac,
    /// Id of the outermost VLAN tag, 0 without one.
    pub vlan: u16,
    pub protocol: u8,
    pub fragment: Fragment,
    pub ipv6: bool,
    /// A TCP segment that asks for a new connection: SYN without ACK.
    pub opening: bool,
    /// Protocol of the payload: a bit of [`flow_flags`], 0 for others.
    pub payload: u8,
    /// Offset of the header of TCP or UDP, 0 for other protocols.
    pub transport: u16,
    /// Names in the ClientHello that this packet completes.
    pub names: ServerNames,
    /// Progress in the ClientHello of this connection, if it is not complete.
    pub hello: HelloProgress,
}

impl IpPacket {
    /// Reports whether the protocol has ports, so that port policies can match.
    pub const fn has_ports(&self) -> bool {
        matches!(self.protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
            && !matches!(self.fragment, Fragment::Later)
    }
}

/// Result of [`read_headers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Headers {
    /// Not IP.
    Other = 0,
    Ip = 1,
    Malformed = 2,
}

/// Reads the headers of a packet that entered by `interface`.
pub fn classify<P: Packet + ?Sized>(packet: &P, interface: u32) -> Result<Classified, Malformed> {
    let mut ip = IpPacket::default();
    match read_headers(packet, interface, &mut ip) {
        Headers::Other => Ok(Classified::Other),
        Headers::Ip => Ok(Classified::Ip(ip)),
        Headers::Malformed => Err(Malformed),
    }
}

/// Parses a packet like [`classify`], and writes the result to a variable of the caller.
// A function of its own in the kernel program too, whose stack is small; there it can return
// nothing larger than a number.
#[inline(never)]
pub fn read_headers<P: Packet + ?Sized>(packet: &P, interface: u32, ip: &mut IpPacket) -> Headers {
    *ip = IpPacket { interface, length: packet.length(), ..IpPacket::default() };
    let Some(ethernet) = packet.read::<[u16; 7]>(0) else { return Headers::Other };
    ip.mac = Mac([ethernet[3], ethernet[4], ethernet[5]]);
    let mut ethertype = u16::from_be(ethernet[6]);
    let mut offset = 14usize;
    let mut tagged = false;
    if let Some(tci) = packet.stripped_vlan() {
        ip.vlan = vlan_id(tci);
        tagged = ip.vlan != 0;
    }
    for _ in 0..MAX_VLAN_TAGS {
        if !is_vlan(ethertype) {
            break;
        }
        let Some(tag) = packet.read::<[u16; 2]>(offset) else { return Headers::Malformed };
        // Priority tags (id 0) are no VLAN.
        if !tagged {
            ip.vlan = vlan_id(u16::from_be(tag[0]));
            tagged = ip.vlan != 0;
        }
        ethertype = u16::from_be(tag[1]);
        offset += 4;
    }
    let offset = merged(offset, ip);
    match ethertype {
        ETHERTYPE_IPV4 => ipv4(packet, offset, ip),
        ETHERTYPE_IPV6 => ipv6(packet, offset, ip),
        // A tag too many hides what follows: not for us to forward.
        _ if is_vlan(ethertype) => Headers::Malformed,
        _ => Headers::Other,
    }
}

/// Returns the offset, which all headers before it leave below 65 536, through memory. The verifier of the kernel does
/// not follow it there, so what comes next is one state, and not one for each length of the headers before.
#[inline(always)]
fn merged(offset: usize, ip: &mut IpPacket) -> usize {
    ip.transport = offset as u16;
    let offset = usize::from(*black_box(&mut ip.transport));
    ip.transport = 0;
    offset
}

/// Returns the VLAN id of tag control information (IEEE 802.1Q).
#[inline(always)]
pub const fn vlan_id(tag: u16) -> u16 {
    tag & 0x0fff
}

#[inline(always)]
pub const fn is_vlan(ethertype: u16) -> bool {
    matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_QINQ | ETHERTYPE_QINQ_OLD)
}

#[inline(always)]
fn ipv4<P: Packet + ?Sized>(packet: &P, offset: usize, ip: &mut IpPacket) -> Headers {
    let Some(header) = packet.read::<[u32; 5]>(offset) else { return Headers::Malformed };
    let first = u32::from_be(header[0]);
    let header_length = ((first >> 24) & 0x0f) as usize * 4;
    if first >> 28 != 4 || header_length < 20 {
        return Headers::Malformed;
    }
    let fragment = u32::from_be(header[1]);
    ip.fragment = match (fragment & 0x2000 != 0, fragment & 0x1fff) {
        (false, 0) => Fragment::Whole,
        (true, 0) => Fragment::First,
        _ => Fragment::Later,
    };
    ip.protocol = (u32::from_be(header[2]) >> 16) as u8;
    ip.source = Address::v4_word(header[3]);
    ip.destination = Address::v4_word(header[4]);
    ports(packet, offset + header_length, ip)
}

#[inline(always)]
fn ipv6<P: Packet + ?Sized>(packet: &P, offset: usize, ip: &mut IpPacket) -> Headers {
    let Some(header) = packet.read::<[u32; 2]>(offset) else { return Headers::Malformed };
    if u32::from_be(header[0]) >> 28 != 6 {
        return Headers::Malformed;
    }
    let Some(source) = packet.read::<Address>(offset + 8) else { return Headers::Malformed };
    let Some(destination) = packet.read::<Address>(offset + 24) else { return Headers::Malformed };
    // An IPv4-mapped address on the wire would pass for IPv4.
    if source.is_mapped() || destination.is_mapped() {
        return Headers::Malformed;
    }
    ip.ipv6 = true;
    ip.source = source;
    ip.destination = destination;
    let mut protocol = (u32::from_be(header[1]) >> 8) as u8;
    let mut at = offset + 40;
    for _ in 0..MAX_EXTENSION_HEADERS {
        at = merged(at, ip);
        match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | AUTHENTICATION => {
                let Some(extension) = packet.read::<[u8; 2]>(at) else { return Headers::Malformed };
                at += if protocol == AUTHENTICATION {
                    (extension[1] as usize + 2) * 4
                } else {
                    (extension[1] as usize + 1) * 8
                };
                protocol = extension[0];
            }
            FRAGMENT => {
                let Some(extension) = packet.read::<[u16; 2]>(at) else { return Headers::Malformed };
                let field = u16::from_be(extension[1]);
                protocol = (u16::from_be(extension[0]) >> 8) as u8;
                at += 8;
                if field & 0xfff8 != 0 {
                    ip.fragment = Fragment::Later;
                    ip.protocol = protocol;
                    return Headers::Ip;
                }
                // An atomic fragment (RFC 6946) is a whole packet.
                if field & 1 != 0 {
                    ip.fragment = Fragment::First;
                }
            }
            _ => {
                ip.protocol = protocol;
                return ports(packet, at, ip);
            }
        }
    }
    Headers::Malformed
}

#[inline(always)]
fn ports<P: Packet + ?Sized>(packet: &P, offset: usize, ip: &mut IpPacket) -> Headers {
    if matches!(ip.fragment, Fragment::Later) {
        return Headers::Ip;
    }
    match ip.protocol {
        UDP if let Some(datagram) = packet.read::<[u32; 4]>(offset) => {
            ip.transport = offset as u16;
            let ports = u32::from_be(datagram[0]);
            ip.source_port = (ports >> 16) as u16;
            ip.destination_port = ports as u16;
            let length = u32::from_be(datagram[1]) >> 16;
            ip.payload = payload(length, u32::from_be(datagram[2]), u32::from_be(datagram[3]));
        }
        TCP | UDP | DCCP | SCTP | UDP_LITE => {
            let Some(ports) = packet.read::<[u16; 2]>(offset) else { return Headers::Malformed };
            ip.source_port = u16::from_be(ports[0]);
            ip.destination_port = u16::from_be(ports[1]);
            // Flags that are cut off open nothing.
            if ip.protocol == TCP
                && let Some(control) = packet.read::<[u8; 2]>(offset + 12)
            {
                ip.opening = control[1] & (SYN | ACK) == SYN;
                ip.transport = offset as u16;
                let begin = offset + (control[0] >> 4) as usize * 4;
                if let Some(begin) = packet.read::<[u32; 3]>(begin) {
                    ip.payload =
                        stream(u32::from_be(begin[0]), u32::from_be(begin[1]), u32::from_be(begin[2]));
                } else if let Some(begin) = packet.read::<[u16; 3]>(begin) {
                    // A ClientHello that the segment cuts off behind the type of the message.
                    let first = (u16::from_be(begin[0]) as u32) << 16 | u16::from_be(begin[1]) as u32;
                    ip.payload = stream(first, (u16::from_be(begin[2]) as u32) << 16, 0);
                }
            }
        }
        ICMP | ICMPV6 => {
            let Some(kind) = packet.read::<u16>(offset) else { return Headers::Malformed };
            ip.destination_port = u16::from_be(kind);
            let echo = matches!((ip.protocol, ip.destination_port >> 8), (ICMP, 0 | 8) | (ICMPV6, 128 | 129));
            if echo {
                let Some(id) = packet.read::<u16>(offset + 4) else { return Headers::Malformed };
                ip.source_port = u16::from_be(id);
            }
        }
        _ => {}
    }
    Headers::Ip
}

/// Length of a UDP header.
const UDP_HEADER: u32 = 8;
/// Length of the header of a STUN message (RFC 8489, section 5).
const STUN_HEADER: u32 = 20;
const STUN_MAGIC_COOKIE: u32 = 0x2112_a442;
/// Minimum length of a datagram with an Initial packet (RFC 9000, section 14.1).
const QUIC_INITIAL: u32 = 1200;
const QUIC_VERSION_1: u32 = 1;
/// RFC 9369.
const QUIC_VERSION_2: u32 = 0x6b33_43cf;

/// Recognises the beginning of the payload of a TCP segment.
#[inline(always)]
const fn stream(first: u32, second: u32, third: u32) -> u8 {
    // A handshake record of any version 3, whose first message is a ClientHello (RFC 8446, sections 4 and 5.1).
    if first >> 16 == 0x1603 && second >> 16 & 0xff == 1 {
        return flow_flags::HELLO;
    }
    // STUN follows STUN or a length of two bytes (RFC 8489, section 6.2.2; RFC 4571, section 2).
    let framed = (first << 16 | second >> 16, second << 16 | third >> 16);
    if is_stun_header(first, second) || is_stun_header(framed.0, framed.1) { flow_flags::STUN } else { 0 }
}

/// Type with two leading zero bits, length in multiples of four, magic cookie (RFC 8489, section 5).
#[inline(always)]
const fn is_stun_header(first: u32, second: u32) -> bool {
    first >> 30 == 0 && first & 3 == 0 && second == STUN_MAGIC_COOKIE
}

/// Reports whether a datagram is STUN: two leading zero bits, the magic cookie and the exact length. Common senders do not
/// pad the length to a multiple of four.
#[inline(always)]
const fn is_stun_datagram(length: u32, first: u32, second: u32) -> bool {
    first >> 30 == 0 && second == STUN_MAGIC_COOKIE && length == UDP_HEADER + STUN_HEADER + (first & 0xffff)
}

/// Recognises the payload of a UDP datagram by its first eight bytes. `length` is that of the UDP header.
#[inline(always)]
const fn payload(length: u32, first: u32, second: u32) -> u8 {
    if is_stun_datagram(length, first, second) {
        return flow_flags::STUN;
    }
    // Long header, packet type Initial (RFC 9000, section 17.2.2; RFC 9369, section 3.2). The fixed bit may be cleared
    // (RFC 9287).
    if first >> 31 == 1 && length >= UDP_HEADER + QUIC_INITIAL {
        let version = first << 8 | second >> 24;
        let kind = first >> 28 & 3;
        if (version == QUIC_VERSION_1 && kind == 0) || (version == QUIC_VERSION_2 && kind == 1) {
            return flow_flags::QUIC;
        }
        // The type of a packet depends on the version, so each long header with the fixed bit counts.
        if first >> 30 & 1 == 1 && is_other_quic(version) {
            return flow_flags::QUIC_OTHER;
        }
    }
    0
}

/// Reports whether a number is a version of QUIC that the daemon cannot decrypt: drafts of the IETF, reserved versions
/// (RFC 9000, section 15), versions of Meta (`0xfaceb0xx`) and Google's QUIC and its variant with TLS (`Q0xx`, `T0xx`).
#[inline(always)]
const fn is_other_quic(version: u32) -> bool {
    version >> 8 == 0x00ff_0000
        || version & 0x0f0f_0f0f == 0x0a0a_0a0a
        || version >> 8 == 0x00fa_ceb0
        || matches!(version >> 16, 0x5130 | 0x5430)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(payload: &[u8]) -> u8 {
        let word = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("four bytes"));
        super::payload(UDP_HEADER + payload.len() as u32, word(0), word(4))
    }

    /// Returns a datagram with a long header of QUIC (RFC 8999, section 5.1).
    fn long_header(first: u8, version: u32, length: usize) -> Vec<u8> {
        let mut packet = vec![first];
        packet.extend(version.to_be_bytes());
        packet.resize(length, 8);
        packet
    }

    #[test]
    fn stun_needs_the_cookie_and_its_exact_length() {
        let stun = |length: u16, body: usize| {
            let mut message = [&[0, 1][..], &length.to_be_bytes(), &STUN_MAGIC_COOKIE.to_be_bytes()].concat();
            message.resize(20 + body, 7);
            first(&message)
        };
        assert_eq!([stun(0, 0), stun(8, 8), stun(37, 37)], [flow_flags::STUN; 3]);
        assert_eq!([stun(8, 9), stun(37, 36)], [0; 2]);
    }

    #[test]
    fn quic_is_recognised_by_its_long_header() {
        assert_eq!(first(&long_header(0xc3, QUIC_VERSION_1, 1200)), flow_flags::QUIC);
        // Draft 29, reserved, mvfst, Q046 and T051.
        for version in [0xff00_001d, 0x1a2a_3a4a, 0xface_b002, 0x5130_3436, 0x5430_3531] {
            assert_eq!(first(&long_header(0xc3, version, 1200)), flow_flags::QUIC_OTHER, "{version:x}");
            assert_eq!(first(&long_header(0x83, version, 1200)), 0, "{version:x} without the fixed bit");
            assert_eq!(first(&long_header(0xc3, version, 1199)), 0, "{version:x} too short");
        }
        assert_eq!(first(&[0xff; 1400]), 0);
        assert_eq!(first(&long_header(0xc3, 0x0123_4567, 1200)), 0);
    }
}
