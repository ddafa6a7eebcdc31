//! Plans that are written by their differences to an earlier plan in the same slot.

use gateway_core::plan::Dataplane;
use gateway_ctl::os::bpf::{Entries as _, Programs};
use gateway_tests::netns::{self, Prefix};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

use crate::kernel::differential::{Pins, plans};

const PLANS: usize = 40;

fn loaded() -> (Pins, Programs) {
    netns::require_root().expect("root");
    let pins = Pins(Prefix::unique().expect("a prefix").pin_directory());
    let programs = Programs::load(&pins.0).expect("the programs load");
    (pins, programs)
}

/// Returns whether the maps hold exactly this plan in the active slot.
fn holds(programs: &mut Programs, plan: &Dataplane) -> bool {
    !programs.apply(plan).expect("compared").changed
}

#[test]
fn a_plan_written_by_its_differences_is_the_whole_plan() {
    let (_pins, mut programs) = loaded();
    let mut runner = TestRunner::deterministic();
    let mut plan = || plans::plan().new_tree(&mut runner).expect("a plan").current();
    for round in 0..PLANS {
        // Several plans between two comparisons, so that each slot is written by differences of differences.
        for _ in 0..3 {
            let next = plan();
            programs.activate(&next).expect("the plan goes live");
        }
        let last = plan();
        programs.activate(&last).expect("the plan goes live");
        assert!(holds(&mut programs, &last), "round {round}: {last:#?}");
    }
}

#[test]
fn a_difference_of_another_program_in_the_other_slot_is_found_by_the_next_comparison() {
    let (_pins, mut programs) = loaded();
    let mut runner = TestRunner::deterministic();
    let plan =
        plans::plan().prop_filter("sources", |plan| plan.sources.keys().any(|net| net.addr().is_ipv4()));
    let plan = plan.new_tree(&mut runner).expect("a plan").current();
    for _ in 0..2 {
        programs.activate(&plan).expect("the plan goes live");
    }
    let live = programs.live().expect("the slot").expect("a plan").get();
    let key = programs.maps.sources4.read().expect("read").into_keys().find(|(_, key)| key.slot != live);
    programs.maps.sources4.remove(&key.expect("an entry of the other slot")).expect("removed");
    programs.activate(&plan).expect("the plan goes live");
    assert!(!holds(&mut programs, &plan), "the entry is missing");
    assert!(holds(&mut programs, &plan), "the comparison has repaired it");
}
