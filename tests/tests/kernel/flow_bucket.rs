//! A bucket of the flow table that is full, one that several processors write, and deletion, with the loaded program.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use aya::programs::SchedClassifier;
use gateway_common::maps::{Flows4, MapSpec as _};
use gateway_common::wire::{
    Address, FLOW_PLACES, FlowKey, FlowValue, Mac, RANK_NONE, flow_bucket, flow_flags, flow_tag,
};
use gateway_core::plan::Dataplane;
use gateway_ctl::os::bpf::Programs;
use gateway_tests::bpf_run::{Arrival, Run, run};
use gateway_tests::cores;
use gateway_tests::netns::{self, Prefix};
use ipnet::IpNet;

use crate::kernel::differential::{Pins, packets, plans};
use crate::kernel::flow_budget::INTERFACE;

const HOST: [u8; 4] = [192, 168, 10, 2];
/// Bucket of all flows of this test.
const BUCKET: u32 = 7;
/// Ticks for which one of the flows was silent longer than the others.
const SILENCE: u16 = 100;

/// A flow, as the last byte of the server's address and the port of the host.
type Flow = (u8, u16);

fn server(flow: Flow) -> [u8; 4] {
    [198, 18, 0, flow.0]
}

fn key(flow: Flow) -> FlowKey {
    FlowKey {
        source: Address::v4(HOST),
        destination: Address::v4(server(flow)),
        interface: INTERFACE,
        source_port: flow.1,
        destination_port: 443,
        mac: Mac::new(plans::mac(1)),
        vlan: 0,
        protocol: 17,
        fragment: 0,
        _pad: [0; 2],
    }
}

fn send(programs: &mut Programs, flow: Flow) {
    let packet = packets::udp4(HOST, server(flow), flow.1, 443);
    let program = programs.program("gw_ingress").expect("the program");
    run(program, &packet, Arrival::default()).expect("a test run");
}

fn all_flows(programs: &Programs) -> BTreeMap<FlowKey, FlowValue> {
    programs.flows(|_, _| true).expect("flows").into_iter().collect()
}

/// Returns the flows that have a record, by a lookup of each, after a comparison with a list of all.
fn recorded(programs: &Programs, flows: &[Flow]) -> Vec<Flow> {
    let all = all_flows(programs);
    let has = |flow: &&Flow| programs.flow(&key(**flow)).expect("a lookup").is_some();
    let found: Vec<Flow> = flows.iter().filter(has).copied().collect();
    let listed = flows.iter().filter(|flow| all.contains_key(&key(**flow))).count();
    assert_eq!((listed, all.len()), (found.len(), found.len()));
    found
}

/// Returns flows of the bucket while this plan is live.
fn flows_of_the_bucket(programs: &Programs, count: usize) -> Vec<Flow> {
    let live = programs.maps.live.get(0).expect("the live slot");
    let seed = programs.maps.plans.get(live).expect("a plan").seed;
    let in_bucket = |flow: &Flow| flow_bucket(key(*flow).hash(seed), Flows4::CAPACITY) == BUCKET;
    let all = (1..=u8::MAX).flat_map(|server| (1..u16::MAX).map(move |port| (server, port)));
    all.filter(in_bucket).take(count).collect()
}

#[test]
fn a_full_bucket_forgets_the_flow_that_was_silent_longest() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    programs.apply(&plans::pool(&[(16, 1)])).expect("the plan goes live");
    let live = programs.maps.live.get(0).expect("the live slot");
    let seed = programs.maps.plans.get(live).expect("a plan").seed;
    let flows = flows_of_the_bucket(&programs, FLOW_PLACES + 2);
    let (first, further) = flows.split_at(FLOW_PLACES);

    for flow in first {
        send(&mut programs, *flow);
    }
    assert_eq!(recorded(&programs, &flows), first, "each has a place");
    let mut places = programs.maps.flow_places4.get(BUCKET).expect("the places");
    let silent = key(first[4]).hash(seed);
    let place = places.tags.iter().position(|tag| *tag == flow_tag(silent)).expect("its place");
    places.seen[place] = places.seen[place].wrapping_sub(SILENCE);
    programs.maps.flow_places4.set(BUCKET, places).expect("the places");
    send(&mut programs, further[0]);
    let want: Vec<Flow> = flows[..=FLOW_PLACES].iter().filter(|flow| **flow != first[4]).copied().collect();
    assert_eq!(recorded(&programs, &flows), want);
    send(&mut programs, further[0]);
    assert_eq!(recorded(&programs, &flows), want, "a known flow takes no other place");

    // A note in one record leaves the others as they are.
    let before = all_flows(&programs);
    let noted = key(want[7]);
    assert!(programs.note_in_flow(&noted, flow_flags::DOH_NAME).expect("a note"));
    let after = all_flows(&programs);
    for (flow, value) in &before {
        assert_eq!(*flow != noted, after[flow] == *value, "{flow:?}");
    }
    assert_eq!(after[&noted].shown, before[&noted].shown | flow_flags::DOH_NAME);
    assert!(
        !programs.note_in_flow(&key(first[4]), flow_flags::DOH_NAME).expect("a note"),
        "it has no record"
    );

    programs.delete_flows().expect("no flows");
    assert_eq!(recorded(&programs, &flows), []);
    send(&mut programs, first[4]);
    assert_eq!(recorded(&programs, &flows), [first[4]]);
}

/// Returns a plan with one of three legs for each server, so that a flow always has the same.
fn legs_by_server() -> Dataplane {
    let mut plan = plans::pool(&[(16, 1)]);
    plan.header.all = RANK_NONE;
    for leg in [17, 18] {
        plan.actions.extend(plans::pool(&[(leg, 1)]).actions);
    }
    for last in 1..=u8::MAX {
        let server = IpNet::from(IpAddr::from(server((last, 0))));
        plan.destinations.insert(server, u32::from(last % 3));
    }
    plan
}

/// Twice as many flows as the bucket has places, so that records are written over all the time while others read them.
#[test]
fn processors_that_write_one_bucket_give_each_flow_its_verdict() {
    const ROUNDS: usize = 500;
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    programs.apply(&legs_by_server()).expect("the plan goes live");
    let flows = flows_of_the_bucket(&programs, 2 * FLOW_PLACES);
    let packets: Vec<Vec<u8>> =
        flows.iter().map(|flow| packets::udp4(HOST, server(*flow), flow.1, 443)).collect();
    let program: &SchedClassifier = programs.program("gw_ingress").expect("the program");
    let evaluate = |packet: &Vec<u8>| run(program, packet, Arrival::default()).expect("a test run");
    let alone: Vec<Run> = packets.iter().map(evaluate).collect();
    let marks: BTreeSet<u32> = alone.iter().map(|run| run.mark).collect();
    assert_eq!(marks.len(), 3, "the flows differ: {alone:?}");
    std::thread::scope(|scope| {
        for core in 0..cores::number().expect("cores").max(2) {
            let (packets, alone) = (&packets, &alone);
            scope.spawn(move || {
                // With one core the threads take turns.
                let _ = cores::keep_to(&[core]);
                for _ in 0..ROUNDS {
                    let seen: Vec<Run> = packets.iter().map(evaluate).collect();
                    assert_eq!(&seen, alone);
                }
            });
        }
    });
    let left: BTreeSet<FlowKey> = all_flows(&programs).into_keys().collect();
    let keys: BTreeSet<FlowKey> = flows.iter().map(|flow| key(*flow)).collect();
    assert!(!left.is_empty() && left.len() <= FLOW_PLACES && left.is_subset(&keys), "{left:?}");
}
