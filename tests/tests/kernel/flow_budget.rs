//! The budget of new flows, counted in the maps of the loaded program.

use gateway_common::wire::{DeviceValue, FLOW_BUDGET, NewFlows, RANK_NONE, budget_index};
use gateway_core::plan::Dataplane;
use gateway_ctl::os::bpf::Programs;
use gateway_tests::bpf_run::{Arrival, run};
use gateway_tests::netns::{self, Prefix};
use proptest::prelude::*;

use crate::kernel::differential::{Pins, packets, plans};

/// A window that the clock does not reach, so that none begins during a test.
pub(super) const WINDOW: u32 = u32::MAX;
/// The only interface of the tests.
pub(super) const INTERFACE: u32 = 1;

/// Returns counts of a budget: none, or nearly all of it.
pub(super) fn new_flows() -> impl Strategy<Value = NewFlows> {
    let count = prop_oneof![2 => Just(0u32), 1 => FLOW_BUDGET - 12..=FLOW_BUDGET + 1];
    (count, any::<bool>()).prop_map(|(count, exceeded_before)| NewFlows::new(WINDOW, count, exceeded_before))
}

/// Sets the count of a budget in [`WINDOW`].
pub(super) fn set_budget(programs: &mut Programs, index: u32, flows: NewFlows) {
    programs.maps.new_flows.set(index, flows).expect("a budget");
}

/// Returns a pool for everything, with the sender of the packets as a device.
fn pool() -> Dataplane {
    let mut plan = plans::pool(&[(16, 1), (17, 1), (18, 1)]);
    let device = DeviceValue { rank: RANK_NONE, number: 5, rank_after: RANK_NONE, ..DeviceValue::default() };
    plan.devices_by_mac.insert(plans::mac(1), device);
    plan
}

fn leg(programs: &mut Programs, port: u16) -> u32 {
    let packet = packets::udp4([192, 168, 10, 2], [198, 18, port.to_be_bytes()[1], 1], port, 443);
    let program = programs.program("gw_ingress").expect("the program");
    run(program, &packet, Arrival::default()).expect("a test run").mark & 0xff
}

fn records(programs: &Programs) -> usize {
    programs.flows(|_, _| true).expect("flows").len()
}

#[test]
fn device_beyond_its_budget_gets_no_more_records_and_its_flows_keep_their_legs() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    programs.apply(&pool()).expect("the plan goes live");
    set_budget(&mut programs, 5, NewFlows::new(WINDOW, FLOW_BUDGET - 3, false));
    for port in 1..=3 {
        leg(&mut programs, port);
    }
    assert_eq!((records(&programs), programs.unrecorded().expect("a counter").packets), (3, 0));
    let drawn = programs.round_robin_counter(1).expect("turns");
    let beyond: Vec<u32> = (1000..1050).map(|port| leg(&mut programs, port)).collect();
    assert_eq!((records(&programs), programs.unrecorded().expect("a counter").packets), (3, 50));
    assert!([16, 17, 18].iter().all(|leg| beyond.contains(leg)), "spread over all legs: {beyond:?}");
    for _ in 0..3 {
        programs.apply(&pool()).expect("the plan goes live");
        assert_eq!((1000..1050).map(|port| leg(&mut programs, port)).collect::<Vec<_>>(), beyond);
    }
    assert_eq!(programs.round_robin_counter(1).expect("turns"), drawn, "flows without a record take no turn");
    // The device's records stay, and it uses nothing of the others' budget.
    for port in 1..=3 {
        leg(&mut programs, port);
    }
    assert_eq!(records(&programs), 3);
    programs.apply(&plans::pool(&[(16, 1)])).expect("a plan without the device goes live");
    leg(&mut programs, 2000);
    assert_eq!(records(&programs), 4, "an unknown host has the budget of its interface");
    let shared = budget_index(0, INTERFACE);
    set_budget(&mut programs, shared, NewFlows::new(WINDOW, FLOW_BUDGET, false));
    leg(&mut programs, 2001);
    assert_eq!(records(&programs), 4, "which ends too");
}

#[test]
fn program_counts_new_flows_by_its_own_clock() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    programs.apply(&pool()).expect("the plan goes live");
    // A past window that exceeded its budget.
    set_budget(&mut programs, 5, NewFlows::new(0, FLOW_BUDGET + 1, false));
    let first = leg(&mut programs, 1);
    assert_eq!((records(&programs), leg(&mut programs, 1)), (1, first));
    let counted = programs.maps.new_flows.get(5).expect("a budget");
    assert!(!counted.is_exceeded() && counted != NewFlows::default(), "{counted:?}");
}
