//! Node.js and npm, and the installed packages of the dashboard.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};
use semver::VersionReq;
use serde_json::Value;

use super::lockfile;
use crate::{metadata::text, paths, process, progress, setup};

pub(super) struct Npm {
    node: setup::Node,
    in_background: bool,
}

/// Ensures Node.js, and the packages that the lockfile names.
pub(super) fn ensure() -> Result<Npm> {
    let npm = Npm { node: setup::node(&versions()?)?, in_background: false };
    let wanted = lockfile::text()?;
    lockfile::no_hosts(&wanted)?;
    if fs::read_to_string(stamp()).is_ok_and(|installed| installed == wanted) {
        return Ok(npm);
    }
    progress::during("packages of the dashboard", || {
        let mut install = npm.command();
        // No package runs code of its own during the installation.
        install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
        process::output(&mut install)
            .context("the packages of the dashboard cannot be installed. It needs npm's package registry")
    })?;
    // npm has removed the folder before: an incomplete one has no stamp.
    fs::write(stamp(), wanted).with_context(|| format!("cannot write {}", stamp().display()))?;
    Ok(npm)
}

/// Returns the versions of Node.js that package.json names in `engines`.
fn versions() -> Result<VersionReq> {
    let path = paths::ui().join("package.json");
    let manifest = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: Value = serde_json::from_str(&manifest).context("ui/package.json is not JSON")?;
    let wanted = text(&manifest["engines"]["node"]);
    wanted.parse().with_context(|| format!("engines.node in ui/package.json is one range, not {wanted:?}"))
}

/// Returns the path of a copy of the installed lockfile.
fn stamp() -> PathBuf {
    paths::ui().join("node_modules/.installed-lock.json")
}

impl Npm {
    /// Makes scripts run at the lowest priority, or not.
    pub(super) fn at_lowest_priority(self, in_background: bool) -> Self {
        Self { in_background, ..self }
    }

    fn command(&self) -> Command {
        let mut command = self.node.command("npm");
        command.current_dir(paths::ui());
        command
    }

    /// Runs a script of package.json.
    pub(super) fn script(&self, name: &str, arguments: &[&str]) -> Result<()> {
        let mut run = self.command();
        run.args(["run", name]);
        if !arguments.is_empty() {
            run.arg("--").args(arguments);
        }
        println!("ui: {}", process::shown(&run));
        if self.in_background {
            run = process::in_background(&run);
        }
        process::run(&mut run)
    }
}
