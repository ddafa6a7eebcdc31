//! Flows of a device in an hour.

use std::net::IpAddr;

use super::sets::{BoundedMap, BoundedSet};

/// Value with the number of its counterparts.
type Counted<T> = (T, usize);

/// Flow that a device began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSeen {
    /// Seconds since 1970.
    pub at: i64,
    pub destination: IpAddr,
    pub port: u16,
    /// Number of the protocol of IP.
    pub protocol: u8,
    /// The destination is a public resolver of DNS over HTTPS.
    pub is_doh: bool,
    /// The destination is in a LAN of the gateway.
    pub is_local: bool,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Ports of services that every device uses at many addresses.
const COMMON_PORTS: &[u16] = &[53, 80, 123, 443, 853, 5222, 5228, 8443];
/// Ports of one address, and addresses with one port, from which on it is a scan.
pub(super) const MAX_PORTS: usize = 30;
pub(super) const MAX_ADDRESSES: usize = 60;
/// Connections at regular intervals from which on it is a beacon.
pub(super) const MIN_BEACONS: usize = 10;
/// Shortest interval of a beacon, in seconds. Shorter ones are ordinary retries.
const MIN_INTERVAL: u32 = 30;

/// Flows of an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HourFlows {
    pub count: u64,
    ports_of: BoundedMap<IpAddr, BoundedSet<u16, 40>, 24>,
    addresses_of: BoundedMap<u16, BoundedSet<IpAddr, 80>, 5>,
    starts: BoundedMap<(IpAddr, u16), Starts, 40>,
    pub doh: Option<IpAddr>,
    /// Address and port of Tor or a VPN.
    pub tunnel: Option<(IpAddr, u16)>,
}

/// Times of the last connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Starts([u32; MIN_BEACONS + 1], usize);

impl Starts {
    fn push(&mut self, at: i64) {
        let at = u32::try_from(at).unwrap_or_default();
        // Several connections at once are one visit.
        if self.1 > 0 && at.saturating_sub(self.0[0]) < 5 {
            return;
        }
        self.0.rotate_right(1);
        self.0[0] = at;
        self.1 += 1;
    }

    /// Returns the interval in seconds, if the times are regular.
    fn interval(&self) -> Option<u32> {
        if self.1 < self.0.len() {
            return None;
        }
        let steps = || self.0.windows(2).map(|pair| pair[0].saturating_sub(pair[1]));
        let (least, most) = (steps().min()?, steps().max()?);
        let is_regular = least >= MIN_INTERVAL && (most - least).saturating_mul(10) <= least;
        is_regular.then_some((self.0[0] - self.0[MIN_BEACONS]) / MIN_BEACONS as u32)
    }
}

impl HourFlows {
    pub(super) fn note(&mut self, flow: &FlowSeen) {
        self.count += 1;
        self.ports_of.entry(flow.destination, BoundedSet::len).insert(flow.port);
        if !COMMON_PORTS.contains(&flow.port) {
            self.addresses_of.entry(flow.port, BoundedSet::len).insert(flow.destination);
        }
        if !flow.is_local {
            self.starts.entry((flow.destination, flow.port), |starts| starts.1).push(flow.at);
        }
        if flow.is_doh && matches!(flow.port, 443 | 853) {
            self.doh = Some(flow.destination);
        }
        if !flow.is_local && is_tunnel(flow.protocol, flow.port) {
            self.tunnel = Some((flow.destination, flow.port));
        }
    }

    /// Returns the address with the most ports, and the port with the most addresses.
    pub(super) fn scan(&self) -> (Option<Counted<IpAddr>>, Option<Counted<u16>>) {
        let ports = self.ports_of.iter().map(|(address, ports)| (*address, ports.len()));
        let addresses = self.addresses_of.iter().map(|(port, addresses)| (*port, addresses.len()));
        (ports.max_by_key(|found| found.1), addresses.max_by_key(|found| found.1))
    }

    /// Returns a destination of regular connections, with the interval in seconds.
    pub(super) fn beacon(&self) -> Option<((IpAddr, u16), u32)> {
        self.starts.iter().find_map(|(target, starts)| Some((*target, starts.interval()?)))
    }

    /// Returns the bytes of memory that it takes, at most.
    pub(super) fn bytes(&self) -> usize {
        let ports: usize = self.ports_of.iter().map(|(_, ports)| 80 + 8 * ports.len()).sum();
        let addresses: usize = self.addresses_of.iter().map(|(_, addresses)| 64 + 24 * addresses.len()).sum();
        256 + ports + addresses + 112 * self.starts.len()
    }
}

/// Reports whether a port is one of Tor (ORPort, DirPort), OpenVPN, WireGuard, IPsec, L2TP or PPTP.
fn is_tunnel(protocol: u8, port: u16) -> bool {
    match protocol {
        TCP => matches!(port, 1194 | 1723 | 9001 | 9030),
        UDP => matches!(port, 500 | 1194 | 1701 | 4500 | 51820),
        _ => false,
    }
}
