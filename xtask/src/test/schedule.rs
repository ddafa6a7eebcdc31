//! Schedule of the suites: which run at the same time. Decision 0195 says why.
//!
//! A lane runs its suites one after another, in the order of the table. The lanes run in parallel.

use std::thread::{self, ScopedJoinHandle};

use super::{
    report::Row,
    suites::{SUITES, Suite},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Suites that mostly wait for networks and timers. Permits limit the networks of all of them
    /// (`tests/src/network_permit.rs`).
    Networks,
    /// Suites that take a processor, and whose tests have deadlines.
    Processors,
    /// Suites that only need processor time, of which the other lanes leave some: at the lowest priority.
    Background,
    /// Suites that compare two gateways under load. They run after the lanes of networks and processors.
    Alone,
}

impl Lane {
    const fn is_parallel(self) -> bool {
        !matches!(self, Self::Alone)
    }
}

/// Runs each suite in its lane. Returns the rows in the order of the table.
pub fn run(chosen: &[&'static Suite], run: &(impl Fn(&Suite) -> Row + Sync)) -> Vec<Row> {
    let in_lane = |lane: Lane| chosen.iter().filter(move |suite| suite.lane == lane);
    let mut rows = thread::scope(|scope| {
        let spawn = |lane| scope.spawn(move || in_lane(lane).map(|suite| run(suite)).collect::<Vec<_>>());
        let background = spawn(Lane::Background);
        let mut rows: Vec<Row> =
            [Lane::Networks, Lane::Processors].map(spawn).into_iter().flat_map(join).collect();
        rows.extend(in_lane(Lane::Alone).map(|suite| run(suite)));
        rows.extend(join(background));
        rows
    });
    rows.sort_by_key(|row| SUITES.iter().position(|suite| suite.name == row.name));
    rows
}

/// Reports whether other suites may run at the same time.
pub fn is_shared(chosen: &[&Suite]) -> bool {
    chosen.iter().filter(|suite| suite.lane.is_parallel()).count() > 1
}

fn join(lane: ScopedJoinHandle<'_, Vec<Row>>) -> Vec<Row> {
    lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
    fn suites_of_a_lane_and_those_that_run_alone_do_not_overlap() {
        let running = Mutex::new(Vec::new());
        let all: Vec<&Suite> = SUITES.iter().collect();
        run(&all, &|suite| {
            let mut lanes = running.lock().unwrap();
            let beside =
                |lane: &Lane| *lane != suite.lane && (*lane == Lane::Background || suite.lane != Lane::Alone);
            assert!(suite.lane == Lane::Background || lanes.iter().all(beside), "{}: {lanes:?}", suite.name);
            lanes.push(suite.lane);
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
