//! Datagrams of a real client.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use gateway_common::wire::{Address, Mac, ServerNames};
use quinn::crypto::rustls::QuicClientConfig;

use super::*;

const OWNER: Owner = [2, 1, 7];

fn flow() -> FlowKey {
    FlowKey {
        source: Address::v4([10, 0, 0, 2]),
        destination: Address::v4([203, 0, 113, 7]),
        interface: 2,
        source_port: 50_000,
        destination_port: 443,
        mac: Mac::new([2; 6]),
        vlan: 0,
        protocol: 17,
        fragment: 0,
        _pad: [0; 2],
    }
}

/// Headers of Ethernet, IPv4 and UDP.
const HEADERS: [u8; 42] = {
    let mut headers = [0; 42];
    (headers[12], headers[14], headers[23]) = (8, 0x45, 17);
    headers
};

/// Returns the copy of a datagram.
fn copy(datagram: &[u8], held: u32) -> QuicInitial {
    let mut copy: QuicInitial = zerocopy::FromZeros::new_zeroed();
    copy.flow = flow();
    copy.held = held;
    copy.headers_length = HEADERS.len() as u32;
    copy.headers[..HEADERS.len()].copy_from_slice(&HEADERS);
    copy.length = datagram.len() as u32;
    copy.bytes[..datagram.len()].copy_from_slice(datagram);
    copy
}

/// Returns the first datagrams of a client that connects to a server of this name, which never answers.
async fn datagrams(name: &str, number: usize) -> Vec<Vec<u8>> {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    server.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let to = server.local_addr().expect("an address");
    let mut roots = rustls::RootCertStore::empty();
    roots.extend([]);
    let config =
        rustls::ClientConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).expect("QUIC")));
    let endpoint = quinn::Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a client");
    let _connecting = endpoint.connect_with(config, to, name).expect("a connection");
    let read = move || {
        let mut buffer = [0; 2048];
        let one = |_| {
            let length = server.recv(&mut buffer).expect("a datagram");
            buffer[..length].to_vec()
        };
        (0..number).map(one).collect()
    };
    blocking(read).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_a_real_handshake_is_read() {
    let mut connections = Connections::default();
    let now = Instant::now();
    let datagrams = datagrams("doh.opendns.com", 2).await;
    let found =
        datagrams.iter().find_map(|datagram| connections.add(&copy(datagram, 0), OWNER, now)).expect("read");
    assert_eq!(
        found,
        Read {
            names: Some(ServerNames::of("doh.opendns.com")),
            name: Some("doh.opendns.com".to_owned()),
            held: Vec::new(),
        }
    );
    assert!(connections.open.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn held_packets_come_back_as_they_were() {
    let mut connections = Connections::default();
    let now = Instant::now();
    let datagrams = datagrams("www.example.com", 2).await;
    let read =
        datagrams.iter().find_map(|datagram| connections.add(&copy(datagram, 1), OWNER, now)).expect("read");
    assert_eq!(read.names, Some(ServerNames::of("www.example.com")));
    assert!(!read.held.is_empty());
    for (frame, datagram) in read.held.iter().zip(&datagrams) {
        assert!(frame.starts_with(&HEADERS[..16]) && frame.ends_with(datagram));
        assert_eq!(frame.len(), HEADERS.len() + datagram.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_initial_packet_shows_nothing() {
    let mut connections = Connections::default();
    let mut datagram = datagrams("doh.opendns.com", 1).await.remove(0);
    let last = datagram.len() - 1;
    datagram[last] ^= 1;
    assert_eq!(connections.add(&copy(&datagram, 1), OWNER, Instant::now()), None);
    assert_eq!(connections.add(&copy(&[0xc0; 1200], 1), OWNER, Instant::now()), None);
    assert!(connections.open.is_empty(), "nothing is kept of them");
}

/// Returns the two datagrams of a ClientHello whose name is in the second one. Clients order the extensions by chance.
async fn late_name(name: &str) -> Vec<Vec<u8>> {
    loop {
        let datagrams = datagrams(name, 2).await;
        if Connections::default().add(&copy(&datagrams[0], 1), OWNER, Instant::now()).is_none() {
            return datagrams;
        }
    }
}

/// Returns the copy of a datagram with a MAC address and a port that its sender made up.
fn forged(datagram: &[u8], number: u32) -> QuicInitial {
    let mut forged = copy(datagram, 1);
    let [a, b, c, d] = number.to_be_bytes();
    forged.flow.mac = Mac::new([2, 9, a, b, c, d]);
    forged.flow.source_port = u16::from_be_bytes([c, d]);
    forged
}

#[tokio::test(flavor = "multi_thread")]
async fn made_up_mac_addresses_take_no_room_of_other_hosts() {
    let mut connections = Connections::default();
    let (hosts, now) = (HostPaths::default(), Instant::now());
    let datagrams = late_name("www.example.com").await;
    assert_eq!(connections.add(&copy(&datagrams[0], 1), OWNER, now), None);
    let mut later = now;
    for number in 0..6000 {
        later += Duration::from_millis(1);
        let copy = forged(&datagrams[0], number);
        let owner = hosts.of_mac(copy.flow.interface, copy.flow.mac.octets());
        assert_eq!(connections.add(&copy, owner, later), None);
        assert!(connections.open.len() <= 1 + MAX_OF_OWNER);
    }
    let read = connections.add(&copy(&datagrams[1], 1), OWNER, later).expect("read");
    assert_eq!((read.names, read.held.len()), (Some(ServerNames::of("www.example.com")), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_of_the_most_gives_up_its_oldest_when_there_is_no_room() {
    let mut connections = Connections::default();
    let (datagram, now) = (late_name("www.example.com").await.remove(0), Instant::now());
    let quiet = [2, 1, u128::MAX];
    assert_eq!(connections.add(&copy(&datagram, 1), quiet, now), None);
    for number in 0..5000 {
        let copy = forged(&datagram, number);
        assert_eq!(connections.add(&copy, [2, 1, u128::from(number / 60)], now), None);
    }
    assert!(connections.open.len() <= MAX_OPEN);
    assert_eq!(connections.owners[&quiet].flows.len(), 1);
    let counted: usize = connections.owners.values().map(|state| state.flows.len()).sum();
    assert_eq!(counted, connections.open.len());
}

#[test]
fn copies_beyond_the_budget_of_an_owner_are_not_decrypted() {
    let (mut state, now) = (OwnerState::default(), Instant::now());
    assert_eq!((0..1000).filter(|_| state.admit(now)).count(), MAX_COPIES as usize);
    assert!(state.admit(now + PERIOD));
    assert!(!state.is_idle(now + PERIOD) && state.is_idle(now + 2 * PERIOD));
}

/// Returns a datagram with a 0-RTT packet (RFC 9000, section 17.2.3).
fn early_data(number: u8) -> Vec<u8> {
    [&[0xd3, 0, 0, 0, 1][..], &[number; 600]].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn early_data_is_held_in_its_order_until_the_name_is_read() {
    let mut connections = Connections::default();
    let now = Instant::now();
    let datagrams = late_name("www.example.com").await;
    let before = early_data(0);
    assert_eq!(connections.add(&copy(&before, 1), OWNER, now), None, "of no connection");
    let sequence = [&datagrams[0], &early_data(1), &early_data(2)];
    for datagram in sequence {
        assert_eq!(connections.add(&copy(datagram, 1), OWNER, now), None);
    }
    let read = connections.add(&copy(&datagrams[1], 1), OWNER, now).expect("read");
    let expected = sequence.into_iter().chain([&datagrams[1]]);
    assert_eq!(read.held.len(), 4);
    assert!(read.held.iter().zip(expected).all(|(frame, datagram)| frame.ends_with(datagram)));
    assert_eq!((connections.held_bytes, connections.owners[&OWNER].held_bytes), (0, 0));
    // The program made these copies before it knew the name.
    for late in [&early_data(3), &datagrams[0]] {
        let read = connections.add(&copy(late, 1), OWNER, now).expect("sent on");
        assert_eq!(read.names, Some(ServerNames::of("www.example.com")));
        assert!(read.held.len() == 1 && read.held[0].ends_with(late));
        assert_eq!(connections.add(&copy(late, 0), OWNER, now), None, "it has passed");
    }
    assert_eq!(connections.add(&copy(&early_data(4), 1), OWNER, now + LATE), None);
    assert!(connections.finished.is_empty() && connections.open.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn held_datagrams_are_bounded_for_a_connection_and_an_owner() {
    let mut connections = Connections::default();
    let now = Instant::now();
    let datagram = late_name("www.example.com").await.remove(0);
    for port in 0..40 {
        let of_port = |bytes: &[u8]| {
            let mut copy = copy(bytes, 1);
            copy.flow.source_port = port;
            copy
        };
        assert_eq!(connections.add(&of_port(&datagram), OWNER, now), None);
        for number in 0..100 {
            assert_eq!(connections.add(&of_port(&early_data(number)), OWNER, now), None);
        }
    }
    assert_eq!(connections.open.values().map(|known| known.held.len()).max(), Some(MAX_HELD));
    let kept: usize = connections.open.values().flat_map(|known| &known.held).map(Vec::len).sum();
    assert_eq!((connections.held_bytes, connections.owners[&OWNER].held_bytes), (kept, kept));
    assert!(kept <= MAX_HELD_BYTES_OF_OWNER && kept + 700 > MAX_HELD_BYTES_OF_OWNER, "{kept}");
    // Owners with other packets are not affected, and those that timed out give all back.
    let mut other = copy(&datagram, 1);
    other.flow.source_port = 1000;
    assert_eq!(connections.add(&other, [9, 9, 9], now), None);
    assert_eq!(connections.owners[&[9, 9, 9]].held_bytes, HEADERS.len() + datagram.len());
    connections.expire(OWNER, now + TIMEOUT);
    assert_eq!(connections.held_bytes, HEADERS.len() + datagram.len());
    assert_eq!(connections.owners[&OWNER].held_bytes, 0);
}
