//! Report of vitest, in the form of its JSON reporter.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::test::report::Counts;

/// Returns the counts, and the failure beside failed tests if any.
pub(super) fn counts(report: &str) -> Result<(Counts, Option<String>)> {
    let report: Value = serde_json::from_str(report).context("the report of vitest is not JSON")?;
    let count = |name: &str| {
        let count = report[name].as_u64().with_context(|| format!("the report of vitest has no {name}"))?;
        usize::try_from(count).context("a count of vitest is too large")
    };
    let counts = Counts {
        passed: count("numPassedTests")?,
        failed: count("numFailedTests")?,
        skipped: count("numPendingTests")? + count("numTodoTests")?,
    };
    // A file that cannot be loaded has no tests.
    let problem = match (counts.failed, report["success"] == true) {
        (0, false) => Some(format!("{} files of tests failed", count("numFailedTestSuites")?)),
        _ => None,
    };
    let problem =
        problem.or_else(|| (counts.passed + counts.failed == 0).then(|| "no test was run".to_owned()));
    Ok((counts, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: usize, failed: usize, success: bool) -> String {
        format!(
            "{{\"numPassedTests\": {passed}, \"numFailedTests\": {failed}, \"numPendingTests\": 2, \
             \"numTodoTests\": 1, \"numFailedTestSuites\": 1, \"success\": {success}}}"
        )
    }

    #[test]
    fn tests_are_counted() {
        let (found, problem) = counts(&report(7, 0, true)).unwrap();
        assert_eq!((found, problem), (Counts { passed: 7, failed: 0, skipped: 3 }, None));
        let (found, problem) = counts(&report(7, 2, false)).unwrap();
        assert_eq!((found.failed, problem), (2, None));
    }

    #[test]
    fn a_file_that_does_not_load_and_a_run_without_tests_are_problems() {
        assert!(counts(&report(7, 0, false)).unwrap().1.unwrap().contains("1 files"));
        assert_eq!(counts(&report(0, 0, true)).unwrap().1.unwrap(), "no test was run");
        assert!(counts("{}").is_err() && counts("").is_err());
    }
}
