//! `cargo xtask dist`: a static build of the client for arm64, as an archive with completions and manual pages.
//!
//! The packed program itself prints the pages and completions under an emulator. So the archive is also proof that the
//! program runs.

mod page;
mod toolchain;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    metadata::{Metadata, text},
    paths,
    prepare::prepare_daemon,
    process, setup,
    setup::compiler::Compiler,
};
use toolchain::Toolchain;

const TARGET: &str = "aarch64-unknown-linux-musl";
const PROFILE: &str = "client";
const PROGRAM: &str = "gateway-ctl";

/// Files of the archive that the program prints, with their arguments.
const PRINTED: &[(&str, &[&str])] = &[
    ("completions/gateway-ctl.bash", &["completion", "bash"]),
    ("completions/_gateway-ctl", &["completion", "zsh"]),
    ("completions/gateway-ctl.fish", &["completion", "fish"]),
    ("man/gateway-ctl.1", &["__manual", "gateway-ctl.1"]),
    ("man/gateway.yaml.5", &["__manual", "gateway.yaml.5"]),
];

pub fn run() -> Result<()> {
    let _lock = process::lock("dist")?;
    let compiler = setup::nightly_compiler()?;
    let toolchain = toolchain::ensure()?;
    let built = compile(&compiler, &toolchain)?;
    is_static(&built)?;

    let name = format!("{PROGRAM}-{}-linux-arm64", version()?);
    let dist = paths::dist();
    let folder = dist.join(&name);
    if dist.exists() {
        fs::remove_dir_all(&dist).with_context(|| format!("cannot remove {}", dist.display()))?;
    }
    for part in ["completions", "man"] {
        fs::create_dir_all(folder.join(part)).context("cannot make the folder of the archive")?;
    }
    fs::copy(&built, folder.join(PROGRAM)).context("cannot copy the program")?;
    for (file, words) in PRINTED {
        let printed = process::output(toolchain.emulated(&built).args(*words))
            .context("the program that was built does not run under the emulator")?;
        ensure!(!printed.is_empty(), "{PROGRAM} {} prints nothing", words.join(" "));
        fs::write(folder.join(file), printed).with_context(|| format!("cannot write {file}"))?;
    }
    fs::write(dist.join("gatewayd.8"), daemons_page()?).context("cannot write gatewayd.8")?;
    let archive = pack(&dist, &name)?;
    fs::remove_dir_all(&folder).context("cannot remove the folder of the archive")?;
    println!("{}", archive.display());
    Ok(())
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

/// Returns gatewayd(8), from the help of the daemon's own program.
fn daemons_page() -> Result<String> {
    prepare_daemon(setup::Need::Build)?;
    process::run(process::cargo().args(["build", "--package", "gateway-api", "--bin", "gatewayd"]))?;
    let program = Metadata::of_workspace()?.target_directory()?.join("debug/gatewayd");
    page::of_help(&program)
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
    let sums = process::output(Command::new("sha256sum").current_dir(dist).arg(&file))?;
    fs::write(dist.join("SHA256SUMS"), sums).context("cannot write SHA256SUMS")?;
    Ok(dist.join(file))
}
