//! A static build of the client for arm64, as an archive with completions and manual pages.
//!
//! The packed program itself prints the pages and completions under an emulator. So the archive is also proof that the
//! program runs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{
    printed::{Printed, printed},
    toolchain::{self, Toolchain},
};
use crate::{
    metadata::{Metadata, text},
    paths, process, setup,
    setup::compiler::Compiler,
};

const TARGET: &str = "aarch64-unknown-linux-musl";
const PROFILE: &str = "client";
const PROGRAM: &str = "gateway-ctl";

/// Builds the archive into this folder and returns its path.
pub(super) fn build(dist: &Path) -> Result<PathBuf> {
    let compiler = setup::nightly_compiler()?;
    let toolchain = toolchain::ensure()?;
    let built = compile(&compiler, &toolchain)?;
    is_static(&built)?;

    let name = format!("{PROGRAM}-{}-linux-arm64", version()?);
    let folder = dist.join(&name);
    for part in ["completions", "man"] {
        fs::create_dir_all(folder.join(part)).context("cannot make the folder of the archive")?;
    }
    fs::copy(&built, folder.join(PROGRAM)).context("cannot copy the program")?;
    for (file, content) in printed(|| toolchain.emulated(&built))? {
        let file = path(file);
        fs::write(folder.join(file), content).with_context(|| format!("cannot write {file}"))?;
    }
    let archive = pack(dist, &name)?;
    fs::remove_dir_all(&folder).context("cannot remove the folder of the archive")?;
    Ok(archive)
}

/// Returns the path in the archive.
const fn path(file: Printed) -> &'static str {
    match file {
        Printed::Bash => "completions/gateway-ctl.bash",
        Printed::Zsh => "completions/_gateway-ctl",
        Printed::Fish => "completions/gateway-ctl.fish",
        Printed::Manual => "man/gateway-ctl.1",
        Printed::FileFormat => "man/gateway.yaml.5",
    }
}

/// Compiles the client with the standard library, which does not exist for this target beside the compiler.
fn compile(compiler: &Compiler, toolchain: &Toolchain) -> Result<PathBuf> {
    let build = paths::dist_build();
    let command = process::without_package_variables(Command::new(&compiler.cargo));
    let mut command = compiler.with_libraries(command);
    command.current_dir(paths::root());
    // Variables for builds on this machine would replace the settings of the target.
    for name in
        ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER", "RUSTUP_TOOLCHAIN"]
    {
        command.env_remove(name);
    }
    command.env("RUSTC", &compiler.rustc).env("RUSTC_BOOTSTRAP", "1");
    toolchain.configure(&mut command);
    command.args(["build", "--locked", "--package", "gateway-cli", "--bin", PROGRAM, "--profile", PROFILE]);
    command.args(["-Z", "build-std=std,panic_abort", "--target", TARGET, "--target-dir"]).arg(&build);
    process::run(&mut command).context("the client does not build for arm64")?;
    Ok(build.join(TARGET).join(PROFILE).join(PROGRAM))
}

/// Fails if a program header names an interpreter or a library to load.
fn is_static(program: &Path) -> Result<()> {
    let headers = process::output(Command::new("readelf").arg("-hlW").arg(program))?;
    if !headers.contains("AArch64") {
        bail!("{} is not for arm64", program.display());
    }
    if headers.contains("INTERP") || headers.contains("DYNAMIC") {
        bail!("{} is not static:\n{headers}", program.display());
    }
    Ok(())
}

fn version() -> Result<String> {
    let metadata = Metadata::of_workspace()?;
    let client = metadata.packages().iter().find(|package| text(&package["name"]) == "gateway-cli");
    Ok(text(&client.context("there is no package gateway-cli")?["version"]).to_owned())
}

/// Packs a reproducible archive: no times, no owners.
fn pack(dist: &Path, name: &str) -> Result<PathBuf> {
    let file = format!("{name}.tar.gz");
    let mut tar = Command::new("tar");
    tar.current_dir(dist).env("GZIP", "-n").args([
        "--create",
        "--gzip",
        "--sort=name",
        "--mtime=@0",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u=rwX,go=rX",
        "--file",
    ]);
    process::run(tar.arg(&file).arg(name))?;
    Ok(dist.join(file))
}
