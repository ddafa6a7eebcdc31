//! Output of `cargo metadata`, read by field name without separate types for cargo's document.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{paths, process};

pub(crate) struct Metadata(Value);

impl Metadata {
    /// Reads the packages of the workspace only, without resolving dependencies.
    pub(crate) fn of_workspace() -> Result<Self> {
        Self::read(&paths::root().join("Cargo.toml"), &["--no-deps"])
    }

    pub(crate) fn of_ebpf_package() -> Result<Self> {
        Self::read(&paths::ebpf_package().join("Cargo.toml"), &["--no-deps"])
    }

    /// Reads the graph of all dependencies.
    pub(crate) fn with_dependencies() -> Result<Self> {
        Self::read(&paths::root().join("Cargo.toml"), &[])
    }

    /// Reads the graph of the crates that are built for Linux.
    pub(crate) fn for_linux() -> Result<Self> {
        Self::read(&paths::root().join("Cargo.toml"), &["--filter-platform", "x86_64-unknown-linux-gnu"])
    }

    /// Reads the graph of all dependencies of the kernel programs.
    pub(crate) fn of_ebpf_dependencies() -> Result<Self> {
        Self::read(
            &paths::ebpf_package().join("Cargo.toml"),
            &["--filter-platform", "x86_64-unknown-linux-gnu"],
        )
    }

    fn read(manifest: &Path, arguments: &[&str]) -> Result<Self> {
        let mut command = process::cargo();
        command.args(["metadata", "--format-version", "1", "--manifest-path"]).arg(manifest).args(arguments);
        let text = process::output(&mut command)?;
        serde_json::from_str(&text).map(Self).context("cargo metadata printed something else than JSON")
    }

    pub(crate) fn target_directory(&self) -> Result<PathBuf> {
        let path = self.0["target_directory"].as_str().context("cargo metadata names no target directory")?;
        Ok(path.into())
    }

    pub(crate) fn packages(&self) -> &[Value] {
        list(&self.0["packages"])
    }

    /// Returns the nodes of the dependency graph.
    pub(crate) fn nodes(&self) -> &[Value] {
        list(&self.0["resolve"]["nodes"])
    }
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
