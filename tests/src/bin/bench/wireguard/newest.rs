//! Search for a wireguard-go that is newer than Debian's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Variable with the path of the program. Without it, the search path is searched.
const VARIABLE: &str = "GATEWAY_BENCH_WIREGUARD_GO";
/// First date of a version that counts as newer: the one that sends and receives packets in bursts.
const NEWER_FROM: u32 = 20_230_000;

/// A wireguard-go program.
#[derive(Debug)]
pub(super) struct Program {
    pub path: PathBuf,
    pub version: String,
}

/// Returns the program that the variable names, or the first newer one in the search path. Reports why there is none.
pub(super) fn find() -> Result<Option<Program>> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        let path = PathBuf::from(path);
        let version = version(&path)?.with_context(|| format!("{VARIABLE}: no version of wireguard-go"))?;
        ensure!(is_newer(&version), "{VARIABLE}: wireguard-go {version} is not newer than Debian's");
        return Ok(Some(Program { path, version }));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    for path in std::env::split_paths(&folders).map(|folder| folder.join("wireguard-go")) {
        if path.is_file()
            && let Some(version) = version(&path)?.filter(|version| is_newer(version))
        {
            return Ok(Some(Program { path, version }));
        }
    }
    println!("not measured: no wireguard-go of 2023 or later in PATH; {VARIABLE} may name one");
    Ok(None)
}

fn version(program: &Path) -> Result<Option<String>> {
    let mut command = Command::new(program);
    let output = command.arg("--version").stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{} --version", program.display()))?;
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Returns the version in the first line, as in `wireguard-go v0.0.20220316`.
fn parse(output: &str) -> Option<String> {
    let version = output.lines().next()?.strip_prefix("wireguard-go ")?.trim();
    Some(version.trim_start_matches('v').to_owned())
}

/// The last number of a version is its date.
fn is_newer(version: &str) -> bool {
    let date = version.rsplit('.').next().and_then(|date| date.get(..8));
    date.and_then(|date| date.parse::<u32>().ok()).is_some_and(|date| date >= NEWER_FROM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_a_version_decides() {
        let newest = parse("wireguard-go v0.0.20250522\n\nUserspace WireGuard daemon for linux-amd64.\n");
        assert_eq!(newest.as_deref(), Some("0.0.20250522"));
        assert!(is_newer("0.0.20250522") && is_newer("0.0.20230223"));
        assert!(!is_newer("0.0.20220316") && !is_newer("0.0") && !is_newer(""));
        assert_eq!(parse("boringtun 0.7"), None);
    }
}
