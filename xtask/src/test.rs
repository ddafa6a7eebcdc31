//! `cargo xtask test`: runs every suite and prints a table and a summary line at the end.

mod build;
mod durations;
pub(crate) mod failures;
mod flaky;
mod modules;
pub(crate) mod report;
mod schedule;
mod suites;
mod supervise;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use crate::{paths, process, progress::elapsed, tidy, ui};
use durations::Durations;
use failures::Failure;
use report::{Counts, Report, Row};
use suites::{ASSISTANT_MODEL, Lane, Quick, SUITES, Suite, Targets, Work};
use supervise::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the fast suites and a few of the end-to-end tests, in under two minutes once built
    #[arg(long)]
    quick: bool,
    /// Only this suite; may be given several times
    #[arg(long, value_name = "SUITE", conflicts_with = "quick", value_parser = clap::builder::PossibleValuesParser::new(suites::names()))]
    only: Vec<String>,
    /// Run the random suites for the duration of a release test: soak and DNS stress ten minutes, the attacker an hour
    #[arg(long, conflicts_with = "quick")]
    long: bool,
}

/// Seconds of the random suites, kills of the DHCP server, swaps of plans under load, and flow records at a data base, with `--long`. A variable that is already set takes precedence.
const LONG: [(&str, &str); 6] = [
    ("GATEWAY_SOAK_SECONDS", "600"),
    ("GATEWAY_DNS_STRESS_SECONDS", "600"),
    ("GATEWAY_ATTACK_SECONDS", "3600"),
    ("GATEWAY_DHCP_KILLS", "200"),
    ("GATEWAY_SWAPS", "1000"),
    ("GATEWAY_FLOW_RECORDS", "1000000"),
];

/// Variable of the tests, and its value while suites run at the same time: deadlines that pass on busy processors stretch
/// by this factor (`tests/src/wait.rs`).
const DEADLINE_FACTOR: (&str, &str) = ("GATEWAY_TEST_DEADLINE_FACTOR", "3");

impl Options {
    fn chosen(&self) -> Vec<&'static Suite> {
        let wanted = |suite: &&Suite| match (self.quick, self.only.is_empty()) {
            (true, _) => suite.quick != Quick::No,
            (false, true) => self.long || suite.name != ASSISTANT_MODEL,
            (false, false) => self.only.iter().any(|name| name == suite.name),
        };
        SUITES.iter().filter(wanted).collect()
    }
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let chosen = options.chosen();
    announce(&chosen);
    if chosen.iter().any(|suite| suite.root) {
        process::require_root("some suites make network namespaces and load kernel programs")?;
    }
    let mut report = Report::default();
    match build::run(&mut report, &chosen) {
        Some((daemon, targets)) => {
            let run = Run {
                options,
                daemon,
                targets,
                count: chosen.len(),
                is_shared: schedule::is_shared(&chosen),
                started: AtomicUsize::new(0),
                durations: Durations::read(),
            };
            let flaky = paths::flaky_tests();
            remove_old(&flaky)?;
            let rows = schedule::run(&chosen, &|suite| run.suite(suite));
            rows.into_iter().for_each(|row| report.add(row));
            flaky::excuse(&mut report, &flaky, |suite, test| run.passes_alone(suite, test));
            if !options.quick && !options.long {
                keep_durations(run.durations, &report);
            }
        }
        None => eprintln!("no suite was run"),
    }
    print!("{report}");
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn announce(chosen: &[&Suite]) {
    let names: Vec<&str> = chosen.iter().map(|suite| suite.name).collect();
    println!("Suites: {}.", names.join(", "));
    println!(
        "Needs: Linux, root for the suites that load programs, and the first time the package registries (Debian, Rust, Python, npm)."
    );
    println!(
        "Touches: target/, missing Debian packages, and namespaces of its own. Not: your interfaces, routes, rules or firewall."
    );
}

/// A run of the selected suites.
struct Run<'a> {
    options: &'a Options,
    daemon: PathBuf,
    targets: Targets,
    count: usize,
    /// Suites run at the same time.
    is_shared: bool,
    started: AtomicUsize,
    durations: Durations,
}

impl Run<'_> {
    fn suite(&self, suite: &Suite) -> Row {
        let usual = self.durations.of(suite.name).filter(|_| !self.options.quick && !self.options.long);
        let usual = usual.map(|time| format!(", last time {}", elapsed(time))).unwrap_or_default();
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        println!("\n== {} ({number} of {}{usual}): {}", suite.name, self.count, suite.what);
        let start = Instant::now();
        // Lines of two suites may be interleaved.
        let mark = if self.is_shared { format!("{}: ", suite.name) } else { String::new() };
        let outcome = match suite.work {
            Work::Dashboard => {
                ui::verify(suite.lane == Lane::Background).map(|ui::Results { counts, failures, problem }| {
                    Outcome { counts, failures, problem, ..Outcome::default() }
                })
            }
            Work::Tidy => run_tidy(),
            Work::Units | Work::Module(_) => {
                let mut command = command(suite, self.options.quick, &self.targets);
                if self.is_shared {
                    command.env(DEADLINE_FACTOR.0, DEADLINE_FACTOR.1);
                }
                self.supervise(suite, command, &mark)
            }
        };
        let outcome = outcome
            .unwrap_or_else(|error| Outcome { problem: Some(format!("{error:#}")), ..Outcome::default() });
        let Outcome { mut counts, failures, is_complete, mut problem, processor } = outcome;
        if problem.is_none() && counts.passed + counts.failed == 0 {
            problem = Some("no test was run".to_owned());
        }
        if problem.is_some() && counts.failed == 0 {
            counts.failed = 1;
        }
        let processor = (processor > Duration::ZERO).then_some(processor);
        Row { name: suite.name, counts, time: start.elapsed(), processor, failures, is_complete, problem }
    }

    /// Runs one test of a suite while nothing else runs.
    fn passes_alone(&self, suite: &str, test: &str) -> bool {
        let Some(suite) = SUITES.iter().find(|known| known.name == suite) else { return false };
        println!("\n== {}: {test} again, alone", suite.name);
        match self.supervise(suite, command_for_one(suite, &self.targets, test), "") {
            Ok(outcome) => outcome.all_passed(),
            Err(error) => {
                eprintln!("{error:#}");
                false
            }
        }
    }

    fn supervise(&self, suite: &Suite, mut command: Command, mark: &str) -> Result<Outcome> {
        command.env("GATEWAYD_BIN", &self.daemon);
        let limit = if self.options.long { lengthen(&mut command, suite.limit) } else { suite.limit };
        supervise::run(&mut command, limit, mark)
    }
}

/// Removes the output of flaky tests of earlier runs.
fn remove_old(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Stores the durations for the progress of the next run. A failure is not fatal.
fn keep_durations(mut durations: Durations, report: &Report) {
    for row in report.rows().iter().filter(|row| row.passed()) {
        durations.record(row.name, row.time);
    }
    if let Err(error) = durations.write() {
        eprintln!("{error:#}");
    }
}

/// Sets the durations of [`LONG`], and returns a limit that is sufficient for the longest.
fn lengthen(command: &mut Command, limit: Duration) -> Duration {
    let unset = LONG.iter().filter(|(name, _)| std::env::var_os(name).is_none());
    command.envs(unset.copied());
    limit + Duration::from_secs(3_600)
}

fn command(suite: &Suite, quick: bool, targets: &Targets) -> Command {
    let cargo = match suite.lane {
        Lane::Background => process::in_background(&process::cargo()),
        Lane::Networks | Lane::Processors | Lane::Alone => process::cargo(),
    };
    let mut command = programs(cargo, suite, targets);
    match (suite.work, suite.quick) {
        (_, Quick::Matching(part)) if quick => command.arg(part),
        (Work::Module(_), _) => command.arg(modules::filter(suite.name)),
        (Work::Units | Work::Tidy | Work::Dashboard, _) => &mut command,
    };
    command
}

/// Runs one test by its full name. If several test programs of the suite have that test, all of them run it.
fn command_for_one(suite: &Suite, targets: &Targets, test: &str) -> Command {
    let mut command = programs(process::cargo(), suite, targets);
    command.args(["--exact", test]);
    command
}

/// Adds the test programs of a suite and their arguments.
fn programs(mut cargo: Command, suite: &Suite, targets: &Targets) -> Command {
    cargo.args(["test", "--workspace", "--no-fail-fast"]);
    match suite.work {
        Work::Module(target) => cargo.args(["--test", target]),
        Work::Units | Work::Tidy | Work::Dashboard => {
            let beside = targets.others.iter().flat_map(|target| ["--test", target.as_str()]);
            cargo.args(["--lib", "--bins"]).args(beside)
        }
    };
    cargo.arg("--").args(suite.arguments);
    cargo
}

fn run_tidy() -> Result<Outcome> {
    let outcomes = tidy::check()?;
    let passed = outcomes.iter().filter(|outcome| outcome.passed()).count();
    let counts = Counts { passed, failed: outcomes.len() - passed, skipped: 0 };
    let failed = outcomes.into_iter().filter(|outcome| !outcome.passed());
    let failures =
        failed.map(|outcome| Failure { test: outcome.rule.to_owned(), lines: outcome.violations }).collect();
    Ok(Outcome { counts, failures, ..Outcome::default() })
}
