//! Builds the kernel programs and puts the object where the daemon's build embeds it from.

use std::{
    collections::BTreeMap,
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{paths, process, setup::compiler::Compiler};

const TARGET: &str = "bpfel-unknown-none";

/// Builds unless the object is already of these inputs. The object's file is touched only when its
/// content changes, so that nothing that embeds it is built again for nothing.
pub fn build(compiler: &Compiler) -> Result<()> {
    let _lock = process::lock("ebpf")?;
    let (object, stamp) = (paths::bpf_object(), paths::bpf_stamp());
    let inputs = inputs(compiler)?;
    if let (Ok(old), Ok(content)) = (fs::read_to_string(&stamp), fs::read(&object))
        && old == stamp_text(inputs, &content)
    {
        return Ok(());
    }
    compile(compiler)?;
    let built = paths::bpf_build().join(TARGET).join("release/gateway");
    let content = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
    if fs::read(&object).ok().as_ref() != Some(&content) {
        replace(&object, &content)?;
    }
    replace(&stamp, stamp_text(inputs, &content).as_bytes())
}

/// Flags and target stand in the package's own .cargo/config.toml; compiler and linker come from here.
fn compile(compiler: &Compiler) -> Result<()> {
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(std::iter::once(paths::tools_bin()).chain(env::split_paths(&path)))?;
    let command = process::without_package_variables(Command::new(&compiler.cargo));
    let mut command = compiler.with_libraries(command);
    command.current_dir(paths::ebpf_package()).args([
        "build",
        "--release",
        "--bin",
        "gateway",
        "--target-dir",
    ]);
    command.arg(paths::bpf_build()).env("PATH", path).env("RUSTC", &compiler.rustc);
    // core is built from source, which only a nightly may, or one that is told to be one.
    command.env("RUSTC_BOOTSTRAP", "1");
    // These would replace the flags of the configuration, or put another program before the compiler.
    for name in
        ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER", "RUSTUP_TOOLCHAIN"]
    {
        command.env_remove(name);
    }
    process::run(&mut command).context("the kernel programs do not build")
}

/// A fingerprint of everything the object depends on.
fn inputs(compiler: &Compiler) -> Result<u64> {
    let root = paths::root();
    let mut files = BTreeMap::new();
    collect(&root.join("gateway-ebpf"), &mut files)?;
    collect(&root.join("gateway-common"), &mut files)?;
    let manifest = root.join("Cargo.toml");
    files.insert(
        manifest.clone(),
        fs::read(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?,
    );
    let linker = fs::metadata(paths::bpf_linker()).context("bpf-linker is gone")?;

    let mut hasher = DefaultHasher::new();
    files.hash(&mut hasher);
    compiler.identity.hash(&mut hasher);
    (linker.len(), linker.modified()?).hash(&mut hasher);
    Ok(hasher.finish())
}

fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let path = entry.path();
        if !entry.file_type()?.is_dir() {
            files.insert(
                path.clone(),
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?,
            );
        } else if entry.file_name() != "target" {
            collect(&path, files)?;
        }
    }
    Ok(())
}

fn stamp_text(inputs: u64, object: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    format!("{inputs:016x} {:016x}\n", hasher.finish())
}

/// Whole or not at all: a reader never sees half a file.
fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let folder = path.parent().expect("a file lies in a folder");
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let partial = path.with_extension("partial");
    fs::write(&partial, content).with_context(|| format!("cannot write {}", partial.display()))?;
    fs::rename(&partial, path).with_context(|| format!("cannot replace {}", path.display()))
}
