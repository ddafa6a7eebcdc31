//! Fast path: packets that pass the IP stack by leave with the same bytes as packets that do not.

mod between_lans;
mod full_bucket;
mod lease;
mod report;
mod segmentation;
mod sequence;
mod testbed;
mod xdp;
mod xdp_block;
mod xdp_dns;

use gateway_common::wire::FastCounter;
use gateway_tests::{netns, packets as packet};
use packet::{Packet, SHORTEST, Shown, TCP, UDP};
use testbed::Testbed;

fn show(frames: &[Vec<u8>], to_wan: bool) -> Vec<Shown> {
    frames.iter().filter_map(|frame| Shown::of(frame, to_wan)).collect()
}

/// Sends ten packets of a flow there and back, padded as by a network card, and returns all of them as they left.
fn converse(testbed: &mut Testbed, flow: &Packet) -> Vec<Shown> {
    let mut shown = Vec::new();
    for number in 0..10_u8 {
        let payload = vec![number; 3 * usize::from(number)];
        let flags = if flow.protocol == TCP && number == 0 { 0x02 } else { 0x18 };
        let mut packet = Packet { payload, identification: number.into(), tcp_flags: flags, ..flow.clone() };
        packet.padding = SHORTEST.saturating_sub(packet.frame().len());
        testbed.send_from_lan(&packet);
        let flags = if flags == 0x02 { 0x12 } else { 0x18 };
        testbed.send_from_wan(&Packet { tcp_flags: flags, ..packet.translated_reply() });
        let (to_lan, to_wan) = testbed.received();
        shown.extend(show(&to_wan, true));
        shown.extend(show(&to_lan, false));
    }
    shown
}

fn assert_same(with: &[Shown], without: &[Shown], context: &dyn std::fmt::Debug) {
    let differing = with.iter().zip(without).position(|(a, b)| a.bytes != b.bytes);
    if let Some(at) = differing {
        let [on, off] = [with, without].map(|shown| &shown[at].bytes[..shown[at].bytes.len().min(100)]);
        panic!("frame {at}, on and off:\n{on:02x?}\n{off:02x?}\n{context:?}");
    }
    assert_eq!(with.len(), without.len(), "{context:?}");
}

fn flows() -> [Packet; 6] {
    let flow = |source: &str, destination: &str, protocol| {
        let (source, destination) =
            (source.parse().expect("a source"), destination.parse().expect("a destination"));
        Packet::from_host(source, destination, protocol, 2)
    };
    [
        flow("192.168.77.2:40000", "203.0.113.7:4433", UDP),
        flow("192.168.77.2:40000", "203.0.113.7:443", TCP),
        flow("[fd77::2]:40000", "[2001:db8:9::7]:4433", UDP),
        flow("[fd77::2]:40000", "[2001:db8:9::7]:443", TCP),
        flow("[2001:db8:77::2]:40000", "[2001:db8:9::7]:4433", UDP),
        flow("[2001:db8:77::2]:40000", "[2001:db8:9::7]:443", TCP),
    ]
}

#[test]
fn packets_leave_with_the_same_bytes() {
    netns::require_root().expect("root");
    let (mut on, mut off) = (Testbed::build(), Testbed::build());
    on.turn_on();
    for flow in flows() {
        let before = [FastCounter::Forwarded, FastCounter::Replied].map(|counter| on.counted(counter));
        let (with, without) = (converse(&mut on, &flow), converse(&mut off, &flow));
        assert_same(&with, &without, &flow);
        assert_eq!(with.len(), 20, "{flow:?}");
        let after = [FastCounter::Forwarded, FastCounter::Replied].map(|counter| on.counted(counter));
        // The flow's first packet is new, the second teaches, and so does a first reply.
        assert!(after[0] >= before[0] + 7 && after[1] >= before[1] + 7, "{before:?} {after:?}: {flow:?}");
        assert_eq!(on.counted(FastCounter::Mismatched), 0);
    }
    assert_eq!(off.counted(FastCounter::Forwarded) + off.counted(FastCounter::Replied), 0);
    assert_eq!(off.fast_path().count_entries().expect("entries"), 0);
    assert!(on.fast_path().count_entries().expect("entries") >= 12);
}
