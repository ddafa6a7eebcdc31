//! The newest wireguard-go, a peer of the benches: extracted from the package of Debian unstable. The installed one, of
//! this release of Debian, stays what tests use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::packages;
use crate::{paths, process, progress};

/// Keys of all releases of Debian (package debian-archive-keyring).
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

pub(super) fn ensure() -> Result<PathBuf> {
    let program = paths::wireguard_go();
    if !program.is_file() {
        progress::during("wireguard-go of Debian unstable (11 MB to load)", || unpack(&program))?;
    }
    Ok(program)
}

fn unpack(program: &Path) -> Result<()> {
    let folder = program.with_extension("partial");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder.join("lists/partial"))
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let source = folder.join("sources.list");
    let line = format!("deb [signed-by={KEYS}] {} unstable main\n", archive()?);
    fs::write(&source, line).with_context(|| format!("cannot write {}", source.display()))?;
    let apt = || {
        let mut apt = packages::apt();
        apt.current_dir(&folder);
        // Lists of their own: those of the system do not change.
        for (option, value) in
            [("Dir::Etc::SourceList", &source), ("Dir::State::Lists", &folder.join("lists"))]
        {
            apt.arg("-o").arg(format!("{option}={}", value.display()));
        }
        apt.args(["-o", "Dir::Etc::SourceParts=/dev/null", "-o", "Acquire::Languages=none"]);
        apt
    };
    process::output(apt().arg("update"))?;
    process::output(apt().args(["download", "wireguard-go"]))?;
    for file in fs::read_dir(&folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            process::run(Command::new("dpkg-deb").arg("--extract").arg(path).arg(&folder))?;
        }
    }
    let unpacked = folder.join("usr/bin/wireguard-go");
    fs::rename(&unpacked, program).with_context(|| format!("cannot rename {}", unpacked.display()))?;
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// Returns the address of the archive that this system uses.
fn archive() -> Result<String> {
    let mut targets = packages::apt();
    targets.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let output = process::output(&mut targets)?;
    let first = output.lines().next().unwrap_or_default().trim();
    ensure!(!first.is_empty(), "apt has no archive");
    Ok(first.to_owned())
}
