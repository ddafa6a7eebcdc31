//! A host that sends to addresses of the LAN which no host has.

use std::net::{Ipv6Addr, UdpSocket};

use gateway_tests::services::HTTP;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{LAN_V6, server, wan};
use gateway_tests::traffic::ask;

use crate::e2e::{SOON, assert_direct};

/// More than twice what an interface may look for at once.
const ADDRESSES: u128 = 3000;
/// The burst of the limit, what is added in the seconds that the test takes, and hosts that are there.
const MAX_ENTRIES: usize = 1000;

#[test]
fn host_that_searches_a_network_leaves_room_for_the_neighbours_of_others() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    assert_direct(&network.tv);
    // The host sends them to the gateway, not on the link.
    let base = LAN_V6.to_bits() & !0xffff_ffff_ffff | 0xdead_0000_0000;
    let part = Ipv6Addr::from(base);
    network.laptop.namespace.ip(&format!("route add {part}/96 via {LAN_V6} dev eth0")).expect("a route");
    network.laptop.namespace.within(|| {
        let socket = UdpSocket::bind((network.laptop.v6, 0)).expect("a socket");
        for number in 1..=ADDRESSES {
            // The host's own queue may be full for an instant.
            let _ = socket.send_to(b"x", (Ipv6Addr::from(base + number), 9));
        }
    });
    network.settle().expect("silence on the LAN");
    let entries = network.gateway.run("ip", &["-6", "neighbour", "show", "dev", "eth1"]).expect("neighbours");
    let entries = entries.lines().count();
    assert!((100..MAX_ENTRIES).contains(&entries), "{entries} entries");
    for ipv6 in [false, true] {
        let answer = ask(&network.tv, (server(ipv6), HTTP).into(), SOON);
        assert_eq!(answer.seen(), Some(wan(ipv6)), "{answer}");
    }
}
