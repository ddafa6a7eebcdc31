//! The filter before the prefix tries, and the log before the counters, in the maps of the loaded program.

use gateway_common::wire::{DeviceValue, FilterLevels, FilterPage, Mark, RANK_NONE, filter_page_index};
use gateway_core::plan::Dataplane;
use gateway_ctl::os::bpf::Programs;
use gateway_tests::bpf_run::{Arrival, run};
use gateway_tests::netns::{self, Prefix};

use crate::kernel::differential::{Pins, packets, plans};

const DEVICE: u32 = 5;

/// Returns a plan with one leg for one destination, and the sender of the packets as a device.
fn to_destination() -> Dataplane {
    let mut plan = plans::pool(&[(16, 1)]);
    plan.header.all = RANK_NONE;
    plan.destinations.insert("198.18.0.0/16".parse().expect("a network"), 0);
    let device =
        DeviceValue { rank: RANK_NONE, number: DEVICE, rank_after: RANK_NONE, ..DeviceValue::default() };
    plan.devices_by_mac.insert(plans::mac(1), device);
    plan
}

/// Sends the first packet of a flow. Returns its mark and its length.
fn send(programs: &mut Programs, port: u16) -> (u32, u64) {
    let packet = packets::udp4([192, 168, 10, 2], [198, 18, 1, 1], port, 443);
    let program = programs.program("gw_ingress").expect("the program");
    let length = u64::try_from(packet.len()).expect("a length");
    (run(program, &packet, Arrival::default()).expect("a test run").mark, length)
}

#[test]
fn filter_that_an_outsider_changed_is_repaired() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    let plan = to_destination();
    programs.apply(&plan).expect("the plan goes live");
    assert!(!programs.apply(&plan).expect("the plan is live").changed);
    assert_eq!(send(&mut programs, 1).0, Mark::leg(16).0);
    let mut port = 1;
    for is_of_levels in [false, true] {
        let slot = programs.live().expect("the slot").expect("a plan").get();
        if is_of_levels {
            programs.maps.prefix_levels.set(slot, FilterLevels::default()).expect("levels");
        } else {
            for index in (0..).map_while(|page| filter_page_index(slot, page)) {
                programs.maps.prefix_bits.set(index, FilterPage::default()).expect("a page");
            }
        }
        port += 1;
        assert_eq!(send(&mut programs, port).0, Mark::DIRECT.0, "the filter hides the entry");
        assert!(programs.apply(&plan).expect("the plan goes live").changed);
        port += 1;
        assert_eq!(send(&mut programs, port).0, Mark::leg(16).0);
        assert!(!programs.apply(&plan).expect("the plan is live").changed);
    }
}

#[test]
fn every_packet_is_counted_at_once_and_once() {
    netns::require_root().expect("root");
    let prefix = Prefix::unique().expect("a prefix");
    let pins = Pins(prefix.pin_directory());
    let mut programs = Programs::load(&pins.0).expect("the programs load");
    programs.apply(&to_destination()).expect("the plan goes live");
    let mut bytes = 0;
    // More than two logs.
    for packets in 1..=150 {
        bytes += send(&mut programs, packets).1;
        let want = (u64::from(packets), bytes);
        for counters in [programs.policy_counters(1), programs.device_counters(DEVICE)] {
            let counters = counters.expect("counters");
            assert_eq!((counters.packets, counters.bytes), want);
        }
        assert_eq!(programs.policy_counters(2).expect("counters").packets, 0);
    }
    drop(programs);
    let programs = Programs::load(&pins.0).expect("the programs load again");
    assert_eq!(programs.policy_counters(1).expect("counters").packets, 150, "the log outlives the daemon");
}
