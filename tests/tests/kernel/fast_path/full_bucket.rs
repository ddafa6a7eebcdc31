//! A bucket of the table that is full: its flows keep their entries, and a further one stays in the IP stack.

use std::net::SocketAddr;

use gateway_common::fast_path::hash::{index, of_words4};
use gateway_common::maps::{FastFlows4, MapSpec as _};
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

fn bucket(source: ([u8; 4], u16), destination: ([u8; 4], u16), seed: u32) -> u32 {
    let [from, to] =
        [source, destination].map(|(address, port)| (u32::from_ne_bytes(address), port.to_be_bytes()));
    let ports = u32::from_ne_bytes([from.1[0], from.1[1], to.1[0], to.1[1]]);
    index(of_words4(from.0, to.0, ports, UDP.into(), seed), FastFlows4::CAPACITY)
}

/// Returns flows whose entries are in one bucket, those of their replies in others.
fn flows(count: usize, seed: u32) -> Vec<Packet> {
    let ports = (4000..5000).flat_map(|to| (30_000..60_000).map(move |from| (from, to)));
    let fits = |(from, to): &(u16, u16)| {
        bucket((HOST, *from), (SERVER, *to), seed) == BUCKET
            && bucket((SERVER, *to), (UPLINK, *from), seed) != BUCKET
    };
    let packet = |(from, to): (u16, u16)| {
        Packet::from_host(SocketAddr::from((HOST, from)), SocketAddr::from((SERVER, to)), UDP, 2)
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
    let live = testbed.programs.maps.live.get(0).expect("the live slot");
    let seed = testbed.programs.maps.plans.get(live).expect("a plan").seed;
    let flows = flows(FAST_PLACES + 1, seed);
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
