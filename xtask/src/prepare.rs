//! Preparation of commands that build or run the gateway.

use anyhow::Result;

use crate::{ebpf, setup};

/// Ensures the prerequisites of `need`, and that the kernel programs match the sources.
pub fn prepare(need: setup::Need) -> Result<()> {
    ebpf::ensure_current()?;
    setup::ensure(need)
}
