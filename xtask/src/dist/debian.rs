//! The Debian package of the daemon: `gatewayd` with its kernel programs and dashboard, the client, units, manual pages
//! and completions. Scripts and texts are in `packaging/debian`.
//!
//! A package without the dashboard is never made: neither the build nor the packing accepts a daemon without it.

mod control;
mod notices;
mod tree;

use std::{
    env, fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use flate2::bufread::GzDecoder;

use super::{
    page,
    printed::{Printed, printed},
};
use crate::{ebpf, paths, prepare::prepare_daemon, process, remap, setup, ui};
use control::Control;
use tree::{Tree, source};

const DAEMON: &str = "gatewayd";
const CLIENT: &str = "gateway-ctl";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Best,
    Quick,
}

/// Builds the programs and their package into this folder, and returns its path.
pub(super) fn build(dist: &Path) -> Result<PathBuf> {
    prepare_daemon(setup::Need::Build)?;
    // The package contains their licences.
    ui::ensure_packages()?;
    pack(&compile()?, dist, Compression::Best)
}

/// Compiles the programs as they are installed, and returns their folder.
fn compile() -> Result<PathBuf> {
    let build = paths::dist_build();
    let mut command = process::cargo();
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER"] {
        command.env_remove(name);
    }
    // With this variable the build fails if the dashboard is missing.
    command.env("GATEWAY_UI_DIST", paths::ui_dist());
    command.args(["build", "--locked", "--package", "gateway-api", "--package", "gateway-cli"]);
    command.args(["--bin", DAEMON, "--bin", CLIENT, "--profile", "ship"]);
    // The package has no place for debug information.
    command.args(["--config", "profile.ship.debug=false", "--config"]);
    let sysroot =
        process::output(Command::new("rustc").current_dir(paths::root()).args(["--print", "sysroot"]))?;
    command.arg(format!("build.rustflags={}", remap::flags(Path::new(sysroot.trim()))));
    command.arg("--target-dir").arg(&build);
    process::build("the daemon for its package", &mut command)?;
    Ok(build.join("ship"))
}

/// Packs the programs of a folder, and returns the path of the package.
pub(super) fn pack(programs: &Path, into: &Path, compression: Compression) -> Result<PathBuf> {
    for tool in ["dpkg", "dpkg-deb", "dpkg-shlibdeps", "strip"] {
        ensure!(process::find(tool).is_some(), "a Debian package needs {tool}: run this on Debian");
    }
    ebpf::ensure_current()?;
    let (daemon, client) = (programs.join(DAEMON), programs.join(CLIENT));
    let root = into.join("gatewayd-package");
    let mut tree = Tree::create(&root)?;
    tree.program("usr/sbin/gatewayd", &daemon)?;
    tree.program("usr/bin/gateway-ctl", &client)?;
    contains_embedded_files(&root.join("usr/sbin/gatewayd"))?;
    units(&mut tree)?;
    monitoring(&mut tree)?;
    tree.file("etc/gatewayd/config.yaml", 0o640, &source("gateway-ctl/model/src/settings/example.yaml")?)?;
    tree.compressed("usr/share/man/man8/gatewayd.8.gz", page::of_help(&daemon)?.as_bytes())?;
    for (file, content) in printed(|| Command::new(&client))? {
        match file {
            Printed::Manual | Printed::FileFormat => tree.compressed(path(file), content.as_bytes())?,
            Printed::Bash | Printed::Zsh | Printed::Fish => {
                tree.file(path(file), 0o644, content.as_bytes())?
            }
        }
    }
    for text in ["copyright", "README.Debian"] {
        let content = source(&format!("packaging/debian/{text}"))?;
        tree.file(&format!("usr/share/doc/gatewayd/{text}"), 0o644, &content)?;
    }
    tree.compressed("usr/share/doc/gatewayd/changelog.gz", &source("CHANGELOG.md")?)?;
    tree.compressed("usr/share/doc/gatewayd/third-party.txt.gz", notices::text()?.as_bytes())?;

    let control = Control::of(&daemon, &tree)?;
    let package = into.join(control.file_name());
    control.write(&mut tree)?;
    seal(&root, &package, compression)?;
    fs::remove_dir_all(&root).context("cannot remove the folder of the package")?;
    Ok(package)
}

/// Fails unless the daemon contains the pages of the built dashboard and the committed kernel programs, which it has in
/// gzip form.
fn contains_embedded_files(daemon: &Path) -> Result<()> {
    let program = fs::read(daemon).with_context(|| format!("cannot read {}", daemon.display()))?;
    let members: Vec<&[u8]> = gzip_members(&program).collect();
    let dashboard = paths::ui_dist();
    for file in [dashboard.join("index.html"), dashboard.join("docs.html"), paths::bpf_object()] {
        let content = fs::read(&file)
            .with_context(|| format!("the package needs {}, which is missing", file.display()))?;
        ensure!(!content.is_empty(), "{} is empty", file.display());
        ensure!(
            members.iter().any(|member| is_member_of(member, &content)),
            "the daemon to be packed does not contain {}: build it after `cargo xtask ui`",
            file.display()
        );
    }
    Ok(())
}

/// Returns each place in a program at which a gzip member may begin: its identification and method (RFC 1952, section
/// 2.3.1). What follows the member follows in the slice.
fn gzip_members(program: &[u8]) -> impl Iterator<Item = &[u8]> {
    const BEGINNING: [u8; 3] = [0x1f, 0x8b, 8];
    let is_beginning = |part: &&[u8]| part.starts_with(&BEGINNING);
    (0..program.len()).map(|at| &program[at..]).filter(is_beginning)
}

/// Reports whether a gzip member with exactly this content begins here.
fn is_member_of(member: &[u8], content: &[u8]) -> bool {
    let mut found = Vec::new();
    let most = content.len() as u64 + 1;
    GzDecoder::new(member).take(most).read_to_end(&mut found).is_ok() && found == content
}

fn units(tree: &mut Tree) -> Result<()> {
    for unit in ["gatewayd.service", "gatewayd-guard.service"] {
        let content = source(&format!("packaging/{unit}"))?;
        tree.file(&format!("usr/lib/systemd/system/{unit}"), 0o644, &content)?;
    }
    Ok(())
}

/// Puts in what other programs read of the gateway: rules of Prometheus and the dashboard of Grafana.
fn monitoring(tree: &mut Tree) -> Result<()> {
    for file in ["prometheus/gatewayd.rules.yml", "grafana/gatewayd.json"] {
        let content = source(&format!("packaging/{file}"))?;
        tree.file(&format!("usr/share/gatewayd/{file}"), 0o644, &content)?;
    }
    Ok(())
}

/// Returns the path in the package.
const fn path(file: Printed) -> &'static str {
    match file {
        Printed::Bash => "usr/share/bash-completion/completions/gateway-ctl",
        Printed::Zsh => "usr/share/zsh/vendor-completions/_gateway-ctl",
        Printed::Fish => "usr/share/fish/vendor_completions.d/gateway-ctl.fish",
        Printed::Manual => "usr/share/man/man1/gateway-ctl.1.gz",
        Printed::FileFormat => "usr/share/man/man5/gateway.yaml.5.gz",
    }
}

/// Makes the package of the folder, reproducibly: owned by root, with the time of the last commit.
fn seal(root: &Path, package: &Path, compression: Compression) -> Result<()> {
    let mut build = Command::new("dpkg-deb");
    if env::var_os("SOURCE_DATE_EPOCH").is_none() {
        build.env("SOURCE_DATE_EPOCH", time_of_sources());
    }
    build.arg("--root-owner-group");
    match compression {
        Compression::Best => build.arg("-Zxz"),
        Compression::Quick => build.args(["-Zgzip", "-z1"]),
    };
    process::output(build.arg("--build").arg(root).arg(package)).map(drop)
}

/// Returns the time of the last commit in seconds, or 0 outside of a repository.
fn time_of_sources() -> String {
    let mut git = Command::new("git");
    git.current_dir(paths::root()).args(["log", "-1", "--format=%ct"]);
    process::output(&mut git).map_or_else(|_| "0".to_owned(), |time| time.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression as Level, write::GzEncoder};

    use super::*;

    #[test]
    fn compressed_file_is_found_in_a_program() {
        let mut encoder = GzEncoder::new(Vec::new(), Level::best());
        encoder.write_all(b"<!doctype html>").unwrap();
        let program = [b"before \x1f\x8b\x08 ".as_slice(), &encoder.finish().unwrap(), b" behind"].concat();
        let has = |content: &[u8]| gzip_members(&program).any(|member| is_member_of(member, content));
        assert!(has(b"<!doctype html>"));
        for other in [b"<!doctype html".as_slice(), b"<!doctype html> ", b"", b"before"] {
            assert!(!has(other), "{other:?}");
        }
    }
}
