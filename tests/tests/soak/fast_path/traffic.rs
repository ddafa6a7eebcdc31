//! Generated packets of the flows: data, ends and new connections with the ports of earlier ones, long packets, and
//! packets that the gateway answers itself. The numbers of TCP segments are those of a real connection, because
//! conntrack decides by them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use gateway_common::checksum::{add, fold, sum};
use gateway_tests::frames::{Body, Forged};
use gateway_tests::packets::{Packet, TCP, UDP};
use gateway_tests::tap::MARK;

use super::hosts::{CLAIMANTS, Flow, LOAD};
use crate::soak::faults::Random;

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;
const ACK: u8 = 0x10;
const PSH_ACK: u8 = 0x18;
const FIN_ACK: u8 = 0x11;
const RST_ACK: u8 = 0x14;
/// Distance of the ports of successive connections.
const PORT_STEP: u16 = 16;
/// Length of the payload of the first segments, always the same: a repeated segment has the same end.
const HEADER: usize = MARK.len() + 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    Requested,
    Open,
}

/// A flow as its ends see it. UDP has no phase.
#[derive(Clone, Copy, Debug)]
struct Connection {
    phase: Phase,
    /// Port of the host.
    port: u16,
    /// Next sequence numbers of the host and of the remote end.
    next: [u32; 2],
}

/// A packet of a flow, before the gateway has given it addresses and MAC addresses.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub flow: Flow,
    pub is_reply: bool,
    /// MAC address of another host, which claims the address of the host and sends the packet in its place.
    pub claimant: Option<[u8; 6]>,
    /// Instead of a reply, the remote end reports that it has no such port.
    is_error: bool,
    pub number: u32,
    tcp_flags: u8,
    sequence: u32,
    acknowledgement: u32,
    hop_limit: u8,
    dont_fragment: bool,
    payload: Vec<u8>,
}

pub(super) struct Traffic {
    random: Random,
    connections: BTreeMap<Flow, Connection>,
    number: u32,
}

impl Traffic {
    pub(super) fn new(seed: u64) -> Traffic {
        let closed = |port| Connection { phase: Phase::Closed, port, next: [0; 2] };
        let connections = Flow::all().into_iter().map(|flow| (flow, closed(flow.port))).collect();
        Traffic { random: Random::new(seed ^ 0x5eed), connections, number: 0 }
    }

    /// Packets generated so far.
    pub(super) fn count(&self) -> u32 {
        self.number
    }

    /// Lets one host in so many open its connections again.
    pub(super) fn reopen(&mut self, one_in: usize) {
        for connection in self.connections.values_mut() {
            if self.random.below(one_in) == 0 {
                connection.phase = Phase::Closed;
            }
        }
    }

    /// Returns at most one packet of each flow, all in one direction.
    pub(super) fn round(&mut self, is_reply: bool) -> Vec<Planned> {
        let mut packets = Vec::new();
        for (flow, connection) in &mut self.connections {
            if self.random.below(8) == 0 {
                continue;
            }
            let flow = Flow { port: connection.port, ..*flow };
            let Some((tcp_flags, sequence)) = connection.advance(flow.tcp, is_reply, &mut self.random) else {
                continue;
            };
            self.number += 1;
            let filler = match self.random.below(10) {
                _ if tcp_flags & SYN != 0 => 0,
                // Around the MTU of tunnels and of the uplink.
                0 => 1290 + self.random.below(170),
                _ => self.random.below(180),
            };
            let acknowledgement =
                if tcp_flags & ACK == 0 { 0 } else { connection.next[usize::from(!is_reply)] };
            let hop_limit = [64, 64, 64, 64, 64, 64, 64, 64, 2, 1][self.random.below(10)];
            let claimant = (!is_reply && self.random.below(4) == 0)
                .then(|| CLAIMANTS[self.random.below(CLAIMANTS.len())]);
            let is_error = is_reply && !flow.tcp && self.random.below(10) == 0;
            let end = u32::from(tcp_flags & (SYN | FIN) != 0) + (HEADER + filler) as u32;
            connection.next[usize::from(is_reply)] = sequence.wrapping_add(end);
            packets.push(Planned {
                flow,
                is_reply,
                claimant,
                is_error,
                number: self.number,
                tcp_flags,
                sequence,
                acknowledgement,
                hop_limit,
                dont_fragment: self.random.below(4) != 0,
                payload: payload(flow.host, self.number, filler),
            });
        }
        packets
    }

    /// Returns the first datagrams of new flows of a host.
    pub(super) fn new_flows(host: u8, count: u16) -> Vec<Planned> {
        let packet = |index: u16| {
            let flow = Flow { host, ipv6: false, tcp: false, is_local: false, port: 50_000 + index };
            let number = u32::MAX - u32::from(index);
            Planned {
                flow,
                is_reply: false,
                claimant: None,
                is_error: false,
                number,
                tcp_flags: 0,
                sequence: 0,
                acknowledgement: 0,
                hop_limit: 64,
                dont_fragment: true,
                payload: payload(host, number, 20),
            }
        };
        (0..count).map(packet).collect()
    }
}

impl Connection {
    /// Returns the flags and the sequence number of the next segment in one direction, if there is one.
    fn advance(&mut self, tcp: bool, is_reply: bool, random: &mut Random) -> Option<(u8, u32)> {
        let next = self.next[usize::from(is_reply)];
        if !tcp {
            return Some((0, next));
        }
        match (is_reply, self.phase) {
            (true, Phase::Closed) => None,
            (false, Phase::Closed) => {
                self.phase = Phase::Requested;
                // Later than the numbers of the connection before.
                let initial = next.wrapping_add(100_000 + random.below(1 << 20) as u32);
                Some((SYN, initial))
            }
            (true, Phase::Requested) => {
                self.phase = Phase::Open;
                let initial = next.wrapping_add(100_000 + random.below(1 << 20) as u32);
                Some((SYN_ACK, initial))
            }
            // Again, with the same number.
            (false, Phase::Requested) => Some((SYN, next.wrapping_sub(1 + HEADER as u32))),
            (_, Phase::Open) => match random.below(60) {
                0 => {
                    self.phase = Phase::Closed;
                    Some((FIN_ACK, next))
                }
                // Conntrack takes a reset for one only if it has seen the last acknowledgement, which it has not with
                // the fast path. Until the entry ends, it treats a new connection of the same ports in another way.
                1 => {
                    self.phase = Phase::Closed;
                    self.port += PORT_STEP;
                    Some((RST_ACK, next))
                }
                2..12 => Some((ACK, next)),
                _ => Some((PSH_ACK, next)),
            },
        }
    }
}

/// Returns a payload that shows its host and its number.
fn payload(host: u8, number: u32, filler: usize) -> Vec<u8> {
    [MARK, &[host], &number.to_be_bytes(), &vec![number as u8; filler]].concat()
}

/// Reads the host and the number in a packet with such a payload.
pub(super) fn content(bytes: &[u8]) -> Option<(u8, u32)> {
    let at = bytes.windows(MARK.len()).position(|window| window == MARK)?;
    let found = bytes.get(at + MARK.len()..at + HEADER)?;
    Some((found[0], u32::from_be_bytes(found[1..].try_into().ok()?)))
}

/// Returns the datagram that the host of the load sends all the time.
pub(super) fn load(ipv6: bool, from: [u8; 6], to: [u8; 6]) -> Packet {
    let flow = Flow { host: LOAD, ipv6, tcp: false, is_local: false, port: 40_000 };
    let payload = payload(LOAD, 0, 40);
    Packet { payload, to, from, ..Packet::from_host(flow.source(), flow.destination(), UDP, 0) }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Planned { number, flow, is_reply, claimant, tcp_flags, .. } = self;
        write!(f, "{number} {flow:?} reply {is_reply} claimant {claimant:02x?} flags {tcp_flags:02x}")
    }
}

impl Planned {
    /// Returns the frame of the remote end, which has seen the flow with this translated source.
    pub(super) fn reply(&self, translated: SocketAddr, from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
        let packet = self.packet(from, to);
        if self.is_error {
            return unreachable(&Packet { source: translated, ..packet });
        }
        Packet { source: packet.destination, destination: translated, ..packet }.frame()
    }

    /// Returns the packet of the host as it leaves its sender.
    pub(super) fn packet(&self, from: [u8; 6], to: [u8; 6]) -> Packet {
        let protocol = if self.flow.tcp { TCP } else { UDP };
        Packet {
            hop_limit: self.hop_limit,
            identification: self.number as u16,
            dont_fragment: self.dont_fragment,
            tcp_flags: self.tcp_flags,
            sequence: self.sequence,
            acknowledgement: self.acknowledgement,
            payload: self.payload.clone(),
            padding: if self.payload.len() < 200 { self.number as usize % 5 * 9 } else { 0 },
            from,
            to,
            ..Packet::from_host(self.flow.source(), self.flow.destination(), protocol, 0)
        }
    }
}

/// Returns the error of the destination of a datagram: port unreachable (RFC 792, RFC 4443).
fn unreachable(packet: &Packet) -> Vec<u8> {
    let (source, destination) = (packet.destination.ip(), packet.source.ip());
    let (protocol, head, pseudo) = match (source, destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            (ICMPV6, [1, 4], [source.octets(), destination.octets()].concat())
        }
        _ => (ICMP, [3, 3], Vec::new()),
    };
    let quoted = &packet.frame()[14..];
    let mut bytes = [&head[..], &[0; 6], &quoted[..quoted.len().min(500)]].concat();
    let length = if pseudo.is_empty() { 0 } else { bytes.len() as u32 + u32::from(ICMPV6) };
    let sum = !fold(add(add(sum(&pseudo), sum(&bytes)), sum(&length.to_be_bytes())));
    bytes[2..4].copy_from_slice(&sum.to_ne_bytes());
    Forged::new(source, destination, Body::Other { protocol, bytes }).frame(packet.from, packet.to)
}
