//! Packets of router advertisements.

use std::net::Ipv6Addr;

use ipnet::Ipv6Net;

use super::packet::{self, OPTION_UNIT};
use super::{AUTONOMOUS, ON_LINK, OTHER_CONFIGURATION, PrefixInformation, RouterAdvertisement, TYPE, option};
use crate::domain_search;

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Hop limit of the packets of hosts.
const HOP_LIMIT: u8 = 64;
/// Maximum numbers of options. With them a packet fits in the smallest MTU (RFC 8200, section 5).
pub const MAX_PREFIXES: usize = 20;
pub const MAX_RESOLVERS: usize = 16;
pub const MAX_DOMAINS: usize = 1;

impl RouterAdvertisement {
    /// Returns the packet for all hosts of a link, from the IPv6 header on. What is beyond the maximum numbers is left out.
    pub fn packet(&self) -> Vec<u8> {
        let flags = if self.other_configuration { OTHER_CONFIGURATION } else { 0 };
        let mut message = vec![TYPE, 0, 0, 0, HOP_LIMIT, flags];
        message.extend(self.lifetime.to_be_bytes());
        message.extend([0; 8]);
        if let Some(mac) = self.mac {
            message.extend([option::SOURCE_MAC, 1]);
            message.extend(mac);
        }
        if let Some(mtu) = self.mtu {
            message.extend([option::MTU, 1, 0, 0]);
            message.extend(mtu.to_be_bytes());
        }
        self.prefixes.iter().take(MAX_PREFIXES).for_each(|prefix| push_prefix(&mut message, prefix));
        let mut left = MAX_RESOLVERS;
        for group in &self.resolvers {
            let addresses = &group.addresses[..group.addresses.len().min(left)];
            left -= addresses.len();
            if !addresses.is_empty() {
                message.extend([option::RESOLVERS, units(8 + 16 * addresses.len()), 0, 0]);
                message.extend(group.lifetime.to_be_bytes());
                message.extend(addresses.iter().flat_map(Ipv6Addr::octets));
            }
        }
        for (lifetime, domains) in self.domains.iter().take(MAX_DOMAINS) {
            let mut names = Vec::new();
            for domain in domains.iter().take(MAX_DOMAINS) {
                domain_search::push(&mut names, domain);
            }
            if !names.is_empty() {
                names.resize(names.len().next_multiple_of(OPTION_UNIT), 0);
                message.extend([option::DOMAINS, units(8 + names.len()), 0, 0]);
                message.extend(lifetime.to_be_bytes());
                message.extend(names);
            }
        }
        packet::seal(self.source, ALL_NODES, message)
    }
}

fn push_prefix(message: &mut Vec<u8>, prefix: &PrefixInformation) {
    let PrefixInformation { net, on_link, autonomous, valid, preferred } = prefix;
    let flags = if *on_link { ON_LINK } else { 0 } | if *autonomous { AUTONOMOUS } else { 0 };
    message.extend([option::PREFIX, 4, net.prefix_len(), flags]);
    message.extend(valid.to_be_bytes());
    message.extend(preferred.to_be_bytes());
    message.extend([0; 4]);
    message.extend(net.network().octets());
}

fn units(length: usize) -> u8 {
    u8::try_from(length / OPTION_UNIT).expect("a short option")
}

/// Returns an advertisement, from the IPv6 header on, by which hosts no longer use a router, and make no new connections
/// from addresses in these prefixes (RFC 4861, section 6.3.4; RFC 4862, section 5.5.3).
pub fn withdrawal(router: Ipv6Addr, prefixes: &[Ipv6Net]) -> Vec<u8> {
    let ended = |net: &Ipv6Net| PrefixInformation {
        net: *net,
        on_link: false,
        autonomous: true,
        valid: 0,
        preferred: 0,
    };
    let prefixes = prefixes.iter().map(ended).collect();
    RouterAdvertisement { prefixes, ..RouterAdvertisement::of(router) }.packet()
}
