//! Outcome of probes: the packets that a tap behind the egress guard has seen, and the verdicts of the kernel.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_common::classify::{DNS_PORT, ICMP, ICMPV6, TCP, UDP};
use gateway_common::verdict::Reason;

use super::{ExitAnswers, HOPS, Probe, Token};

/// Bytes of a payload in which the token of a probe is.
const TOKEN_WINDOW: usize = 32;

/// Kind of packet in which a probe was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SightingKind {
    /// The probe itself.
    Left,
    /// A DNS query of the gateway for the name that the probe asks for.
    Asked,
    /// The answer to it.
    Answer,
}

/// Packets of a probe at an interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sighting {
    pub interface: String,
    pub kind: SightingKind,
}

/// Answer of the gateway to a query for the IPv4 addresses of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameAnswer {
    pub rcode: u16,
    pub addresses: Vec<Ipv4Addr>,
    /// Code of an extended DNS error (RFC 8914).
    pub error: Option<u16>,
}

/// Packets and verdict of a probe.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub sightings: BTreeMap<Sighting, u64>,
    /// Verdict of the kernel program; `None` if it has none.
    pub verdict: Option<Reason>,
    /// To a [`Token::Query`].
    pub answer: Option<NameAnswer>,
}

/// Outcome of all probes.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub outcomes: Vec<Outcome>,
    /// Reason for which the observation is worthless.
    pub failure: Option<String>,
    /// Addresses that servers saw.
    pub exits: ExitAnswers,
}

/// Returns the index of the probe that an outgoing packet is, or answers. The bytes begin with the IP header.
pub fn recognise(probes: &[Probe], bytes: &[u8]) -> Option<(usize, SightingKind)> {
    let ip = Ip::read(bytes)?;
    probes.iter().enumerate().find_map(|(index, probe)| Some((index, ip.shows(probe)?)))
}

/// IP packet in transit.
struct Ip<'a> {
    destination: IpAddr,
    protocol: u8,
    hops: u8,
    segment: &'a [u8],
}

impl<'a> Ip<'a> {
    /// Probes have neither options nor extension headers.
    fn read(bytes: &'a [u8]) -> Option<Ip<'a>> {
        match bytes.first()? >> 4 {
            4 => {
                let header = usize::from(bytes[0] & 15) * 4;
                let destination = <[u8; 4]>::try_from(bytes.get(16..20)?).ok()?;
                let segment = bytes.get(header.max(20)..)?;
                let destination = Ipv4Addr::from(destination).into();
                Some(Ip { destination, protocol: bytes[9], hops: bytes[8], segment })
            }
            6 => {
                let destination = <[u8; 16]>::try_from(bytes.get(24..40)?).ok()?;
                let segment = bytes.get(40..)?;
                let destination = Ipv6Addr::from(destination).into();
                Some(Ip { destination, protocol: bytes[6], hops: bytes[7], segment })
            }
            _ => None,
        }
    }

    fn shows(&self, probe: &Probe) -> Option<SightingKind> {
        let port = |at: usize| Some(u16::from_be_bytes([*self.segment.get(at)?, *self.segment.get(at + 1)?]));
        let packet = &probe.packet;
        let is_to_destination =
            self.protocol == packet.protocol && self.destination == IpAddr::from(packet.destination);
        match (&probe.token, self.protocol) {
            (Token::Label(label), UDP) => {
                let payload = self.segment.get(8..)?;
                let is_named =
                    payload.windows(label.len()).any(|window| window.eq_ignore_ascii_case(label.as_bytes()));
                match (is_named, port(0)?, port(2)?) {
                    // Queries of the gateway have more hops before them.
                    (true, _, DNS_PORT) if is_to_destination && self.hops < HOPS => Some(SightingKind::Left),
                    (true, _, DNS_PORT) => Some(SightingKind::Asked),
                    (true, DNS_PORT, _) => Some(SightingKind::Answer),
                    _ => None,
                }
            }
            (Token::Query { id, .. }, UDP) => {
                let is_answer = port(0)? == DNS_PORT
                    && port(2)? == packet.source_port
                    && self.destination == IpAddr::from(packet.source)
                    && port(8)? == *id;
                is_answer.then_some(SightingKind::Answer)
            }
            (Token::Sequence(sequence), TCP) if is_to_destination && port(2)? == packet.destination_port => {
                (self.segment.get(4..8)? == sequence.to_be_bytes()).then_some(SightingKind::Left)
            }
            (Token::Payload(token), UDP) if is_to_destination && port(2)? == packet.destination_port => {
                self.carries(token)
            }
            (Token::Payload(token), ICMP | ICMPV6) if is_to_destination => self.carries(token),
            _ => None,
        }
    }

    fn carries(&self, token: &[u8; 4]) -> Option<SightingKind> {
        let payload = self.segment.get(8..)?;
        let window = &payload[..payload.len().min(TOKEN_WINDOW)];
        window.windows(4).any(|bytes| bytes == token).then_some(SightingKind::Left)
    }
}
