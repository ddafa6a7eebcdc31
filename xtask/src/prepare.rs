//! Preparation of commands that build or run the gateway.

use anyhow::Result;

use crate::{ebpf, setup};

/// Makes sure of what `need` takes, and that the kernel programs are those of the sources.
pub fn prepare(need: setup::Need) -> Result<()> {
    ebpf::ensure_current()?;
    setup::ensure(need)
}
