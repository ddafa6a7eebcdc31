//! A machine to install packages on: this one with an overlay over its root, which holds all changes in memory, and with
//! a `systemctl` that only records its calls.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;
use tempfile::TempDir;

use crate::e2e::SOON;

/// Mounts the overlay on `$1/root`, in a mount namespace of its own. It ends with this process.
const START: &str = "set -e
    mount -t tmpfs tmpfs \"$1\"
    mkdir \"$1/upper\" \"$1/work\" \"$1/root\"
    mount -t overlay overlay -o \"lowerdir=/,upperdir=$1/upper,workdir=$1/work\" \"$1/root\"
    mount --rbind /dev \"$1/root/dev\"
    mount -t tmpfs tmpfs \"$1/root/run\"
    mkdir -p \"$1/root/run/systemd/system\" \"$1/root/usr/local/sbin\"
    rm -f \"$1/root/usr/sbin/policy-rc.d\"
    cat > \"$1/root/usr/local/sbin/systemctl\"
    chmod 755 \"$1/root/usr/local/sbin/systemctl\"
    touch \"$1/root/calls\" \"$1/root/ready\"
    exec sleep infinity";

const SYSTEMCTL: &str = "#!/bin/sh
echo \"$*\" >> /calls
case \"$*\" in
*is-active*) test -e /running ;;
esac
";

const WANTS: &str = "etc/systemd/system/multi-user.target.wants";

pub(super) struct Machine {
    // Field order is drop order: the process that holds the mounts first.
    process: Process,
    folder: TempDir,
}

impl Machine {
    pub(super) fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let script = folder.path().with_extension("systemctl");
        fs::write(&script, SYSTEMCTL)?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", START, "sh"]).arg(folder.path());
        command.stdin(fs::File::open(&script)?);
        fs::remove_file(&script)?;
        let process = Process::spawn(command)?;
        let machine = Self { process, folder };
        wait_ok(SOON, "the overlay", || {
            ensure!(machine.has("ready"), "not ready");
            Ok(())
        })?;
        Ok(machine)
    }

    /// Installs a package, or upgrades to it, and returns what is printed.
    pub(super) fn install(&self, package: &Path) -> Result<String> {
        let file = self.folder.path().join("root/package.deb");
        let copied = self.inside("cp").arg(package).arg(file).status().context("nsenter")?;
        ensure!(copied.success(), "cp: {copied}");
        self.run(&["dpkg", "--force-unsafe-io", "--install", "/package.deb"])
    }

    /// Runs a command on the machine, and returns what it prints.
    pub(super) fn run(&self, words: &[&str]) -> Result<String> {
        let mut command = self.inside("chroot");
        command.arg(self.folder.path().join("root")).args(words);
        // As in a shell of root.
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        let output = command.env("LC_ALL", "C").output().context("nsenter")?;
        let printed =
            [String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)].concat();
        ensure!(output.status.success(), "{words:?}: {printed}");
        Ok(printed)
    }

    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.process.pid())).arg("--").arg(program);
        command
    }

    fn shell(&self, script: &str) -> String {
        self.run(&["sh", "-c", script]).expect("a shell")
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.run(&["test", "-e", &format!("/{path}")]).is_ok()
    }

    pub(super) fn append(&self, path: &str, text: &str) {
        self.shell(&format!("mkdir -p \"$(dirname /{path})\" && printf '{text}' >> /{path}"));
    }

    /// Makes the link of `systemctl enable`.
    pub(super) fn link(&self, unit: &str) {
        self.shell(&format!("mkdir -p /{WANTS} && ln -s /usr/lib/systemd/system/{unit} /{WANTS}/"));
    }

    /// Returns the units of the gateway that start at boot.
    pub(super) fn links(&self) -> Vec<String> {
        let links = self.shell(&format!("ls /{WANTS} 2>/dev/null | grep gatewayd || true"));
        links.lines().map(str::to_owned).collect()
    }

    pub(super) fn set_running(&self, is_running: bool) {
        self.shell(if is_running { "touch /running" } else { "rm -f /running" });
    }

    /// Returns the arguments of each call of systemctl.
    pub(super) fn calls(&self) -> Vec<String> {
        self.shell("cat /calls").lines().map(str::to_owned).collect()
    }

    pub(super) fn forget_calls(&self) {
        self.shell(": > /calls");
    }
}
