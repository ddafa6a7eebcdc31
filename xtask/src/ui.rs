//! `cargo xtask ui`: checks, tests and builds the dashboard into `ui/dist`, from which every build of the daemon embeds
//! it.
//!
//! A record in `target` has the checksums of the sources and of the result. What it confirms is not done again, so that
//! only a changed dashboard needs Node.js and npm's package registry.

mod licenses;
mod lockfile;
mod node;
mod record;
mod size;
mod vitest;

use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::{
    dependencies::{self, Dependency},
    paths, process,
};
use node::Npm;
use record::Record;
pub(crate) use vitest::Results;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only build it, without checks and tests
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if options.quick {
        return ensure_built();
    }
    if Record::verified().confirms()? {
        println!("ui: ui/dist is up to date, and has passed its checks and tests");
        return first_page();
    }
    let Results { counts, problem, .. } = verify(false)?;
    ensure!(counts.failed == 0, "{} tests of the dashboard failed", counts.failed);
    problem.map_or(Ok(()), |problem| bail!(problem))
}

/// Ensures that `ui/dist` is built from the current sources.
pub(crate) fn ensure_built() -> Result<()> {
    let _lock = process::lock("ui")?;
    build()
}

/// Reports whether `ui/dist` is built from the current sources.
pub(crate) fn is_built() -> Result<bool> {
    Record::built().confirms()
}

/// Builds the dashboard if necessary, and runs all its checks and tests. Runs them at the lowest priority if other work is
/// more urgent.
pub(crate) fn verify(in_background: bool) -> Result<Results> {
    let _lock = process::lock("ui")?;
    build()?;
    let npm = node::ensure()?.at_lowest_priority(in_background);
    let sources = Record::verified().sources()?;
    let checks = [("licences", licenses()), ("size", first_page()), ("check", npm.script("check", &[]))];
    let mut problems: Vec<String> = checks
        .into_iter()
        .filter_map(|(name, result)| result.err().map(|error| format!("{name}: {error:#}")))
        .collect();
    let mut results = tests(&npm)?;
    problems.extend(results.problem);
    if results.counts.failed == 0 && problems.is_empty() {
        Record::verified().write(&sources)?;
    }
    results.problem = (!problems.is_empty()).then(|| problems.join("\n    "));
    Ok(results)
}

fn build() -> Result<()> {
    let ui = paths::ui();
    ensure!(
        ui.join("package.json").is_file(),
        "there is no {}: the sources of the dashboard are missing",
        ui.join("package.json").display()
    );
    if Record::built().confirms()? {
        println!("ui: ui/dist is up to date");
        return Ok(());
    }
    let npm = node::ensure()?;
    // Before the build: what changes during it is not in it for certain.
    let sources = Record::built().sources()?;
    npm.script("build", &[])?;
    ensure!(
        paths::ui_dist().join("index.html").is_file(),
        "`npm run build` has written no {}",
        paths::ui_dist().join("index.html").display()
    );
    Record::built().write(&sources)
}

/// Ensures that the packages of the dashboard are installed, even if it need not be built.
pub(crate) fn ensure_packages() -> Result<()> {
    let _lock = process::lock("ui")?;
    node::ensure().map(drop)
}

/// Returns the packages whose code is part of the dashboard, each with its folder below `ui`.
pub(crate) fn bundled_packages() -> Result<Vec<(String, Dependency)>> {
    licenses::shipped(&lockfile::read()?)
}

fn tests(npm: &Npm) -> Result<Results> {
    let report = paths::ui_records().join("tests.json");
    if report.exists() {
        fs::remove_file(&report).with_context(|| format!("cannot remove {}", report.display()))?;
    }
    let file = format!("--outputFile.json={}", report.display());
    let run = npm.script("test", &["--reporter=default", "--reporter=json", &file]);
    let text = match (fs::read_to_string(&report), &run) {
        (Ok(text), _) => text,
        (Err(_), Err(error)) => {
            return Ok(Results { problem: Some(format!("{error:#}")), ..Results::default() });
        }
        (Err(error), Ok(())) => {
            return Err(error).context("the tests of the dashboard have written no report");
        }
    };
    let mut results = vitest::results(&text)?;
    let failed = run.err().filter(|_| results.counts.failed == 0).map(|error| format!("{error:#}"));
    results.problem = results.problem.or(failed);
    Ok(results)
}

fn licenses() -> Result<()> {
    let problems = licenses::problems(&lockfile::read()?, &dependencies::rules()?["licenses"])?;
    ensure!(
        problems.is_empty(),
        "packages in the dashboard break rules of deny.toml:\n    {}",
        problems.join("\n    ")
    );
    Ok(())
}

fn first_page() -> Result<()> {
    let bytes = size::first_page(&paths::ui_dist())?;
    println!(
        "ui: the first page has {} as gzip, of {} at most",
        size::shown(bytes),
        size::shown(size::LIMIT)
    );
    ensure!(bytes <= size::LIMIT, "the first page of the dashboard is too large");
    Ok(())
}
