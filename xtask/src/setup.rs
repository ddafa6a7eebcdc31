//! Brings a machine to the state in which the gateway builds and its tests run.
//!
//! Idempotent, and fast where nothing is missing. Installs Debian packages through apt; everything
//! else stays inside `target` and goes away with it.

pub mod compiler;
mod linker;
mod mdbook;
mod packages;
mod promtool;
mod schemathesis;

use std::path::PathBuf;

use anyhow::Result;

use crate::process;
use compiler::Compiler;
pub use packages::Need;

/// The tools whose version decides on the kernel programs.
pub const BPF_TOOLS: &[(&str, &str)] = &[("LLVM", compiler::LLVM), ("bpf-linker", linker::VERSION)];

/// Makes sure of everything for `need`.
pub fn ensure(need: Need) -> Result<()> {
    let _lock = process::lock("setup")?;
    packages::ensure(need)?;
    if need == Need::Test {
        schemathesis::ensure()?;
        promtool::ensure()?;
    }
    Ok(())
}

/// Makes sure of mdBook, and returns the program.
pub fn mdbook() -> Result<PathBuf> {
    ensure(Need::Build)?;
    let _lock = process::lock("setup")?;
    mdbook::ensure()
}

/// Makes sure of what the kernel programs are built with, and returns the compiler.
pub fn bpf_toolchain() -> Result<Compiler> {
    ensure(Need::Build)?;
    let _lock = process::lock("setup")?;
    linker::ensure()?;
    compiler::ensure()
}

/// Makes sure of a compiler that may build the standard library, and returns it.
pub fn nightly_compiler() -> Result<Compiler> {
    ensure(Need::Build)?;
    let _lock = process::lock("setup")?;
    compiler::ensure()
}
