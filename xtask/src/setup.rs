//! Installs the prerequisites for builds and tests of the gateway.
//!
//! Idempotent, and fast if nothing is missing. Installs Debian packages through apt; everything else is inside `target`
//! and is removed with it.

mod cargo_tool;
pub(crate) mod compiler;
mod countries;
mod language_model;
mod node;
mod packages;
mod promtool;
mod schemathesis;
mod wireguard_go;

use std::path::PathBuf;

use anyhow::Result;
use semver::VersionReq;

use crate::process;
use cargo_tool::{BPF_LINKER, CARGO_DENY, MDBOOK};
use compiler::Compiler;
pub(crate) use node::Node;
pub(crate) use packages::Need;

/// Tools whose version determines the kernel programs.
pub(crate) const BPF_TOOLS: &[(&str, &str)] =
    &[("LLVM", compiler::LLVM), (BPF_LINKER.name, BPF_LINKER.version)];

/// Ensures all prerequisites of `need`.
pub(crate) fn ensure(need: Need) -> Result<()> {
    let _lock = process::lock("setup")?;
    packages::ensure(need)?;
    if need == Need::Test {
        schemathesis::ensure()?;
        promtool::ensure()?;
        countries::ensure()?;
    }
    Ok(())
}

/// Ensures the newest wireguard-go, and returns the program.
pub(crate) fn newest_wireguard_go() -> Result<PathBuf> {
    ensure(Need::Bench)?;
    let _lock = process::lock("setup")?;
    wireguard_go::ensure()
}

/// Ensures the language model of the suite `assistant_model`.
pub(crate) fn language_model() -> Result<()> {
    ensure(Need::Test)?;
    let _lock = process::lock("setup")?;
    language_model::ensure()
}

/// Ensures mdBook, and returns the program.
pub(crate) fn mdbook() -> Result<PathBuf> {
    ensure(Need::Build)?;
    let _lock = process::lock("setup")?;
    MDBOOK.ensure()
}

/// Ensures cargo-deny, and returns the program.
pub(crate) fn cargo_deny() -> Result<PathBuf> {
    ensure(Need::Build)?;
    let _lock = process::lock("setup")?;
    CARGO_DENY.ensure()
}

/// Ensures npm and a Node.js of one of these versions, and returns it.
pub(crate) fn node(wanted: &VersionReq) -> Result<Node> {
    ensure(Need::Dashboard)?;
    let _lock = process::lock("setup")?;
    node::ensure(wanted)
}

/// Ensures the build tools of the kernel programs, and returns the compiler.
pub(crate) fn bpf_toolchain() -> Result<Compiler> {
    ensure(Need::Build)?;
    let _lock = process::lock("setup")?;
    BPF_LINKER.ensure()?;
    compiler::ensure()
}

/// Ensures a compiler that can build the standard library, and returns it.
pub(crate) fn nightly_compiler() -> Result<Compiler> {
    ensure(Need::Build)?;
    let _lock = process::lock("setup")?;
    compiler::ensure()
}
