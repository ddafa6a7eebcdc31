//! Packet filter of a member: which packets of peers it lets in. Without a rule that allows a packet it is dropped. Replies to
//! what the member has sent come in. No I/O.

mod packet;

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use crate::wire::FilterRule;
use packet::{Header, ICMP, ICMP6, Kind, TCP, UDP};

/// UDP flows that are remembered.
const MOST_FLOWS: usize = 4096;
/// Time without packets of the member after which a UDP flow ends.
const FLOW_TIME: Duration = Duration::from_secs(180);

/// Rules of the map, in a form to look packets up in.
#[derive(Clone, Debug, Default)]
pub struct PacketFilter {
    rules: Vec<Rule>,
    /// Addresses of the member: nothing else may be the destination.
    local: Vec<IpNet>,
}

#[derive(Clone, Debug)]
struct Rule {
    sources: Vec<AddressRange>,
    destinations: Vec<(AddressRange, u16, u16)>,
    protocols: Vec<u8>,
}

/// Addresses of one family, or all addresses of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressRange {
    All,
    Between(IpAddr, IpAddr),
}

impl AddressRange {
    /// Reads `*`, an address, a prefix, or `FIRST-LAST`. Other texts name capabilities, which allow no packets.
    fn parse(text: &str) -> Option<AddressRange> {
        if text == "*" {
            return Some(AddressRange::All);
        }
        if let Ok(net) = text.parse::<IpNet>() {
            return Some(AddressRange::Between(net.network(), net.broadcast()));
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last): (IpAddr, IpAddr) = (first.parse().ok()?, last.parse().ok()?);
        (first.is_ipv4() == last.is_ipv4()).then_some(AddressRange::Between(first, last))
    }

    fn contains(self, address: IpAddr) -> bool {
        match self {
            AddressRange::All => true,
            AddressRange::Between(first, last) => {
                first.is_ipv4() == address.is_ipv4() && first <= address && address <= last
            }
        }
    }
}

impl PacketFilter {
    /// Compiles the rules. What cannot be read allows nothing.
    pub fn new<'r>(rules: impl Iterator<Item = &'r FilterRule>, local: Vec<IpNet>) -> PacketFilter {
        let rule = |rule: &FilterRule| Rule {
            sources: rule.src_ips.iter().filter_map(|text| AddressRange::parse(text)).collect(),
            destinations: rule
                .dst_ports
                .iter()
                .filter_map(|to| Some((AddressRange::parse(&to.ip)?, to.ports.first, to.ports.last)))
                .collect(),
            protocols: if rule.protocols.is_empty() {
                vec![TCP, UDP, ICMP, ICMP6]
            } else {
                rule.protocols.clone()
            },
        };
        PacketFilter { rules: rules.map(rule).collect(), local }
    }

    /// Tells whether a packet of a peer may come in.
    pub fn admits(&self, packet: &[u8], flows: &UdpFlows, now: Duration) -> bool {
        let Some(header) = Header::parse(packet) else { return false };
        if !self.local.iter().any(|net| net.contains(&header.destination)) {
            return false;
        }
        match header.kind {
            // A fragment without the first one of its packet leads nowhere. And the kernel knows its own connections and requests.
            Kind::LaterFragment | Kind::TcpWithin | Kind::IcmpReply => true,
            Kind::Begins { source_port, port } => {
                let is_reply = header.protocol == UDP
                    && flows.has(
                        Flow { local: (header.destination, port), remote: (header.source, source_port) },
                        now,
                    );
                is_reply || self.allows(&header, Some(port))
            }
            Kind::Other => self.allows(&header, None),
        }
    }

    /// Tells whether a packet from a network behind a peer may come in by the interface of that peer. The kernel admits replies
    /// alone there, so UDP flows are not looked up here.
    pub fn admits_behind(&self, packet: &[u8]) -> bool {
        let Some(header) = Header::parse(packet) else { return false };
        self.local.iter().any(|net| net.contains(&header.destination))
            && match header.kind {
                Kind::LaterFragment | Kind::TcpWithin | Kind::IcmpReply => true,
                Kind::Begins { port, .. } => header.protocol == UDP || self.allows(&header, Some(port)),
                Kind::Other => self.allows(&header, None),
            }
    }

    fn allows(&self, header: &Header, port: Option<u16>) -> bool {
        self.rules.iter().any(|rule| {
            rule.protocols.contains(&header.protocol)
                && rule.sources.iter().any(|range| range.contains(header.source))
                && rule.destinations.iter().any(|(range, first, last)| {
                    range.contains(header.destination)
                        && port.is_none_or(|port| (*first..=*last).contains(&port))
                })
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flow {
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
}

/// UDP flows that the member has begun.
#[derive(Debug, Default)]
pub struct UdpFlows {
    /// Time of the last packet of the member.
    sent: HashMap<Flow, Duration>,
}

impl UdpFlows {
    /// Notes a packet to a peer.
    pub fn sent(&mut self, packet: &[u8], now: Duration) {
        let Some(Header { source, destination, protocol: UDP, kind: Kind::Begins { source_port, port } }) =
            Header::parse(packet)
        else {
            return;
        };
        if self.sent.len() >= MOST_FLOWS {
            self.sent.retain(|_, last| now.saturating_sub(*last) < FLOW_TIME);
            // All of them live: the newest ones come in place of the rest.
            if self.sent.len() >= MOST_FLOWS {
                self.sent.clear();
            }
        }
        self.sent.insert(Flow { local: (source, source_port), remote: (destination, port) }, now);
    }

    fn has(&self, flow: Flow, now: Duration) -> bool {
        self.sent.get(&flow).is_some_and(|last| now.saturating_sub(*last) < FLOW_TIME)
    }
}

#[cfg(test)]
mod tests;
