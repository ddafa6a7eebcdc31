//! Brings a machine to the state in which the gateway builds and its tests run.
//!
//! Idempotent, and fast where nothing is missing. Installs Debian packages through apt; everything
//! else stays inside `target` and goes away with it.

pub mod compiler;
mod linker;
mod packages;
mod schemathesis;

use anyhow::Result;

use crate::process;
use compiler::Compiler;
pub use packages::Need;

/// Makes sure of everything for `need`, and returns the compiler for the BPF target.
pub fn ensure(need: Need) -> Result<Compiler> {
    let _lock = process::lock("setup")?;
    packages::ensure(need)?;
    if need == Need::Test {
        schemathesis::ensure()?;
    }
    linker::ensure()?;
    compiler::ensure()
}
