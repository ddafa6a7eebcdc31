//! Toolchain for arm64 beside the Rust compiler: a C compiler, musl, an unwinder and an emulator.
//!
//! All are Debian packages, unpacked into `target` and never installed. The compiler is the one for glibc; musl's own
//! specs make it use musl's headers and start files.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{paths, process, progress};

/// Packages for the build machine.
const HOST: &[&str] = &[
    "binutils-aarch64-linux-gnu",
    "cpp-12-aarch64-linux-gnu",
    "gcc-12-aarch64-linux-gnu",
    "libgcc-12-dev-arm64-cross",
    "linux-libc-dev-arm64-cross",
    "qemu-user-static",
];
/// Packages for arm64, which need not be one of the machine's architectures.
const FOREIGN: &[&str] = &["libunwind-14-dev", "musl-dev"];

const MUSL: &str = "usr/lib/aarch64-linux-musl";
const MUSL_INCLUDE: &str = "usr/include/aarch64-linux-musl";

pub(super) struct Toolchain {
    folder: PathBuf,
}

/// Ensures a complete toolchain: it gets its final name when it is ready.
pub(super) fn ensure() -> Result<Toolchain> {
    let folder = paths::dist_toolchain();
    if !folder.is_dir() {
        let partial = folder.with_extension("partial");
        if partial.exists() {
            fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
        }
        progress::during("Debian's compiler and library for arm64 (97 MB to load)", || unpack(&partial))?;
        make(&partial, &folder)?;
        fs::rename(&partial, &folder).with_context(|| format!("cannot rename {}", partial.display()))?;
    }
    Ok(Toolchain { folder })
}

fn unpack(folder: &Path) -> Result<()> {
    let wanted = [HOST, FOREIGN].concat().join(", ");
    for program in ["apt-get", "dpkg-deb"] {
        ensure!(
            process::find(program).is_some(),
            "building for arm64 needs {program}, which fetches these packages of Debian 12: {wanted}"
        );
    }
    ensure!(
        std::env::consts::ARCH == "x86_64",
        "building for arm64 is set up for x86_64 machines with Debian 12: it needs {wanted}"
    );
    let archives = folder.join("archives");
    for part in ["archives", "lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(folder.join(part)).context("cannot make the folder of the toolchain")?;
    }
    let missing = |what: &str, names: &[&str]| {
        format!(
            "Debian's packages {} {what} cannot be loaded; as root, `apt-get update` may help",
            names.join(", ")
        )
    };
    process::output(apt().current_dir(&archives).arg("download").args(HOST))
        .with_context(|| missing("for this machine", HOST))?;
    let foreign = |words: &[&str]| {
        let mut command = apt();
        command.current_dir(&archives).args([
            "-o",
            "APT::Architecture=arm64",
            "-o",
            "APT::Architectures=arm64",
        ]);
        command.args(["-o", "Dir::State::status=/dev/null", "-o"]);
        command.arg(format!("Dir::State::lists={}", folder.join("lists").display()));
        command.arg("-o").arg(format!("Dir::Cache={}", folder.join("cache").display()));
        process::output(command.args(words))
    };
    foreign(&["update"])
        .and_then(|_| foreign(&[&["download"], FOREIGN].concat()))
        .with_context(|| missing("of arm64", FOREIGN))?;
    for archive in fs::read_dir(&archives)? {
        process::run(Command::new("dpkg-deb").arg("--extract").arg(archive?.path()).arg(folder))?;
    }
    for part in ["archives", "lists", "cache"] {
        fs::remove_dir_all(folder.join(part))?;
    }
    Ok(())
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-qq", "-o", "APT::Sandbox::User=root"]);
    command
}

/// Creates the compiler for musl, and the file name of the unwinder that the standard library expects.
fn make(partial: &Path, folder: &Path) -> Result<()> {
    let specs = fs::read_to_string(partial.join(MUSL).join("musl-gcc.specs")).context("no specs of musl")?;
    let moved = |path: &str| folder.join(path).display().to_string();
    let specs = specs
        .replace(&format!("/{MUSL}"), &moved(MUSL))
        .replace(&format!("/{MUSL_INCLUDE}"), &moved(MUSL_INCLUDE));
    fs::write(partial.join("musl.specs"), specs).context("cannot write the specs")?;
    // The unwinder of gcc is unsuitable: it calls functions that only glibc has.
    let unwinder = partial.join("usr/lib/llvm-14/lib/libunwind.a");
    fs::copy(&unwinder, partial.join(MUSL).join("libunwind.a")).context("no unwinder")?;
    let script = format!(
        "#!/bin/sh\nexport LD_LIBRARY_PATH='{0}/usr/lib/x86_64-linux-gnu'\nexport PATH='{0}/usr/bin':\"$PATH\"\n\
         exec '{0}/usr/bin/aarch64-linux-gnu-gcc-12' -specs '{0}/musl.specs' \"$@\"\n",
        folder.display()
    );
    let path = partial.join("musl-gcc");
    fs::write(&path, script).context("cannot write the compiler's script")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).context("cannot make it a program")?;
    Ok(())
}

impl Toolchain {
    /// Sets compiler, archiver and linker for cargo and for the build scripts of the crates.
    pub(super) fn configure(&self, command: &mut Command) {
        let compiler = self.folder.join("musl-gcc");
        command.env("CC_aarch64_unknown_linux_musl", &compiler);
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", &compiler);
        command.env("AR_aarch64_unknown_linux_musl", self.folder.join("usr/bin/aarch64-linux-gnu-ar"));
        command.env(
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
            // The start files come from the specs, as the rustup component with them is not installed.
            "-C link-self-contained=no -C relocation-model=static",
        );
        let libraries = self.folder.join("usr/lib/x86_64-linux-gnu");
        let before =
            command.get_envs().find(|(name, _)| *name == "LD_LIBRARY_PATH").and_then(|(_, value)| value);
        let all = std::env::join_paths(before.map(PathBuf::from).into_iter().chain([libraries]));
        // This variable cannot contain a folder with a colon in its name; then the archiver reports the missing file.
        if let Ok(all) = all {
            command.env("LD_LIBRARY_PATH", all);
        }
    }

    /// Returns a command that runs a program for arm64 on this machine.
    pub(super) fn emulated(&self, program: &Path) -> Command {
        let mut command = Command::new(self.folder.join("usr/bin/qemu-aarch64-static"));
        command.arg(program);
        command
    }
}
