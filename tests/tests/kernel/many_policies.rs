//! Plans with thousands of policies: all maps are read and written in batches.

use gateway_common::maps::action_index;
use gateway_common::wire::{ActionValue, Choice, DeviceValue, RANK_NONE};
use gateway_core::plan::{Dataplane, Plan};
use gateway_ctl::os::bpf::{Entries as _, Programs};
use gateway_ctl::reconcile::{Check, Dataplane as _, KernelDataplane};
use gateway_tests::netns::{self, Prefix};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::kernel::differential::{Pins, plans};

/// More than two batches.
const POLICIES: u32 = 9_000;
/// Maps with an entry per policy.
const ENTRIES: usize = 3 * POLICIES as usize;

fn loaded() -> (Pins, Programs) {
    netns::require_root().expect("root");
    let pins = Pins(Prefix::unique().expect("a prefix").pin_directory());
    let programs = Programs::load(&pins.0).expect("the programs load");
    (pins, programs)
}

fn plan() -> Dataplane {
    let mut plan = Dataplane { actions: Vec::new(), ..plans::pool(&[]) };
    for rank in 0..POLICIES {
        let choice = Choice::legs(&[16]);
        plan.actions.push(ActionValue { v4: choice, v6: choice, policy: rank + 1, ..ActionValue::default() });
        plan.sources.insert(net4(rank), rank);
        let net6 = Ipv6Net::new((0xfd00_u128 << 112 | u128::from(rank)).into(), 128).expect("a length");
        plan.sources.insert(IpNet::V6(net6), rank);
        let [_, _, high, low] = rank.to_be_bytes();
        let device = DeviceValue { rank, number: rank + 1, rank_after: RANK_NONE, ..DeviceValue::default() };
        plan.devices_by_mac.insert([2, 0, 0, 9, high, low], device);
    }
    plan
}

fn net4(rank: u32) -> IpNet {
    IpNet::V4(Ipv4Net::new((10 << 24 | rank << 8).into(), 24).expect("a length"))
}

#[test]
fn a_plan_of_many_policies_is_written_once_and_then_by_its_differences() {
    let (_pins, mut programs) = loaded();
    let mut plan = plan();
    let first = programs.apply(&plan).expect("the plan goes live");
    assert!(first.changed && first.puts >= ENTRIES, "{first:?}");
    let again = programs.apply(&plan).expect("the plan is live");
    assert!(!again.changed && again.generation == first.generation, "{again:?}");
    for rank in [7, POLICIES - 1] {
        plan.sources.insert(net4(rank), 0);
        plan.actions[rank as usize].policy = 1;
        assert!(programs.apply(&plan).expect("the plan goes live").changed);
        assert!(!programs.apply(&plan).expect("the plan is live").changed);
    }
    // The plan before the last one is in the other slot.
    plan.sources.remove(&net4(8));
    let third = programs.apply(&plan).expect("the plan goes live");
    assert_eq!((third.puts, third.removes), (1, 1), "{third:?}");
}

#[test]
fn each_difference_of_another_program_is_noticed() {
    let (_pins, mut programs) = loaded();
    let plan = plan();
    programs.apply(&plan).expect("the plan goes live");
    let same = |programs: &mut Programs| !programs.apply(&plan).expect("the plan is live").changed;
    for rank in [0, 4_096, POLICIES - 1] {
        let slot = programs.live().expect("the slot").expect("a plan").get();
        let index = action_index(slot, rank).expect("an index");
        programs.maps.actions.set(index, ActionValue::default()).expect("written");
        assert!(!same(&mut programs), "the action of rank {rank}");
        assert!(same(&mut programs));
        let slot = programs.live().expect("the slot").expect("a plan").get();
        let entries = programs.maps.sources4.read().expect("read");
        let key = entries.keys().filter(|(_, key)| key.slot == slot).nth(rank as usize).expect("an entry");
        programs.maps.sources4.remove(key).expect("removed");
        assert!(!same(&mut programs), "the source of rank {rank}");
        assert!(same(&mut programs));
    }
}

#[tokio::test]
async fn only_a_run_that_checks_the_maps_reads_them() {
    let (_pins, programs) = loaded();
    let plan = Plan { dataplane: plan().into(), ..Plan::default() };
    let dataplane = KernelDataplane::new(programs);
    assert!(dataplane.apply(&plan, Check::Plan).await.put >= ENTRIES, "the first plan");
    dataplane.with(|programs| {
        let key = programs.maps.sources4.read().expect("read").into_keys().next().expect("an entry");
        programs.maps.sources4.remove(&key).expect("removed");
    });
    let trusting = dataplane.apply(&plan, Check::Plan).await;
    assert_eq!((trusting.put, trusting.drift.len()), (0, 0), "{trusting:?}");
    let checking = dataplane.apply(&plan, Check::Maps).await;
    assert!(checking.put > 0 && checking.drift.len() == 1, "{checking:?}");
    // Another active slot is noticed without a read of the maps.
    dataplane.with(Programs::deny_all).expect("default deny");
    let restored = dataplane.apply(&plan, Check::Plan).await;
    assert_eq!((restored.drift.len(), restored.failed.len()), (1, 0), "{restored:?}");
    assert_ne!(dataplane.with(|programs| programs.live()).expect("the slot"), None);
}
