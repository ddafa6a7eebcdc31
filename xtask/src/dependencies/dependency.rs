//! A built crate, and the entries of `deny.toml` with a reason.

use anyhow::{Context, Result};
use semver::Version;
use toml::Value as Toml;

/// Crate of a registry that is built for Linux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    pub name: String,
    pub version: Version,
    pub license: Option<String>,
    /// `registry+URL` or `git+URL`, as in Cargo.lock.
    pub source: String,
}

/// Returns the given text field of each table of a list. The reason is mandatory.
pub fn reasoned<'a>(list: &'a Toml, field: &str) -> Result<Vec<&'a str>> {
    let rows = list.as_array().context("a list of tables is expected in deny.toml")?;
    let row = |row: &'a Toml| {
        let text = |name: &str| row.get(name).and_then(Toml::as_str).filter(|text| !text.is_empty());
        text("reason").with_context(|| format!("no reason in deny.toml: {row}"))?;
        text(field).with_context(|| format!("no `{field}` in deny.toml: {row}"))
    };
    rows.iter().map(row).collect()
}
