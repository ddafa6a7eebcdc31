//! `cargo xtask ebpf`: builds the kernel programs into the folder from which every build of the daemon embeds them.
//!
//! They are committed with a record of their inputs, so that only a change of the programs needs the BPF toolchain. A
//! stale object fails tidy, tests, demo and bench.

mod debug;
mod object;
mod record;

use std::{env, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    paths, process, remap,
    setup::{self, compiler::Compiler},
};

const TARGET: &str = "bpfel-unknown-none";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Build them, compare them with the committed ones, and change nothing
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let _lock = process::lock("ebpf")?;
    let compiler = setup::bpf_toolchain()?;
    compile(&compiler)?;
    let built = paths::bpf_build().join(TARGET).join("release/gateway");
    let content = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
    let content = debug::without_debug(&content)?;
    let object = paths::bpf_object();
    let is_same = fs::read(&object).is_ok_and(|committed| object::is_same(&committed, &content));
    if options.check {
        ensure!(
            is_same,
            "{} differs from {}: another compiler, or other sources",
            built.display(),
            object.display()
        );
        println!("ebpf: the committed kernel programs are what this machine builds");
        return ensure_current();
    }
    // An equivalent object stays untouched, so that its dependants are not rebuilt.
    if !is_same {
        replace(&object, &content)?;
    }
    replace(&paths::bpf_record(), record::text(&compiler.identity)?.as_bytes())
}

/// Builds the programs and compares them with the committed ones, unless this was done with the same record. The record alone
/// does not prove that the programs are of their sources.
pub(crate) fn check_changed() -> Result<()> {
    let stamp = paths::bpf_build().join("checked");
    let record = fs::read(paths::bpf_record()).context("cannot read the record of the kernel programs")?;
    ensure_current()?;
    if fs::read(&stamp).is_ok_and(|checked| checked == record) {
        println!("ebpf: compared before, and unchanged");
        return Ok(());
    }
    run(&Options { check: true })?;
    fs::write(&stamp, record).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Fails if the committed programs are from other sources.
pub(crate) fn ensure_current() -> Result<()> {
    let differences = differences()?;
    if differences.is_empty() {
        return Ok(());
    }
    bail!(
        "the kernel programs are of other sources; run `cargo xtask ebpf`:\n    {}",
        differences.join("\n    ")
    )
}

/// Returns each input that differs from the record of the committed programs.
pub(crate) fn differences() -> Result<Vec<String>> {
    let path = paths::bpf_record();
    let recorded = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(record::differences(&recorded, &record::text("")?))
}

/// Compiles the programs. Flags and target are in the package's own .cargo/config.toml; compiler and linker are set
/// here.
fn compile(compiler: &Compiler) -> Result<()> {
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(std::iter::once(paths::tools_bin()).chain(env::split_paths(&path)))?;
    let command = process::without_package_variables(Command::new(&compiler.cargo));
    let mut command = compiler.with_libraries(command);
    command.current_dir(paths::ebpf_package());
    command.args(["build", "--locked", "--release", "--bin", "gateway", "--config"]);
    command.arg(format!("target.{TARGET}.rustflags={}", remap::flags(&compiler.sysroot()?)));
    command.arg("--target-dir").arg(paths::bpf_build()).env("PATH", path).env("RUSTC", &compiler.rustc);
    // core is built from source, which only a nightly compiler permits, or one with this variable.
    command.env("RUSTC_BOOTSTRAP", "1");
    // These variables would replace the flags of the configuration, or run another program as the compiler.
    for name in
        ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER", "RUSTUP_TOOLCHAIN"]
    {
        command.env_remove(name);
    }
    process::run(&mut command).context("the kernel programs do not build")
}

/// Replaces the file atomically, so that readers never see a part of it.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, content).with_context(|| format!("cannot write {}", partial.display()))?;
    fs::rename(&partial, path).with_context(|| format!("cannot replace {}", path.display()))
}
