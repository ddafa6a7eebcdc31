//! Names that hosts of the LAN announce by multicast: DNS (RFC 6762) and SSDP. A bounded reader of packets that any host
//! can send; its result is what the packet claims.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_common::link_protocol::{MDNS_PORT, SSDP_PORT};

use crate::state_machines::hosts::NameSource;

/// Maximum number of records of a message that are read.
const MAX_RECORDS: usize = 64;
/// Maximum number of labels and pointers of a name.
const MAX_STEPS: usize = 64;
const MAX_NAME_LENGTH: usize = 255;
const UDP: u8 = 17;
const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;

/// Announcement of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Source address of the packet.
    pub address: IpAddr,
    pub name: String,
    pub from: NameSource,
}

/// Reads a packet, from its IP header on. `None` if it announces no name of its sender.
pub fn parse(packet: &[u8]) -> Option<Announcement> {
    let (address, datagram) = datagram(packet)?;
    let port = |offset: usize| Some(u16::from_be_bytes(*datagram.get(offset..)?.first_chunk()?));
    let payload = datagram.get(8..)?;
    let (name, from) = match (port(0)?, port(2)?) {
        (MDNS_PORT, MDNS_PORT) => (multicast_dns_name(payload, address)?, NameSource::Mdns),
        (_, SSDP_PORT) => (ssdp_product(payload)?, NameSource::Ssdp),
        _ => return None,
    };
    Some(Announcement { address, name, from })
}

/// Returns the source address and the UDP datagram of a packet. Fragments have none.
fn datagram(packet: &[u8]) -> Option<(IpAddr, &[u8])> {
    match packet.first()? >> 4 {
        4 => {
            let header = packet.get(..20)?;
            let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
            let length = usize::from(header[0] & 15) * 4;
            let source: [u8; 4] = *header[12..].first_chunk()?;
            (header[9] == UDP && fragment == 0 && length >= 20)
                .then(|| Some((Ipv4Addr::from(source).into(), packet.get(length..)?)))?
        }
        6 => {
            let header = packet.get(..40)?;
            let source: [u8; 16] = *header[8..].first_chunk()?;
            (header[6] == UDP).then(|| (Ipv6Addr::from(source).into(), &packet[40..]))
        }
        _ => None,
    }
}

/// Returns the host name, without `local`, whose address record in a response is that of the sender.
fn multicast_dns_name(message: &[u8], sender: IpAddr) -> Option<String> {
    let count = |offset: usize| Some(usize::from(u16::from_be_bytes(*message.get(offset..)?.first_chunk()?)));
    let is_response = message.get(2)? & 0x80 != 0;
    if !is_response {
        return None;
    }
    let mut offset = 12;
    for _ in 0..count(4)?.min(MAX_RECORDS) {
        offset = skip_name(message, offset)? + 4;
    }
    let records = count(6)?.checked_add(count(8)?)?.checked_add(count(10)?)?;
    for _ in 0..records.min(MAX_RECORDS) {
        let owner = offset;
        offset = skip_name(message, offset)?;
        let fixed: &[u8; 10] = message.get(offset..)?.first_chunk()?;
        let kind = u16::from_be_bytes([fixed[0], fixed[1]]);
        let length = usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
        offset += fixed.len();
        let data = message.get(offset..offset.checked_add(length)?)?;
        offset += length;
        let address = match kind {
            TYPE_A => data.try_into().ok().map(|data: [u8; 4]| Ipv4Addr::from(data).into()),
            TYPE_AAAA => data.try_into().ok().map(|data: [u8; 16]| Ipv6Addr::from(data).into()),
            _ => None,
        };
        if address == Some(sender) {
            return local_name(message, owner);
        }
    }
    None
}

/// Returns the offset behind a name.
fn skip_name(message: &[u8], mut offset: usize) -> Option<usize> {
    for _ in 0..MAX_STEPS {
        match *message.get(offset)? {
            0 => return Some(offset + 1),
            length if length & 0xc0 == 0xc0 => return Some(offset + 2),
            length if length & 0xc0 == 0 => offset += 1 + usize::from(length),
            _ => return None,
        }
    }
    None
}

/// Returns the name at an offset without its last label, which must be `local`.
fn local_name(message: &[u8], mut offset: usize) -> Option<String> {
    let mut labels: Vec<&str> = Vec::new();
    let mut total = 0;
    for _ in 0..MAX_STEPS {
        let length = *message.get(offset)?;
        if length == 0 {
            let is_local = labels.pop().is_some_and(|last| last.eq_ignore_ascii_case("local"));
            return (is_local && !labels.is_empty()).then(|| labels.join("."));
        }
        if length & 0xc0 == 0xc0 {
            offset = usize::from(length & 0x3f) << 8 | usize::from(*message.get(offset + 1)?);
            continue;
        }
        let end = offset + 1 + usize::from(length & 0x3f);
        let label = message.get(offset + 1..end).filter(|_| length & 0xc0 == 0)?;
        total += label.len() + 1;
        if total > MAX_NAME_LENGTH {
            return None;
        }
        labels.push(std::str::from_utf8(label).ok()?);
        offset = end;
    }
    None
}

/// Returns the product of the `SERVER` header of an SSDP notification: the last of `OS/version UPnP/version
/// product/version`.
fn ssdp_product(payload: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(payload).ok()?;
    let mut lines = text.split("\r\n");
    if !lines.next()?.starts_with("NOTIFY ") {
        return None;
    }
    let server = lines.take(MAX_RECORDS).find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("server").then(|| value.trim())
    })?;
    let (_, product) = server.rsplit_once("UPnP/")?;
    let product = product.split_once([' ', ',']).map_or("", |(_, product)| product).trim_matches([' ', ',']);
    (!product.is_empty()).then(|| product.chars().take(MAX_NAME_LENGTH).collect())
}

#[cfg(test)]
mod tests;
