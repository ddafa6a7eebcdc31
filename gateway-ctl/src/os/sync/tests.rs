//! The step against the in-memory backend: convergence, idempotence, orphans, isolated failures.

use proptest::collection::{btree_map, btree_set};
use proptest::prelude::*;

use super::*;
use crate::os::fake_backend::{Mem, Operation};

type Entries = BTreeMap<u8, u8>;

/// Returns a strategy with few keys and values, so that wanted and present entries overlap in all combinations.
fn entries() -> impl Strategy<Value = Entries> {
    btree_map(0_u8..12, 0_u8..3, 0..12)
}

fn run(mem: &Mem<u8, u8>, want: &Entries, memory: &mut LastApplied<u8, u8>) -> Outcome {
    block_on(sync(mem, want, memory))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #[test]
    fn a_step_makes_present_what_is_wanted_and_nothing_else(have in entries(), want in entries()) {
        let mem = Mem::holding(have);
        let outcome = run(&mem, &want, &mut LastApplied::default());
        prop_assert!(outcome.is_ok());
        prop_assert_eq!(mem.entries(), want);
    }

    #[test]
    fn a_second_step_does_nothing(have in entries(), want in entries()) {
        let mem = Mem::holding(have);
        let mut memory = LastApplied::default();
        run(&mem, &want, &mut memory);
        mem.take_log();
        prop_assert_eq!(run(&mem, &want, &mut memory), Outcome::default());
        prop_assert_eq!(mem.take_log(), vec![]);
    }

    #[test]
    fn unwanted_entries_of_an_earlier_process_are_removed(have in entries(), want in entries()) {
        let mem = Mem::holding(have.clone());
        let outcome = run(&mem, &want, &mut LastApplied::default());
        prop_assert_eq!(outcome.removed, have.keys().filter(|key| !want.contains_key(key)).count());
        prop_assert!(outcome.drift.is_empty(), "what an earlier process left is not drift");
    }

    #[test]
    fn a_bad_entry_never_blocks_the_rest(
        have in entries(), want in entries(), bad in btree_set(0_u8..12, 0..4),
    ) {
        let mem = Mem::holding(have.clone());
        mem.fail_at(bad.clone());
        let mut memory = LastApplied::default();
        let outcome = run(&mem, &want, &mut memory);
        for key in 0..12 {
            let expected = if bad.contains(&key) { have.get(&key) } else { want.get(&key) };
            prop_assert_eq!(mem.entries().get(&key).copied(), expected.copied());
        }
        let differing = bad.iter().filter(|key| have.get(key) != want.get(key)).count();
        prop_assert_eq!(outcome.failed.len(), differing);

        mem.fail_at([]);
        let outcome = run(&mem, &want, &mut memory);
        prop_assert_eq!(mem.entries(), want);
        prop_assert_eq!((outcome.put + outcome.removed, outcome.drift.len()), (differing, 0));
    }

    #[test]
    fn drift_is_exactly_what_an_outsider_changed_and_is_repaired(want in entries(), after in entries()) {
        let mem = Mem::default();
        let mut memory = LastApplied::default();
        run(&mem, &want, &mut memory);
        mem.tamper(|entries| entries.clone_from(&after));
        let outcome = run(&mem, &want, &mut memory);
        let changed: Vec<String> =
            (0..12).filter(|key| want.get(key) != after.get(key)).map(|key| key.to_string()).collect();
        prop_assert_eq!(outcome.drift.iter().map(|entry| entry.resource.clone()).collect::<Vec<_>>(), changed);
        prop_assert!(outcome.drift.iter().all(|entry| entry.repaired));
        prop_assert_eq!(mem.entries(), want);
    }

    #[test]
    fn our_own_changes_are_never_drift(first in entries(), second in entries()) {
        let mem = Mem::default();
        let mut memory = LastApplied::default();
        run(&mem, &first, &mut memory);
        prop_assert!(run(&mem, &second, &mut memory).drift.is_empty());
        prop_assert_eq!(mem.entries(), second);
    }
}

#[test]
fn drift_that_cannot_be_repaired_says_so() {
    let want = Entries::from([(1, 1), (2, 2)]);
    let mem = Mem::default();
    let mut memory = LastApplied::default();
    run(&mem, &want, &mut memory);
    mem.tamper(|entries| entries.clear());
    mem.fail_at([2]);
    let outcome = run(&mem, &want, &mut memory);
    let reported: Vec<_> =
        outcome.drift.iter().map(|entry| (entry.resource.as_str(), entry.repaired)).collect();
    assert_eq!(reported, [("1", true), ("2", false)]);
}

#[test]
fn an_unreadable_backend_is_a_failure_and_is_left_alone() {
    let mem = Mem::holding(Entries::from([(1, 1)]));
    mem.fail_reading(true);
    let mut memory = LastApplied::default();
    let outcome = run(&mem, &Entries::from([(2, 2)]), &mut memory);
    assert_eq!(outcome.failed[0].error, "reading was told to fail");
    assert_eq!(mem.entries(), Entries::from([(1, 1)]));
    assert!(memory.applied().is_none(), "nothing was learned");
}

#[test]
fn new_entries_are_put_before_old_ones_are_removed() {
    let mem = Mem::holding(Entries::from([(1, 1)]));
    run(&mem, &Entries::from([(2, 2)]), &mut LastApplied::default());
    assert_eq!(mem.take_log(), [Operation::Put(2), Operation::Remove(1)]);
}

#[test]
fn parts_of_a_pass_touch_only_what_they_name() {
    let mem = Mem::holding(Entries::from([(1, 1), (2, 2)]));
    let want = Entries::from([(3, 3), (4, 4)]);
    let mut memory = LastApplied::default();
    let outcome = block_on(async {
        let mut pass = SyncPass::open(&mem, &want, &memory).await;
        pass.put_where(|key, _| *key == 4).await;
        pass.remove_where(|key, _| *key == 1).await;
        pass.close(&mut memory)
    });
    assert_eq!((outcome.put, outcome.removed), (1, 1));
    assert_eq!(mem.entries(), Entries::from([(2, 2), (4, 4)]));
    assert_eq!(memory.applied(), Some(&Entries::from([(4, 4)])));
}
