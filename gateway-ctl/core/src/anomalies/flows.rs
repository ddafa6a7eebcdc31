//! Flows of a device in an hour.

use std::net::IpAddr;

use super::sets::{BoundedMap, BoundedSet, LastFlows};
use crate::countries::CountryCode;
use crate::flow_log::FlowId;

/// Value with the number of its counterparts, and flows to them.
pub(super) type Counted<T> = (T, usize, Vec<FlowId>);

/// Flow that a device began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSeen<'a> {
    /// Its id has the time of its start.
    pub id: FlowId,
    pub destination: IpAddr,
    pub port: u16,
    /// Number of the protocol of IP.
    pub protocol: u8,
    /// Name by which the device had asked for the destination, in lower case.
    pub name: Option<&'a str>,
    pub country: Option<CountryCode>,
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
    ports_of: BoundedMap<IpAddr, Scanned<u16, 40>, 24>,
    addresses_of: BoundedMap<u16, Scanned<IpAddr, 80>, 5>,
    starts: BoundedMap<Target, Starts, 40>,
    pub doh: Option<(IpAddr, FlowId)>,
}

/// Destination of regular connections: what is asked for by name may have an address today and another one tomorrow.
pub(super) type Target = u32;

/// Values, and the last flows to them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Scanned<T, const MOST: usize> {
    values: BoundedSet<T, MOST>,
    flows: LastFlows,
}

impl<T, const MOST: usize> Default for Scanned<T, MOST> {
    fn default() -> Self {
        Scanned { values: BoundedSet::default(), flows: LastFlows::default() }
    }
}

impl<T: Ord, const MOST: usize> Scanned<T, MOST> {
    fn insert(&mut self, value: T, flow: FlowId) {
        let before = self.values.len();
        self.values.insert(value);
        if self.values.len() > before {
            self.flows.push(flow);
        }
    }
}

/// Times of the last connections to a destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Starts {
    times: [u32; MIN_BEACONS + 1],
    count: usize,
    flows: LastFlows,
    last: Option<(IpAddr, u16)>,
}

impl Starts {
    fn push(&mut self, flow: &FlowSeen<'_>) {
        let at = u32::try_from(flow.id.start().as_second()).unwrap_or_default();
        // Several connections at once are one visit.
        if self.count > 0 && at.saturating_sub(self.times[0]) < 5 {
            return;
        }
        self.times.rotate_right(1);
        self.times[0] = at;
        self.count += 1;
        self.flows.push(flow.id);
        self.last = Some((flow.destination, flow.port));
    }

    /// Returns the interval in seconds, if the times are regular.
    fn interval(&self) -> Option<u32> {
        if self.count < self.times.len() {
            return None;
        }
        let steps = || self.times.windows(2).map(|pair| pair[0].saturating_sub(pair[1]));
        let (least, most) = (steps().min()?, steps().max()?);
        let is_regular = least >= MIN_INTERVAL && (most - least).saturating_mul(10) <= least;
        is_regular.then_some((self.times[0] - self.times[MIN_BEACONS]) / MIN_BEACONS as u32)
    }
}

/// Regular connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beacon {
    pub target: Target,
    pub address: IpAddr,
    pub port: u16,
    /// In seconds.
    pub interval: u32,
    pub flows: Vec<FlowId>,
}

impl HourFlows {
    pub(super) fn note(&mut self, flow: &FlowSeen<'_>) {
        self.count += 1;
        let ports = self.ports_of.entry(flow.destination, |scanned| scanned.values.len());
        ports.insert(flow.port, flow.id);
        if !COMMON_PORTS.contains(&flow.port) {
            let addresses = self.addresses_of.entry(flow.port, |scanned| scanned.values.len());
            addresses.insert(flow.destination, flow.id);
        }
        if !flow.is_local {
            self.starts.entry(target(flow), |starts| starts.count).push(flow);
        }
        if flow.is_doh && matches!(flow.port, 443 | 853) {
            self.doh = Some((flow.destination, flow.id));
        }
    }

    /// Returns the address with the most ports, and the port with the most addresses.
    pub(super) fn scan(&self) -> (Option<Counted<IpAddr>>, Option<Counted<u16>>) {
        fn most<K: Copy, T: Ord, const MOST: usize>(
            found: Option<(&K, &Scanned<T, MOST>)>,
        ) -> Option<Counted<K>> {
            found.map(|(key, scanned)| (*key, scanned.values.len(), scanned.flows.list()))
        }
        let ports = self.ports_of.iter().max_by_key(|(_, scanned)| scanned.values.len());
        let addresses = self.addresses_of.iter().max_by_key(|(_, scanned)| scanned.values.len());
        (most(ports), most(addresses))
    }

    /// Returns the destinations of regular connections.
    pub(super) fn beacons(&self) -> impl Iterator<Item = Beacon> {
        self.starts.iter().filter_map(|(target, starts)| {
            let ((address, port), interval) = (starts.last?, starts.interval()?);
            Some(Beacon { target: *target, address, port, interval, flows: starts.flows.list() })
        })
    }

    /// Returns the bytes of memory that it takes, at most.
    pub(super) fn bytes(&self) -> usize {
        let ports: usize = self.ports_of.iter().map(|(_, ports)| 176 + 8 * ports.values.len()).sum();
        let addresses: usize =
            self.addresses_of.iter().map(|(_, addresses)| 160 + 24 * addresses.values.len()).sum();
        256 + ports + addresses + 248 * self.starts.len()
    }
}

fn target(flow: &FlowSeen<'_>) -> Target {
    let mut bytes = flow.port.to_le_bytes().to_vec();
    match flow.name {
        Some(name) => bytes.extend(super::names::domain(name).as_bytes()),
        None => bytes.extend(network(flow.destination)),
    }
    hash(&bytes)
}

/// Returns the key of a tunnel: the port, and the network of the other end, whose hosts take turns.
pub(super) fn tunnel(flow: &FlowSeen<'_>) -> Option<u32> {
    let is_one = !flow.is_local && is_tunnel(flow.protocol, flow.port);
    is_one.then(|| hash(&[&flow.port.to_le_bytes()[..], &network(flow.destination)].concat()))
}

fn hash(bytes: &[u8]) -> u32 {
    // The seed is the same in every run, because the file of the baselines contains it.
    (rapidhash::v3::rapidhash_v3(bytes) >> 32) as u32
}

/// Returns the first 16 bits of an IPv4 address, and 32 of an IPv6 address: about what one operator has.
fn network(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(four) => four.octets()[..2].to_vec(),
        IpAddr::V6(six) => six.octets()[..4].to_vec(),
    }
}

/// Reports whether a port is one of Tor (ORPort, DirPort), OpenVPN, WireGuard, Tailscale, IPsec, L2TP or PPTP.
fn is_tunnel(protocol: u8, port: u16) -> bool {
    match protocol {
        TCP => matches!(port, 1194 | 1723 | 9001 | 9030),
        UDP => matches!(port, 500 | 1194 | 1701 | 4500 | 41641 | 51820),
        _ => false,
    }
}
