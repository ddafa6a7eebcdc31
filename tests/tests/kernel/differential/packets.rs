//! Packets of the small test vocabulary: well-formed, unusual, and malformed.

use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use proptest::collection::vec;
use proptest::prelude::*;

use super::plans::{PORTS, RESOLVERS, VLANS, address, mac};

/// Returns a frame as it would arrive.
pub(crate) fn packet() -> impl Strategy<Value = Vec<u8>> {
    let whole = || (link(), ip()).prop_map(|(link, (ethertype, ip))| frame(&link, ethertype, &ip));
    let noise = vec(any::<u8>(), 14..120);
    let any = prop_oneof![
        12 => whole(),
        1 => (whole(), any::<prop::sample::Index>()).prop_map(|(mut frame, at)| {
            frame.truncate(at.index(frame.len()));
            frame
        }),
        1 => (whole(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut frame, at, byte)| {
            let at = at.index(frame.len());
            frame[at] = byte;
            frame
        }),
        1 => noise,
    ];
    any.prop_map(runnable)
}

/// Pads frames that BPF_PROG_TEST_RUN rejects: it rejects frames that end within an untagged IP header, or directly
/// after the Ethernet header. Tests with VLAN tags and the unit tests cover truncated headers.
fn runnable(mut frame: Vec<u8>) -> Vec<u8> {
    frame.resize(frame.len().max(15), 0);
    let shortest = match frame[12..14] {
        [0x08, 0x00] => 14 + 20,
        [0x86, 0xdd] => 14 + 40,
        _ => 15,
    };
    frame.resize(frame.len().max(shortest), 0);
    frame
}

#[derive(Clone, Debug)]
struct Link {
    mac: [u8; 6],
    tags: Vec<(u16, u16)>,
    ethertype: Option<u16>,
}

fn link() -> impl Strategy<Value = Link> {
    let tag = (
        prop::sample::select(vec![0x8100u16, 0x88a8, 0x9100]),
        prop_oneof![prop::sample::select(VLANS.to_vec()), Just(0u16), any::<u16>()],
    );
    let tags = prop_oneof![6 => Just(Vec::new()), 2 => vec(tag.clone(), 1..3), 1 => vec(tag, 3..6)];
    let other = prop_oneof![20 => Just(None), 1 => prop::sample::select(vec![0x0806u16, 0x88cc, 0x888e]).prop_map(Some)];
    (any::<u8>(), tags, other).prop_map(|(n, tags, ethertype)| Link { mac: mac(n), tags, ethertype })
}

fn frame(link: &Link, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 1, 1];
    frame.extend(link.mac);
    for (kind, tci) in &link.tags {
        frame.extend(kind.to_be_bytes());
        frame.extend(tci.to_be_bytes());
    }
    frame.extend(link.ethertype.unwrap_or(ethertype).to_be_bytes());
    frame.extend(payload);
    frame
}

fn ip() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let ends = (any::<bool>(), any::<[u8; 2]>(), any::<[u8; 2]>(), special());
    let shape = (fragment(), vec(prop::sample::select(vec![0u8, 43, 44, 51, 60, 135]), 0..10), 0u8..11);
    (ends, shape, transport()).prop_map(
        |((ipv6, s, d, special), (fragment, extensions, options), transport)| {
            let source = address(ipv6, s[0], s[1]);
            let destination = special.filter(|a| a.is_ipv6() == ipv6).unwrap_or(address(ipv6, d[0], d[1]));
            // Long chains are rare, or most packets would be malformed.
            let extensions =
                if extensions.len() > 5 { extensions } else { extensions.into_iter().take(2).collect() };
            match (source, destination) {
                (IpAddr::V4(source), IpAddr::V4(destination)) => {
                    (0x0800, ipv4(source.octets(), destination.octets(), fragment, options, &transport))
                }
                (IpAddr::V6(source), IpAddr::V6(destination)) => (
                    0x86dd,
                    ipv6_packet(source.octets(), destination.octets(), fragment, &extensions, &transport),
                ),
                _ => unreachable!("both ends are of one family"),
            }
        },
    )
}

fn special() -> impl Strategy<Value = Option<IpAddr>> {
    let addresses = [
        "224.0.0.251",
        "255.255.255.255",
        "198.18.0.1",
        "ff02::1",
        "fe80::1",
        "2001:db8:ffff::1",
        "::ffff:10.0.0.1",
    ];
    let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().expect("an address")).collect();
    prop_oneof![3 => Just(None), 1 => prop::sample::select(addresses).prop_map(Some)]
}

/// Returns the offset in units of eight bytes, and whether more fragments follow.
fn fragment() -> impl Strategy<Value = (u16, bool)> {
    prop_oneof![6 => Just((0u16, false)), 1 => Just((0u16, true)), 1 => (1u16..0x1fff, any::<bool>())]
}

#[derive(Clone, Debug)]
struct Transport {
    protocol: u8,
    bytes: Vec<u8>,
}

fn transport() -> impl Strategy<Value = Transport> {
    let port = || prop_oneof![3 => prop::sample::select(PORTS.to_vec()), 1 => any::<u16>()];
    let flags = prop::sample::select(vec![0x02u8, 0x10, 0x12, 0x11, 0x04, 0xc2]);
    let ports = (prop::sample::select(vec![6u8, 6, 17, 33, 132, 136]), port(), port(), flags);
    // Sequence and acknowledgement numbers, offset and flags at their TCP offsets.
    let ports = ports.prop_map(|(protocol, s, d, flags)| Transport {
        protocol,
        bytes: [&s.to_be_bytes()[..], &d.to_be_bytes(), &[0; 8], &[0x50, flags], &[0; 6]].concat(),
    });
    let dhcp = prop::sample::select(vec![(68u16, 67u16), (546, 547)]).prop_map(|(s, d)| Transport {
        protocol: 17,
        bytes: [&s.to_be_bytes()[..], &d.to_be_bytes(), &[0; 16]].concat(),
    });
    let icmp = (
        prop::sample::select(vec![1u8, 58]),
        prop::sample::select(vec![0u8, 3, 8, 128, 129, 133, 135, 136]),
        any::<u16>(),
    );
    let icmp = icmp.prop_map(|(protocol, kind, id)| Transport {
        protocol,
        bytes: [&[kind, 0, 0, 0][..], &id.to_be_bytes(), &[0; 10]].concat(),
    });
    let other =
        (any::<u8>(), vec(any::<u8>(), 0..12)).prop_map(|(protocol, bytes)| Transport { protocol, bytes });
    let stun = (port(), port(), any::<bool>(), 0u8..3).prop_map(|(s, d, is_whole, attributes)| {
        stun(s, d, u16::from(attributes) * 4 + u16::from(!is_whole))
    });
    let quic = (port(), port(), any::<bool>(), any::<u8>()).prop_map(|(s, d, is_second, kind)| {
        let version: u32 = if is_second { 0x6b33_43cf } else { 1 };
        quic(s, d, 0xc0 | kind, version)
    });
    let hello = (port(), prop::sample::select(SERVERS.to_vec()), any::<bool>());
    let hello = hello.prop_map(|(port, name, is_whole)| {
        let (first, rest) = client_hello(name);
        segment(port, &if is_whole { [first, rest].concat() } else { first })
    });
    let framed = (port(), any::<bool>()).prop_map(|(port, is_framed)| {
        let message = [0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 7, 7, 7, 7];
        segment(port, &if is_framed { [&[0, 20][..], &message].concat() } else { message.to_vec() })
    });
    prop_oneof![8 => ports, 1 => dhcp, 2 => icmp, 1 => stun, 1 => quic, 1 => hello, 1 => framed, 1 => other]
}

/// Names of servers: one of a plan, one below one of a plan, another.
const SERVERS: [&str; 3] = [RESOLVERS[0], "www.Dns.Example.org", "www.example.net"];

/// Returns a ClientHello in two parts: the second begins within an extension, and has the name.
fn client_hello(name: &str) -> (Vec<u8>, Vec<u8>) {
    let length = u16::try_from(name.len()).expect("short");
    let lengths = [length + 5, length + 3];
    let server_name = [&[0, 0][..], &lengths[0].to_be_bytes(), &lengths[1].to_be_bytes(), &[0]].concat();
    let server_name = [&server_name[..], &length.to_be_bytes(), name.as_bytes()].concat();
    let padding = [&[0, 21, 0, 30][..], &[0; 30]].concat();
    let extensions = u16::try_from(padding.len() + server_name.len()).expect("short");
    let mut first = vec![0x16, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];
    first.extend([7; 32]);
    first.extend([0, 0, 2, 0x13, 1, 1, 0]);
    first.extend(extensions.to_be_bytes());
    first.extend(&padding[..20]);
    (first, [&padding[20..], &server_name].concat())
}

/// Returns a TCP segment with this payload.
fn segment(port: u16, payload: &[u8]) -> Transport {
    let ports = [40_000u16.to_be_bytes(), port.to_be_bytes()].concat();
    let header = [&ports[..], &[0; 8], &[0x50, 0x18], &[0; 6]].concat();
    Transport { protocol: 6, bytes: [&header, payload].concat() }
}

/// Returns the segment with the rest of a ClientHello of which a frame has the first part.
pub(crate) fn rest(frame: &[u8], packet: &IpPacket, name: &str) -> Vec<u8> {
    let transport = usize::from(packet.transport);
    let (first, rest) = client_hello(name);
    let mut rest = [&frame[..transport + 20], &rest].concat();
    let sequence = u32::try_from(first.len()).expect("short");
    rest[transport + 4..transport + 8].copy_from_slice(&sequence.to_be_bytes());
    rest
}

/// Returns a STUN request whose header announces this length of attributes; the true one is a multiple of four.
fn stun(source: u16, destination: u16, attributes: u16) -> Transport {
    let body = vec![0u8; usize::from(attributes & !3)];
    let length = 8 + 20 + u16::try_from(body.len()).expect("small");
    let header = [source.to_be_bytes(), destination.to_be_bytes(), length.to_be_bytes(), [0, 0]].concat();
    let message = [&[0u8, 1][..], &attributes.to_be_bytes(), &[0x21, 0x12, 0xa4, 0x42], &[7; 12]].concat();
    Transport { protocol: 17, bytes: [header, message, body].concat() }
}

/// Returns the beginning of a QUIC packet in a datagram that claims to be large enough for an Initial packet.
fn quic(source: u16, destination: u16, first: u8, version: u32) -> Transport {
    let header = [source.to_be_bytes(), destination.to_be_bytes(), 1208u16.to_be_bytes(), [0, 0]].concat();
    let packet = [&[first][..], &version.to_be_bytes(), &[8; 20]].concat();
    Transport { protocol: 17, bytes: [header, packet].concat() }
}

fn ipv4(
    source: [u8; 4],
    destination: [u8; 4],
    fragment: (u16, bool),
    options: u8,
    transport: &Transport,
) -> Vec<u8> {
    // Options are rare on the wire, but they shift all later fields.
    let words = options.saturating_sub(5);
    let total = 20 + usize::from(words) * 4 + transport.bytes.len();
    let mut packet = vec![0x45 + words, 0];
    packet.extend(u16::try_from(total).expect("small").to_be_bytes());
    packet.extend([0, 1]);
    let field = fragment.0 | if fragment.1 { 0x2000 } else { 0 };
    packet.extend(field.to_be_bytes());
    packet.extend([64, transport.protocol, 0, 0]);
    packet.extend(source);
    packet.extend(destination);
    packet.extend(std::iter::repeat_n(1, usize::from(words) * 4));
    packet.extend(&transport.bytes);
    packet
}

fn ipv6_packet(
    source: [u8; 16],
    destination: [u8; 16],
    fragment: (u16, bool),
    extensions: &[u8],
    transport: &Transport,
) -> Vec<u8> {
    let mut chain: Vec<u8> = extensions.to_vec();
    if fragment != (0, false) {
        chain.push(44);
    }
    let next = |index: usize| chain.get(index).copied().unwrap_or(transport.protocol);
    let mut body = Vec::new();
    for (index, kind) in chain.iter().enumerate() {
        match kind {
            44 => {
                let field = fragment.0 << 3 | u16::from(fragment.1);
                body.extend([next(index + 1), 0]);
                body.extend(field.to_be_bytes());
                body.extend([0, 0, 0, 1]);
            }
            // In units of four bytes, minus two.
            51 => body.extend([next(index + 1), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            _ => body.extend([next(index + 1), 0, 1, 4, 0, 0, 0, 0]),
        }
    }
    body.extend(&transport.bytes);
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(u16::try_from(body.len()).expect("small").to_be_bytes());
    packet.extend([next(0), 64]);
    packet.extend(source);
    packet.extend(destination);
    packet.extend(body);
    packet
}

/// Returns a TCP segment over IPv4.
pub(crate) fn tcp4(
    source: [u8; 4],
    destination: [u8; 4],
    source_port: u16,
    destination_port: u16,
    flags: u8,
) -> Vec<u8> {
    let ports = [source_port.to_be_bytes(), destination_port.to_be_bytes()].concat();
    let bytes = [&ports[..], &[0; 8], &[0x50, flags], &[0; 6]].concat();
    let payload = ipv4(source, destination, (0, false), 0, &Transport { protocol: 6, bytes });
    frame(&Link { mac: mac(1), tags: Vec::new(), ethertype: None }, 0x0800, &payload)
}

/// Returns a plain UDP packet over IPv4.
pub(crate) fn udp4(
    source: [u8; 4],
    destination: [u8; 4],
    source_port: u16,
    destination_port: u16,
) -> Vec<u8> {
    let bytes = [&source_port.to_be_bytes()[..], &destination_port.to_be_bytes(), &[0, 8, 0, 0]].concat();
    let payload = ipv4(source, destination, (0, false), 0, &Transport { protocol: 17, bytes });
    frame(&Link { mac: mac(1), tags: Vec::new(), ethertype: None }, 0x0800, &payload)
}
