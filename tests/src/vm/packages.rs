//! Packages of the host: the emulator and the tools that a guest uses. The kernel is excluded: it is unpacked, not
//! installed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

/// A package, and a file whose presence shows that it (or a replacement) is installed.
const PACKAGES: [(&str, &str); 17] = [
    ("qemu-system-x86", "/usr/bin/qemu-system-x86_64"),
    ("seabios", "/usr/share/seabios/bios-256k.bin"),
    ("busybox-static", "/bin/busybox"),
    ("kmod", "/sbin/depmod"),
    ("iproute2", "/sbin/ip"),
    ("nftables", "/usr/sbin/nft"),
    ("wireguard-tools", "/usr/bin/wg"),
    ("cryptsetup-bin", "/usr/sbin/cryptsetup"),
    ("e2fsprogs", "/usr/sbin/mkfs.ext4"),
    ("swtpm", "/usr/bin/swtpm"),
    ("libtss2-esys-3.0.2-0", "/usr/lib/x86_64-linux-gnu/libtss2-esys.so.0"),
    ("libtss2-tcti-device0", "/usr/lib/x86_64-linux-gnu/libtss2-tcti-device.so.0"),
    ("libtss2-rc0", "/usr/lib/x86_64-linux-gnu/libtss2-rc.so.0"),
    ("hostapd", "/usr/sbin/hostapd"),
    ("wpasupplicant", "/usr/sbin/wpa_supplicant"),
    ("iw", "/usr/sbin/iw"),
    ("wireless-regdb", "/lib/firmware/regulatory.db"),
];

/// Installs missing packages. Otherwise costs a few file look-ups.
pub(super) fn install_missing() -> anyhow::Result<()> {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(_, file)| !Path::new(file).exists()).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let install = || {
        let mut command = apt_get();
        command.args(["install", "--yes", "--no-install-recommends"]).args(&missing);
        output_of(&mut command)
    };
    with_fresh_lists_at_need(install).with_context(|| {
        format!("the packages {} are missing and cannot be installed", missing.join(", "))
    })?;
    Ok(())
}

/// Runs `action`. On failure, refreshes the package lists and runs it again.
pub(super) fn with_fresh_lists_at_need(
    action: impl Fn() -> anyhow::Result<String>,
) -> anyhow::Result<String> {
    if let Ok(text) = action() {
        return Ok(text);
    }
    output_of(apt_get().arg("update")).context("the package lists cannot be refreshed")?;
    action()
}

pub(super) fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["--quiet", "--option", "DPkg::Lock::Timeout=300"])
        .args(["--option", "APT::Sandbox::User=root"]);
    command
}

/// Runs a command to its end. Returns its output, or an error with its error output.
pub(super) fn output_of(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("{name} cannot be started"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{name} ended with {}: {}", output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
