//! Router advertisements of IPv6 (RFC 4861, section 4.2), with resolvers and domains (RFC 8106).

mod encode;
mod packet;
pub mod solicitation;

use std::net::Ipv6Addr;

use ipnet::Ipv6Net;

use crate::domain_search;
pub use encode::{MAX_DOMAINS, MAX_PREFIXES, MAX_RESOLVERS, withdrawal};

/// ICMPv6 type.
pub const TYPE: u8 = 134;
const FIXED: usize = 16;
/// Flag of a prefix that is on the link.
const ON_LINK: u8 = 0x80;
/// Flag of a prefix from which hosts make addresses (RFC 4862).
const AUTONOMOUS: u8 = 0x40;
/// Flag of an advertisement: DHCPv6 has further settings.
const OTHER_CONFIGURATION: u8 = 0x40;

/// Types of options.
mod option {
    pub(super) const SOURCE_MAC: u8 = 1;
    pub(super) const PREFIX: u8 = 3;
    pub(super) const MTU: u8 = 5;
    pub(super) const RESOLVERS: u8 = 25;
    pub(super) const DOMAINS: u8 = 31;
}

/// Announcement of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterAdvertisement {
    /// Link-local address of the router.
    pub source: Ipv6Addr,
    /// Seconds for which it is a default router; 0 if it is none.
    pub lifetime: u16,
    /// Hosts can request further settings by DHCPv6.
    pub other_configuration: bool,
    /// MAC address of the router.
    pub mac: Option<[u8; 6]>,
    pub mtu: Option<u32>,
    /// Prefixes from which hosts make addresses or that are on the link.
    pub prefixes: Vec<PrefixInformation>,
    pub resolvers: Vec<Resolvers>,
    /// Domains to search, with the seconds for which hosts use them.
    pub domains: Vec<(u32, Vec<String>)>,
}

/// Prefix of an advertisement (RFC 4861, section 4.6.2). Lifetimes are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixInformation {
    pub net: Ipv6Net,
    pub on_link: bool,
    pub autonomous: bool,
    pub valid: u32,
    /// Seconds for which hosts begin connections from addresses of the prefix.
    pub preferred: u32,
}

/// Resolvers for hosts, with the seconds for which hosts use them; 0 ends their use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolvers {
    pub lifetime: u32,
    pub addresses: Vec<Ipv6Addr>,
}

impl RouterAdvertisement {
    /// Returns an announcement without options by which hosts use no router.
    pub fn of(source: Ipv6Addr) -> RouterAdvertisement {
        RouterAdvertisement {
            source,
            lifetime: 0,
            other_configuration: false,
            mac: None,
            mtu: None,
            prefixes: Vec::new(),
            resolvers: Vec::new(),
            domains: Vec::new(),
        }
    }

    /// Returns the networks of its prefixes.
    pub fn nets(&self) -> impl Iterator<Item = Ipv6Net> + use<'_> {
        self.prefixes.iter().map(|prefix| prefix.net)
    }
}

/// Reads an advertisement, from the IPv6 header on. `None` for other packets, and for those that hosts ignore (RFC 4861,
/// section 6.1.2). Options with an invalid content are left out.
pub fn parse(packet: &[u8]) -> Option<RouterAdvertisement> {
    let (source, message) = packet::open(packet, TYPE)?;
    let fixed = message.first_chunk::<FIXED>().filter(|_| source.is_unicast_link_local())?;
    let mut heard = RouterAdvertisement {
        lifetime: u16::from_be_bytes([fixed[6], fixed[7]]),
        other_configuration: fixed[5] & OTHER_CONFIGURATION != 0,
        ..RouterAdvertisement::of(source)
    };
    for option in packet::options(&message[FIXED..])? {
        heard.read(option);
    }
    Some(heard)
}

impl RouterAdvertisement {
    /// Takes an option with its type and length.
    fn read(&mut self, option: &[u8]) {
        let lifetime = || word(option, 4);
        match option[0] {
            option::SOURCE_MAC => self.mac = option[2..].first_chunk().copied(),
            option::PREFIX => self.prefixes.extend(prefix(option)),
            option::MTU => self.mtu = word(option, 4).filter(|_| option.len() == 8),
            option::RESOLVERS if option.len() >= 24 && option.len() % 16 == 8 => {
                let addresses = option[8..].as_chunks::<16>().0;
                let addresses = addresses.iter().map(|bytes| Ipv6Addr::from(*bytes)).collect();
                self.resolvers.extend(lifetime().map(|lifetime| Resolvers { lifetime, addresses }));
            }
            option::DOMAINS => {
                let domains = option.get(8..).and_then(domain_search::parse);
                self.domains.extend(lifetime().zip(domains.filter(|domains| !domains.is_empty())));
            }
            _ => {}
        }
    }
}

fn prefix(option: &[u8]) -> Option<PrefixInformation> {
    let address = option.get(16..32)?.first_chunk::<16>()?;
    let net = Ipv6Net::new(Ipv6Addr::from(*address), option[2]).ok()?;
    Some(PrefixInformation {
        net: net.trunc(),
        on_link: option[3] & ON_LINK != 0,
        autonomous: option[3] & AUTONOMOUS != 0,
        valid: word(option, 4)?,
        preferred: word(option, 8)?,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests;
