//! Messages of failed tests in the output of test programs, which the report repeats at its end.

use std::collections::VecDeque;

/// Maximum number of shown lines of a test.
const LINES: usize = 8;

/// Number of lines before the names of failed tests that count as the output of a test whose output was not captured.
const UNCAPTURED_LINES: usize = 400;

/// A failed test and its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub test: String,
    pub lines: Vec<String>,
}

impl Failure {
    /// Returns the beginning of its panic, or the end of its output if it has none.
    pub(crate) fn shown(&self) -> &[String] {
        let panic = self.lines.iter().position(|line| line.starts_with("thread '"));
        let first = panic.unwrap_or_else(|| self.lines.len().saturating_sub(LINES));
        let shown = &self.lines[first..];
        &shown[..shown.len().min(LINES)]
    }
}

/// Collects the failed tests of an output.
#[derive(Debug, Default)]
pub(super) struct Failures {
    found: Vec<Failure>,
    part: Part,
    /// Tests of the current program that failed, of those in `found`.
    captured: usize,
    recent: VecDeque<String>,
}

/// Part of the output of a test program.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Run,
    /// Output of the last test in `found`.
    Output,
    /// Names of the failed tests.
    Names,
}

impl Failures {
    /// Reads a line. The output of each failed test follows a line `---- name stdout ----`, and a list of their names
    /// follows the last one. With `--nocapture` there is the list alone.
    pub(super) fn read(&mut self, line: &str) {
        let name = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(name) = name {
            self.found.push(Failure { test: name.to_owned(), lines: Vec::new() });
            self.captured += 1;
            self.part = Part::Output;
        } else if line == "failures:" {
            self.part = Part::Names;
        } else if line.starts_with("test result: ") {
            self.part = Part::Run;
            self.captured = 0;
            self.recent.clear();
        } else {
            self.read_in_part(line);
        }
    }

    fn read_in_part(&mut self, line: &str) {
        match self.part {
            Part::Run => {
                self.recent.push_back(line.to_owned());
                if self.recent.len() > UNCAPTURED_LINES {
                    self.recent.pop_front();
                }
            }
            Part::Output => {
                if let Some(last) = self.found.last_mut().filter(|_| !line.trim().is_empty()) {
                    last.lines.push(line.to_owned());
                }
            }
            Part::Names => {
                let program = &self.found[self.found.len() - self.captured..];
                if let Some(name) = line.strip_prefix("    ").filter(|name| !name.starts_with(' '))
                    && !program.iter().any(|failure| failure.test == name)
                {
                    let lines = self.recent.iter().cloned().collect();
                    self.found.push(Failure { test: name.to_owned(), lines });
                    self.captured += 1;
                }
            }
        }
    }

    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    pub(super) fn into_vec(self) -> Vec<Failure> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &str) -> Vec<Failure> {
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.read(line));
        failures.into_vec()
    }

    #[test]
    fn the_panic_of_each_failed_test_is_kept() {
        let output = "test a::fine ... ok\ntest a::bad ... FAILED\n\nfailures:\n\n---- a::bad stdout ----\nsome output\n\n\
            thread 'a::bad' (7) panicked at tests/a.rs:3:5:\nleft is not right\nnote: more\n\n---- a::silent stdout ----\n\
            Error: no daemon\n\n\nfailures:\n    a::bad\n    a::silent\n\ntest result: FAILED. 1 passed; 2 failed\n";
        let failures = read(output);
        let shown: Vec<_> =
            failures.iter().map(|failure| (failure.test.as_str(), failure.shown().join("\n"))).collect();
        let panic = "thread 'a::bad' (7) panicked at tests/a.rs:3:5:\nleft is not right\nnote: more";
        assert_eq!(shown, [("a::bad", panic.to_owned()), ("a::silent", "Error: no daemon".to_owned())]);
        assert_eq!(failures[0].lines[0], "some output");
    }

    #[test]
    fn failed_tests_without_captured_output_are_named() {
        let output = "running 2 tests\nround 7\ntest a::bad ... FAILED\n\nfailures:\n\nfailures:\n    a::bad\n\n\
            test result: FAILED. 1 passed; 1 failed\n\nrunning 1 test\nfailures:\n\nfailures:\n    a::bad\n\n";
        let failures = read(output);
        assert_eq!(failures.iter().map(|f| f.test.as_str()).collect::<Vec<_>>(), ["a::bad", "a::bad"]);
        assert!(failures[0].lines.iter().any(|line| line == "round 7"));
        assert!(!failures[1].lines.iter().any(|line| line == "round 7"));
    }

    #[test]
    fn of_a_long_output_the_panic_or_the_end_is_shown() {
        let shown = |panics: bool| {
            let mut output = "---- long stdout ----\n".to_owned();
            (0..100).for_each(|n| output += &format!("{n}\n"));
            if panics {
                output += "thread 'long' panicked at x.rs:1:1:\n";
                (0..100).for_each(|n| output += &format!("frame {n}\n"));
            }
            read(&output).remove(0).shown().to_vec()
        };
        assert_eq!(shown(false), (100 - LINES..100).map(|n| n.to_string()).collect::<Vec<_>>());
        let panic = shown(true);
        assert_eq!((panic[0].as_str(), panic.len()), ("thread 'long' panicked at x.rs:1:1:", LINES));
    }
}
