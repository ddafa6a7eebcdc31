//! `cargo xtask demo`: builds the daemon and hands over to the demonstration.

use std::{os::unix::process::CommandExt, path::PathBuf};

use anyhow::{Context, Result};

use crate::{metadata::Metadata, paths, prepare, process, setup};

#[derive(clap::Args)]
pub struct Options {
    /// Walk through once, fail if anything is not as told, leave nothing behind
    #[arg(long)]
    check: bool,
    /// Further arguments of the demonstration
    #[arg(last = true)]
    rest: Vec<String>,
}

pub fn run(options: &Options) -> Result<()> {
    process::require_root("the demo makes network namespaces of its own and loads kernel programs")?;
    let mut arguments = Vec::new();
    if options.check {
        arguments.push("--check".to_owned());
    }
    arguments.extend(options.rest.iter().cloned());
    hand_over("demo", Build::Dev, &arguments)
}

/// Which build of the daemon and of the program is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// The one the tests use: there is but one to wait for.
    Dev,
    /// For measurements.
    Release,
}

impl Build {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Build::Dev => &[],
            Build::Release => &["--release"],
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Build::Dev => "debug",
            Build::Release => "release",
        }
    }
}

/// Replaces this process by one of the test package's programs, which finds the daemon in
/// `GATEWAYD_BIN`. Returns only if that fails.
pub fn hand_over(program: &str, build: Build, arguments: &[String]) -> Result<()> {
    prepare(setup::Need::Run)?;
    let daemon = daemon(build)?;
    // Not through `process::cargo`: a relative path among the arguments means the caller's folder.
    let mut command =
        process::without_package_variables(std::process::Command::new(process::cargo().get_program()));
    command.args(["run", "--quiet", "--package", "gateway-tests", "--bin", program, "--manifest-path"]);
    command.arg(paths::root().join("Cargo.toml")).args(build.arguments());
    command.arg("--").args(arguments).env("GATEWAYD_BIN", daemon);
    let error = command.exec();
    Err(error).with_context(|| format!("cannot start `{}`", process::shown(&command)))
}

fn daemon(build: Build) -> Result<PathBuf> {
    let arguments = ["build", "--package", "gateway-api", "--bin", "gatewayd"];
    process::run(process::cargo().args(arguments).args(build.arguments()))?;
    Ok(Metadata::of_workspace()?.target_directory()?.join(build.folder()).join("gatewayd"))
}
