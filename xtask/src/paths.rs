//! Where things lie. Tools and kernel programs live in the workspace's own `target`, whatever
//! `CARGO_TARGET_DIR` says: they are shared by every target directory somebody builds into.

use std::path::{Path, PathBuf};

pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("the package lies in a folder of the workspace").to_path_buf()
}

fn target() -> PathBuf {
    root().join("target")
}

pub fn ebpf_package() -> PathBuf {
    root().join("gateway-ebpf")
}

/// The root given to `cargo install --root`.
pub fn tools() -> PathBuf {
    target().join("tools")
}

pub fn tools_bin() -> PathBuf {
    tools().join("bin")
}

pub fn bpf_linker() -> PathBuf {
    tools_bin().join("bpf-linker")
}

/// The distribution's compiler, unpacked.
pub fn bpf_toolchain() -> PathBuf {
    target().join("bpf-toolchain")
}

/// Cargo's own target directory for the kernel programs.
pub fn bpf_build() -> PathBuf {
    target().join("bpf-build")
}

/// The committed kernel programs.
pub fn bpf_object() -> PathBuf {
    ebpf_package().join("object/gateway.bpf.o")
}

/// The inputs of the committed kernel programs, with their checksums.
pub fn bpf_record() -> PathBuf {
    ebpf_package().join("object/inputs.sha256")
}

/// The environment of Python that has schemathesis.
pub fn schemathesis() -> PathBuf {
    target().join("schemathesis")
}

pub fn promtool() -> PathBuf {
    target().join("tools/promtool")
}

pub fn schemathesis_requirements() -> PathBuf {
    root().join("tests/contract/schemathesis.txt")
}

/// Roots and suites of the test targets of gateway-tests.
pub fn tests() -> PathBuf {
    root().join("tests/tests")
}

/// The documentation as HTML.
pub fn book() -> PathBuf {
    target().join("book")
}

/// Durations of the suites, one a line.
pub fn durations() -> PathBuf {
    target().join("suite-durations.txt")
}

/// Folder of release archives.
pub fn dist() -> PathBuf {
    target().join("dist")
}

/// Cargo's own target directory for what is handed out.
pub fn dist_build() -> PathBuf {
    target().join("dist-build")
}

/// The distribution's compiler and library for arm64, unpacked.
pub fn dist_toolchain() -> PathBuf {
    target().join("dist-toolchain")
}

pub fn lock(name: &str) -> PathBuf {
    target().join(format!(".xtask-{name}.lock"))
}
