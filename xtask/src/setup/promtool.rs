//! promtool, which checks the names and texts of `/metrics`. It is extracted from Debian's package of Prometheus, whose
//! installation would start a server.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result};

use super::packages;
use crate::{paths, process, progress};

pub(super) fn ensure() -> Result<()> {
    let program = paths::promtool();
    if program.is_file() {
        return Ok(());
    }
    progress::during("promtool (19 MB to load)", || unpack(&program))
}

fn unpack(program: &Path) -> Result<()> {
    let folder = program.with_extension("partial");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let names = ["prometheus".to_owned()];
    packages::download(&names, &folder).context("promtool cannot be loaded")?;
    for archive in fs::read_dir(&folder)? {
        process::run(Command::new("dpkg-deb").arg("--extract").arg(archive?.path()).arg(&folder))?;
    }
    let unpacked = folder.join("usr/bin/promtool");
    fs::rename(&unpacked, program).with_context(|| format!("cannot rename {}", unpacked.display()))?;
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}
