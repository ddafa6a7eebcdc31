//! Tests that fail in a run and pass alone. After the run, when nothing else runs, each failed test runs again twice. If it
//! passes both times it is flaky: it counts as passed, and the report shows its first output. Decision 0198 says why.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, Result};

use super::{
    failures::Failure,
    report::{FlakyTest, Report, Row},
};

/// Number of runs of a failed test.
const RERUNS: usize = 2;

/// Number of failed tests that are excused in a run. If more fail, something else than chance is the cause.
const MAX_FLAKY: usize = 2;

/// Suite whose tests are not excused: a leak in one of three runs is a leak.
const STRICT_SUITE: &str = "nothing_past";

/// A test that failed in the run.
#[derive(Debug, Clone, Copy)]
struct FailedTest<'a> {
    suite: &'a str,
    test: &'a str,
    /// The failed tests are all that failed in its suite.
    is_only_cause: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Flaky,
    Failed,
}

/// Runs failed tests again by `passes_alone`, which takes suite and test, and moves flaky ones out of the failed ones.
/// Their output goes into `folder`.
pub(super) fn excuse(report: &mut Report, folder: &Path, mut passes_alone: impl FnMut(&str, &str) -> bool) {
    let start = Instant::now();
    let failed: Vec<(usize, Failure)> = report
        .rows()
        .iter()
        .enumerate()
        .flat_map(|(row, Row { failures, .. })| failures.iter().map(move |failure| (row, failure.clone())))
        .collect();
    let tests: Vec<_> = failed.iter().map(|(row, failure)| describe(&report.rows()[*row], failure)).collect();
    let verdicts = verdicts(&tests, |test| passes_alone(test.suite, test.test));
    for ((row, failure), verdict) in failed.into_iter().zip(verdicts) {
        if verdict == Verdict::Failed {
            continue;
        }
        let suite = report.rows()[row].name;
        match keep(folder, suite, &failure) {
            Ok(file) => report.excuse(row, FlakyTest { suite, failure, file }),
            Err(error) => eprintln!("{suite}: {} counts as failed: {error:#}", failure.test),
        }
    }
    report.add_time_of_reruns(start.elapsed());
}

fn describe<'a>(row: &Row, failure: &'a Failure) -> FailedTest<'a> {
    FailedTest {
        suite: row.name,
        test: &failure.test,
        is_only_cause: row.is_complete && row.problem.is_none(),
    }
}

/// Returns the verdict on each failed test of a run.
fn verdicts(tests: &[FailedTest<'_>], mut passes_alone: impl FnMut(&FailedTest<'_>) -> bool) -> Vec<Verdict> {
    let may_pass = |test: &FailedTest<'_>| test.is_only_cause && test.suite != STRICT_SUITE;
    let are_few = tests.iter().filter(|test| may_pass(test)).count() <= MAX_FLAKY;
    let mut verdict = |test: &FailedTest<'_>| {
        let is_flaky = are_few && may_pass(test) && (0..RERUNS).all(|_| passes_alone(test));
        if is_flaky { Verdict::Flaky } else { Verdict::Failed }
    };
    tests.iter().map(&mut verdict).collect()
}

/// Writes the output of a failed test into a file.
fn keep(folder: &Path, suite: &str, failure: &Failure) -> Result<PathBuf> {
    let file = folder.join(format!("{suite}-{}.txt", failure.test.replace("::", "-")));
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let text: String = failure.lines.iter().flat_map(|line| [line, "\n"]).collect();
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests;
