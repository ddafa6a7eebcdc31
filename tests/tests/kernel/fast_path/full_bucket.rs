//! A bucket of the table that is full: its flows keep their entries, and a further one stays in the IP stack.

use std::net::{IpAddr, SocketAddr};

use gateway_common::fast_path::hash::{index, of_words4, of_words6};
use gateway_common::maps::{FastFlows4, FastFlows6, MapSpec as _};
use gateway_common::wire::{FAST_PLACES, FastCounter};
use gateway_ctl::os::bpf::EpochChange;
use gateway_tests::netns;

use super::converse;
use super::packet::{Packet, UDP};
use super::testbed::Testbed;

const HOST: [u8; 4] = [192, 168, 77, 2];
const SERVER: [u8; 4] = [203, 0, 113, 7];
/// Address of the uplink, which the flows get.
const UPLINK: [u8; 4] = [198, 51, 100, 2];
/// Bucket of all flows of this test.
const BUCKET: u32 = 5;

/// Returns the bucket of the entry of packets with these ends.
fn bucket(source: SocketAddr, destination: SocketAddr, protocol: u8, seed: u32) -> u32 {
    let [from, to] = [source, destination].map(|end| end.port().to_be_bytes());
    let ports = u32::from_ne_bytes([from[0], from[1], to[0], to[1]]);
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let [from, to] = [from, to].map(|address| u32::from_ne_bytes(address.octets()));
            index(of_words4(from, to, ports, protocol.into(), seed), FastFlows4::CAPACITY)
        }
        (from, to) => {
            index(of_words6(&from.into(), &to.into(), ports, protocol.into(), seed), FastFlows6::CAPACITY)
        }
    }
}

/// Returns the seed of the hashes of a gateway.
pub(super) fn seed(testbed: &Testbed) -> u32 {
    let live = testbed.programs.maps.live.get(0).expect("the live slot");
    testbed.programs.maps.plans.get(live).expect("a plan").seed
}

/// Returns packets of other flows of a host whose entries are in the bucket of the flow of a packet.
pub(super) fn others_in_bucket(packet: &Packet, host: (IpAddr, u8), count: usize, seed: u32) -> Vec<Packet> {
    let wanted = bucket(packet.source, packet.destination, packet.protocol, seed);
    let to = packet.destination.ip();
    let ends = (4000..5000).flat_map(|to_port| (30_000..60_000).map(move |from_port| (from_port, to_port)));
    let packets = ends.filter_map(|(from_port, to_port)| {
        let (source, destination) = (SocketAddr::new(host.0, from_port), SocketAddr::new(to, to_port));
        let is_in_it = bucket(source, destination, packet.protocol, seed) == wanted;
        is_in_it.then(|| Packet::from_host(source, destination, packet.protocol, host.1))
    });
    packets.take(count).collect()
}

/// Returns flows whose entries are in one bucket, those of their replies in others.
fn flows(count: usize, seed: u32) -> Vec<Packet> {
    let ends = |from, to| [SocketAddr::from((HOST, from)), SocketAddr::from((SERVER, to))];
    let ports = (4000..5000).flat_map(|to| (30_000..60_000).map(move |from| (from, to)));
    let fits = |(from, to): &(u16, u16)| {
        let [source, destination] = ends(*from, *to);
        bucket(source, destination, UDP, seed) == BUCKET
            && bucket(destination, SocketAddr::from((UPLINK, *from)), UDP, seed) != BUCKET
    };
    let packet = |(from, to): (u16, u16)| {
        let [source, destination] = ends(from, to);
        Packet::from_host(source, destination, UDP, 2)
    };
    ports.filter(fits).take(count).map(packet).collect()
}

/// Sends packets of a flow and returns how many passed the IP stack by. All arrive.
fn fast_packets(testbed: &mut Testbed, flow: &Packet) -> u64 {
    let before = testbed.counted(FastCounter::Forwarded);
    assert_eq!(converse(testbed, flow).len(), 20, "{flow:?}");
    testbed.counted(FastCounter::Forwarded) - before
}

#[test]
fn a_full_bucket_keeps_its_flows() {
    netns::require_root().expect("root");
    let mut testbed = Testbed::build();
    testbed.turn_on();
    let flows = flows(FAST_PLACES + 1, seed(&testbed));
    let (further, first) = flows.split_last().expect("flows");
    for flow in first {
        assert!(fast_packets(&mut testbed, flow) >= 7, "{flow:?}");
    }
    assert_eq!(testbed.counted(FastCounter::Full), 0);
    assert_eq!(fast_packets(&mut testbed, further), 0);
    assert!(testbed.counted(FastCounter::Full) > 0);
    for flow in first {
        assert!(fast_packets(&mut testbed, flow) >= 7, "it lost its entry: {flow:?}");
    }
    // The places of another epoch are free.
    testbed.fast_path().invalidate(EpochChange::Flows).expect("another epoch");
    assert!(fast_packets(&mut testbed, further) >= 7);
}
