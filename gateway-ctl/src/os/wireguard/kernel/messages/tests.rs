//! Messages for the usual changes, and their round trip through the wire format.

use netlink_packet_core::{Emitable, ParseableParametrized};
use netlink_packet_generic::GenlHeader;
use netlink_packet_wireguard::WireguardCmd;

use super::*;

fn peer(key: u8, allowed: &[&str]) -> PeerConfig {
    PeerConfig {
        public_key: [key; 32],
        preshared_key: Some(Key::new([key + 100; 32])),
        endpoint: Some(SocketAddr::from(([192, 0, 2, key], 51820))),
        allowed_ips: allowed.iter().map(|net| net.parse().expect("a network")).collect(),
        persistent_keepalive: Some(25),
    }
}

fn config(peers: Vec<PeerConfig>) -> DeviceConfig {
    DeviceConfig {
        name: "wg-a".to_owned(),
        private_key: Key::new([1; 32]),
        listen_port: Some(51820),
        fwmark: 0x100,
        mtu: 1420,
        peers,
    }
}

/// Returns the state of a kernel after these messages, through their bytes.
fn kernel_after(mut have: Device, messages: &[Vec<Attribute>]) -> Device {
    for attributes in messages {
        let message = WireguardMessage { cmd: WireguardCmd::SetDevice, attributes: attributes.clone() };
        let mut bytes = vec![0; message.buffer_len()];
        assert!(bytes.len() < 64 * 1024, "a message is too long");
        message.emit(&mut bytes);
        let header = GenlHeader { cmd: message.cmd.into(), version: 1 };
        let read = WireguardMessage::parse_with_param(&bytes, header).expect("well formed");
        assert_eq!(read.attributes[0], Attribute::IfName("wg-a".to_owned()));
        for attribute in read.attributes {
            let Attribute::Peers(peers) = attribute else {
                let part = WireguardMessage { cmd: WireguardCmd::GetDevice, attributes: vec![attribute] };
                let only = Device::from_parts([part]);
                have.private_key = only.private_key.or(have.private_key);
                have.listen_port = if only.listen_port > 0 { only.listen_port } else { have.listen_port };
                have.fwmark = if only.fwmark > 0 { only.fwmark } else { have.fwmark };
                continue;
            };
            for WireguardPeer(attributes) in peers {
                let PeerAttribute::PublicKey(key) = attributes[0] else { panic!("the key comes first") };
                let flags = attributes.iter().find_map(|a| match a {
                    PeerAttribute::Flags(flags) => Some(*flags),
                    _ => None,
                });
                match flags {
                    Some(Flags::RemoveMe) => {
                        assert!(have.peers.remove(&key).is_some(), "removes a peer that is there");
                        continue;
                    }
                    Some(Flags::ReplaceAllowedIps) => have.peers.entry(key).or_default().allowed_ips.clear(),
                    _ => {}
                }
                have.add(WireguardPeer(attributes));
                let taken = have.peers[&key].allowed_ips.clone();
                for (other, peer) in &mut have.peers {
                    if *other != key {
                        peer.allowed_ips.retain(|net| !taken.contains(net));
                    }
                }
            }
        }
    }
    have
}

fn wanted(config: &DeviceConfig) -> Device {
    let peers = config.peers.iter().map(|peer| {
        let kernel_peer = Peer {
            preshared_key: peer.preshared_key.clone(),
            endpoint: peer.endpoint,
            keepalive: peer.persistent_keepalive.unwrap_or(0),
            allowed_ips: peer.allowed_ips.iter().copied().collect(),
            ..Peer::default()
        };
        (peer.public_key, kernel_peer)
    });
    Device {
        private_key: Some(config.private_key.clone()),
        public_key: [0; 32],
        listen_port: config.listen_port.unwrap_or(0),
        fwmark: config.fwmark,
        peers: peers.collect(),
    }
}

fn endpoints(config: &DeviceConfig) -> Endpoints {
    config.peers.iter().map(|peer| (peer.public_key, peer.endpoint)).collect()
}

#[test]
fn a_new_device_gets_everything_and_then_nothing_more() {
    let config = config(vec![peer(2, &["10.0.0.0/8", "fd00::/8"]), peer(3, &["0.0.0.0/0", "::/0"])]);
    let messages = changes(&config, &Device::default(), None);
    let have = kernel_after(Device::default(), &messages);
    assert_eq!(have, wanted(&config));
    assert_eq!(changes(&config, &have, Some(&endpoints(&config))), Vec::<Vec<Attribute>>::new());
    assert_eq!(changes(&config, &have, None), Vec::<Vec<Attribute>>::new());
}

#[test]
fn an_unchanged_peer_is_not_mentioned_when_another_changes() {
    let before = config(vec![peer(2, &["10.0.0.0/8"]), peer(3, &["0.0.0.0/0"])]);
    let mut after = before.clone();
    after.peers[1].preshared_key = None;
    after.peers[1].persistent_keepalive = None;
    after.fwmark = 0x200;
    let messages = changes(&after, &wanted(&before), Some(&endpoints(&before)));
    assert!(!format!("{messages:?}").contains(&format!("{:?}", [2u8; 32])));
    assert_eq!(kernel_after(wanted(&before), &messages), wanted(&after));
}

#[test]
fn peers_that_go_are_removed_and_their_networks_move() {
    let before = config(vec![peer(2, &["10.0.0.0/8"]), peer(3, &["0.0.0.0/0"])]);
    let after = config(vec![peer(3, &["10.0.0.0/8"]), peer(4, &["0.0.0.0/0"])]);
    let messages = changes(&after, &wanted(&before), Some(&endpoints(&before)));
    assert_eq!(kernel_after(wanted(&before), &messages), wanted(&after));
}

#[test]
fn a_roamed_peer_stays_where_it_is_until_its_configured_endpoint_changes() {
    let config = config(vec![peer(2, &["10.0.0.0/8"])]);
    let mut have = wanted(&config);
    let roamed = SocketAddr::from(([198, 51, 100, 1], 4000));
    have.peers.get_mut(&[2; 32]).expect("the peer").endpoint = Some(roamed);
    assert!(changes(&config, &have, Some(&endpoints(&config))).is_empty());
    let mut moved = config.clone();
    moved.peers[0].endpoint = Some(SocketAddr::from(([203, 0, 113, 1], 51820)));
    let messages = changes(&moved, &have, Some(&endpoints(&config)));
    assert_eq!(kernel_after(have, &messages), wanted(&moved));
}

#[test]
fn after_a_restart_the_configured_endpoint_is_set_again() {
    let config = config(vec![peer(2, &["10.0.0.0/8"])]);
    let mut have = wanted(&config);
    have.peers.get_mut(&[2; 32]).expect("the peer").endpoint = None;
    let messages = changes(&config, &have, None);
    assert_eq!(kernel_after(have, &messages), wanted(&config));
}

#[test]
fn any_port_leaves_the_kernels_choice_alone() {
    let config = DeviceConfig { listen_port: None, ..config(Vec::new()) };
    let have = Device { listen_port: 40000, ..wanted(&config) };
    assert!(changes(&config, &have, None).is_empty());
}

#[test]
fn many_networks_and_peers_are_spread_over_messages() {
    let many: Vec<IpNet> = (0..2000u32)
        .map(|i| {
            IpNet::new(std::net::Ipv6Addr::from_bits(0xfd << 120 | u128::from(i) << 64).into(), 64)
                .expect("64")
        })
        .collect();
    let mut peers: Vec<_> = (3..=150).map(|key| peer(key, &[])).collect();
    peers.push(PeerConfig { allowed_ips: many, ..peer(2, &[]) });
    let config = config(peers);
    let messages = changes(&config, &Device::default(), None);
    assert!(messages.len() > 4);
    assert_eq!(kernel_after(Device::default(), &messages), wanted(&config));
}

#[test]
fn a_dump_in_parts_is_joined_and_never_means_never() {
    let part = |attributes| WireguardMessage { cmd: WireguardCmd::GetDevice, attributes };
    let entry = |attributes: Vec<PeerAttribute>| Attribute::Peers(vec![WireguardPeer(attributes)]);
    let nets = |net: &str| PeerAttribute::AllowedIps(vec![allowed_ip(&net.parse().expect("a network"))]);
    let never = WireguardTimeSpec { seconds: 0, nano_seconds: 0 };
    let then = WireguardTimeSpec { seconds: 1_700_000_000, nano_seconds: 5 };
    let device = Device::from_parts([
        part(vec![
            Attribute::PublicKey([8; 32]),
            Attribute::PrivateKey(NO_KEY),
            entry(vec![
                PeerAttribute::PublicKey([2; 32]),
                PeerAttribute::PresharedKey(NO_KEY),
                PeerAttribute::LastHandshake(then),
                PeerAttribute::RxBytes(11),
                PeerAttribute::TxBytes(12),
                nets("10.0.0.0/8"),
            ]),
        ]),
        part(vec![
            entry(vec![PeerAttribute::PublicKey([2; 32]), nets("fd00::/8")]),
            entry(vec![PeerAttribute::PublicKey([3; 32]), PeerAttribute::LastHandshake(never)]),
        ]),
    ]);
    assert_eq!((device.private_key, device.public_key), (None, [8; 32]));
    let first = &device.peers[&[2; 32]];
    assert_eq!(first.allowed_ips.len(), 2);
    assert_eq!(first.preshared_key, None);
    let status = first.status([2; 32]);
    assert_eq!((status.rx_bytes, status.tx_bytes), (11, 12));
    assert_eq!(status.last_handshake, Some(SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 5)));
    assert_eq!(device.peers[&[3; 32]].last_handshake, None);
}
