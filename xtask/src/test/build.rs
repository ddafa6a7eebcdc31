//! Steps before the suites: tools, dashboard, and the build of the daemon and the tests.
//!
//! Every command of cargo names the whole workspace and at least one test target, here and in the suites. Cargo selects the
//! features of dependencies by packages and targets, so with other selections most dependencies were built three times.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use super::{
    modules,
    report::{Counts, Report, Row},
    suites::{self, Suite, Targets, Work},
};
use crate::{
    metadata::Metadata,
    paths,
    prepare::prepare,
    process, progress,
    setup::{self, Need},
    ui,
};

/// Returns the daemon to test and the existing test targets.
pub(super) fn run(report: &mut Report, chosen: &[&Suite]) -> Option<(PathBuf, Targets)> {
    step(report, "compiler", || prepare(Need::Build))?;
    let targets = step(report, "targets", known_targets)?;
    // The daemon embeds the dashboard. What does not is compiled while packages are loaded and the dashboard is built.
    let has_dashboard = ui::is_built().unwrap_or(false);
    thread::scope(|scope| {
        let libraries = (!has_dashboard).then(|| scope.spawn(|| build_libraries(chosen, &targets)));
        let made = make_tools(report, chosen);
        if let Some(libraries) = libraries {
            let time = libraries.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            report.add(row("libraries", time, None));
        }
        made
    })?;
    let daemon = step(report, "build", || build(chosen, &targets))?;
    Some((daemon, targets))
}

fn make_tools(report: &mut Report, chosen: &[&Suite]) -> Option<()> {
    step(report, "setup", || prepare(Need::Test))?;
    if chosen.iter().any(|suite| suite.name == suites::ASSISTANT_MODEL) {
        step(report, "language model", setup::language_model)?;
    }
    step(report, "dashboard", ui::ensure_built)?;
    if chosen.iter().any(|suite| suite.name == "openapi") {
        // A generated client uses its packages.
        step(report, "packages", ui::ensure_packages)?;
    }
    Some(())
}

/// Runs a prerequisite of the suites. Its failure counts as one failed test.
fn step<T>(report: &mut Report, name: &'static str, work: impl FnOnce() -> Result<T>) -> Option<T> {
    println!("\n== {name}");
    let start = Instant::now();
    let (value, problem) = match work() {
        Ok(value) => (Some(value), None),
        Err(error) => (None, Some(format!("{error:#}"))),
    };
    report.add(row(name, start.elapsed(), problem));
    value
}

fn row(name: &'static str, time: Duration, problem: Option<String>) -> Row {
    Row {
        name,
        counts: Counts { failed: usize::from(problem.is_some()), ..Counts::default() },
        time,
        processor: None,
        failures: Vec::new(),
        is_complete: false,
        problem,
    }
}

/// Returns the test targets after a check that each of their modules has its suite.
fn known_targets() -> Result<Targets> {
    let targets = suites::targets()?;
    let problems = modules::problems(&targets.ours)?;
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(targets)
}

/// Builds the daemon and the selected tests.
fn build(chosen: &[&Suite], targets: &Targets) -> Result<PathBuf> {
    process::build("the daemon and the tests", &mut command(chosen, targets))?;
    Ok(Metadata::of_workspace()?.target_directory()?.join("debug/gatewayd"))
}

/// Builds the packages that do not depend on the dashboard, and returns the duration. Their errors occur in [`build`]
/// again, which shows them.
fn build_libraries(chosen: &[&Suite], targets: &Targets) -> Duration {
    let start = Instant::now();
    let mut command = command(chosen, targets);
    // The build script of gateway-api refuses a folder without a dashboard, so its dependants are not built.
    command.arg("--keep-going").env("GATEWAY_UI_DIST", paths::ui().join("without-a-dashboard"));
    let work = || {
        // It always fails: at that build script, and perhaps before.
        let _ = process::output(&mut command);
        Ok(())
    };
    let _ = progress::during("build of what does not embed the dashboard, meanwhile", work);
    start.elapsed()
}

fn command(chosen: &[&Suite], targets: &Targets) -> Command {
    let mut command = process::cargo();
    command.args(["build", "--workspace", "--lib", "--bins"]);
    if chosen.iter().any(|suite| suite.work == Work::Units) {
        // In one call: the link steps of large crates, which use one processor, overlap with other work.
        command.arg("--tests");
    } else {
        let suites = chosen.iter().filter_map(|suite| match suite.work {
            Work::Module(target) => Some(target),
            Work::Dashboard | Work::Tidy | Work::Units => None,
        });
        let targets: BTreeSet<&str> = targets.others.iter().map(String::as_str).chain(suites).collect();
        for target in targets {
            command.args(["--test", target]);
        }
    }
    command
}
