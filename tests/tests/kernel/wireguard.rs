//! Userspace WireGuard devices between network namespaces: permitted and rejected traffic, and state that survives a
//! change.

mod foreign;
pub(crate) mod testbed;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use gateway_ctl::os::wireguard::{Engine, Error, Key, WireGuard, generate_keypair};
use gateway_tests::wait::{wait_for, wait_until};
use testbed::{DEVICE, Pair, TIMEOUT, Testbed};

const PORT: u16 = 4000;
const FAMILIES: [bool; 2] = [false, true];

/// Reports whether nothing arrives within a while, although the packet is sent repeatedly.
fn silent(from: &Testbed, to: &Testbed) -> bool {
    let address = SocketAddr::new(to.inner(false), PORT);
    let (sender, receiver) = (from.udp(SocketAddr::new(from.inner(false), 0)), to.udp(address));
    (0..5).all(|_| {
        sender.send_to(b"x", address).expect("the link takes it");
        receiver.recv(&mut [0; 8]).is_err()
    })
}

/// Transfers a pattern over TCP, both ways at once, and checks every byte.
fn transfers(from: &Testbed, to: &Testbed, ipv6: bool, len: usize) {
    let pattern: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
    let listener = to.within(|| TcpListener::bind((to.inner(ipv6), 0)).expect("listen"));
    let address = listener.local_addr().expect("an address");
    let exchange = |stream: TcpStream| {
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
        std::thread::scope(|scope| {
            scope.spawn(|| (&stream).write_all(&pattern).expect("send everything"));
            let mut received = vec![0; len];
            (&stream).read_exact(&mut received).expect("receive everything");
            assert!(received == pattern, "the bytes arrive as they were sent");
        });
    };
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(listener.accept().expect("a connection").0));
        exchange(from.within(|| TcpStream::connect_timeout(&address, TIMEOUT).expect("connect")));
    });
}

fn ping(from: &Testbed, to: IpAddr, size: &str) -> bool {
    from.namespace.run("ping", &["-c", "3", "-i", "0.2", "-W", "5", "-s", size, &to.to_string()]).is_ok()
}

#[test]
fn both_inner_families_pass_over_both_outer_families() {
    for outer_ipv6 in FAMILIES {
        let pair = Pair::connected(outer_ipv6);
        for inner_ipv6 in FAMILIES {
            assert!(pair.a.echoes(&pair.b, inner_ipv6), "inner {inner_ipv6}, outer {outer_ipv6}");
            assert!(ping(&pair.b, pair.a.inner(inner_ipv6), "56"));
            // The longest packet that the device accepts.
            let headers = if inner_ipv6 { 48 } else { 28 };
            assert!(ping(&pair.a, pair.b.inner(inner_ipv6), &(1420 - headers).to_string()));
        }
        for testbed in [&pair.a, &pair.b] {
            let status = testbed.status().expect("a device");
            assert_eq!(status.engine, Engine::Userspace);
            assert_eq!(status.public_key, testbed.keys.public);
            let peer = &status.peers[0];
            let age = peer.last_handshake.expect("a handshake").elapsed().expect("in the past");
            assert!(age < TIMEOUT * 6, "{age:?}");
            assert!(peer.rx_bytes > 1000 && peer.tx_bytes > 1000, "{peer:?}");
        }
        assert_eq!(pair.a.status().expect("a device").peers[0].endpoint, Some(pair.b.outer(outer_ipv6)));
    }
}

#[test]
fn bulk_transfers_arrive_unharmed_through_segmentation_and_merging() {
    let pair = Pair::connected(false);
    for ipv6 in FAMILIES {
        transfers(&pair.a, &pair.b, ipv6, 8 << 20);
    }
}

#[test]
fn bulk_transfers_arrive_where_the_cable_is_narrower_than_the_datagrams() {
    let pair = Pair::connected(false);
    for testbed in [&pair.a, &pair.b] {
        testbed.namespace.ip("link set eth0 mtu 1300").expect("ip");
    }
    for ipv6 in FAMILIES {
        transfers(&pair.a, &pair.b, ipv6, 2 << 20);
    }
    assert_eq!((pair.a.drops().send_failed, pair.b.drops().send_failed), (0, 0));
}

#[test]
fn a_wrong_key_carries_nothing() {
    let pair = Pair::unconnected(false);
    pair.a.apply(&pair.a_config());
    let mut config = pair.b_config();
    config.peers[0].public_key = generate_keypair().expect("random").public;
    pair.b.apply(&config);
    pair.address();
    assert!(silent(&pair.a, &pair.b) && silent(&pair.b, &pair.a));
    for testbed in [&pair.a, &pair.b] {
        let peer = &testbed.status().expect("a device").peers[0];
        assert_eq!((peer.last_handshake, peer.rx_bytes), (None, 0));
    }
    // The same two work with the correct key, so the wrong key caused the silence.
    pair.b.apply(&pair.b_config());
    assert!(pair.a.echoes(&pair.b, false));
}

#[test]
fn a_wrong_preshared_key_carries_nothing() {
    let pair = Pair::unconnected(false);
    pair.a.apply(&pair.a_config());
    let mut config = pair.b_config();
    config.peers[0].preshared_key = Some(Key::new([1; 32]));
    pair.b.apply(&config);
    pair.address();
    assert!(silent(&pair.a, &pair.b) && silent(&pair.b, &pair.a));
    assert_eq!(pair.b.status().expect("a device").peers[0].last_handshake, None);
}

#[test]
fn an_inner_source_that_is_not_the_peers_is_dropped_and_counted() {
    let pair = Pair::connected(false);
    assert!(pair.a.echoes(&pair.b, false));
    let foreign: IpAddr = "10.66.0.1".parse().expect("an address");
    pair.a.namespace.ip(&format!("address add {foreign}/32 dev {DEVICE}")).expect("ip");
    let (liar, victim) = (pair.a.udp((foreign, 0).into()), pair.b.udp((pair.b.inner(false), PORT).into()));
    liar.send_to(b"lie", (pair.b.inner(false), PORT)).expect("sent");
    wait_for(TIMEOUT, "the drop to be counted", || pair.b.drops().wrong_source > 0).expect("counted");
    assert!(victim.recv(&mut [0; 8]).is_err());
}

#[test]
fn sessions_survive_changes_of_port_mtu_mark_and_other_peers() {
    let pair = Pair::connected(false);
    assert!(pair.a.echoes(&pair.b, false));
    let handshake =
        |testbed: &Testbed| testbed.status().expect("a device").peers.iter().find_map(|p| p.last_handshake);
    let before = (handshake(&pair.a), handshake(&pair.b));
    let mut config = pair.a_config();
    config.listen_port = Some(61000);
    config.mtu = 1300;
    config.fwmark = 0x77;
    let mut newcomer = config.peers[0].clone();
    newcomer.public_key = generate_keypair().expect("random").public;
    newcomer.allowed_ips = vec!["10.77.0.0/16".parse().expect("a network")];
    config.peers.push(newcomer);
    pair.a.apply(&config);
    assert!(pair.a.echoes(&pair.b, false));
    transfers(&pair.b, &pair.a, true, 1 << 20);
    let status = pair.a.status().expect("a device");
    assert_eq!((status.listen_port, status.peers.len()), (61000, 2));
    let mtu = pair.a.namespace.run("cat", &[&format!("/proc/sys/net/ipv6/conf/{DEVICE}/mtu")]).expect("cat");
    assert_eq!(mtu.trim(), "1300");
    // B was not configured with the new port: it learned it from authentic packets.
    let seen = pair.b.status().expect("a device").peers[0].endpoint.expect("an endpoint");
    assert_eq!(seen.port(), 61000);
    assert_eq!(before, (handshake(&pair.a), handshake(&pair.b)), "nobody shook hands again");
}

#[test]
fn outer_packets_bear_the_mark_and_a_refusal_by_the_network_kills_nothing() {
    let pair = Pair::connected(false);
    assert!(pair.a.echoes(&pair.b, false));
    pair.a.namespace.ip("rule add fwmark 0x99 priority 10 unreachable").expect("ip");
    assert!(pair.a.echoes(&pair.b, false), "unmarked packets do not care");
    let mut config = pair.a_config();
    config.fwmark = 0x99;
    pair.a.apply(&config);
    assert!(silent(&pair.a, &pair.b));
    assert!(pair.a.drops().send_failed > 0);
    config.fwmark = 0;
    pair.a.apply(&config);
    assert!(pair.a.echoes(&pair.b, false));
}

#[test]
fn a_changed_endpoint_is_used_at_once() {
    let pair = Pair::unconnected(false);
    let mut config = pair.a_config();
    config.peers[0].endpoint = Some("192.0.2.77:9".parse().expect("an address"));
    pair.a.apply(&config);
    let mut silent_b = pair.b_config();
    silent_b.peers[0].endpoint = None;
    silent_b.peers[0].persistent_keepalive = None;
    pair.b.apply(&silent_b);
    pair.address();
    wait_for(TIMEOUT, "the first handshake message", || {
        pair.a.status().is_some_and(|status| status.peers[0].tx_bytes > 0)
    })
    .expect("a keepalive starts a handshake by itself");
    pair.a.apply(&pair.a_config());
    let shaken = wait_until(Duration::from_secs(3), "a handshake with the new endpoint", || {
        pair.a.status().and_then(|status| status.peers[0].last_handshake)
    });
    shaken.expect("sooner than the protocol's own retry of 5 s");
    assert!(pair.b.echoes(&pair.a, true), "and the side without an endpoint has learned one");
}

#[test]
fn noise_on_the_port_is_counted_and_harmless() {
    let pair = Pair::connected(false);
    assert!(pair.a.echoes(&pair.b, false));
    let before = pair.b.drops();
    let socket = pair.a.udp((pair.a.outer(false).ip(), 0).into());
    let mut sent = 0;
    for kind in 0..6u8 {
        for len in [0usize, 1, 3, 4, 16, 31, 32, 33, 64, 92, 148, 149, 1500] {
            for fill in [0, 0xff] {
                let mut datagram = vec![fill; len];
                datagram.iter_mut().zip([kind, 0, 0, 0]).for_each(|(byte, value)| *byte = value);
                socket.send_to(&datagram, pair.b.outer(false)).expect("sent");
                sent += 1;
            }
        }
    }
    wait_for(TIMEOUT, "all noise to be counted", || {
        let now = pair.b.drops();
        let counted = now.malformed - before.malformed + now.rejected - before.rejected + now.no_peer;
        counted >= before.no_peer + sent
    })
    .expect("counted");
    assert!(pair.a.echoes(&pair.b, true));
}

#[test]
fn removing_takes_the_link_away_and_the_name_is_free_again() {
    let pair = Pair::connected(false);
    assert!(pair.a.echoes(&pair.b, false));
    assert_eq!(pair.a.list(), [DEVICE]);
    pair.a.remove();
    assert!(!pair.a.has_link(DEVICE), "gone when the call returns");
    assert_eq!((pair.a.list(), pair.a.status()), (Vec::new(), None));
    pair.a.remove();
    pair.a.apply(&pair.a_config());
    pair.a.address();
    assert!(pair.a.echoes(&pair.b, false));
}

#[test]
fn a_device_does_not_outlive_its_owner() {
    let mut pair = Pair::connected(false);
    pair.a.restart();
    assert_eq!(pair.a.list(), Vec::<String>::new());
    wait_for(TIMEOUT, "the link to go", || !pair.a.has_link(DEVICE)).expect("gone");
    pair.a.apply(&pair.a_config());
    pair.a.address();
    assert!(pair.a.echoes(&pair.b, false));
}

#[test]
fn a_link_that_an_outsider_removed_is_noticed_and_made_again() {
    let pair = Pair::connected(false);
    assert!(pair.a.echoes(&pair.b, false));
    pair.a.namespace.ip(&format!("link del {DEVICE}")).expect("ip");
    wait_for(TIMEOUT, "the loss to be noticed", || pair.a.list().is_empty()).expect("noticed");
    assert_eq!(pair.a.status(), None);
    pair.a.apply(&pair.a_config());
    pair.a.address();
    assert!(pair.a.echoes(&pair.b, false));
}

#[test]
fn a_foreign_link_of_that_name_is_left_alone() {
    let pair = Pair::unconnected(false);
    pair.a.namespace.ip(&format!("link add {DEVICE} type bridge")).expect("ip");
    let error = pair.a.try_apply(&pair.a_config()).expect_err("the name is taken");
    assert!(matches!(error, Error::NameTaken(_)), "{error}");
    assert!(pair.a.has_link(DEVICE));
}

#[test]
fn a_taken_port_is_an_error_and_leaves_the_device_as_it_was() {
    let pair = Pair::connected(false);
    let blocker = pair.a.udp((pair.a.outer(false).ip(), 62000).into());
    let mut config = pair.a_config();
    config.listen_port = Some(62000);
    let error = pair.a.try_apply(&config).expect_err("the port is taken");
    assert!(matches!(error, Error::Socket { port: 62000, .. }), "{error}");
    assert!(pair.a.echoes(&pair.b, false));
    drop(blocker);
    pair.a.apply(&config);
    assert_eq!(pair.a.status().expect("a device").listen_port, 62000);
}

#[test]
fn a_tunnel_sends_nothing_of_its_own_into_the_inside() {
    let pair = Pair::connected(false);
    // Router solicitations and multicast listener reports of a new link would arrive within a second.
    assert!(ping(&pair.a, pair.b.inner(true), "56"));
    let addresses = pair.a.namespace.run("ip", &["-6", "address", "show", "dev", DEVICE]).expect("ip");
    assert!(!addresses.contains("fe80"), "{addresses}");
}

#[test]
fn this_machine_gets_the_engine_that_its_kernel_allows() {
    let testbed = Testbed::lone();
    let has = gateway_tests::wireguard::kernel_has_wireguard(&testbed.namespace);
    let engine = testbed.block_on(async { WireGuard::new().await.engine() });
    assert_eq!(engine, if has { Engine::Kernel } else { Engine::Userspace });
}
