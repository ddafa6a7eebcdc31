//! Messages of failed tests in the output of test programs, which the report repeats at its end.

/// Maximum number of shown lines of a test.
const LINES: usize = 8;

/// A failed test and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub test: String,
    pub lines: Vec<String>,
}

/// Collects the failed tests of an output.
#[derive(Debug, Default)]
pub struct Failures {
    found: Vec<Failure>,
    /// The lines that follow are those of the last test.
    open: bool,
}

impl Failures {
    /// Reads a line. The output of each failed test follows a line `---- name stdout ----`, and a list of their names
    /// follows the last one.
    pub fn read(&mut self, line: &str) {
        let name = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(name) = name {
            self.found.push(Failure { test: name.to_owned(), lines: Vec::new() });
            self.open = true;
        } else if line == "failures:" {
            self.open = false;
        } else if let Some(last) = self.found.last_mut().filter(|_| self.open && !line.trim().is_empty()) {
            last.lines.push(line.to_owned());
        }
    }

    /// Returns the failed tests, each with the beginning of its panic, or the end of its output if it has none.
    pub fn into_shown(self) -> Vec<Failure> {
        let shown = self.found.into_iter().map(|Failure { test, lines }| {
            let panic = lines.iter().position(|line| line.starts_with("thread '"));
            let first = panic.unwrap_or_else(|| lines.len().saturating_sub(LINES));
            Failure { test, lines: lines.into_iter().skip(first).take(LINES).collect() }
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_panic_of_each_failed_test_is_kept() {
        let output = "test a::fine ... ok\ntest a::bad ... FAILED\n\nfailures:\n\n---- a::bad stdout ----\nsome output\n\n\
            thread 'a::bad' (7) panicked at tests/a.rs:3:5:\nleft is not right\nnote: more\n\n---- a::silent stdout ----\n\
            Error: no daemon\n\n\nfailures:\n    a::bad\n    a::silent\n\ntest result: FAILED. 1 passed; 2 failed\n";
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.read(line));
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(
            failures.into_shown(),
            [
                Failure {
                    test: "a::bad".to_owned(),
                    lines: lines(&[
                        "thread 'a::bad' (7) panicked at tests/a.rs:3:5:",
                        "left is not right",
                        "note: more"
                    ]),
                },
                Failure { test: "a::silent".to_owned(), lines: lines(&["Error: no daemon"]) },
            ]
        );
    }

    #[test]
    fn of_a_long_output_the_panic_or_the_end_is_shown() {
        let read = |panics: bool| {
            let mut failures = Failures::default();
            failures.read("---- long stdout ----");
            for n in 0..100 {
                failures.read(&format!("{n}"));
            }
            if panics {
                failures.read("thread 'long' panicked at x.rs:1:1:");
                (0..100).for_each(|n| failures.read(&format!("frame {n}")));
            }
            failures.into_shown().remove(0).lines
        };
        assert_eq!(read(false), (100 - LINES..100).map(|n| n.to_string()).collect::<Vec<_>>());
        let panic = read(true);
        assert_eq!((panic[0].as_str(), panic.len()), ("thread 'long' panicked at x.rs:1:1:", LINES));
    }
}
