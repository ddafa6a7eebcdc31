//! Two protocol machines connected directly, without sockets.

use boringtun::noise::Packet;

use super::super::super::{DeviceConfig, Key, generate_keypair};
use super::super::table::Table;
use super::*;
use std::sync::Arc;

const PACKET: [u8; 24] = [
    0x45, 0, 0, 24, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, //
    1, 2, 3, 4,
];

/// One device with one peer, at an address.
struct Side {
    config: DeviceConfig,
    table: Table,
    address: SocketAddr,
}

/// Datagram that arrived at a side, and its replies.
struct Step {
    received: Received,
    packet: Vec<u8>,
    answers: Vec<Vec<u8>>,
}

impl Side {
    fn peer(&self) -> &Arc<Peer> {
        self.table.peers().next().expect("one peer")
    }

    fn change(&mut self, edit: impl FnOnce(&mut DeviceConfig)) {
        let mut config = self.config.clone();
        edit(&mut config);
        self.table = Table::build(&config, Some((&self.table, &self.config))).expect("random");
        self.config = config;
    }

    fn send(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0; 2048];
        let (len, _) = self.peer().encapsulate(Instant::now(), packet, &mut out).expect("an endpoint")?;
        Some(out[..len].to_vec())
    }

    fn tick(&self) -> Option<Vec<u8>> {
        let mut out = vec![0; 148];
        let (len, _) = self.peer().tick(Instant::now(), &mut out)?;
        Some(out[..len].to_vec())
    }

    fn receive(&self, datagram: &[u8], from: SocketAddr) -> Step {
        let packet = Tunn::parse_incoming_packet(datagram).expect("a message");
        let kind = match &packet {
            Packet::HandshakeInit(_) => Kind::Initiation,
            Packet::HandshakeResponse(_) => Kind::Response,
            Packet::PacketCookieReply(_) => Kind::Cookie,
            Packet::PacketData(data) => Kind::Data { session: data.receiver_idx },
        };
        let mut out = vec![0; 2048];
        let mut answers = Vec::new();
        let received = match self.table.by_packet(&packet) {
            Some(peer) => peer.receive(Instant::now(), from, kind, datagram, &mut out, |answer, to| {
                assert_eq!(to, from, "answers go where the question came from");
                answers.push(answer.to_vec());
            }),
            None => Received::Rejected,
        };
        let len = if let Received::Packet { len, .. } = received { len } else { 0 };
        out.truncate(len);
        Step { received, packet: out, answers }
    }

    fn status(&self) -> PeerStatus {
        self.peer().status()
    }
}

fn pair(keepalive: Option<u16>) -> (Side, Side) {
    let keys = [generate_keypair().expect("random"), generate_keypair().expect("random")];
    let addresses: [SocketAddr; 2] =
        ["192.0.2.1:1000", "192.0.2.2:1000"].map(|a| a.parse().expect("an address"));
    let side = |me: usize, other: usize| {
        let config = DeviceConfig {
            name: "wg".to_owned(),
            private_key: keys[me].private.clone(),
            listen_port: None,
            fwmark: 0,
            mtu: 1420,
            peers: vec![PeerConfig {
                public_key: keys[other].public,
                preshared_key: Some(Key::new([5; 32])),
                endpoint: Some(addresses[other]),
                allowed_ips: vec!["10.0.0.0/8".parse().expect("a network")],
                persistent_keepalive: keepalive,
            }],
        };
        let table = Table::build(&config, None).expect("random");
        Side { config, table, address: addresses[me] }
    };
    (side(0, 1), side(1, 0))
}

/// Runs a handshake that `a` starts with a packet. Returns the datagrams that `b` received.
fn shake(a: &Side, b: &Side) -> Vec<Step> {
    let initiation = a.send(&PACKET).expect("an initiation");
    let response = b.receive(&initiation, a.address).answers.remove(0);
    let data = a.receive(&response, b.address).answers;
    data.iter().map(|datagram| b.receive(datagram, a.address)).collect()
}

#[test]
fn a_handshake_delivers_the_packet_that_asked_for_it_and_both_sides_know_it() {
    let (a, b) = pair(None);
    assert_eq!((a.status().last_handshake, b.status().last_handshake), (None, None));
    let steps = shake(&a, &b);
    assert!(steps.iter().any(|step| step.packet == PACKET));
    let source = "10.0.0.1".parse().expect("an address");
    assert!(steps.iter().any(|step| step.received == Received::Packet { len: PACKET.len(), source }));
    for side in [&a, &b] {
        let status = side.status();
        assert!(status.last_handshake.is_some() && status.rx_bytes > 0 && status.tx_bytes > 0);
    }
    assert_eq!(a.status().tx_bytes, b.status().rx_bytes);
}

#[test]
fn an_unconfirmed_handshake_does_not_count_for_the_responder() {
    let (a, b) = pair(None);
    let initiation = a.send(&PACKET).expect("an initiation");
    assert_eq!(b.receive(&initiation, a.address).answers.len(), 1);
    assert_eq!(b.status().last_handshake, None);
}

#[test]
fn packets_queued_at_the_responder_leave_when_the_session_is_confirmed() {
    let (a, b) = pair(None);
    let lost = b.send(&PACKET).expect("an initiation");
    drop(lost);
    let steps = shake(&a, &b);
    let back: Vec<_> = steps.into_iter().flat_map(|step| step.answers).collect();
    assert!(back.iter().any(|datagram| a.receive(datagram, b.address).packet == PACKET));
}

#[test]
fn a_peer_roams_by_authentic_packets_only() {
    let (a, b) = pair(None);
    shake(&a, &b);
    let elsewhere: SocketAddr = "198.51.100.9:9".parse().expect("an address");
    let data = a.send(&PACKET).expect("a session");
    let mut forged = data.clone();
    *forged.last_mut().expect("not empty") ^= 1;
    assert_eq!(b.receive(&forged, elsewhere).received, Received::Rejected);
    assert_eq!(b.status().endpoint, Some(a.address));
    assert_eq!(b.receive(&data, elsewhere).packet, PACKET);
    assert_eq!(b.status().endpoint, Some(elsewhere));
    assert_eq!(b.receive(&data, a.address).received, Received::Rejected, "a replay");
    assert_eq!(b.status().endpoint, Some(elsewhere));
}

#[test]
fn without_the_same_preshared_key_there_is_no_session() {
    let (mut a, b) = pair(None);
    a.change(|config| config.peers[0].preshared_key = None);
    let initiation = a.send(&PACKET).expect("an initiation");
    let response = b.receive(&initiation, a.address).answers.remove(0);
    assert_eq!(a.receive(&response, b.address).received, Received::Rejected);
    assert_eq!(a.status().last_handshake, None);
}

#[test]
fn changing_networks_keepalive_or_endpoint_keeps_the_session() {
    let (mut a, b) = pair(None);
    shake(&a, &b);
    let moved: SocketAddr = "203.0.113.5:7".parse().expect("an address");
    a.change(|config| {
        config.peers[0].endpoint = Some(moved);
        config.peers[0].persistent_keepalive = Some(10);
        config.peers[0].allowed_ips.clear();
    });
    assert_eq!(a.status().endpoint, Some(moved));
    let data = a.send(&PACKET).expect("the session goes on");
    assert_eq!(b.receive(&data, a.address).packet, PACKET);
}

#[test]
fn a_configured_endpoint_that_did_not_change_does_not_undo_roaming() {
    let (a, mut b) = pair(None);
    shake(&a, &b);
    let elsewhere: SocketAddr = "198.51.100.9:9".parse().expect("an address");
    b.receive(&a.send(&PACKET).expect("a session"), elsewhere);
    b.change(|config| config.fwmark = 7);
    assert_eq!(b.status().endpoint, Some(elsewhere));
}

#[test]
fn a_new_private_key_ends_the_sessions_and_the_new_one_shakes_hands() {
    let (mut a, mut b) = pair(None);
    shake(&a, &b);
    let fresh = generate_keypair().expect("random");
    a.change(|config| config.private_key = fresh.private.clone());
    b.change(|config| config.peers[0].public_key = fresh.public);
    assert!(shake(&a, &b).iter().any(|step| step.packet == PACKET));
}

#[test]
fn a_keepalive_starts_the_handshake_by_itself_and_without_one_the_peer_is_silent() {
    let (a, b) = pair(Some(25));
    let initiation = a.tick().expect("due at once");
    assert_eq!(b.receive(&initiation, a.address).answers.len(), 1);
    assert_eq!(a.tick(), None, "not again before its time");
    assert_eq!(pair(None).0.tick(), None);
}

#[test]
fn a_peer_without_an_endpoint_gets_nothing() {
    let (mut a, _) = pair(None);
    let wanted = generate_keypair().expect("random").public;
    a.change(|config| {
        config.peers[0].public_key = wanted;
        config.peers[0].endpoint = None;
    });
    let mut out = vec![0; 2048];
    assert_eq!(a.peer().encapsulate(Instant::now(), &PACKET, &mut out), Err(NoEndpoint));
}

#[test]
fn an_ipv4_endpoint_in_ipv6_clothes_is_undressed() {
    let mapped: SocketAddr = "[::ffff:192.0.2.7]:5".parse().expect("an address");
    assert_eq!(canonical(mapped), "192.0.2.7:5".parse().expect("an address"));
}

/// Advances the paused time of the tokio runtime.
async fn later(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

fn cover(side: &Side, len: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; 2048];
    let mut packet = vec![0; len];
    packet[0] = 0x40;
    packet[2..4].copy_from_slice(&u16::try_from(len).expect("short").to_be_bytes());
    let (len, _) = side.peer().cover(Instant::now(), &packet, &mut out)?;
    Some(out[..len].to_vec())
}

#[test]
fn cover_neither_begins_a_handshake_nor_waits_for_one() {
    let (a, b) = pair(None);
    assert_eq!(cover(&a, 64), None);
    let arrived = shake(&a, &b);
    let packets = arrived.iter().filter(|step| matches!(step.received, Received::Packet { .. })).count();
    assert_eq!(packets, 1, "only the packet that began the handshake had waited");
}

#[tokio::test(start_paused = true)]
async fn cover_needs_a_peer_that_was_heard_just_now() {
    let (a, b) = pair(None);
    shake(&a, &b);
    assert!(cover(&a, 64).is_some());
    later(5).await;
    assert_eq!(cover(&a, 64), None);
    let answer = b.send(&PACKET).expect("a session");
    assert!(matches!(a.receive(&answer, b.address).received, Received::Packet { .. }));
    assert!(cover(&a, 64).is_some());
}

#[test]
fn cover_is_as_long_as_its_model_and_ends_at_the_check_of_sources() {
    let (a, b) = pair(None);
    shake(&a, &b);
    for len in [32, 64, 1424] {
        let model = a.send(&[PACKET.to_vec(), vec![0; len - PACKET.len()]].concat()).expect("a session");
        let datagram = cover(&a, len).expect("a session");
        assert_eq!(datagram.len(), model.len());
        let received = b.receive(&datagram, a.address).received;
        let Received::Packet { len: inner, source } = received else { panic!("{received:?}") };
        assert_eq!((inner, source), (len, std::net::Ipv4Addr::UNSPECIFIED.into()));
        assert!(b.table.by_address(source).is_none(), "the source belongs to nobody");
    }
}
