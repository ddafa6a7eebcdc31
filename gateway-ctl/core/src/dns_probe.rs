//! Probe of name resolution from the side of a LAN: a query that enters by the interface as a host's would.
//!
//! It claims the lowest address of the network, which no host has. Linux treats that as an ordinary address (since 5.14),
//! so programs, nftables, routing and the resolver handle the query as any other. The answer goes back to the interface,
//! where the kernel asks for the hardware address of the claimed host: that request proves that the answer came so far.
//!
//! A bound socket does not prove that hosts get answers, and a query from the gateway to itself takes neither the
//! programs nor the rules of the LAN. Two failures in a row make the check fail; probes are neither counted nor logged.
//! Rejected: a neighbour entry for the claimed host, whose events would change the facts of the plan; the address of a
//! real host, which would get answers that it did not ask for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;

use crate::facts::{Facts, LinkLayer};
use crate::leak_check::frame::{Link, Transport, frame};
use crate::network::Network;

/// End of the name of a probe, in wire format: `health-check.invalid` (RFC 6761, section 6.4).
const SUFFIX: &[u8] = b"\x0chealth-check\x07invalid\0";
/// First label of the name: the token in hexadecimal digits.
const TOKEN_LENGTH: usize = 16;
const HEADER_LENGTH: usize = 12;
/// MAC address of the claimed host: locally administered.
pub const PROBE_MAC: [u8; 6] = [0x02, b'g', b'w', b'd', b'n', b's'];
/// First of the ports that the claimed host uses.
const FIRST_PORT: u16 = 49_152;

/// LAN interface that can be probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeTarget {
    pub interface: String,
    pub index: u32,
    pub mac: [u8; 6],
    /// Address of the gateway that hosts query.
    pub server: Ipv4Addr,
    /// Address that the query claims.
    pub client: Ipv4Addr,
}

/// Returns the LAN interfaces that are up and have an IPv4 network, each with its first one.
pub fn targets(network: &Network, facts: &Facts) -> Vec<ProbeTarget> {
    let target = |interface: &String| {
        let link =
            facts.links.get(interface).filter(|link| link.up && link.link_layer == LinkLayer::Ethernet)?;
        let mut networks = facts.addresses.get(interface)?.iter().filter_map(|net| match net {
            // Shorter networks have no address to spare.
            IpNet::V4(net) if net.prefix_len() <= 30 => Some(net),
            _ => None,
        });
        let net = networks.find(|net| net.addr() != net.network())?;
        Some(ProbeTarget {
            interface: interface.clone(),
            index: link.index,
            mac: link.mac?,
            server: net.addr(),
            client: net.network(),
        })
    };
    network.lan.iter().filter_map(target).collect()
}

impl ProbeTarget {
    /// Returns the frame of a query with this token to a port of the gateway.
    pub fn frame(&self, port: u16, token: u64) -> Vec<u8> {
        let link = Link { source: PROBE_MAC, destination: self.mac, vlan: 0 };
        let from = FIRST_PORT | (token as u16 & 0x3fff);
        let (source, destination) = (IpAddr::from(self.client), IpAddr::from(self.server));
        let (source, destination) = (SocketAddr::new(source, from), SocketAddr::new(destination, port));
        frame(link, source, destination, &Transport::Udp(query(token)))
    }
}

/// Returns a query for the address of a name with this token.
fn query(token: u64) -> Vec<u8> {
    let id = (token >> 48) as u16;
    // Recursion desired, one question.
    let header = [&id.to_be_bytes()[..], &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]].concat();
    let label = format!("{token:016x}");
    [&header[..], &[TOKEN_LENGTH as u8], label.as_bytes(), SUFFIX, &[0, 1, 0, 1]].concat()
}

/// Returns the token of a query, or of its answer, if it is a probe.
pub fn token(message: &[u8]) -> Option<u64> {
    let name = message.get(HEADER_LENGTH..)?;
    let (length, rest) = name.split_first()?;
    let (label, suffix) = rest.split_at_checked(TOKEN_LENGTH)?;
    if usize::from(*length) != TOKEN_LENGTH || !suffix.get(..SUFFIX.len())?.eq_ignore_ascii_case(SUFFIX) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(label).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::facts;

    fn facts(addresses: &[&str]) -> Facts {
        let link =
            facts::Link { index: 2, up: true, mac: Some([2, 0, 0, 0, 0, 1]), ..facts::Link::default() };
        let nets = addresses.iter().map(|net| net.parse().unwrap()).collect();
        Facts {
            links: BTreeMap::from([("lan0".to_owned(), link)]),
            addresses: BTreeMap::from([("lan0".to_owned(), nets)]),
            ..Facts::default()
        }
    }

    fn network() -> Network {
        Network { lan: vec!["lan0".to_owned(), "lan9".to_owned()], ..Network::default() }
    }

    #[test]
    fn the_lowest_address_of_a_network_is_claimed() {
        let found = targets(&network(), &facts(&["fd00::1/64", "192.168.10.1/24"]));
        let [target] = &found[..] else { panic!("{found:?}") };
        assert_eq!((target.server, target.client), ([192, 168, 10, 1].into(), [192, 168, 10, 0].into()));
        for addresses in [&["192.168.10.1/31"][..], &["192.168.10.0/24"], &["fd00::1/64"], &[]] {
            assert_eq!(targets(&network(), &facts(addresses)), [], "{addresses:?}");
        }
        let mut down = facts(&["192.168.10.1/24"]);
        down.links.values_mut().for_each(|link| link.up = false);
        assert_eq!(targets(&network(), &down), []);
    }

    #[test]
    fn a_probe_is_recognised_by_its_name_only() {
        for value in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(token(&query(value)), Some(value));
        }
        let mut other = query(7);
        other[HEADER_LENGTH + 20] ^= 1;
        assert_eq!(token(&other), None);
        for length in 0..query(7).len() - 4 {
            assert_eq!(token(&query(7)[..length]), None, "{length}");
        }
    }

    #[test]
    fn the_frame_carries_the_query_to_the_gateway() {
        let targets = targets(&network(), &facts(&["192.168.10.1/24"]));
        let frame = targets[0].frame(53, 0xabcd_0000_0000_0001);
        assert_eq!(frame[..6], [2, 0, 0, 0, 0, 1]);
        assert_eq!((&frame[26..30], &frame[30..34]), (&[192, 168, 10, 0][..], &[192, 168, 10, 1][..]));
        assert_eq!(token(&frame[42..]), Some(0xabcd_0000_0000_0001));
    }
}
