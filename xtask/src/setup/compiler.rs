//! A compiler for the BPF target: core must be built from sources that match the compiler.
//!
//! Uses a nightly toolchain with the component rust-src if there is one. Otherwise, on Debian, unpacks the
//! distribution's newest compiler beside its own sources. It is never installed, as its packages and rustup exclude
//! each other.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::packages;
use crate::{paths, process, progress};

/// LLVM version of the compiler and of bpf-linker. They must match, as bpf-linker reads the compiler's bitcode.
pub(crate) const LLVM: &str = "22";

pub(crate) struct Compiler {
    pub cargo: PathBuf,
    pub rustc: PathBuf,
    /// Folder of the compiler's libraries, including LLVM.
    pub libraries: PathBuf,
    /// Output of `rustc -vV`, which identifies the compiler.
    pub identity: String,
}

impl Compiler {
    fn new(cargo: PathBuf, rustc: PathBuf, libraries: PathBuf) -> Result<Self> {
        let mut compiler = Self { cargo, rustc, libraries, identity: String::new() };
        compiler.identity =
            process::output(compiler.with_libraries(Command::new(&compiler.rustc)).arg("-vV"))?;
        Ok(compiler)
    }

    /// Sets the folder of the libraries, also for bpf-linker, which searches for LLVM in this variable first.
    pub(crate) fn with_libraries(&self, mut command: Command) -> Command {
        command.env("LD_LIBRARY_PATH", &self.libraries);
        command
    }

    /// Returns the folder that contains the library sources at any depth.
    pub(crate) fn sysroot(&self) -> Result<PathBuf> {
        let folder =
            self.rustc.parent().and_then(Path::parent).context("rustc lies in no folder of programs")?;
        fs::canonicalize(folder).with_context(|| format!("cannot read {}", folder.display()))
    }

    fn llvm(&self) -> Option<&str> {
        let line = self.identity.lines().find_map(|line| line.strip_prefix("LLVM version: "))?;
        line.split('.').next()
    }
}

pub(crate) fn ensure() -> Result<Compiler> {
    if let Some(nightly) = nightly() {
        return Ok(nightly);
    }
    let folder = paths::bpf_toolchain();
    if !folder.is_dir() {
        unpack(&folder)?;
    }
    open(&folder).with_context(|| {
        format!(
            "the compiler in {0} does not run; remove that folder and run the command again",
            folder.display()
        )
    })
}

/// Returns rustup's nightly if it exists, has the sources, and has the linker's LLVM.
fn nightly() -> Option<Compiler> {
    process::find("rustup")?;
    let which = |program| {
        let path = process::output(Command::new("rustup").args(["which", "--toolchain", "nightly", program]))
            .ok()?;
        Some(PathBuf::from(path.trim()))
    };
    let rustc = which("rustc")?;
    let sysroot = rustc.parent()?.parent()?.to_path_buf();
    if !sysroot.join("lib/rustlib/src/rust/library/core/Cargo.toml").is_file() {
        return None;
    }
    let compiler = Compiler::new(which("cargo")?, rustc, sysroot.join("lib")).ok()?;
    if compiler.llvm() != Some(LLVM) {
        eprintln!(
            "setup: the nightly toolchain is of another LLVM than {LLVM}, which the linker needs: not used"
        );
        return None;
    }
    Some(compiler)
}

fn open(folder: &Path) -> Result<Compiler> {
    let cargo = match process::find("rustup") {
        // The real program: rustup's proxy would select a toolchain and its compiler again.
        Some(rustup) => process::output(Command::new(rustup).args(["which", "cargo"]))?.trim().into(),
        None => PathBuf::from(process::cargo().get_program()),
    };
    let libraries = libraries(folder)?;
    let compiler = Compiler::new(cargo, folder.join("usr/bin/rustc"), libraries)?;
    if compiler.llvm() != Some(LLVM) {
        bail!("it is of another LLVM than {LLVM}, which the linker needs:\n{}", compiler.identity);
    }
    Ok(compiler)
}

/// Returns the folder `usr/lib/<machine>` that contains LLVM.
fn libraries(folder: &Path) -> Result<PathBuf> {
    let parent = folder.join("usr/lib");
    for entry in fs::read_dir(&parent).with_context(|| format!("cannot read {}", parent.display()))? {
        let path = entry?.path();
        if path.join(format!("libLLVM-{LLVM}.so")).exists() {
            return Ok(path);
        }
    }
    bail!("no libLLVM-{LLVM}.so below {}", parent.display());
}

/// Downloads and unpacks into a neighbouring folder, tests it, and renames it last: the folder is complete or absent.
fn unpack(folder: &Path) -> Result<()> {
    let (Some(_), Some(_)) = (process::find("apt-get"), process::find("dpkg-deb")) else {
        bail!(
            "no compiler for the BPF target. Run:\n    rustup toolchain install nightly --component rust-src\n\
             (on Debian, its own compiler is unpacked instead)"
        );
    };
    progress::during(
        "Debian's Rust compiler for the kernel programs (131 MB to load, 850 MB on disk)",
        || unpack_into(folder),
    )
}

fn unpack_into(folder: &Path) -> Result<()> {
    let partial = folder.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    let archives = partial.join("archives");
    fs::create_dir_all(&archives).with_context(|| format!("cannot create {}", archives.display()))?;
    download(&archives).context(
        "Debian's compiler cannot be loaded; a toolchain of rustup does as well:\n    \
         rustup toolchain install nightly --component rust-src",
    )?;
    for archive in fs::read_dir(&archives)? {
        process::run(Command::new("dpkg-deb").arg("--extract").arg(archive?.path()).arg(&partial))?;
    }
    fs::remove_dir_all(&archives)?;
    open(&partial).context("Debian's compiler was unpacked, but does not run")?;
    fs::rename(&partial, folder).with_context(|| format!("cannot rename {}", partial.display()))?;
    Ok(())
}

fn download(into: &Path) -> Result<()> {
    let mut names = package_names();
    if names.is_err() && process::is_root() {
        packages::update()?;
        names = package_names();
    }
    packages::download(&names?, into)
}

/// Returns the packages of the compiler, its libraries and sources in the versions of the archive, and the LLVM
/// libraries that the machine lacks.
fn package_names() -> Result<Vec<String>> {
    let standard = one_dependency("libstd-rust-web-dev", "libstd-rust-web-")?;
    let llvm = one_dependency(&standard, "libllvm")?;
    if llvm.strip_prefix("libllvm") != Some(LLVM) {
        bail!("Debian's compiler wants {llvm}, but the linker is of LLVM {LLVM}");
    }
    let mut names: Vec<String> =
        ["rustc-web", "libstd-rust-web-dev", "rust-web-src"].map(String::from).into();
    names.extend(dependencies(&llvm)?.into_iter().filter(|name| !is_installed(name)));
    names.extend([standard, llvm]);
    Ok(names)
}

fn one_dependency(package: &str, prefix: &str) -> Result<String> {
    let found = dependencies(package)?.into_iter().find(|name| name.starts_with(prefix));
    found.with_context(|| format!("this Debian's {package} depends on no {prefix}*"))
}

fn dependencies(package: &str) -> Result<Vec<String>> {
    let said = process::output(Command::new("apt-cache").args(["depends", "--important", package]))?;
    Ok(said.lines().filter_map(|line| line.trim().strip_prefix("Depends: ")).map(String::from).collect())
}

fn is_installed(package: &str) -> bool {
    process::output(Command::new("dpkg-query").args(["-W", "-f", "${Status}", package]))
        .is_ok_and(|status| status.ends_with(" installed"))
}
