//! Tools that cargo builds from source, each in one version, in `target/tools`.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};

use crate::{paths, process, progress};

/// A tool whose program has the name of its crate.
pub(super) struct CargoTool {
    pub name: &'static str,
    pub version: &'static str,
    pub options: &'static [&'static str],
    /// Duration of the build on two processors.
    pub duration: &'static str,
}

/// Builds the book. The default features are a web server and a search index.
pub(super) const MDBOOK: CargoTool = CargoTool {
    name: "mdbook",
    version: "0.4.52",
    options: &["--no-default-features"],
    duration: "two to five minutes",
};

/// Links the kernel programs. The last version whose default features load the LLVM of a Rust toolchain; later ones need a
/// system's LLVM.
pub(super) const BPF_LINKER: CargoTool =
    CargoTool { name: "bpf-linker", version: "0.10.1", options: &[], duration: "about a minute" };

/// Checks dependencies by deny.toml.
pub(super) const CARGO_DENY: CargoTool =
    CargoTool { name: "cargo-deny", version: "0.20.2", options: &[], duration: "three to six minutes" };

impl CargoTool {
    /// Builds the tool unless its version is installed, and returns the program.
    pub(super) fn ensure(&self) -> Result<PathBuf> {
        let Self { name, version, duration, .. } = self;
        if self.installed().is_none_or(|installed| installed != *version) {
            let what = format!("{name} {version}, built from source ({duration})");
            progress::during(&what, || self.build())?;
        }
        match self.installed() {
            Some(installed) if installed == *version => Ok(self.program()),
            Some(installed) => bail!("{name} {version} was installed, yet it calls itself {installed}"),
            None => bail!("{} does not run", self.program().display()),
        }
    }

    fn program(&self) -> PathBuf {
        paths::tools_bin().join(self.name)
    }

    fn build(&self) -> Result<()> {
        let build = paths::tools().join("build");
        let mut install = process::cargo();
        install.args(["install", self.name, "--version", self.version, "--locked", "--force", "--quiet"]);
        install.args(self.options).arg("--root").arg(paths::tools()).arg("--target-dir").arg(&build);
        // The flags of the project's build do not apply to the tool.
        install.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        // cargo advises to add the folder to PATH, which is not needed: shown only on failure.
        process::output(&mut install).with_context(|| {
            format!("{} cannot be installed. It needs the package registry and a C compiler", self.name)
        })?;
        fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))
    }

    /// Returns the version that the program reports. `None` if it is missing or does not run.
    fn installed(&self) -> Option<String> {
        let reported = process::output(Command::new(self.program()).arg("--version")).ok()?;
        Some(reported.trim().rsplit(' ').next()?.trim_start_matches('v').to_owned())
    }
}
