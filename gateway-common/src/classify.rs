//! From bytes to what the decision needs: addresses, ports, VLAN, fragment state.
//!
//! Formats: Ethernet and IEEE 802.1Q/802.1ad tags, IPv4 (RFC 791), IPv6 with extension headers
//! (RFC 8200, section 4), TCP (RFC 9293), UDP (RFC 768), ICMP (RFC 792), ICMPv6 (RFC 4443).

use crate::packet::Packet;
use crate::wire::{Fragment, mapped};

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

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;

/// RFC 8200 recommends six; a chain beyond this is malformed for us.
const MAX_EXTENSION_HEADERS: usize = 8;
const MAX_VLAN_TAGS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classified {
    /// Not IP: nothing that the IP stack would forward.
    Other,
    Ip(IpPacket),
}

/// The packet is IP and breaks the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPacket {
    pub ipv6: bool,
    /// IPv4 mapped.
    pub source: [u8; 16],
    /// IPv4 mapped.
    pub destination: [u8; 16],
    pub protocol: u8,
    pub fragment: Fragment,
    /// Transport ports; for ICMP echo the identifier, for other ICMP zero.
    pub source_port: u16,
    /// Transport port; for ICMP the type and code.
    pub destination_port: u16,
    pub mac: [u8; 6],
    /// Id of the outermost VLAN tag, 0 without one.
    pub vlan: u16,
    pub interface: u32,
    pub length: u32,
}

impl IpPacket {
    /// Whether the protocol has ports, so that port policies can match.
    pub const fn has_ports(&self) -> bool {
        matches!(self.protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
            && !matches!(self.fragment, Fragment::Later)
    }

    /// The destination as IPv4, when it is.
    pub const fn destination4(&self) -> [u8; 4] {
        last4(&self.destination)
    }

    pub const fn source4(&self) -> [u8; 4] {
        last4(&self.source)
    }
}

const fn last4(a: &[u8; 16]) -> [u8; 4] {
    [a[12], a[13], a[14], a[15]]
}

/// Reads the headers of a packet that entered by `interface`.
#[inline(always)]
pub fn classify<P: Packet + ?Sized>(packet: &P, interface: u32) -> Result<Classified, Malformed> {
    let Some(ethernet) = packet.bytes::<14>(0) else { return Ok(Classified::Other) };
    let mac = [ethernet[6], ethernet[7], ethernet[8], ethernet[9], ethernet[10], ethernet[11]];
    let mut ethertype = u16::from_be_bytes([ethernet[12], ethernet[13]]);
    let mut offset = 14usize;
    let mut vlan = 0u16;
    let mut tagged = false;
    if let Some(tci) = packet.stripped_vlan() {
        vlan = tci & 0x0fff;
        tagged = true;
    }
    for _ in 0..MAX_VLAN_TAGS {
        if !matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_QINQ | ETHERTYPE_QINQ_OLD) {
            break;
        }
        let Some(tag) = packet.bytes::<4>(offset) else { return Err(Malformed) };
        // Priority tags (id 0) are no VLAN.
        if !tagged {
            vlan = u16::from_be_bytes([tag[0], tag[1]]) & 0x0fff;
            tagged = vlan != 0;
        }
        ethertype = u16::from_be_bytes([tag[2], tag[3]]);
        offset += 4;
    }
    let base = Base { mac, vlan, interface, length: packet.length() };
    match ethertype {
        ETHERTYPE_IPV4 => ipv4(packet, offset, base),
        ETHERTYPE_IPV6 => ipv6(packet, offset, base),
        // A tag too many hides what follows: not for us to forward.
        ETHERTYPE_VLAN | ETHERTYPE_QINQ | ETHERTYPE_QINQ_OLD => Err(Malformed),
        _ => Ok(Classified::Other),
    }
}

#[derive(Clone, Copy)]
struct Base {
    mac: [u8; 6],
    vlan: u16,
    interface: u32,
    length: u32,
}

#[inline(always)]
fn ipv4<P: Packet + ?Sized>(packet: &P, offset: usize, base: Base) -> Result<Classified, Malformed> {
    let Some(header) = packet.bytes::<20>(offset) else { return Err(Malformed) };
    let header_length = ((header[0] & 0x0f) as usize) * 4;
    if header[0] >> 4 != 4 || header_length < 20 {
        return Err(Malformed);
    }
    let fragment_field = u16::from_be_bytes([header[6], header[7]]);
    let fragment = match (fragment_field & 0x2000 != 0, fragment_field & 0x1fff) {
        (false, 0) => Fragment::Whole,
        (true, 0) => Fragment::First,
        _ => Fragment::Later,
    };
    let protocol = header[9];
    let ports = ports(packet, offset + header_length, protocol, fragment)?;
    Ok(Classified::Ip(IpPacket {
        ipv6: false,
        source: mapped([header[12], header[13], header[14], header[15]]),
        destination: mapped([header[16], header[17], header[18], header[19]]),
        protocol,
        fragment,
        source_port: ports.0,
        destination_port: ports.1,
        mac: base.mac,
        vlan: base.vlan,
        interface: base.interface,
        length: base.length,
    }))
}

#[inline(always)]
fn ipv6<P: Packet + ?Sized>(packet: &P, offset: usize, base: Base) -> Result<Classified, Malformed> {
    let Some(header) = packet.bytes::<8>(offset) else { return Err(Malformed) };
    if header[0] >> 4 != 6 {
        return Err(Malformed);
    }
    let Some(source) = packet.bytes::<16>(offset + 8) else { return Err(Malformed) };
    let Some(destination) = packet.bytes::<16>(offset + 24) else { return Err(Malformed) };
    // An IPv4-mapped address on the wire (RFC 4291, 2.5.5.2; RFC 6052) would pass for IPv4.
    if is_mapped(&source) || is_mapped(&destination) {
        return Err(Malformed);
    }
    let mut protocol = header[6];
    let mut fragment = Fragment::Whole;
    let mut at = offset + 40;
    let mut finished = false;
    for _ in 0..MAX_EXTENSION_HEADERS {
        match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY => {
                let Some(extension) = packet.bytes::<2>(at) else { return Err(Malformed) };
                protocol = extension[0];
                at += (extension[1] as usize + 1) * 8;
            }
            AUTHENTICATION => {
                let Some(extension) = packet.bytes::<2>(at) else { return Err(Malformed) };
                protocol = extension[0];
                at += (extension[1] as usize + 2) * 4;
            }
            FRAGMENT => {
                let Some(extension) = packet.bytes::<8>(at) else { return Err(Malformed) };
                let field = u16::from_be_bytes([extension[2], extension[3]]);
                protocol = extension[0];
                at += 8;
                if field & 0xfff8 != 0 {
                    fragment = Fragment::Later;
                    finished = true;
                    break;
                }
                // An atomic fragment (RFC 6946) is a whole packet.
                if field & 1 != 0 {
                    fragment = Fragment::First;
                }
            }
            _ => {
                finished = true;
                break;
            }
        }
    }
    if !finished {
        return Err(Malformed);
    }
    let ports = ports(packet, at, protocol, fragment)?;
    Ok(Classified::Ip(IpPacket {
        ipv6: true,
        source,
        destination,
        protocol,
        fragment,
        source_port: ports.0,
        destination_port: ports.1,
        mac: base.mac,
        vlan: base.vlan,
        interface: base.interface,
        length: base.length,
    }))
}

#[inline(always)]
fn is_mapped(address: &[u8; 16]) -> bool {
    let mut i = 0;
    while i < 10 {
        if address[i] != 0 {
            return false;
        }
        i += 1;
    }
    address[10] == 0xff && address[11] == 0xff
}

#[inline(always)]
fn ports<P: Packet + ?Sized>(
    packet: &P,
    offset: usize,
    protocol: u8,
    fragment: Fragment,
) -> Result<(u16, u16), Malformed> {
    if fragment == Fragment::Later {
        return Ok((0, 0));
    }
    match protocol {
        TCP | UDP | DCCP | SCTP | UDP_LITE => {
            let Some(b) = packet.bytes::<4>(offset) else { return Err(Malformed) };
            Ok((u16::from_be_bytes([b[0], b[1]]), u16::from_be_bytes([b[2], b[3]])))
        }
        ICMP | ICMPV6 => {
            let Some(b) = packet.bytes::<4>(offset) else { return Err(Malformed) };
            let kind = u16::from_be_bytes([b[0], b[1]]);
            let echo = matches!((protocol, b[0]), (ICMP, 0 | 8) | (ICMPV6, 128 | 129));
            if !echo {
                return Ok((0, kind));
            }
            let Some(id) = packet.bytes::<2>(offset + 4) else { return Err(Malformed) };
            Ok((u16::from_be_bytes(id), kind))
        }
        _ => Ok((0, 0)),
    }
}
