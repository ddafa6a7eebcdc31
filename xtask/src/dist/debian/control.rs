//! The control files of the package: description with dependencies, scripts, configuration files, checksums.

use std::{env, fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use super::tree::{Tree, source};
use crate::process;

pub(super) struct Control {
    version: String,
    architecture: String,
    libraries: String,
    kibibytes: u64,
}

impl Control {
    /// Returns what holds for this daemon and the files of its package.
    pub(super) fn of(daemon: &Path, tree: &Tree) -> Result<Self> {
        let version = process::output(Command::new(daemon).arg("--version"))?;
        let version = version.split_whitespace().last().context("the daemon prints no version")?.to_owned();
        let architecture = process::output(Command::new("dpkg").arg("--print-architecture"))?;
        Ok(Self {
            version,
            architecture: architecture.trim().to_owned(),
            libraries: libraries(tree.root())?,
            kibibytes: tree.kibibytes()?,
        })
    }

    pub(super) fn file_name(&self) -> String {
        format!("gatewayd_{}_{}.deb", self.version, self.architecture)
    }

    /// Writes the control files.
    pub(super) fn write(&self, tree: &mut Tree) -> Result<()> {
        let conffiles = text("conffiles")?;
        let but: Vec<&str> = conffiles.lines().map(|path| path.trim_start_matches('/')).collect();
        let checksums = tree.checksums(&but)?;
        tree.file("DEBIAN/control", 0o644, self.filled(&text("control")?)?.as_bytes())?;
        tree.file("DEBIAN/conffiles", 0o644, conffiles.as_bytes())?;
        tree.file("DEBIAN/md5sums", 0o644, checksums.as_bytes())?;
        for script in ["postinst", "prerm", "postrm"] {
            tree.file(&format!("DEBIAN/{script}"), 0o755, text(script)?.as_bytes())?;
        }
        Ok(())
    }

    fn filled(&self, template: &str) -> Result<String> {
        let filled = template
            .replace("@VERSION@", &self.version)
            .replace("@ARCHITECTURE@", &self.architecture)
            .replace("@MAINTAINER@", &maintainer())
            .replace("@SIZE@", &self.kibibytes.to_string())
            .replace("@LIBRARIES@", &self.libraries);
        let rest = filled.lines().find(|line| line.split_whitespace().any(|word| word.starts_with('@')));
        ensure!(rest.is_none(), "unknown variable in packaging/debian/control: {}", rest.unwrap_or_default());
        Ok(filled)
    }
}

fn text(name: &str) -> Result<String> {
    let path = format!("packaging/debian/{name}");
    String::from_utf8(source(&path)?).with_context(|| format!("{path} is not UTF-8"))
}

/// Returns who builds the package, by the variables of Debian's own tools (devscripts).
fn maintainer() -> String {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let name = variable("DEBFULLNAME").unwrap_or_else(|| "Gateway maintainers".to_owned());
    let address = variable("DEBEMAIL").unwrap_or_else(|| "root@localhost".to_owned());
    format!("{name} <{address}>")
}

/// Returns the packages of the libraries that the programs load, with the least versions that have their symbols.
fn libraries(root: &Path) -> Result<String> {
    let work = root.with_extension("libraries");
    let debian = work.join("debian");
    fs::create_dir_all(&debian).with_context(|| format!("cannot make {}", debian.display()))?;
    // The tool requires the description of a source package.
    fs::write(debian.join("control"), "Source: gatewayd\n\nPackage: gatewayd\nArchitecture: any\n")
        .context("cannot write the description for dpkg-shlibdeps")?;
    let mut command = Command::new("dpkg-shlibdeps");
    command.current_dir(&work).arg("-O");
    for program in ["usr/sbin/gatewayd", "usr/bin/gateway-ctl"] {
        command.arg(format!("-e{}", absolute(&root.join(program))?.display()));
    }
    let found = process::output(&mut command);
    fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    let found = found?;
    let libraries = found.trim().strip_prefix("shlibs:Depends=").unwrap_or_default();
    ensure!(libraries.contains("libc6"), "dpkg-shlibdeps names no C library: {found}");
    Ok(libraries.to_owned())
}

fn absolute(path: &Path) -> Result<std::path::PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} has no absolute path", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_filled_completely() {
        let control = Control {
            version: "1.2.3".to_owned(),
            architecture: "amd64".to_owned(),
            libraries: "libc6 (>= 2.36)".to_owned(),
            kibibytes: 7,
        };
        let filled = control.filled(&text("control").unwrap()).unwrap();
        for line in ["Version: 1.2.3", "Installed-Size: 7", "Depends: libc6 (>= 2.36), nftables, procps"] {
            assert!(filled.lines().any(|have| have == line), "{line} is not in {filled}");
        }
        assert_eq!(control.file_name(), "gatewayd_1.2.3_amd64.deb");
        assert!(control.filled("Depends: @OTHER@\n").is_err());
    }
}
