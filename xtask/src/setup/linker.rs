//! bpf-linker, in the version with the LLVM of the compiler.

use std::{fs, process::Command};

use anyhow::{Context, Result, bail};

use crate::{paths, process, progress};

/// Last version whose default features load the LLVM of a Rust toolchain. Later ones need a system's LLVM.
pub const VERSION: &str = "0.10.1";

pub fn ensure() -> Result<()> {
    if installed().is_some_and(|version| version == VERSION) {
        return Ok(());
    }
    progress::during(&format!("bpf-linker {VERSION}, built from source (about a minute)"), build)
}

fn build() -> Result<()> {
    let build = paths::tools().join("build");
    let mut install = process::cargo();
    install.args(["install", "bpf-linker", "--version", VERSION, "--locked", "--force", "--quiet", "--root"]);
    install.arg(paths::tools()).arg("--target-dir").arg(&build);
    // The flags of the project's build do not apply to the tool.
    install.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    // cargo advises to add the folder to PATH, which is not needed: shown only on failure.
    process::output(&mut install).context(
        "bpf-linker cannot be installed. It needs the package registry and a C compiler (`cargo install bpf-linker`)",
    )?;
    fs::remove_dir_all(&build).with_context(|| format!("cannot remove {}", build.display()))?;
    match installed() {
        Some(version) if version == VERSION => Ok(()),
        Some(version) => bail!("bpf-linker {VERSION} was installed, yet it calls itself {version}"),
        None => bail!("{} does not run", paths::bpf_linker().display()),
    }
}

/// Returns the linker's version; `None` if it is missing or does not run.
fn installed() -> Option<String> {
    let said = process::output(Command::new(paths::bpf_linker()).arg("--version")).ok()?;
    Some(said.trim().rsplit(' ').next()?.to_owned())
}
