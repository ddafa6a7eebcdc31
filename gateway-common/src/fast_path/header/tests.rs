//! The rewrite against packets that are built whole, with all checksums computed from the beginning.

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use zerocopy::FromZeros;

use super::*;
use crate::checksum::sum;

/// A packet that is built from its fields.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub protocol: u8,
    pub hop_limit: u8,
    pub identification: u16,
    pub tcp_flags: u8,
    pub payload: Vec<u8>,
    pub to: [u8; 6],
    pub from: [u8; 6],
}

impl Built {
    pub(crate) fn frame(&self) -> Vec<u8> {
        let transport = self.transport();
        let mut frame = [self.to, self.from].concat();
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                frame.extend([0x08, 0x00]);
                let mut header = vec![0x45, 0xb8];
                header.extend((20 + transport.len() as u16).to_be_bytes());
                header.extend(self.identification.to_be_bytes());
                header.extend([0x40, 0, self.hop_limit, self.protocol, 0, 0]);
                header.extend(source.octets());
                header.extend(destination.octets());
                let checksum = !fold(sum(&header));
                header[10..12].copy_from_slice(&checksum.to_ne_bytes());
                frame.extend(header);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                frame.extend([0x86, 0xdd, 0x6b, 0x81, 0x23, 0x45]);
                frame.extend((transport.len() as u16).to_be_bytes());
                frame.extend([self.protocol, self.hop_limit]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
            }
            _ => panic!("one family"),
        }
        frame.extend(transport);
        frame
    }

    fn transport(&self) -> Vec<u8> {
        let mut bytes = [self.source.port().to_be_bytes(), self.destination.port().to_be_bytes()].concat();
        let checksum_at = if self.protocol == UDP {
            bytes.extend((8 + self.payload.len() as u16).to_be_bytes());
            bytes.extend([0, 0]);
            6
        } else {
            bytes.extend([1, 2, 3, 4, 5, 6, 7, 8, 0x80, self.tcp_flags, 0x20, 0, 0, 0, 0, 0]);
            bytes.extend([1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
            16
        };
        bytes.extend(&self.payload);
        let mut pseudo = match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => [a.octets(), b.octets()].concat(),
            (IpAddr::V6(a), IpAddr::V6(b)) => [a.octets(), b.octets()].concat(),
            _ => panic!("one family"),
        };
        pseudo.extend((bytes.len() as u32).to_be_bytes());
        pseudo.extend([0, 0, 0, self.protocol]);
        let checksum = !fold(add(sum(&pseudo), sum(&bytes)));
        let checksum = if self.protocol == UDP && checksum == 0 { 0xffff } else { checksum };
        bytes[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_ne_bytes());
        bytes
    }
}

pub(crate) fn address(ipv6: bool) -> BoxedStrategy<IpAddr> {
    if ipv6 {
        any::<[u8; 16]>().prop_map(IpAddr::from).boxed()
    } else {
        any::<[u8; 4]>().prop_map(IpAddr::from).boxed()
    }
}

fn endpoint(ipv6: bool) -> impl Strategy<Value = SocketAddr> {
    (address(ipv6), any::<u16>()).prop_map(|(address, port)| SocketAddr::new(address, port))
}

pub(crate) fn built(ipv6: bool) -> impl Strategy<Value = Built> {
    let headers = (endpoint(ipv6), endpoint(ipv6), prop_oneof![Just(UDP), Just(TCP)], 2u8.., any::<u16>());
    let rest = (
        prop_oneof![Just(0x10u8), Just(0x18), Just(0xd8)],
        prop::collection::vec(any::<u8>(), 0..40),
        any::<([u8; 6], [u8; 6])>(),
    );
    (headers, rest).prop_map(|(headers, (tcp_flags, payload, (to, from)))| {
        let (source, destination, protocol, hop_limit, identification) = headers;
        Built { source, destination, protocol, hop_limit, identification, tcp_flags, payload, to, from }
    })
}

fn word(address: IpAddr) -> Address {
    address.into()
}

/// The key after a rewrite to these ends.
pub(crate) fn key_after<F: Family>(source: SocketAddr, destination: SocketAddr) -> Key<F::Address> {
    Key {
        source: F::narrow(&word(source.ip())),
        destination: F::narrow(&word(destination.ip())),
        source_port: source.port().to_be(),
        destination_port: destination.port().to_be(),
        protocol: 0,
    }
}

/// Carries out on bytes what the kernel program does by helpers.
fn rewrite<F: Family>(frame: &[u8], after: &Key<F::Address>, action: &FastAction) -> Vec<u8>
where
    F::Frame: IntoBytes + Immutable + FromZeros,
{
    let mut head = Head::default();
    let mut header = F::Header::new_zeroed();
    assert!(read::<F, [u8]>(frame, ETHERNET, &mut head, &mut header), "a packet of the fast path");
    let mut out = frame.to_vec();
    let mut written = F::Frame::new_zeroed();
    F::set_frame(&mut written, &header, after, action);
    let length = ETHERNET + F::LENGTH + 4;
    out[..length].copy_from_slice(&written.as_bytes()[2..][..length]);
    let at = ETHERNET + F::LENGTH + if head.protocol == UDP { 6 } else { 16 };
    let before = u16::from_ne_bytes([out[at], out[at + 1]]);
    let delta = add(F::address_change(&header, after), port_change(&head, after));
    let after = !fold(add(u32::from(!before), delta));
    let after = if head.protocol == UDP && after == 0 { 0xffff } else { after };
    out[at..at + 2].copy_from_slice(&after.to_ne_bytes());
    out
}

fn check<F: Family>(packet: &Built, source: SocketAddr, destination: SocketAddr) -> Result<(), TestCaseError>
where
    F::Frame: IntoBytes + Immutable + FromZeros,
{
    let action = FastAction {
        to: Mac::new([2, 1, 2, 3, 4, 5]),
        from: Mac::new([2, 9, 8, 7, 6, 5]),
        ..FastAction::default()
    };
    let after = key_after::<F>(source, destination);
    let wanted = Built {
        source,
        destination,
        hop_limit: packet.hop_limit - 1,
        to: action.to.octets(),
        from: action.from.octets(),
        ..packet.clone()
    };
    let (have, want) = (rewrite::<F>(&packet.frame(), &after, &action), wanted.frame());
    // Zero has two forms in a sum. IPv4 and TCP use whichever results; both are right.
    if have != want {
        let differing: Vec<usize> = (0..have.len()).filter(|at| have[*at] != want[*at]).collect();
        let is_zero = |at: usize| [0, 0xff].contains(&have[at]) && [0, 0xff].contains(&want[at]);
        prop_assert!(differing.iter().all(|at| is_zero(*at)), "{have:02x?}\n{want:02x?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_rewritten_packet_is_like_one_built_whole(packet in built(false), source in endpoint(false), destination in endpoint(false)) {
        check::<V4>(&packet, source, destination)?;
    }

    #[test]
    fn a_rewritten_ipv6_packet_is_like_one_built_whole(packet in built(true), source in endpoint(true), destination in endpoint(true)) {
        check::<V6>(&packet, source, destination)?;
    }

    #[test]
    fn read_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..120), at in 0usize..20) {
        read::<V4, [u8]>(&bytes, at, &mut Head::default(), &mut [0; 5]);
        read::<V6, [u8]>(&bytes, at, &mut Head::default(), &mut [0; 10]);
    }
}

fn sample(protocol: u8) -> Built {
    Built {
        source: "10.0.0.2:50000".parse().unwrap(),
        destination: "198.51.100.9:443".parse().unwrap(),
        protocol,
        hop_limit: 64,
        identification: 7,
        tcp_flags: 0x18,
        payload: b"payload".to_vec(),
        to: [2; 6],
        from: [4; 6],
    }
}

fn is_entry<F: Family>(packet: &Built)
where
    F::Address: std::fmt::Debug,
{
    let key = key_after::<F>(packet.source, packet.destination);
    let state = FastState { protocol: 17, port: 9, ..FastState::default() };
    let key = Key { protocol: 17, ..key };
    let entry = F::entry(&key, &state);
    assert!(F::is_of(&entry, &key));
    assert_eq!(F::state(&entry), &state);
    for other in [
        Key { source: key.destination, ..key },
        Key { destination: key.source, ..key },
        Key { source_port: !key.source_port, ..key },
        Key { destination_port: !key.destination_port, ..key },
        Key { protocol: 6, ..key },
    ] {
        assert!(!F::is_of(&entry, &other), "{other:?}");
        assert_ne!(F::hash(&other, 1), F::hash(&key, 1), "{other:?}");
    }
    assert_ne!(F::hash(&key, 2), F::hash(&key, 1), "another secret");
}

#[test]
fn an_entry_is_of_one_key() {
    is_entry::<V4>(&sample(UDP));
    let source = "[2001:db8::2]:50000".parse().unwrap();
    let destination = "[2001:db8:0:1::9]:443".parse().unwrap();
    is_entry::<V6>(&Built { source, destination, ..sample(UDP) });
}

fn is_taken(frame: &[u8]) -> bool {
    read::<V4, [u8]>(frame, ETHERNET, &mut Head::default(), &mut [0; 5])
}

/// Changes a byte of the IPv4 header and restores the header checksum.
fn with(frame: &[u8], at: usize, value: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at] = value;
    frame[24..26].copy_from_slice(&[0, 0]);
    let checksum = !fold(sum(&frame[14..34]));
    frame[24..26].copy_from_slice(&checksum.to_ne_bytes());
    frame
}

#[test]
fn packets_that_the_stack_treats_differently_are_not_taken() {
    for protocol in [UDP, TCP] {
        let frame = sample(protocol).frame();
        assert!(is_taken(&frame));
        assert!(!is_taken(&with(&frame, 14, 0x46)), "options");
        assert!(!is_taken(&with(&frame, 20, 0x20)), "more fragments");
        assert!(!is_taken(&with(&frame, 21, 1)), "a fragment");
        assert!(!is_taken(&with(&frame, 23, 1)), "ICMP");
        assert!(!is_taken(&with(&frame, 17, 27)), "no room for a header");
        let mut broken = frame.clone();
        broken[24] ^= 1;
        assert!(!is_taken(&broken), "a wrong header checksum");
    }
    let mut frame = sample(UDP).frame();
    frame[39] += 1;
    assert!(!is_taken(&frame), "another length in the UDP header");
    for (flags, taken) in
        [(0x10, true), (0x11, true), (0x02, true), (0x04, true), (0x00, false), (0x08, false)]
    {
        assert_eq!(is_taken(&Built { tcp_flags: flags, ..sample(TCP) }.frame()), taken, "flags {flags:#x}");
    }
    let mut frame = sample(TCP).frame();
    frame[46] = 0x40;
    assert!(!is_taken(&frame), "a TCP header shorter than 20 bytes");
    frame[46] = 0xf0;
    assert!(!is_taken(&frame), "a TCP header longer than the packet");
}

#[test]
fn the_head_has_what_the_program_needs() {
    let mut head = Head::default();
    assert!(read::<V4, [u8]>(&sample(TCP).frame(), ETHERNET, &mut head, &mut [0; 5]));
    let want = Head {
        length: 20 + 32 + 7,
        headers: 52,
        first: u32::from_ne_bytes([0x45, 0xb8, 0, 59]),
        source_port: 50_000_u16.to_be(),
        destination_port: 443_u16.to_be(),
        identification: 7_u16.to_be(),
        protocol: TCP,
        hop_limit: 64,
        tcp_flags: 0x18,
    };
    assert_eq!(head, want);
    assert!(!head.is_ending());
}
