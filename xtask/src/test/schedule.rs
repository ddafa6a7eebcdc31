//! Schedule of the suites: which run at the same time. Decision 0198 says why.
//!
//! A lane starts its suites in the order of the table. The lanes run in parallel.

use std::{
    sync::{Mutex, PoisonError},
    thread::{self, ScopedJoinHandle},
};

use super::{
    report::Row,
    suites::{Lane, SUITES, Suite},
};

/// Runs each suite in its lane. Returns the rows in the order of the table.
pub(super) fn run(chosen: &[&'static Suite], run: &(impl Fn(&Suite) -> Row + Sync)) -> Vec<Row> {
    let [networks, processors, background, alone] =
        [Lane::Networks, Lane::Processors, Lane::Background, Lane::Alone].map(|lane| Queue::of(lane, chosen));
    let mut rows = thread::scope(|scope| {
        let start = |queue| spawn(scope, queue, run);
        let background = start(&background);
        let parallel = [&networks, &processors].map(start);
        let mut rows: Vec<Row> = parallel.into_iter().flatten().flat_map(join).collect();
        rows.extend(start(&alone).into_iter().chain(background).flat_map(join));
        rows
    });
    rows.sort_by_key(|row| SUITES.iter().position(|suite| suite.name == row.name));
    rows
}

/// Suites of a lane that have not started.
struct Queue<'a> {
    lane: Lane,
    suites: Mutex<Vec<&'a Suite>>,
}

impl<'a> Queue<'a> {
    fn of(lane: Lane, chosen: &[&'a Suite]) -> Self {
        let suites = chosen.iter().rev().filter(|suite| suite.lane == lane).copied();
        Self { lane, suites: Mutex::new(suites.collect()) }
    }

    fn next(&self) -> Option<&'a Suite> {
        self.suites.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

type Rows<'scope> = ScopedJoinHandle<'scope, Vec<Row>>;

/// Starts the threads of a lane.
fn spawn<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    queue: &'scope Queue<'_>,
    run: &'scope (impl Fn(&Suite) -> Row + Sync),
) -> Vec<Rows<'scope>> {
    let all = move || std::iter::from_fn(|| queue.next()).map(run).collect();
    (0..queue.lane.width()).map(|_| scope.spawn(all)).collect()
}

/// Reports whether other suites may run at the same time.
pub(super) fn is_shared(chosen: &[&Suite]) -> bool {
    chosen.iter().filter(|suite| suite.lane != Lane::Alone).count() > 1
}

fn join(rows: Rows<'_>) -> Vec<Row> {
    rows.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Mutex,
            mpsc::{self, Receiver},
        },
        time::Duration,
    };

    use super::*;
    use crate::test::report::Counts;

    /// Deadline for an event that another lane causes.
    const SOON: Duration = Duration::from_secs(30);

    fn row(suite: &Suite) -> Row {
        Row {
            name: suite.name,
            counts: Counts { passed: 1, ..Counts::default() },
            time: Duration::ZERO,
            processor: None,
            failures: Vec::new(),
            is_complete: true,
            problem: None,
        }
    }

    fn first(lane: Lane) -> &'static Suite {
        SUITES.iter().find(|suite| suite.lane == lane).unwrap()
    }

    #[test]
    fn rows_are_in_the_order_of_the_table() {
        let all: Vec<&Suite> = SUITES.iter().collect();
        let rows = run(&all, &row);
        let names = rows.iter().map(|row| row.name);
        assert!(names.eq(SUITES.iter().map(|suite| suite.name)));
    }

    #[test]
    fn lanes_run_at_the_same_time() {
        let lanes = [Lane::Networks, Lane::Processors, Lane::Background];
        let barrier = std::sync::Barrier::new(lanes.len());
        // Returns only if all of them run.
        run(&lanes.map(first), &|suite| {
            barrier.wait();
            row(suite)
        });
    }

    #[test]
    fn no_more_suites_of_a_lane_than_its_width_overlap_and_only_the_background_with_those_that_run_alone() {
        let running = Mutex::new(Vec::new());
        let all: Vec<&Suite> = SUITES.iter().collect();
        run(&all, &|suite| {
            let mut lanes = running.lock().unwrap();
            lanes.push(suite.lane);
            let count = |lane: Lane| lanes.iter().filter(|other| **other == lane).count();
            assert!(count(suite.lane) <= suite.lane.width(), "{}: {lanes:?}", suite.name);
            let others = count(Lane::Networks) + count(Lane::Processors);
            assert!(count(Lane::Alone) == 0 || others == 0, "{}: {lanes:?}", suite.name);
            drop(lanes);
            thread::yield_now();
            let mut lanes = running.lock().unwrap();
            let at = lanes.iter().position(|lane| *lane == suite.lane).unwrap();
            lanes.remove(at);
            row(suite)
        });
    }

    #[test]
    fn suite_that_runs_alone_waits_for_the_lanes_but_not_for_the_background() {
        let (ended, is_ended) = mpsc::channel();
        let is_ended: Mutex<Receiver<()>> = Mutex::new(is_ended);
        let rows = run(&[first(Lane::Background), first(Lane::Alone)], &|suite| {
            match suite.lane {
                Lane::Alone => ended.send(()).unwrap(),
                _ => is_ended.lock().unwrap().recv_timeout(SOON).unwrap(),
            }
            row(suite)
        });
        assert_eq!(rows.len(), 2);
    }
}
