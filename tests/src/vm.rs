//! A small virtual machine that boots Debian 12's 6.1 kernel, for tests of what the running kernel lacks (the kernel's
//! WireGuard, VLAN devices) and of what older kernels do otherwise (no tcx before 6.6).
//!
//! The machine is emulated, so no hardware support is needed: a boot takes seconds, not minutes. The guest sees the
//! root file system of the host read-only under a layer in memory: what was built or installed on the host runs there
//! under its own path, and what the guest writes is gone with it. It has no network card.
//!
//! It is not an isolation boundary: a guest can read whatever root can read on the host.

mod boot;
mod cpio;
mod image;
mod packages;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Source of virtual machines.
#[derive(Debug)]
pub struct Vm;

impl Vm {
    /// Makes everything a guest needs, or finds it made: packages of the host, the kernel with its modules, and the
    /// initial file system. Files lie in `target/vm` of the workspace; removing that folder fetches the newest kernel.
    ///
    /// Fails when not run by root, on other systems than Debian 12, and without a package mirror when one is needed.
    pub fn prepare() -> anyhow::Result<Image> {
        image::prepare()
    }
}

/// A kernel, its modules and its initial file system, ready to boot any number of times.
#[derive(Debug, Clone)]
pub struct Image {
    pub(crate) store: PathBuf,
    pub(crate) release: String,
    pub(crate) kernel: PathBuf,
    pub(crate) initramfs: PathBuf,
    pub(crate) modules: PathBuf,
}

/// Options of a guest.
#[derive(Debug, Clone, Copy)]
pub struct Opts<'a> {
    pub memory_mb: u32,
    /// From power-on to power-off. Waiting for another guest to end does not count.
    pub timeout: Duration,
    /// Loaded before the script starts; one that cannot be loaded fails the run. The kernel also loads by itself
    /// what `ip`, `nft` and `tc` ask for.
    pub modules: &'a [&'a str],
}

impl Default for Opts<'_> {
    fn default() -> Self {
        Self { memory_mb: 1024, timeout: Duration::from_secs(240), modules: &[] }
    }
}

/// Result of a script that ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// As the shell counts: 128 and the signal's number when a signal ended the script.
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
    /// Console output of the kernel and the boot.
    pub console: String,
}

impl Image {
    /// The kernel's release, as `uname -r` says it in the guest.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// Boots a guest, runs `script` there by `/bin/sh` as root, and powers the guest off. One guest runs at a time.
    ///
    /// The guest has `/proc`, `/sys`, `/dev`, bpffs, debugfs and cgroup2 mounted and `lo` up; `/run` is empty but for
    /// its own `gateway-vm`. A script that fails is an [`Output`]; a guest that hangs, panics or cannot boot an error
    /// that carries the end of its console.
    pub fn run(&self, script: &str, opts: Opts<'_>) -> anyhow::Result<Output> {
        boot::run(self, script, opts)
    }
}

/// `path` as one word of a shell script.
pub fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}
