//! Counts of test programs' output, and the table at the end.

use std::{fmt, path::PathBuf, time::Duration};

use super::failures::Failure;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    pub(crate) fn total(&self) -> usize {
        self.passed + self.failed + self.skipped
    }

    /// Parses `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out; finished in 0.01s`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (_, numbers) = line.trim().strip_prefix("test result: ")?.split_once(". ")?;
        let mut counts = Self::default();
        for part in numbers.split("; ") {
            let (number, word) = part.split_once(' ')?;
            match word {
                "passed" => counts.passed = number.parse().ok()?,
                "failed" => counts.failed = number.parse().ok()?,
                "ignored" => counts.skipped = number.parse().ok()?,
                _ => {}
            }
        }
        Some(counts)
    }
}

/// A completed suite, or a completed step before the suites.
#[derive(Debug)]
pub(crate) struct Row {
    pub name: &'static str,
    pub counts: Counts,
    pub time: Duration,
    /// Processor time, if it is known.
    pub processor: Option<Duration>,
    pub failures: Vec<Failure>,
    /// `failures` has each failed test, and no test program ended before its result.
    pub is_complete: bool,
    /// Failure outside the tests.
    pub problem: Option<String>,
}

impl Row {
    pub(crate) fn passed(&self) -> bool {
        self.counts.failed == 0 && self.problem.is_none()
    }
}

/// A flaky test, with its first output.
#[derive(Debug)]
pub(crate) struct FlakyTest {
    pub suite: &'static str,
    pub failure: Failure,
    /// File with all of its first output.
    pub file: PathBuf,
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    flaky: Vec<FlakyTest>,
    reruns: Duration,
}

impl Report {
    pub(crate) fn add(&mut self, row: Row) {
        if let Some(problem) = &row.problem {
            eprintln!("{}: {problem}", row.name);
        }
        self.rows.push(row);
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Counts a failed test of a row as passed, and lists it as flaky.
    pub(crate) fn excuse(&mut self, row: usize, test: FlakyTest) {
        let Row { counts, failures, .. } = &mut self.rows[row];
        if let Some(at) = failures.iter().position(|failure| *failure == test.failure) {
            failures.remove(at);
            counts.failed -= 1;
            counts.passed += 1;
            self.flaky.push(test);
        }
    }

    pub(crate) fn add_time_of_reruns(&mut self, time: Duration) {
        self.reruns += time;
    }

    fn total(&self, count: impl Fn(&Counts) -> usize) -> usize {
        self.rows.iter().map(|row| count(&row.counts)).sum()
    }

    pub(crate) fn passed(&self) -> bool {
        self.total(|c| c.failed) == 0 && self.total(|c| c.passed) > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["passed", "failed", "skipped", "minutes", "processor"];
        let [passed, failed, skipped, time, processor] = header;
        writeln!(f, "\n{:12} {passed:>7} {failed:>7} {skipped:>8} {time:>8} {processor:>10}", "suite")?;
        for row in &self.rows {
            let Counts { passed, failed, skipped } = row.counts;
            let time = minutes(row.time);
            let processor = row.processor.map_or_else(|| "-".to_owned(), minutes);
            writeln!(f, "{:12} {passed:>7} {failed:>7} {skipped:>8} {time:>8} {processor:>10}", row.name)?;
        }
        if !self.flaky.is_empty() {
            let (count, time) = (self.flaky.len(), minutes(self.reruns));
            writeln!(f, "{:12} {count:>7} {:>7} {:>8} {time:>8}  (passed above)", "flaky", "", "")?;
        }
        for FlakyTest { suite, failure, file } in &self.flaky {
            let output = file.display();
            writeln!(f, "flaky: {suite}: {} failed, and passed alone; its output: {output}", failure.test)?;
            failure.shown().iter().try_for_each(|line| writeln!(f, "    {line}"))?;
        }
        for row in &self.rows {
            for failure in &row.failures {
                writeln!(f, "{}: {} failed:", row.name, failure.test)?;
                failure.shown().iter().try_for_each(|line| writeln!(f, "    {line}"))?;
            }
            if let Some(problem) = &row.problem {
                writeln!(f, "{}: {problem}", row.name)?;
            }
        }
        writeln!(f, "{} passed, {} failed", self.total(|c| c.passed), self.total(|c| c.failed))
    }
}

/// Formats a duration for the table.
fn minutes(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() / 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, passed: usize, failed: usize) -> Row {
        Row {
            name,
            counts: Counts { passed, failed, skipped: 0 },
            time: Duration::from_secs(1),
            processor: None,
            failures: Vec::new(),
            is_complete: true,
            problem: None,
        }
    }

    #[test]
    fn results_of_several_programs_add_up() {
        let mut counts = Counts::default();
        for line in [
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out; finished in 0.01s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.5s",
        ] {
            counts.add(Counts::parse(line).unwrap());
        }
        assert_eq!(counts, Counts { passed: 4, failed: 2, skipped: 1 });
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in ["test result", "3 passed; 1 failed", "test result: ok. many passed", "test a ... ok"] {
            assert_eq!(Counts::parse(line), None);
        }
    }

    #[test]
    fn the_last_line_is_the_sum_alone() {
        let mut report = Report::default();
        report.add(row("unit", 5, 0));
        report.add(row("e2e", 2, 1));
        assert_eq!(report.to_string().lines().last(), Some("7 passed, 1 failed"));
        assert!(!report.passed());
    }

    #[test]
    fn what_a_failed_test_said_stands_above_the_sum() {
        let mut report = Report::default();
        let failure = Failure { test: "a::bad".to_owned(), lines: vec!["left is not right".to_owned()] };
        report.add(Row { failures: vec![failure], ..row("unit", 5, 1) });
        report.add(row("e2e", 2, 0));
        let text = report.to_string();
        let last: Vec<&str> = text.lines().rev().take(3).collect();
        assert_eq!(last, ["7 passed, 1 failed", "    left is not right", "unit: a::bad failed:"]);
    }

    #[test]
    fn time_is_shown_in_minutes() {
        let mut report = Report::default();
        let processor = Some(Duration::from_secs(366));
        report.add(Row { time: Duration::from_secs(1_110), processor, ..row("e2e", 2, 0) });
        report.add(row("ui", 2, 0));
        let text = report.to_string();
        let lines: Vec<&str> = text.lines().skip(1).take(3).collect();
        assert_eq!(lines[0], "suite         passed  failed  skipped  minutes  processor");
        assert_eq!(lines[1], "e2e                2       0        0     18.5        6.1");
        assert_eq!(lines[2], "ui                 2       0        0      0.0          -");
    }

    #[test]
    fn a_report_without_tests_has_not_passed() {
        let mut report = Report::default();
        report.add(row("setup", 0, 0));
        assert!(!report.passed());
    }
}
