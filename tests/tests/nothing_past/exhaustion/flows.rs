//! Flow table: one host opens several times the capacity of the table, while flows of another host keep their records
//! and legs.

use std::net::{IpAddr, Ipv6Addr};

use gateway_common::maps::{Flows6, MapSpec};
use gateway_tests::frames::{Forged, FrameSender, mac};
use gateway_tests::services::IDENT;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{TIMEOUT, TcpFlow};
use gateway_tests::wait::wait_for;
use serde_json::json;

use crate::nothing_past::sources::GATEWAY;
use crate::nothing_past::{SOON, assert_nothing_left, assert_the_tap_sees};

/// Number of flows. The table of IPv6 flows is the smaller one.
const FLOWS: u32 = 4 * Flows6::CAPACITY;
/// Number of bound flows in a round robin over two tunnels: if all selected their legs again, the same result would be
/// unlikely.
const BOUND: usize = 12;

/// Returns a counter of the dataplane.
fn counter(testbed: &Testbed, name: &str) -> u64 {
    let metrics =
        testbed.network.gateway.run("curl", &["-s", "http://127.0.0.1:8080/metrics"]).expect("metrics");
    let line = metrics.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn flood_of_flows_of_one_host_evicts_no_flow_of_another() {
    let testbed = Testbed::start().expect("scene");
    let (laptop, tv) = (&testbed.network.laptop, &testbed.network.tv);
    testbed.device(laptop).expect("device");
    let bound = testbed.device(tv).expect("device");
    assert_the_tap_sees(&testbed, laptop);
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.tunnel("wg-b", &testbed.network.exit_b).expect("tunnel");
    let mut split = policy("split", 10, ("device", &bound), &["wg-a", "wg-b"]);
    split["splitting"] = json!(true);
    testbed.policy(&split).expect("policy");
    let mut flows: Vec<(TcpFlow, IpAddr)> = (0..BOUND)
        .map(|_| {
            let mut flow = TcpFlow::open(tv, server(true)).expect("flow");
            let exit = flow.ask(TIMEOUT).seen().expect("an answer");
            (flow, exit)
        })
        .collect();
    for exit in [&testbed.network.exit_a, &testbed.network.exit_b] {
        assert!(flows.iter().any(|(_, seen)| *seen == exit.address(true)), "flows on both legs");
    }
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    let before = counter(&testbed, "gateway_unrecorded_flow_packets_total");
    // Sources outside the LAN: the packets are dropped, and each is a separate flow.
    let sender = FrameSender::open(&laptop.namespace, "eth0").expect("a sender");
    for flow in 0..FLOWS {
        let [a, b] = [flow >> 16, flow & 0xffff].map(|half| half as u16);
        let source = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, a, b);
        let frame = Forged::datagram(source.into(), server(true), IDENT).frame(mac(laptop.mac), GATEWAY);
        // A second packet marks the record as used, so the kernel evicts it later than others.
        sender.send(&frame).expect("sent");
        sender.send(&frame).expect("sent");
    }
    wait_for(SOON, "flows beyond the budget to be counted", || {
        counter(&testbed, "gateway_unrecorded_flow_packets_total") >= before + u64::from(FLOWS / 2)
    })
    .expect("counted");
    // In opening order they would select the same legs again.
    flows.sort_by_key(|(_, exit)| *exit);
    for (flow, exit) in &mut flows {
        assert_eq!(flow.ask(TIMEOUT).seen(), Some(*exit), "a flow keeps its leg");
    }
    assert_nothing_left(&testbed);
}
