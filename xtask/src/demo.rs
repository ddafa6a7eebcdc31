//! `cargo xtask demo`: builds the daemon and runs the demonstration.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{metadata::Metadata, prepare::prepare_daemon, process, setup};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run all steps once, fail if a claim does not hold, and remove everything
    #[arg(long)]
    check: bool,
    /// Further arguments of the demonstration
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    process::require_root("the demo makes network namespaces of its own and loads kernel programs")?;
    let mut arguments = Vec::new();
    if options.check {
        arguments.push("--check".to_owned());
    }
    arguments.extend(options.rest.iter().cloned());
    hand_over("demo", Build::Dev, &arguments, &[])
}

/// Build profile of the daemon and the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// Profile of the tests, so that only one build is needed.
    Dev,
    /// Installed profile, for measurements.
    Ship,
}

impl Build {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Build::Dev => &[],
            Build::Ship => &["--profile", "ship"],
        }
    }

    fn need(self) -> setup::Need {
        match self {
            Build::Dev => setup::Need::Run,
            Build::Ship => setup::Need::Bench,
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Build::Dev => "debug",
            Build::Ship => "ship",
        }
    }
}

/// Replaces this process by a program of the test package, which finds the daemon in `GATEWAYD_BIN` and gets these
/// variables besides. Returns only on failure.
pub(crate) fn hand_over(
    program: &str,
    build: Build,
    arguments: &[String],
    variables: &[(&str, PathBuf)],
) -> Result<()> {
    prepare_daemon(build.need())?;
    // In one command, which builds shared dependencies once.
    let both = ["build", "--workspace", "--bin", "gatewayd", "--bin", program];
    process::build(&format!("gatewayd and {program}"), process::cargo().args(both).args(build.arguments()))?;
    let built = Metadata::of_workspace()?.target_directory()?.join(build.folder());
    // Without `process::cargo`: a relative path among the arguments refers to the caller's folder.
    let mut command = process::without_package_variables(std::process::Command::new(built.join(program)));
    command.args(arguments).env("GATEWAYD_BIN", built.join("gatewayd"));
    command.envs(variables.iter().map(|(name, path)| (name, path)));
    let error = command.exec();
    Err(error).with_context(|| format!("cannot start `{}`", process::shown(&command)))
}
