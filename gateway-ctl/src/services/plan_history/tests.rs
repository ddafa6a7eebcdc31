//! The history on disk.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::net::IpAddr;

use gateway_core::compile::compile;
use gateway_core::facts::{Facts, Link};
use gateway_core::network::Network;
use gateway_core::plan_history::{NotKept, PlanInputs};
use gateway_model::State;
use jiff::SignedDuration;
use tempfile::TempDir;

use super::*;

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_800_000_000 + second)
}

/// History in a folder, with the inputs that change.
pub(crate) struct Recorder {
    folder: TempDir,
    history: PlanHistory,
    inputs: PlanInputs,
}

impl Recorder {
    pub(crate) fn new() -> Recorder {
        let folder = tempfile::tempdir().expect("a folder");
        let history = PlanHistory::open_in(folder.path().join("plans"), at(0));
        let network = Network { lan: vec!["lan0".into()], ..Network::default() };
        let mut facts = Facts { booted_at: nanoseconds(at(-500)), ..Facts::default() };
        facts.links.insert("lan0".into(), Link { index: 2, up: true, ..Link::default() });
        let inputs = PlanInputs {
            state: Arc::new(State::new(at(0))),
            network: Arc::new(network),
            facts: Arc::new(facts),
            compiled_at: at(0),
        };
        Recorder { folder, history, inputs }
    }

    pub(crate) fn history(&self) -> &PlanHistory {
        &self.history
    }

    /// Ends the history without anything more being written, and opens it again.
    fn restart(&mut self, generation: Option<u32>) {
        self.history = PlanHistory::open_in(self.folder.path().join("plans"), at(0));
        self.history.0.queue.lock().kernel = KernelAtStart { generation };
    }

    /// Activates a plan in which a neighbour has this address.
    pub(crate) fn activate(&mut self, generation: u32, second: i64, address: &str) {
        let address: IpAddr = address.parse().expect("an address");
        let mut facts = Facts::clone(&self.inputs.facts);
        facts.neighbours.insert([2, 0, 0, 0, 0, 1], BTreeSet::from([address]));
        self.inputs.facts = Arc::new(facts);
        self.inputs.compiled_at = at(second);
        self.queue(generation, second);
        self.write();
    }

    fn queue(&self, generation: u32, second: i64) {
        let dataplane = compile(&self.inputs.input()).plan.dataplane;
        let activation = Activation { generation, inputs: self.inputs.clone(), dataplane, at: at(second) };
        self.history.0.queue.lock().activations.push(activation);
    }

    fn write(&self) {
        self.history.write(&bootstrap::PlanHistory::default(), at(0));
    }

    /// Returns the generation of a time, and the last octet of the neighbour's address then.
    fn found(&self, second: i64) -> Result<(u32, u8), PastError> {
        let past = self.history.at(at(second))?;
        assert!(past.plan.is_reproduced);
        let addresses = &past.plan.inputs.facts.neighbours[&[2, 0, 0, 0, 0, 1]];
        let octet = match addresses.first() {
            Some(IpAddr::V4(address)) => address.octets()[3],
            other => panic!("{other:?}"),
        };
        Ok((past.in_force.entry.header.generation, octet))
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("plans")).expect("the folder");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }
}

fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).expect("a time of this age")
}

fn not_kept(found: Result<(u32, u8), PastError>) -> NotKept {
    match found {
        Err(PastError::NotKept(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn plans_are_found_by_their_time_also_after_a_restart() {
    let mut recorder = Recorder::new();
    recorder.activate(7, 10, "192.0.2.1");
    recorder.activate(7, 20, "192.0.2.2");
    recorder.activate(8, 30, "192.0.2.3");
    for _ in 0..2 {
        let found = [10, 19, 20, 30, 900].map(|second| recorder.found(second).expect("kept"));
        assert_eq!(found, [(7, 1), (7, 1), (7, 2), (8, 3), (8, 3)]);
        assert_eq!(not_kept(recorder.found(9)), NotKept::Before { oldest: at(10) });
        let of_seven = recorder.history.of_generation(7, at(500)).expect("kept").in_force;
        assert_eq!((of_seven.from, of_seven.until), (at(10), Some(at(30))));
        recorder.restart(Some(8));
    }
    recorder.activate(8, 40, "192.0.2.4");
    let of_eight = recorder.history.at(at(35)).expect("kept").in_force;
    assert_eq!((of_eight.from, of_eight.until), (at(30), None), "the kernel enforced it meanwhile");
}

#[test]
fn inputs_that_are_the_same_make_no_record() {
    let mut recorder = Recorder::new();
    recorder.activate(7, 10, "192.0.2.1");
    recorder.activate(7, 20, "192.0.2.1");
    assert_eq!(recorder.history.0.kept.lock().timeline().len(), 1);
    recorder.activate(8, 30, "192.0.2.1");
    assert_eq!(recorder.history.0.kept.lock().timeline().len(), 2, "another plan");
}

#[test]
fn after_a_boot_it_is_unknown_what_was_in_force_until_the_first_plan() {
    let mut recorder = Recorder::new();
    recorder.activate(7, 10, "192.0.2.1");
    recorder.restart(None);
    let facts = Facts { booted_at: nanoseconds(at(100)), ..Facts::clone(&recorder.inputs.facts) };
    recorder.inputs.facts = Arc::new(facts);
    recorder.activate(4097, 120, "192.0.2.2");
    assert_eq!(recorder.found(99).expect("kept"), (7, 1));
    let unknown = NotKept::Unknown { from: at(100), until: Some(at(120)) };
    assert_eq!(not_kept(recorder.found(110)), unknown);
    assert_eq!(recorder.found(120).expect("kept"), (4097, 2));
}

#[test]
fn another_plan_in_the_kernel_at_the_start_is_not_taken_for_the_last_one() {
    let mut recorder = Recorder::new();
    recorder.activate(7, 10, "192.0.2.1");
    recorder.restart(None);
    recorder.activate(9, 50, "192.0.2.2");
    assert!(matches!(not_kept(recorder.found(30)), NotKept::Unknown { .. }));
    assert_eq!(recorder.found(10).expect("kept"), (7, 1));
}

#[test]
fn plans_that_were_not_queued_are_a_gap() {
    let mut recorder = Recorder::new();
    recorder.activate(7, 10, "192.0.2.1");
    recorder.history.0.queue.lock().lost_since = Some(at(20));
    recorder.write();
    recorder.activate(9, 30, "192.0.2.3");
    assert_eq!(not_kept(recorder.found(25)), NotKept::Unknown { from: at(20), until: Some(at(30)) });
    assert_eq!(recorder.found(30).expect("kept"), (9, 3));
}

#[test]
fn many_changes_are_followed_by_a_whole_record() {
    let mut recorder = Recorder::new();
    for step in 0..1200i64 {
        recorder.activate(7, step, &format!("192.0.2.{}", step % 200));
    }
    let whole = |recorder: &Recorder| {
        let mut kept = recorder.history.0.kept.lock();
        kept.timeline().at(at(1199)).expect("kept").records
    };
    assert!(whole(&recorder) <= 501, "{}", whole(&recorder));
    for second in [0, 499, 500, 501, 777, 1199] {
        assert_eq!(recorder.found(second).expect("kept").1, u8::try_from(second % 200).expect("an octet"));
    }
}

#[test]
fn a_record_that_was_cut_off_is_gone_and_the_others_are_there() {
    let mut recorder = Recorder::new();
    recorder.activate(7, 10, "192.0.2.1");
    recorder.activate(8, 20, "192.0.2.2");
    let file = recorder.files().pop().expect("a file");
    let length = fs::metadata(&file).expect("the file").len();
    let cut = OpenOptions::new().write(true).open(&file).and_then(|file| file.set_len(length - 1));
    cut.expect("cut");
    recorder.restart(Some(8));
    assert_eq!(recorder.found(30).expect("kept"), (7, 1));
    recorder.activate(9, 40, "192.0.2.4");
    assert_eq!(recorder.found(40).expect("kept"), (9, 4));
    // The kernel had the plan 8, of which there is no record.
    assert!(matches!(not_kept(recorder.found(30)), NotKept::Unknown { .. }));
}

#[test]
fn a_wipe_leaves_nothing_but_the_plan_in_force() {
    let mut recorder = Recorder::new();
    recorder.activate(7, 10, "192.0.2.1");
    recorder.activate(8, 20, "192.0.2.2");
    recorder.history.erase(WipeLevel::Soft).expect("erased");
    assert_eq!(not_kept(recorder.found(15)), NotKept::Before { oldest: at(20) });
    assert_eq!(recorder.found(20).expect("noted again"), (8, 2));
    recorder.history.erase(WipeLevel::Medium).expect("erased");
    assert_eq!((not_kept(recorder.found(20)), recorder.files().len()), (NotKept::Nothing, 0));
    recorder.activate(9, 30, "192.0.2.3");
    assert_eq!(recorder.found(30).expect("kept"), (9, 3));
    recorder.history.erase(WipeLevel::Hard).expect("erased");
    recorder.activate(10, 40, "192.0.2.4");
    assert_eq!((not_kept(recorder.found(40)), recorder.files().len()), (NotKept::Nothing, 0));
}

#[test]
fn an_open_removes_nothing_before_the_configuration_is_known() {
    let mut recorder = Recorder::new();
    recorder.activate(1, 0, "192.0.2.1");
    let files = recorder.files();
    let after = at(SignedDuration::from_hours(24 * 400).as_secs());
    recorder.history = PlanHistory::open_in(recorder.folder.path().join("plans"), after);
    assert_eq!(recorder.files(), files);
    // The default is less than 400 days.
    recorder.history.write(&bootstrap::PlanHistory::default(), after);
    assert_eq!(recorder.files(), Vec::<PathBuf>::new());
}
