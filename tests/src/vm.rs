//! A small virtual machine that boots the 6.1 kernel of Debian 12. It is for tests of features that the running kernel
//! lacks (kernel WireGuard, VLAN devices) and of differences in older kernels (no tcx before 6.6).
//!
//! QEMU emulates the machine, so no hardware support is needed: a boot takes seconds, not minutes. The guest sees the
//! host's root file system read-only under an overlay in memory. Files of the host run there under their own path, and
//! the guest's changes disappear with it. It has no network card.
//!
//! It is not an isolation boundary: a guest can read all files that root can read on the host.

mod boot;
mod cpio;
mod image;
mod packages;
mod tpm;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Source of virtual machines.
#[derive(Debug)]
pub struct Vm;

impl Vm {
    /// Creates everything a guest needs, or reuses it: packages of the host, the kernel with its modules, and the
    /// initial file system. Files are in `target/vm` of the workspace. If that folder is removed, the next call fetches
    /// the newest kernel.
    ///
    /// Fails without root, on systems other than Debian 12, and without a package mirror when one is needed.
    pub fn prepare() -> anyhow::Result<Image> {
        image::prepare()
    }
}

/// A kernel, its modules and its initial file system, for any number of boots.
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
    /// Limit from power-on to power-off. Waiting for the end of another guest does not count.
    pub timeout: Duration,
    /// Modules to load before the script starts. If one cannot be loaded, the run fails. The kernel also loads modules
    /// that `ip`, `nft` and `tc` request.
    pub modules: &'a [&'a str],
    /// Emulate a TPM2, whose state ends with the guest.
    pub has_tpm2: bool,
}

impl Default for Opts<'_> {
    fn default() -> Self {
        Self { memory_mb: 1024, timeout: Duration::from_secs(240), modules: &[], has_tpm2: false }
    }
}

/// Result of a script that ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// Exit status of the shell: 128 plus the signal's number if a signal ended the script.
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
    /// Console output of the kernel and the boot.
    pub console: String,
}

impl Image {
    /// Returns the kernel's release, as `uname -r` prints it in the guest.
    pub fn release(&self) -> &str {
        &self.release
    }

    /// Boots a guest, runs `script` there by `/bin/sh` as root, and powers the guest off. One guest runs at a time.
    ///
    /// The guest has `/proc`, `/sys`, `/dev`, bpffs, debugfs and cgroup2 mounted and `lo` up. Its `/run` contains only
    /// its own `gateway-vm`. A failed script is an [`Output`]. A guest that hangs, panics or cannot boot is an error
    /// with the end of its console.
    pub fn run(&self, script: &str, opts: Opts<'_>) -> anyhow::Result<Output> {
        boot::run(self, script, opts)
    }
}

/// Returns `path` as one word of a shell script.
pub fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}
