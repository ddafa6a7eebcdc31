//! Runs a test command: shows and counts its output, kills it at its limit, and detects processes that outlive it.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::{
    failures::{Failure, Failures},
    report::Counts,
};
use crate::{process, progress};

/// Timeout for the end of a killed suite, and for the output of a finished one.
const GRACE: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_millis(50);

/// Result of a test command.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub counts: Counts,
    pub failures: Vec<Failure>,
    /// The output names each failed test, and no test program ended before its result.
    pub is_complete: bool,
    /// Failure beside failed tests.
    pub problem: Option<String>,
    /// Processor time of the command and of the processes that it waited for.
    pub processor: Duration,
}

impl Outcome {
    pub(super) fn all_passed(&self) -> bool {
        let Self { counts, is_complete, problem, .. } = self;
        *is_complete && problem.is_none() && counts.failed == 0 && counts.passed > 0
    }
}

/// Results in the output so far.
#[derive(Default)]
struct Results {
    counts: Counts,
    failures: Failures,
    /// Number of tests that programs announced, without those that have a result.
    unfinished: isize,
    /// Number of tests that reported that they lacked what they check.
    skipped: usize,
}

/// Beginning of the line by which a test reports that it was skipped (`gateway_tests::skipped`). It counts as passed for
/// its program.
const SKIPPED: &str = "skipped test: ";

impl Results {
    fn show(&mut self, line: &str, mark: &str) {
        println!("{mark}{line}");
        self.failures.read(line);
        if let Some(counts) = Counts::parse(line) {
            self.counts.add(counts);
            self.unfinished -= counts.total().cast_signed();
        } else if let Some(count) = announced(line) {
            self.unfinished += count;
        } else if line.starts_with(SKIPPED) {
            self.skipped += 1;
        }
    }

    /// Returns the counts, in which skipped tests are no passed ones.
    fn counts(&self) -> Counts {
        let passed = self.counts.passed.saturating_sub(self.skipped);
        Counts { passed, skipped: self.counts.skipped + self.skipped, ..self.counts }
    }

    fn is_complete(&self) -> bool {
        self.unfinished == 0 && self.failures.count() == self.counts.failed
    }
}

/// Returns the number in `running 3 tests`, the first line of a test program.
fn announced(line: &str) -> Option<isize> {
    let (count, word) = line.strip_prefix("running ")?.split_once(' ')?;
    ["test", "tests"].contains(&word).then(|| count.parse().ok())?
}

/// Runs a test command. The mark precedes each shown line of the output.
pub(super) fn run(command: &mut Command, limit: Duration, mark: &str) -> Result<Outcome> {
    let shown = process::shown(command);
    println!("{mark}$ {shown}");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start `{shown}`"))?;
    let output = child.stdout.take().context("the output was asked for")?;
    let lines = follow(output);

    let deadline = Instant::now() + limit;
    let mut results = Results::default();
    let mut processor = Duration::ZERO;
    let status = loop {
        show(&lines, &mut results, INTERVAL, mark);
        // Read before the wait, until which an ended process keeps its times.
        let usage = Usage::of(child.id());
        processor = usage.map_or(processor, |usage| usage.processor);
        if usage.is_none_or(|usage| usage.has_ended)
            && let Some(status) = child.try_wait()?
        {
            break Some(status);
        }
        if Instant::now() > deadline {
            end(&mut child)?;
            break None;
        }
    };
    let ended = drain(&lines, &mut results, mark);
    let is_complete = results.is_complete();
    let counts = results.counts();
    let failures = results.failures;
    let problem = match status {
        None => Some(format!("not finished after {}, ended", progress::elapsed(limit))),
        Some(status) if !status.success() && counts.failed == 0 => Some(failure(status)),
        Some(_) if !ended => {
            Some("a process that a test started outlived it and holds its output".to_owned())
        }
        Some(_) => None,
    };
    Ok(Outcome { counts, failures: failures.into_vec(), is_complete, problem, processor })
}

fn failure(status: ExitStatus) -> String {
    format!("ended with {status}, and no test that failed: it did not build, or a test program died")
}

/// Reads the output line by line in a thread, so that waiting for a line can time out.
fn follow(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(output);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    receiver
}

/// Shows the available lines, waiting at most `wait` for the first.
fn show(lines: &Receiver<String>, results: &mut Results, wait: Duration, mark: &str) {
    let mut next = lines.recv_timeout(wait);
    if let Err(mpsc::RecvTimeoutError::Disconnected) = next {
        // The output has ended before the process: poll the process without a busy loop.
        thread::sleep(wait);
    }
    while let Ok(line) = next {
        results.show(&line, mark);
        next = lines.try_recv().map_err(|_| mpsc::RecvTimeoutError::Timeout);
    }
}

/// Shows the rest. Returns false if the output did not end, because another process still holds it open.
fn drain(lines: &Receiver<String>, results: &mut Results, mark: &str) -> bool {
    let deadline = Instant::now() + GRACE;
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => results.show(&line, mark),
            Err(error) => return error == mpsc::RecvTimeoutError::Disconnected,
        }
    }
}

/// Ends the child and its descendants: SIGTERM first, then SIGKILL.
fn end(child: &mut Child) -> Result<()> {
    let family = descendants(child.id());
    signal("TERM", &family);
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline && child.try_wait()?.is_none() {
        thread::sleep(INTERVAL);
    }
    let now = processes();
    let left: Vec<Process> = family.into_iter().filter(|p| now.get(&p.id).is_some_and(|q| q == p)).collect();
    signal("KILL", &left);
    child.wait().context("the ended test command cannot be waited for")?;
    Ok(())
}

/// A process id with its start time. The id alone may later denote another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    id: u32,
    parent: u32,
    started: u64,
}

/// Processor time of a process and of the children that it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Usage {
    processor: Duration,
    has_ended: bool,
}

impl Usage {
    /// Length of a clock tick: Linux reports times in hundredths of a second on every architecture.
    const TICK: Duration = Duration::from_millis(10);

    fn of(id: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        let fields = fields(stat)?;
        let times = fields.get(11..15)?.iter().map(|ticks| ticks.parse::<u32>().ok());
        let ticks = times.sum::<Option<u32>>()?;
        Some(Self { processor: Self::TICK * ticks, has_ended: fields[0] == "Z" })
    }
}

fn descendants(root: u32) -> Vec<Process> {
    let all = processes();
    let mut found: Vec<Process> = all.get(&root).copied().into_iter().collect();
    let mut at = 0;
    while let Some(parent) = found.get(at).map(|process| process.id) {
        found.extend(all.values().filter(|process| process.parent == parent));
        at += 1;
    }
    found
}

fn processes() -> BTreeMap<u32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(|id: u32| {
        Some((id, parse_stat(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)?))
    })
    .collect()
}

/// Returns the fields of proc_pid_stat(5) from the state on. The name before it, in parentheses, may itself contain spaces
/// and parentheses.
fn fields(stat: &str) -> Option<Vec<&str>> {
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().collect())
}

fn parse_stat(id: u32, stat: &str) -> Option<Process> {
    let fields = fields(stat)?;
    Some(Process { id, parent: fields.get(1)?.parse().ok()?, started: fields.get(19)?.parse().ok()? })
}

fn signal(name: &str, processes: &[Process]) {
    for process in processes {
        // The process may have ended already, which is no error.
        let _ = Command::new("sh").args(["-c", &format!("kill -{name} {} 2>/dev/null", process.id)]).status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const FINE: &str = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";

    #[test]
    fn a_fine_run_is_counted() {
        let outcome = run(&mut shell(&format!("echo '{FINE}'")), GRACE, "").unwrap();
        assert_eq!((outcome.counts.passed, outcome.problem), (2, None));
    }

    #[test]
    fn a_test_that_reports_its_skip_has_not_passed() {
        let script = format!("echo 'running 2 tests\nskipped test: a::b: no data\n{FINE}'");
        let counts = run(&mut shell(&script), GRACE, "").unwrap().counts;
        assert_eq!(counts, Counts { passed: 1, failed: 0, skipped: 1 });
    }

    #[test]
    fn a_program_that_dies_beside_a_failed_test_is_noticed() {
        let bad = "failures:\n    a::bad\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured";
        let is_complete = |output: &str| {
            let command = &mut shell(&format!("echo 'running 2 tests\n{bad}\n{output}'; exit 101"));
            let outcome = run(command, GRACE, "").unwrap();
            assert_eq!((outcome.counts.failed, outcome.problem), (1, None));
            outcome.is_complete
        };
        assert!(is_complete(""));
        assert!(!is_complete("running 3 tests"));
        assert!(!is_complete("---- a::other stdout ----"));
    }

    #[test]
    fn a_failure_that_no_test_explains_is_a_problem() {
        let problem = run(&mut shell(&format!("echo '{FINE}'; exit 101")), GRACE, "").unwrap().problem;
        assert!(problem.unwrap().contains("did not build"));
    }

    #[test]
    fn a_run_beyond_its_limit_is_ended_with_its_children() {
        let mut command = shell("sleep 300 & sleep 300");
        let start = Instant::now();
        let problem = run(&mut command, Duration::from_millis(200), "").unwrap().problem;
        assert!(problem.unwrap().contains("not finished"));
        // The children held the output open: if they were still alive, waiting for its end would have taken longer.
        assert!(start.elapsed() < GRACE);
    }

    #[test]
    fn a_process_that_outlives_its_test_is_noticed() {
        // Ends by itself soon after its detection.
        let problem = run(&mut shell("sleep 7 & exit 0"), GRACE, "").unwrap().problem;
        assert!(problem.unwrap().contains("outlived"));
    }

    #[test]
    fn processor_time_of_children_is_counted() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let outcome = run(&mut shell(&format!("sh -c '{busy}'; echo '{FINE}'")), GRACE * 12, "").unwrap();
        assert!(outcome.problem.is_none() && outcome.processor >= Usage::TICK, "{outcome:?}");
        let stat = "7 (a) b (c) Z 3 7 7 0 -1 4194560 1 0 0 0 100 20 3 4 20 0 1 0 99 1 1";
        let usage = Usage { processor: Duration::from_millis(1270), has_ended: true };
        assert_eq!(Usage::parse(stat), Some(usage));
    }

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_parent() {
        let stat = "7 (a) b (c) S 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 99 1 1";
        assert_eq!(parse_stat(7, stat), Some(Process { id: 7, parent: 3, started: 99 }));
    }
}
