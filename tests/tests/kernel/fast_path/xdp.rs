//! XDP: frames that it redirects leave with the same bytes as those of the IP stack, and are counted alike.

use std::collections::BTreeSet;

use gateway_common::wire::{EgressAllowKey, FastCounter, Mark, XdpCounter};
use gateway_ctl::os::bpf::Entries as _;
use gateway_tests::netns;

use super::packet::{Packet, UDP};
use super::testbed::Testbed;
use super::{assert_same, converse, flows, sequence};

fn with_xdp() -> Testbed {
    let mut testbed = Testbed::build();
    testbed.use_xdp();
    testbed.turn_on();
    testbed
}

fn counted(testbed: &Testbed) -> [u64; 2] {
    [XdpCounter::Forwarded, XdpCounter::Replied].map(|counter| testbed.counted_by_xdp(counter))
}

#[test]
fn redirected_frames_have_the_same_bytes() {
    netns::require_root().expect("root");
    let (mut on, mut off) = (with_xdp(), Testbed::build());
    for flow in flows() {
        let before = counted(&on);
        let (with, without) = (converse(&mut on, &flow), converse(&mut off, &flow));
        assert_same(&with, &without, &flow);
        assert_eq!(with.len(), 20, "{flow:?}");
        let after = counted(&on);
        assert!(after[0] >= before[0] + 7 && after[1] >= before[1] + 7, "{before:?} {after:?}: {flow:?}");
    }
    // Each is counted as one of the fast path, too.
    let fast = [FastCounter::Forwarded, FastCounter::Replied].map(|counter| on.counted(counter));
    assert_eq!(counted(&on), fast);
    for counter in [XdpCounter::Prevented, XdpCounter::Outdated, XdpCounter::Unsummed] {
        assert_eq!(on.counted_by_xdp(counter), 0, "{counter:?}");
    }
}

#[test]
fn generated_frames_have_the_same_bytes_with_xdp() {
    sequence::compare_with(
        |testbed| {
            testbed.use_xdp();
            testbed.turn_on();
        },
        counted,
    );
}

/// A flow whose entries are in use.
fn established(testbed: &mut Testbed) -> Packet {
    let (source, destination) = ("192.168.77.2:40000", "203.0.113.7:4433");
    let flow =
        Packet::from_host(source.parse().expect("an end"), destination.parse().expect("an end"), UDP, 2);
    let before = counted(testbed);
    converse(testbed, &flow);
    assert!(counted(testbed)[0] > before[0]);
    flow
}

/// Frames that the guard at XDP is to drop: more than the kernel sends by itself meanwhile.
const FRAMES: u64 = 20;

#[test]
fn the_egress_guard_drops_what_the_plan_no_longer_allows() {
    netns::require_root().expect("root");
    let mut testbed = with_xdp();
    let flow = established(&mut testbed);
    // Only the guard reads this map. A plan would end the entries as well.
    let key = EgressAllowKey { mark: Mark::DIRECT.0, index: testbed.wan };
    testbed.programs.maps.authorised.remove(&key).expect("removed");
    let prevented = |testbed: &Testbed| testbed.counted_by_xdp(XdpCounter::Prevented);
    let dropped = |testbed: &Testbed| -> u64 {
        let drops = testbed.programs.maps.prevented.read().expect("the counters of the guard");
        let of_wan = drops.iter().filter(|(interface, _)| *interface == testbed.wan);
        of_wan.flat_map(|(_, values)| values.iter().map(|value| value.packets)).sum()
    };
    let before = (prevented(&testbed), dropped(&testbed));
    for _ in 0..FRAMES {
        testbed.send_from_lan(&flow);
    }
    gateway_tests::wait::wait_for(std::time::Duration::from_secs(10), "the guard", || {
        prevented(&testbed) >= before.0 + FRAMES
    })
    .expect("dropped frames");
    // The kernel sends packets of its own by the interface, which the tcx guard drops and counts as well.
    assert!(dropped(&testbed) >= before.1 + FRAMES);
}

#[test]
fn packets_to_an_interface_that_is_no_port_take_the_tcx_program() {
    netns::require_root().expect("root");
    let mut testbed = with_xdp();
    let flow = established(&mut testbed);
    let xdp = testbed.programs.xdp.clone();
    xdp.set(&testbed.xdp_links(), &BTreeSet::from([testbed.lan])).expect("set");
    let (before, fast) = (counted(&testbed), testbed.counted(FastCounter::Forwarded));
    assert_eq!(converse(&mut testbed, &flow).len(), 20);
    let after = counted(&testbed);
    assert_eq!(after[0], before[0], "the uplink is no port");
    assert!(after[1] > before[1], "the LAN still is one");
    assert!(testbed.counted(FastCounter::Forwarded) > fast);
}

#[test]
fn a_new_run_takes_over_the_links_and_detaches_them() {
    netns::require_root().expect("root");
    let mut testbed = with_xdp();
    established(&mut testbed);
    let programs = |testbed: &Testbed| {
        let shown = testbed.gateway.run("ip", &["link", "show", "dev", "wan0"]).expect("the link");
        shown.split("prog/xdp id ").nth(1).map(|rest| rest.split(' ').next().unwrap_or("").to_owned())
    };
    let first = programs(&testbed).expect("a program");
    let mut next = testbed.load_again();
    assert!(
        testbed.gateway.within(|| next.xdp.adopt()).is_err(),
        "there is no program to put into the links"
    );
    next.load_xdp();
    testbed.gateway.within(|| next.xdp.adopt()).expect("adopted");
    let second = programs(&testbed).expect("a program");
    assert_ne!(first, second, "the program was replaced");
    // The fast path of the new run is off, and its program knows no interface.
    let before = counted(&testbed);
    let flow = established_or_not(&mut testbed);
    assert_eq!(counted(&testbed), before, "{flow:?}");
    testbed.gateway.within(|| next.xdp.detach_except(&BTreeSet::new())).expect("detached");
    assert_eq!(programs(&testbed), None);
}

fn established_or_not(testbed: &mut Testbed) -> Packet {
    let (source, destination) = ("192.168.77.3:40000", "203.0.113.7:4433");
    let flow =
        Packet::from_host(source.parse().expect("an end"), destination.parse().expect("an end"), UDP, 3);
    assert_eq!(converse(testbed, &flow).len(), 20);
    flow
}
