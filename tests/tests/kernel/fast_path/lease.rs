//! Lease of the daemon: without it the fast path is not used, and packets take the IP stack.

use std::time::Duration;

use gateway_common::wire::FastCounter;
use gateway_tests::netns;
use gateway_tests::wait::wait_for;

use super::packet::{Packet, UDP};
use super::testbed::Testbed;
use super::{converse, show};

/// Sends a packet and returns the number of packets that passed the IP stack by.
fn send(testbed: &Testbed, flow: &Packet) -> u64 {
    testbed.send_from_lan(flow);
    testbed.counted(FastCounter::Forwarded)
}

#[test]
fn entries_are_not_used_without_a_renewal() {
    netns::require_root().expect("root");
    let mut testbed = Testbed::build();
    testbed.turn_on();
    let (source, destination) = ("192.168.77.2:40000", "203.0.113.7:4433");
    let flow =
        Packet::from_host(source.parse().expect("an end"), destination.parse().expect("an end"), UDP, 2);
    converse(&mut testbed, &flow);
    let before = testbed.counted(FastCounter::Forwarded);
    assert!(before >= 7, "{before}");
    // No renewal from here on.
    let (mut last, mut unchanged, mut sent) = (before, 0, 0);
    wait_for(Duration::from_secs(6), "the lease to end", || {
        let now = send(&testbed, &flow);
        sent += 1;
        unchanged = if now == last { unchanged + 1 } else { 0 };
        last = now;
        unchanged >= 20
    })
    .expect("the end of the lease");
    // All of them left. The next renewal brings the entries back.
    let (_, to_wan) = testbed.received();
    assert_eq!(show(&to_wan, true).len(), sent);
    let before = testbed.counted(FastCounter::Forwarded);
    for _ in 0..10 {
        testbed.send_from_lan(&flow);
    }
    let (_, to_wan) = testbed.received();
    assert_eq!(show(&to_wan, true).len(), 10);
    assert!(testbed.counted(FastCounter::Forwarded) >= before + 8);
}
