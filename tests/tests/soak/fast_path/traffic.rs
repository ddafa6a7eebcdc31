//! Generated packets of the flows: data, ends and new connections with the ports of earlier ones, long packets, and
//! packets that the gateway answers itself.

use std::collections::BTreeMap;

use gateway_tests::packets::{Packet, TCP, UDP};
use gateway_tests::tap::MARK;

use super::hosts::{COMPARED, Flow, LOAD, destination};
use crate::soak::faults::Random;

const SYN: u8 = 0x02;
const SYN_ACK: u8 = 0x12;
const ACK: u8 = 0x10;
const PSH_ACK: u8 = 0x18;
const FIN_ACK: u8 = 0x11;
const RST: u8 = 0x04;
/// Ports of the flows of each host.
const PORTS: [u16; 2] = [40_000, 40_001];

/// State of a TCP connection, as its ends see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Closed,
    Requested,
    Open,
}

/// A packet of a flow, before the gateway has given it addresses and MAC addresses.
#[derive(Clone, Debug)]
pub struct Planned {
    pub flow: Flow,
    pub is_reply: bool,
    pub number: u32,
    tcp_flags: u8,
    hop_limit: u8,
    dont_fragment: bool,
    payload: Vec<u8>,
}

pub struct Traffic {
    random: Random,
    connections: BTreeMap<Flow, Connection>,
    number: u32,
}

impl Traffic {
    pub fn new(seed: u64) -> Traffic {
        let mut connections = BTreeMap::new();
        for host in 0..COMPARED {
            for (ipv6, tcp) in [(false, false), (false, true), (true, false), (true, true)] {
                for port in PORTS {
                    connections.insert(Flow { host, ipv6, tcp, port }, Connection::Closed);
                }
            }
        }
        Traffic { random: Random::new(seed ^ 0x5eed), connections, number: 0 }
    }

    /// Packets sent so far to each gateway.
    pub fn sent(&self) -> u32 {
        self.number
    }

    /// Lets some hosts open their connections again.
    pub fn reopen_some(&mut self) {
        for connection in self.connections.values_mut() {
            if self.random.below(3) == 0 {
                *connection = Connection::Closed;
            }
        }
    }

    /// Returns at most one packet of each flow, in one direction.
    pub fn round(&mut self, is_reply: bool) -> Vec<Planned> {
        let mut packets = Vec::new();
        for (flow, connection) in &mut self.connections {
            if self.random.below(8) == 0 {
                continue;
            }
            let tcp_flags = match (flow.tcp, is_reply, *connection) {
                (false, ..) => 0,
                (true, true, Connection::Closed) => continue,
                (true, false, Connection::Closed) => {
                    *connection = Connection::Requested;
                    SYN
                }
                (true, true, Connection::Requested) => {
                    *connection = Connection::Open;
                    SYN_ACK
                }
                (true, false, Connection::Requested) => SYN,
                (true, _, Connection::Open) => match self.random.below(40) {
                    0 => {
                        *connection = Connection::Closed;
                        [FIN_ACK, RST][self.random.below(2)]
                    }
                    1..12 => ACK,
                    _ => PSH_ACK,
                },
            };
            self.number += 1;
            let length = match self.random.below(10) {
                // Around the MTU of tunnels and of the uplink. A SYN carries no data.
                0 if tcp_flags & SYN == 0 => 1290 + self.random.below(170),
                _ => self.random.below(180),
            };
            let hop_limit = [64, 64, 64, 64, 64, 64, 64, 64, 2, 1][self.random.below(10)];
            packets.push(Planned {
                flow: *flow,
                is_reply,
                number: self.number,
                tcp_flags,
                hop_limit,
                dont_fragment: self.random.below(4) != 0,
                payload: payload(flow.host, self.number, length),
            });
        }
        packets
    }

    /// Returns the first datagrams of new flows of a host.
    pub fn new_flows(host: u8, count: u16) -> Vec<Planned> {
        let packet = |index: u16| {
            let flow = Flow { host, ipv6: false, tcp: false, port: 50_000 + index };
            let number = u32::MAX - u32::from(index);
            let payload = payload(host, number, 20);
            Planned {
                flow,
                is_reply: false,
                number,
                tcp_flags: 0,
                hop_limit: 64,
                dont_fragment: true,
                payload,
            }
        };
        (0..count).map(packet).collect()
    }
}

/// Payload that shows its host and its number.
fn payload(host: u8, number: u32, filler: usize) -> Vec<u8> {
    [MARK, &[host], &number.to_be_bytes(), &vec![number as u8; filler]].concat()
}

/// Reads the host and the number in a packet with a payload of [`payload`].
pub fn content(bytes: &[u8]) -> Option<(u8, u32)> {
    let at = bytes.windows(MARK.len()).position(|window| window == MARK)?;
    let found = bytes.get(at + MARK.len()..at + MARK.len() + 5)?;
    Some((found[0], u32::from_be_bytes(found[1..].try_into().ok()?)))
}

/// The datagram that the host of the load sends all the time.
pub fn load(ipv6: bool, from: [u8; 6], to: [u8; 6]) -> Packet {
    let flow = Flow { host: LOAD, ipv6, tcp: false, port: 40_000 };
    let payload = payload(LOAD, 0, 40);
    Packet { payload, to, from, ..Packet::from_host(flow.source(), destination(ipv6), UDP, 0) }
}

impl Planned {
    /// Returns the packet as it leaves its sender.
    pub fn packet(&self, from: [u8; 6], to: [u8; 6]) -> Packet {
        let protocol = if self.flow.tcp { TCP } else { UDP };
        Packet {
            hop_limit: self.hop_limit,
            identification: self.number as u16,
            dont_fragment: self.dont_fragment,
            tcp_flags: self.tcp_flags,
            sequence: self.number,
            payload: self.payload.clone(),
            from,
            to,
            ..Packet::from_host(self.flow.source(), destination(self.flow.ipv6), protocol, 0)
        }
    }
}
