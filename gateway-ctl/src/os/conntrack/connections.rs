//! Entries of conntrack with their counters, and reports of entries that have ended.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_common::classify::{ICMP, ICMPV6};
use gateway_core::flow_log::{Connection, TcpState, Traffic, Tuple};
use jiff::Timestamp;
use rtnetlink::sys::protocols::NETLINK_NETFILTER;
use rtnetlink::sys::{Socket, SocketAddr};

use super::{
    DELETE, DONE, DUMP, ERROR, FAMILY_HEADER, GET, ID, IP_V6_DST, IP_V6_SRC, PROTO_DST_PORT, PROTO_NUM,
    PROTO_SRC_PORT, TUPLE_IP, TUPLE_ORIG, TUPLE_PROTO, attribute, error, messages, open, request,
};

// Attributes (include/uapi/linux/netfilter/nfnetlink_conntrack.h).
const TUPLE_REPLY: u16 = 2;
const PROTOINFO: u16 = 4;
const TIMEOUT: u16 = 7;
const COUNTERS_ORIG: u16 = 9;
const COUNTERS_REPLY: u16 = 10;
const TIMESTAMP: u16 = 20;
const IP_V4_SRC: u16 = 1;
const IP_V4_DST: u16 = 2;
/// Identifier, type and code of ICMP, and of ICMPv6.
const ICMP_FIELDS: [u16; 3] = [4, 5, 6];
const ICMPV6_FIELDS: [u16; 3] = [7, 8, 9];
const COUNTER_PACKETS: u16 = 1;
const COUNTER_BYTES: u16 = 2;
const TIMESTAMP_START: u16 = 1;
const PROTOINFO_TCP: u16 = 1;
const PROTOINFO_TCP_STATE: u16 = 1;
/// States of TCP (include/uapi/linux/netfilter/nf_conntrack_tcp.h): `TIME_WAIT` and `CLOSE`.
const TCP_TIME_WAIT: u8 = 7;
const TCP_CLOSE: u8 = 8;
/// `NF_NETLINK_CONNTRACK_DESTROY`.
const DESTROY_GROUP: u32 = 4;
/// Bytes of reports that wait between two readings: some 40 000.
const RECEIVE_BUFFER: usize = 16 << 20;
const DATAGRAM: usize = 32 << 10;

/// Lists all entries. Blocks on the kernel.
pub(crate) fn list() -> io::Result<Vec<Connection>> {
    let socket = open()?;
    socket.send(&request(GET, DUMP, libc::AF_UNSPEC, &[]), 0)?;
    let mut connections = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        for (kind, body) in messages(&datagram) {
            match kind {
                DONE => return Ok(connections),
                ERROR => return Err(error(body).unwrap_or_else(|| io::ErrorKind::InvalidData.into())),
                _ => connections.extend(body.get(FAMILY_HEADER..).and_then(read)),
            }
        }
    }
}

/// Subscription to the ends of entries.
pub(crate) struct EndedConnections(Socket);

impl EndedConnections {
    pub(crate) fn open() -> io::Result<EndedConnections> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind(&SocketAddr::new(0, DESTROY_GROUP))?;
        // Without the right to a larger buffer, reports are lost earlier, which is reported.
        let _ = socket.set_rx_buf_sz(RECEIVE_BUFFER);
        Ok(EndedConnections(socket))
    }

    /// Returns the connections that have ended since the last call, and whether reports were lost.
    pub(crate) fn take(&self) -> io::Result<(Vec<Connection>, bool)> {
        let (mut ended, mut is_incomplete) = (Vec::new(), false);
        let mut datagram = Vec::with_capacity(DATAGRAM);
        loop {
            datagram.clear();
            match self.0.recv(&mut datagram, libc::MSG_DONTWAIT) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((ended, is_incomplete)),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    is_incomplete = true;
                    continue;
                }
                Err(error) => return Err(error),
            }
            for (_, body) in messages(&datagram).filter(|(kind, _)| *kind == DELETE) {
                ended.extend(body.get(FAMILY_HEADER..).and_then(read));
            }
        }
    }
}

fn read(message: &[u8]) -> Option<Connection> {
    let tcp = attribute(message, PROTOINFO)
        .and_then(|info| attribute(info, PROTOINFO_TCP))
        .and_then(|tcp| attribute(tcp, PROTOINFO_TCP_STATE)?.first())
        .map(|state| match *state {
            TCP_TIME_WAIT => TcpState::Closed,
            TCP_CLOSE => TcpState::Reset,
            _ => TcpState::Open,
        });
    let start = attribute(message, TIMESTAMP).and_then(|stamp| u64_of(stamp, TIMESTAMP_START));
    Some(Connection {
        id: u32::from_be_bytes(*attribute(message, ID)?.first_chunk()?),
        origin: tuple(attribute(message, TUPLE_ORIG)?)?,
        reply: tuple(attribute(message, TUPLE_REPLY)?)?,
        started_at: start
            .filter(|start| *start != 0)
            .and_then(|start| Timestamp::from_nanosecond(start.into()).ok()),
        sent: traffic(attribute(message, COUNTERS_ORIG)),
        received: traffic(attribute(message, COUNTERS_REPLY)),
        tcp,
        // The kernel leaves it out where no time is left.
        is_early: attribute(message, TIMEOUT)
            .and_then(|seconds| seconds.first_chunk())
            .is_some_and(|seconds| u32::from_be_bytes(*seconds) != 0),
    })
}

fn u64_of(nest: &[u8], kind: u16) -> Option<u64> {
    Some(u64::from_be_bytes(*attribute(nest, kind)?.first_chunk()?))
}

fn traffic(counters: Option<&[u8]>) -> Option<Traffic> {
    let counters = counters?;
    Some(Traffic { packets: u64_of(counters, COUNTER_PACKETS)?, bytes: u64_of(counters, COUNTER_BYTES)? })
}

fn tuple(nest: &[u8]) -> Option<Tuple> {
    let (addresses, of_protocol) = (attribute(nest, TUPLE_IP)?, attribute(nest, TUPLE_PROTO)?);
    let address = |four: u16, six: u16| {
        let four = attribute(addresses, four).and_then(|bytes| bytes.first_chunk::<4>());
        let six = attribute(addresses, six).and_then(|bytes| bytes.first_chunk::<16>());
        let four = four.map(|octets| IpAddr::from(Ipv4Addr::from(*octets)));
        four.or_else(|| six.map(|octets| IpAddr::from(Ipv6Addr::from(*octets))))
    };
    let short = |kind| Some(u16::from_be_bytes(*attribute(of_protocol, kind)?.first_chunk()?));
    let byte = |kind| attribute(of_protocol, kind).and_then(<[u8]>::first).copied();
    let protocol = byte(PROTO_NUM)?;
    let icmp = |[id, kind, code]: [u16; 3]| {
        let kind = u16::from(byte(kind).unwrap_or(0)) << 8 | u16::from(byte(code).unwrap_or(0));
        (short(id).unwrap_or(0), kind)
    };
    let (source_port, destination_port) = match protocol {
        ICMP => icmp(ICMP_FIELDS),
        ICMPV6 => icmp(ICMPV6_FIELDS),
        _ => (short(PROTO_SRC_PORT).unwrap_or(0), short(PROTO_DST_PORT).unwrap_or(0)),
    };
    Some(Tuple {
        source: address(IP_V4_SRC, IP_V6_SRC)?,
        destination: address(IP_V4_DST, IP_V6_DST)?,
        source_port,
        destination_port,
        protocol,
    })
}

#[cfg(test)]
mod tests {
    use super::super::NESTED;
    use super::*;

    fn part(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = [(content.len() as u16 + 4).to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn nest(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
        part(NESTED | kind, &parts.concat())
    }

    fn direction(kind: u16, addresses: [[u8; 4]; 2], protocol: &[Vec<u8>]) -> Vec<u8> {
        let [source, destination] = addresses;
        let ip = nest(TUPLE_IP, &[part(IP_V4_SRC, &source), part(IP_V4_DST, &destination)]);
        nest(kind, &[ip, nest(TUPLE_PROTO, protocol)])
    }

    fn counters(kind: u16, packets: u64, bytes: u64) -> Vec<u8> {
        let numbers = [(COUNTER_PACKETS, packets), (COUNTER_BYTES, bytes)];
        nest(kind, &numbers.map(|(kind, number)| part(kind, &number.to_be_bytes())))
    }

    #[test]
    fn an_entry_has_its_directions_counters_start_and_state() {
        let (client, server, gateway) = ([10, 0, 0, 2], [192, 0, 2, 1], [198, 18, 0, 1]);
        let ports = |from: u16, to: u16| {
            let ports = [(PROTO_SRC_PORT, from), (PROTO_DST_PORT, to)];
            let ports = ports.map(|(kind, port)| part(kind, &port.to_be_bytes()));
            [vec![part(PROTO_NUM, &[6])], ports.to_vec()].concat()
        };
        let state = nest(PROTOINFO, &[nest(PROTOINFO_TCP, &[part(PROTOINFO_TCP_STATE, &[TCP_TIME_WAIT])])]);
        let message = [
            direction(TUPLE_ORIG, [client, server], &ports(50_000, 443)),
            direction(TUPLE_REPLY, [server, gateway], &ports(443, 1025)),
            state,
            part(ID, &[0, 0, 0, 9]),
            counters(COUNTERS_ORIG, 3, 300),
            counters(COUNTERS_REPLY, 4, 4000),
            nest(TIMESTAMP, &[part(TIMESTAMP_START, &1_800_000_000_000_000_000_u64.to_be_bytes())]),
        ]
        .concat();
        let read_whole = read(&message).expect("an entry");
        assert_eq!((read_whole.id, read_whole.tcp), (9, Some(TcpState::Closed)));
        assert_eq!(read_whole.sent, Some(Traffic { packets: 3, bytes: 300 }));
        assert_eq!(read_whole.received, Some(Traffic { packets: 4, bytes: 4000 }));
        assert_eq!(read_whole.reply.destination, IpAddr::from(gateway));
        assert_eq!((read_whole.origin.source_port, read_whole.reply.destination_port), (50_000, 1025));
        assert_eq!(read_whole.started_at, Timestamp::from_second(1_800_000_000).ok());
        let uncounted = &message[..message.len() - 16 - counters(COUNTERS_REPLY, 0, 0).len()];
        assert_eq!(read(uncounted).and_then(|entry| entry.received), None, "not counted is not zero");
        for length in 0..100 {
            assert_eq!(read(&message[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn an_echo_has_its_identifier_type_and_code() {
        let echo = |kind: u8| {
            let [id, type_, code] = ICMP_FIELDS;
            vec![part(PROTO_NUM, &[ICMP]), part(id, &[1, 2]), part(type_, &[kind]), part(code, &[0])]
        };
        let message = [
            direction(TUPLE_ORIG, [[10, 0, 0, 2], [192, 0, 2, 1]], &echo(8)),
            direction(TUPLE_REPLY, [[192, 0, 2, 1], [10, 0, 0, 2]], &echo(0)),
            part(ID, &[0; 4]),
        ]
        .concat();
        let entry = read(&message).expect("an entry");
        assert_eq!((entry.origin.source_port, entry.origin.destination_port), (0x102, 0x800));
        assert_eq!((entry.tcp, entry.sent, entry.started_at), (None, None, None));
    }
}
