//! Flows of the load: the bytes that differ from frame to frame, as instructions of the generator.
//!
//! All variations keep the checksums valid, because another field decreases by what one increases.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result};

use crate::bpf::Instruction;
use crate::bpf::instruction::*;
use crate::frame::{self, Mac, Udp};

/// Flows of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flows {
    One,
    /// 64 flows, which differ in the low bits of the source port and of the destination. With one destination, plain
    /// forwarding would look up one route for a whole batch.
    Few,
    /// 1 024 flows, which differ in more bits of the source port.
    Thousand,
    /// The same over IPv6, with a UDP checksum.
    ThousandIpv6,
    /// So many flows of [`DEVICES`] hosts, in rotation.
    Rotation(u32),
    /// A new flow of the same hosts with each packet.
    New,
    /// The rotation, and behind each of its packets a packet of a random flow of one more host.
    Flooded(u32),
}

/// Hosts of [`Flows::Rotation`].
pub(crate) const DEVICES: u8 = 50;
/// The host that sends random flows.
const FLOODER: u8 = 63;
/// Last byte of the IPv4 address of the first host. Those of the others follow.
const FIRST_HOST: u8 = 64;
/// Source ports of a rotation, a multiple of the destinations.
const PORTS: i32 = 64_000;
const FIRST_PORT: i32 = 1024;
/// Destinations, as a mask of the last byte.
const DESTINATIONS: i32 = 63;
/// First word of the payload of packets of a rotation.
pub(crate) const ROTATION_PAYLOAD: [u8; 4] = [1, 0, 0, 0];

/// Numbers and MAC addresses of the hosts of a load.
pub(crate) fn hosts() -> impl Iterator<Item = (u8, Mac)> {
    (0..DEVICES).chain([FLOODER]).map(|host| (FIRST_HOST + host, [2, 0, 0, 0x77, 1, host]))
}

impl Flows {
    pub(crate) fn is_ipv6(self) -> bool {
        self == Flows::ThousandIpv6
    }

    /// The load has the hosts of [`hosts`].
    pub(crate) fn has_hosts(self) -> bool {
        matches!(self, Flows::Rotation(_) | Flows::New | Flows::Flooded(_))
    }

    /// Number of packets before a measurement, which bring entries that were not used meanwhile into use again.
    pub(crate) fn warm_up(self) -> u32 {
        match self {
            Flows::Rotation(flows) => 3 * flows,
            _ => 0,
        }
    }

    /// Returns the frame that is varied, for headers of the single host.
    pub(crate) fn frame(self, headers: &Udp) -> Result<Vec<u8>> {
        let mut headers = *headers;
        if self.has_hosts() {
            headers.from = [2, 0, 0, 0x77, 1, 0];
            headers.source = Ipv4Addr::new(10, 77, 0, FIRST_HOST).into();
        }
        headers.frame().context("addresses of one family")
    }

    /// Returns the instructions that vary a frame. Register 7 is its address, `counter` is an array of one number.
    pub(crate) fn variation(self, headers: &Udp, counter: i32) -> Vec<Instruction> {
        let [port_high, _] = headers.source_port.to_be_bytes();
        match self {
            Flows::One => random_ipv4(None, 0),
            Flows::Few => random_ipv4(None, DESTINATIONS),
            Flows::Thousand => random_ipv4(Some(port_high), DESTINATIONS),
            Flows::ThousandIpv6 => random_ipv6(port_high),
            Flows::Rotation(flows) => [count(counter), rotation(Some(flows))].concat(),
            Flows::New => [count(counter), rotation(None)].concat(),
            Flows::Flooded(flows) => {
                let mut regular = vec![shift_right(8, 1)];
                regular.extend(rotation(Some(flows)));
                let flood = flood(third_octet(headers));
                regular.push(skip(flood.len() as i16));
                let mut code = count(counter);
                code.extend([copy(1, 8), and(1, 1), skip_unless_equal(1, 0, regular.len() as i16)]);
                [code, regular, flood].concat()
            }
        }
    }
}

fn third_octet(headers: &Udp) -> u8 {
    match headers.destination {
        IpAddr::V4(address) => address.octets()[2],
        IpAddr::V6(_) => 0,
    }
}

/// Random bits of the source port and of the destination. The low bits of both bytes of the source port and of the low
/// byte of the destination have to be 0.
fn random_ipv4(port_high: Option<u8>, mask: i32) -> Vec<Instruction> {
    let mut code = Vec::new();
    if let Some(high) = port_high {
        code.extend([call(GET_RANDOM), and(0, 15), add(0, high.into())]);
        code.push(store8(7, frame::SOURCE_PORT, 0));
    }
    code.extend([call(GET_RANDOM), and(0, mask), store8(7, frame::SOURCE_PORT + 1, 0)]);
    code.push(store8(7, frame::DESTINATION + 3, 0));
    code.extend([set(1, IDENTIFICATION_LOW), subtract(1, 0), store8(7, frame::IDENTIFICATION + 1, 1)]);
    code
}

fn random_ipv6(port_high: u8) -> Vec<Instruction> {
    let full = i32::from(frame::IPV6_PAYLOAD[1]);
    let less = |offset, value| [set(1, full), subtract(1, value), store8(7, frame::PAYLOAD6 + offset, 1)];
    let mut code = vec![call(GET_RANDOM), and(0, 15)];
    code.extend(less(2, 0));
    code.extend([add(0, port_high.into()), store8(7, frame::SOURCE_PORT6, 0)]);
    code.extend([call(GET_RANDOM), and(0, DESTINATIONS)]);
    code.extend([store8(7, frame::SOURCE_PORT6 + 1, 0), store8(7, frame::DESTINATION6 + 15, 0)]);
    code.extend(less(1, 0));
    code.extend(less(3, 0));
    code
}

const IDENTIFICATION_LOW: i32 = frame::IDENTIFICATION_VALUE as i32;

/// Puts the number of the packet into register 8.
fn count(counter: i32) -> Vec<Instruction> {
    let mut code = map_value(1, counter, 0).to_vec();
    code.extend([load64(8, 1, 0), copy(2, 8), add(2, 1), store64(1, 0, 2)]);
    code
}

/// The flow of the number in register 8. Each flow has a pair of source port and destination of its own.
fn rotation(flows: Option<u32>) -> Vec<Instruction> {
    let mut code = Vec::new();
    if let Some(flows) = flows {
        code.push(remainder(8, flows as i32));
    }
    code.extend([copy(1, 8), remainder(1, DEVICES.into())]);
    code.extend(host());
    // The ports are a multiple of the destinations, so the second round of ports begins at another destination.
    code.extend([copy(2, 8), divide(2, PORTS), add_register(2, 8), and(2, DESTINATIONS)]);
    code.extend([store8(7, frame::DESTINATION + 3, 2), set(4, IDENTIFICATION_LOW), subtract(4, 1)]);
    code.extend([subtract(4, 2), store8(7, frame::IDENTIFICATION + 1, 4)]);
    code.extend([copy(4, 8), remainder(4, PORTS), add(4, FIRST_PORT), to_big_endian16(4)]);
    code.push(store16(7, frame::SOURCE_PORT, 4));
    code.extend([set(4, ROTATION_PAYLOAD[0].into()), store8(7, frame::PAYLOAD, 4)]);
    code
}

/// Writes the addresses of the host in register 1.
fn host() -> [Instruction; 4] {
    [
        store8(7, frame::SOURCE_MAC + 5, 1),
        copy(2, 1),
        add(2, FIRST_HOST.into()),
        store8(7, frame::SOURCE + 3, 2),
    ]
}

/// A random flow: both ports and 16 bits of the destination. Their first byte is `third` in the frame.
fn flood(third: u8) -> Vec<Instruction> {
    let mut code = vec![set(1, FLOODER.into())];
    code.extend(host());
    code.extend([call(GET_RANDOM), store16(7, frame::SOURCE_PORT, 0), call(GET_RANDOM)]);
    code.push(store16(7, frame::DESTINATION_PORT, 0));
    code.extend([call(GET_RANDOM), and(0, 0xffff), store16(7, frame::DESTINATION + 2, 0)]);
    // One's complement: the sum of both fields and of the number of the host stays that of the frame.
    let rest = u16::from_ne_bytes([third, frame::IDENTIFICATION_VALUE - FLOODER]);
    code.extend([set(1, 0xffff), subtract(1, 0), add(1, rest.into())]);
    code.extend([copy(2, 1), shift_right(2, 16), and(1, 0xffff), add_register(1, 2)]);
    code.push(store16(7, frame::IDENTIFICATION, 1));
    code
}
