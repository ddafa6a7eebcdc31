//! Paths of the project. Tools and kernel programs are in the workspace's own `target`, independent of
//! `CARGO_TARGET_DIR`: all target directories share them.

use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("the package lies in a folder of the workspace").to_path_buf()
}

fn target() -> PathBuf {
    root().join("target")
}

pub(crate) fn ebpf_package() -> PathBuf {
    root().join("gateway-ebpf")
}

/// Returns the root for `cargo install --root`.
pub(crate) fn tools() -> PathBuf {
    target().join("tools")
}

pub(crate) fn tools_bin() -> PathBuf {
    tools().join("bin")
}

/// Returns the folder of the unpacked compiler of the distribution.
pub(crate) fn bpf_toolchain() -> PathBuf {
    target().join("bpf-toolchain")
}

/// Returns cargo's separate target directory for the kernel programs.
pub(crate) fn bpf_build() -> PathBuf {
    target().join("bpf-build")
}

/// Returns the path of the committed kernel programs.
pub(crate) fn bpf_object() -> PathBuf {
    ebpf_package().join("object/gateway.bpf.o")
}

/// Returns the path of the record: inputs of the committed kernel programs, with their checksums.
pub(crate) fn bpf_record() -> PathBuf {
    ebpf_package().join("object/inputs.sha256")
}

/// Returns the Python environment with schemathesis.
pub(crate) fn schemathesis() -> PathBuf {
    target().join("schemathesis")
}

/// Returns the Python environment with a small language model.
pub(crate) fn language_model() -> PathBuf {
    target().join("language-model")
}

pub(crate) fn language_model_requirements() -> PathBuf {
    root().join("tests/data/assistant/requirements.txt")
}

pub(crate) fn promtool() -> PathBuf {
    target().join("tools/promtool")
}

/// Returns the database of countries, for the tests.
pub(crate) fn country_database() -> PathBuf {
    target().join("tools/countries.mmdb")
}

/// Returns the newest wireguard-go, for the benches.
pub(crate) fn wireguard_go() -> PathBuf {
    target().join("tools/wireguard-go")
}

pub(crate) fn schemathesis_requirements() -> PathBuf {
    root().join("tests/contract/schemathesis.txt")
}

/// Returns the folder with roots and suites of the test targets of gateway-tests.
pub(crate) fn tests() -> PathBuf {
    root().join("tests/tests")
}

/// Returns the folder of the documentation as HTML.
pub(crate) fn book() -> PathBuf {
    target().join("book")
}

/// Returns the path of the durations of the suites, one a line.
pub(crate) fn durations() -> PathBuf {
    target().join("suite-durations.txt")
}

/// Returns the folder of the output of flaky tests in the last run.
pub(crate) fn flaky_tests() -> PathBuf {
    target().join("flaky-tests")
}

/// Returns the list of vendors of MAC addresses.
pub(crate) fn vendors() -> PathBuf {
    root().join("gateway-ctl/src/services/hosts/vendors.gz")
}

/// Returns the folder with the sources of the dashboard.
pub(crate) fn ui() -> PathBuf {
    root().join("ui")
}

/// Returns the folder of the built dashboard.
pub(crate) fn ui_dist() -> PathBuf {
    ui().join("dist")
}

/// Returns the folder of the records about the dashboard.
pub(crate) fn ui_records() -> PathBuf {
    target().join("ui")
}

/// Returns the folder of release archives.
pub(crate) fn dist() -> PathBuf {
    target().join("dist")
}

/// Returns cargo's separate target directory for release builds.
pub(crate) fn dist_build() -> PathBuf {
    target().join("dist-build")
}

/// Returns the folder of the distribution's compiler and library for arm64, unpacked.
pub(crate) fn dist_toolchain() -> PathBuf {
    target().join("dist-toolchain")
}

pub(crate) fn lock(name: &str) -> PathBuf {
    target().join(format!(".xtask-{name}.lock"))
}
