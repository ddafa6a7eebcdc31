//! Report of vitest, in the form of its JSON reporter.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::metadata::{list, text};
use crate::test::{failures::Failure, report::Counts};

/// Results of the checks and tests of the dashboard.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub counts: Counts,
    /// Failed tests.
    pub failures: Vec<Failure>,
    /// Failure beside failed tests.
    pub problem: Option<String>,
}

/// Reads the results of a run.
pub(super) fn results(report: &str) -> Result<Results> {
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
    let tests = list(&report["testResults"]).iter().flat_map(|file| list(&file["assertionResults"]));
    let failures = tests.filter(|test| test["status"] == "failed").map(failure).collect();
    Ok(Results { counts, failures, problem })
}

fn failure(test: &Value) -> Failure {
    let messages = list(&test["failureMessages"]).iter().map(text);
    let lines = messages.flat_map(str::lines).map(str::to_owned).collect();
    Failure { test: text(&test["fullName"]).to_owned(), lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: usize, failed: usize, success: bool) -> String {
        format!(
            "{{\"numPassedTests\": {passed}, \"numFailedTests\": {failed}, \"numPendingTests\": 2, \
             \"numTodoTests\": 1, \"numFailedTestSuites\": 1, \"success\": {success}, \"testResults\": [ \
             {{\"assertionResults\": [{{\"status\": \"passed\", \"fullName\": \"a\"}}, \
             {{\"status\": \"failed\", \"fullName\": \"b\", \"failureMessages\": [\"Error: late\\n at b\"]}}]}}]}}"
        )
    }

    #[test]
    fn tests_are_counted() {
        let found = results(&report(7, 0, true)).unwrap();
        assert_eq!((found.counts, found.problem), (Counts { passed: 7, failed: 0, skipped: 3 }, None));
        let found = results(&report(7, 2, false)).unwrap();
        assert_eq!((found.counts.failed, found.problem), (2, None));
    }

    #[test]
    fn failed_tests_are_named_with_their_message() {
        let found = results(&report(1, 1, false)).unwrap().failures;
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].test.as_str(), found[0].shown()[0].as_str()), ("b", "Error: late"));
    }

    #[test]
    fn a_file_that_does_not_load_and_a_run_without_tests_are_problems() {
        assert!(results(&report(7, 0, false)).unwrap().problem.unwrap().contains("1 files"));
        assert_eq!(results(&report(0, 0, true)).unwrap().problem.unwrap(), "no test was run");
        assert!(results("{}").is_err() && results("").is_err());
    }
}
