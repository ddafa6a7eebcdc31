//! `ui/package-lock.json`: the packages of the dashboard with their versions.

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::paths;

pub(super) fn text() -> Result<String> {
    let path = paths::ui().join("package-lock.json");
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

pub(super) fn read() -> Result<Value> {
    serde_json::from_str(&text()?).context("ui/package-lock.json is not JSON")
}

/// Fails if the lockfile names hosts: each machine has its own package registry, and the checksums suffice.
pub(super) fn no_hosts(text: &str) -> Result<()> {
    let is_source = |line: &&str| line.trim_start().starts_with("\"resolved\":") && line.contains("://");
    if let Some(line) = text.lines().find(is_source) {
        bail!(
            "ui/package-lock.json names the host of a package:\n    {}\n    \
             `npm install --omit-lockfile-registry-resolved` writes it without",
            line.trim()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lockfile_with_a_host_is_refused() {
        assert!(no_hosts("  \"resolved\": \"https://packages.example/a.tgz\",\n").is_err());
        assert!(
            no_hosts("  \"version\": \"1.0.0\",\n  \"url\": \"https://opencollective.example\"\n").is_ok()
        );
    }
}
