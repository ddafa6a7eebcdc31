//! Preparation of commands that build or run the gateway.

use anyhow::Result;

use crate::{ebpf, setup, ui};

/// Ensures the prerequisites of `need`, and that the kernel programs match the sources.
pub(crate) fn prepare(need: setup::Need) -> Result<()> {
    ebpf::ensure_current()?;
    setup::ensure(need)
}

/// As [`prepare`], and builds the dashboard that the daemon embeds.
pub(crate) fn prepare_daemon(need: setup::Need) -> Result<()> {
    prepare(need)?;
    ui::ensure_built()
}
