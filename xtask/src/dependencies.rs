//! Rules for dependencies by `deny.toml`, which cargo-deny checks: licences, duplicate versions, sources and advisories of
//! RustSec. The licences are checked here as well, for the packages in the dashboard and for tests without cargo-deny.

mod dependency;
pub(crate) mod licenses;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use toml::Value as Toml;

use crate::{paths, process, setup};

pub(crate) use dependency::Dependency;

/// Entries of `deny.toml` that concern nothing any more are errors too.
const STALE: [&str; 4] = ["--deny", "unmatched-skip", "--deny", "unnecessary-skip"];

/// Fails if a dependency breaks a rule. cargo-deny reports each.
pub(crate) fn check() -> Result<()> {
    let program = setup::cargo_deny()?;
    let mut own = on(&program, "Cargo.toml");
    process::run(own.args(["check", "--show-stats"]).args(STALE).args(["bans", "licenses", "sources"]))?;
    let mut kernel_programs = on(&program, "gateway-ebpf/Cargo.toml");
    process::run(kernel_programs.args(["check", "--show-stats", "licenses", "sources"]))?;
    advisories(&program)
}

/// Renews the database of advisories and checks it. Without network, an earlier copy is used.
fn advisories(program: &Path) -> Result<()> {
    let fetched = process::output(on(program, "Cargo.toml").args(["fetch", "db"]));
    if let Err(error) = fetched {
        let has_copy = databases().is_some_and(|folder| {
            fs::read_dir(folder).is_ok_and(|mut entries| entries.any(|e| e.is_ok_and(|e| e.path().is_dir())))
        });
        println!("the advisories of RustSec cannot be fetched: {error:#}");
        if !has_copy {
            println!("advisories were not read: there is no earlier copy");
            return Ok(());
        }
    }
    process::run(on(program, "Cargo.toml").args(["check", "--show-stats", "--disable-fetch", "advisories"]))
}

/// Returns the folder of cargo-deny's copies of databases.
fn databases() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cargo")))?;
    Some(home.join("advisory-dbs"))
}

/// Returns cargo-deny for a manifest, by the rules of the workspace.
fn on(program: &Path, manifest: &str) -> Command {
    let mut command = process::without_package_variables(Command::new(program));
    command.current_dir(paths::root()).args(["--manifest-path", manifest, "--config", "deny.toml"]);
    command
}

/// Returns the content of `deny.toml`.
pub(crate) fn rules() -> Result<Toml> {
    let path = paths::root().join("deny.toml");
    let rules = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    rules.parse().with_context(|| format!("{} is not TOML", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Metadata, text};

    pub(super) fn dependency(name: &str, version: &str, license: &str) -> Dependency {
        Dependency {
            name: name.to_owned(),
            version: version.parse().unwrap(),
            license: Some(license.to_owned()),
        }
    }

    #[test]
    fn crates_have_allowed_licences() {
        for metadata in [Metadata::for_linux().unwrap(), Metadata::of_ebpf_dependencies().unwrap()] {
            let is_used = |id: &str| metadata.nodes().iter().any(|node| text(&node["id"]) == id);
            let crates: Vec<Dependency> = metadata
                .packages()
                .iter()
                .filter(|package| package["source"].is_string() && is_used(text(&package["id"])))
                .map(|package| {
                    let field = |name: &str| text(&package[name]);
                    dependency(field("name"), field("version"), field("license"))
                })
                .collect();
            assert!(!crates.is_empty());
            let problems = licenses::problems(&crates, &rules().unwrap()["licenses"]).unwrap();
            assert_eq!(problems, Vec::<String>::new());
        }
    }
}
