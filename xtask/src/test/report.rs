//! Counts of test programs' output, and the table at the end.

use std::{fmt, time::Duration};

use super::failures::Failure;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Counts {
    /// Adds the counts of an output line of a test program. Ignores other lines.
    pub fn read(&mut self, line: &str) {
        let Some(found) = Self::parse(line) else { return };
        self.passed += found.passed;
        self.failed += found.failed;
        self.skipped += found.skipped;
    }

    /// Parses `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out; finished in 0.01s`.
    fn parse(line: &str) -> Option<Self> {
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
pub struct Row {
    pub name: &'static str,
    pub counts: Counts,
    pub time: Duration,
    pub failures: Vec<Failure>,
    /// Failure outside the tests.
    pub problem: Option<String>,
}

impl Row {
    pub fn passed(&self) -> bool {
        self.counts.failed == 0 && self.problem.is_none()
    }
}

#[derive(Debug, Default)]
pub struct Report(Vec<Row>);

impl Report {
    pub fn add(&mut self, row: Row) {
        if let Some(problem) = &row.problem {
            eprintln!("{}: {problem}", row.name);
        }
        self.0.push(row);
    }

    pub fn rows(&self) -> &[Row] {
        &self.0
    }

    fn total(&self, count: impl Fn(&Counts) -> usize) -> usize {
        self.0.iter().map(|row| count(&row.counts)).sum()
    }

    pub fn passed(&self) -> bool {
        self.total(|c| c.failed) == 0 && self.total(|c| c.passed) > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:12} {:>7} {:>7} {:>8} {:>10}", "suite", "passed", "failed", "skipped", "time")?;
        for row in &self.0 {
            let Counts { passed, failed, skipped } = row.counts;
            let time = seconds(row.time);
            writeln!(f, "{:12} {passed:>7} {failed:>7} {skipped:>8} {time:>10}", row.name)?;
        }
        for row in &self.0 {
            for Failure { test, lines } in &row.failures {
                writeln!(f, "{}: {test} failed:", row.name)?;
                lines.iter().try_for_each(|line| writeln!(f, "    {line}"))?;
            }
            if let Some(problem) = &row.problem {
                writeln!(f, "{}: {problem}", row.name)?;
            }
        }
        writeln!(f, "{} passed, {} failed", self.total(|c| c.passed), self.total(|c| c.failed))
    }
}

/// Formats a duration for the report.
pub fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, passed: usize, failed: usize) -> Row {
        Row {
            name,
            counts: Counts { passed, failed, skipped: 0 },
            time: Duration::from_secs(1),
            failures: Vec::new(),
            problem: None,
        }
    }

    #[test]
    fn results_of_several_programs_add_up() {
        let mut counts = Counts::default();
        counts.read("running 5 tests");
        counts.read(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out; finished in 0.01s",
        );
        counts.read("test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.5s");
        assert_eq!(counts, Counts { passed: 4, failed: 2, skipped: 1 });
    }

    #[test]
    fn other_lines_count_nothing() {
        let mut counts = Counts::default();
        for line in ["test result", "3 passed; 1 failed", "test result: ok. many passed", "test a ... ok"] {
            counts.read(line);
        }
        assert_eq!(counts, Counts::default());
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
    fn a_report_without_tests_has_not_passed() {
        let mut report = Report::default();
        report.add(row("setup", 0, 0));
        assert!(!report.passed());
    }
}
