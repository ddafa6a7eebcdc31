//! mdBook, which builds the book of the documentation.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail};

use crate::{paths, process, progress};

const VERSION: &str = "0.4.52";

/// Ensures the version that the book is built with, and returns the program.
pub fn ensure() -> Result<PathBuf> {
    let program = paths::tools_bin().join("mdbook");
    if installed(&program).is_none_or(|version| version != VERSION) {
        progress::during(&format!("mdBook {VERSION}, built from source (two to five minutes)"), build)?;
    }
    match installed(&program) {
        Some(version) if version == VERSION => Ok(program),
        Some(version) => bail!("mdBook {VERSION} was installed, yet it calls itself {version}"),
        None => bail!("{} does not run", program.display()),
    }
}

fn build() -> Result<()> {
    let build = paths::tools().join("build");
    let mut install = process::cargo();
    // The default features are a web server and a search index.
    install.args(["install", "mdbook", "--version", VERSION, "--locked", "--no-default-features", "--force"]);
    install.args(["--quiet", "--root"]).arg(paths::tools()).arg("--target-dir").arg(&build);
    // The flags of the project's build do not apply to the tool.
    install.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    process::output(&mut install)
        .context("mdBook cannot be installed. It needs the package registry and a C compiler")?;
    fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))
}

/// Returns the version that the program reports. `None` if it is missing or does not run.
fn installed(program: &std::path::Path) -> Option<String> {
    let reported = process::output(Command::new(program).arg("--version")).ok()?;
    Some(reported.trim().rsplit(' ').next()?.trim_start_matches('v').to_owned())
}
