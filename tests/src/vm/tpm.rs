//! TPM2 of a guest: a process of swtpm, with which QEMU talks by a socket. Its state is new in each guest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use crate::wait::wait_for;

const PROGRAM: &str = "swtpm";
/// Time within which it makes its socket.
const START: Duration = Duration::from_secs(20);

/// A running TPM, until it is dropped.
pub(super) struct Tpm {
    process: Child,
    socket: PathBuf,
    /// A name of a socket has 107 bytes at most, and the folder of a run is deeper.
    _folder: tempfile::TempDir,
}

impl Tpm {
    /// Starts a TPM. Its log is in the folder of the run.
    pub(super) fn start(run: &Path) -> anyhow::Result<Tpm> {
        let folder = tempfile::tempdir().context("no folder for the TPM")?;
        let socket = folder.path().join("socket");
        let log = fs::File::create(run.join("tpm.log")).context("no log of the TPM")?;
        // The kernel ends it with this process.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", PROGRAM])
            .args(["socket", "--tpm2", "--tpmstate"])
            .arg(format!("dir={}", folder.path().display()))
            .arg("--ctrl")
            .arg(format!("type=unixio,path={}", socket.display()))
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("no log of the TPM")?)
            .stderr(log);
        let process = command.spawn().with_context(|| format!("{PROGRAM} cannot be started"))?;
        let tpm = Tpm { process, socket, _folder: folder };
        wait_for(START, "the socket of the TPM", || tpm.socket.exists()).with_context(|| {
            let said = fs::read_to_string(run.join("tpm.log")).unwrap_or_default();
            format!("{PROGRAM} printed: {said}")
        })?;
        Ok(tpm)
    }

    /// Returns the arguments of QEMU for it.
    pub(super) fn arguments(&self) -> Vec<String> {
        let socket = format!("socket,id=tpm-socket,path={}", self.socket.display());
        let emulator = "emulator,id=tpm,chardev=tpm-socket";
        ["-chardev", &socket, "-tpmdev", emulator, "-device", "tpm-tis,tpmdev=tpm"]
            .map(str::to_owned)
            .to_vec()
    }
}

impl Drop for Tpm {
    fn drop(&mut self) {
        // It usually has ended with its connection to QEMU.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
