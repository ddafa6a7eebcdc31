//! Start of the child process of a capture.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin};

use super::record::CaptureOrder;
use crate::os::child_process::{NoSetpriv, spawn, with_capabilities};

/// Subcommand of the program that runs a capture.
const SUBCOMMAND: &str = "capture";

#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error(transparent)]
    NoSetpriv(#[from] NoSetpriv),
    #[error("failed to start the process of the capture: {0}")]
    Io(#[from] io::Error),
}

/// Child process of a capture. The kernel ends it with the daemon.
#[derive(Debug)]
pub struct CaptureProcess {
    child: Child,
    /// The child ends its capture when this is closed.
    input: Option<ChildStdin>,
}

impl CaptureProcess {
    /// Starts a capture. Returns the process, and the file with its records.
    pub async fn start(order: &CaptureOrder) -> Result<(CaptureProcess, File), SpawnError> {
        let mut text = serde_json::to_vec(order).map_err(io::Error::other)?;
        text.push(b'\n');
        // The running program, also after its file was replaced.
        let program = File::open("/proc/self/exe")?;
        let descriptor = program.as_raw_fd();
        let mut command = with_capabilities("+net_raw")?;
        command.arg(format!("/proc/self/fd/{descriptor}")).arg(SUBCOMMAND);
        command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        // SAFETY: the closure makes one system call, which is safe after a fork.
        unsafe {
            command.pre_exec(move || match libc::fcntl(descriptor, libc::F_SETFD, 0) {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        let mut child = spawn(command)?;
        drop(program);
        let missing = || io::Error::other("the process has no pipe");
        let mut input = child.stdin.take().ok_or_else(missing)?;
        let output: OwnedFd = child.stdout.take().ok_or_else(missing)?.into_owned_fd()?;
        input.write_all(&text).await?;
        let flags = rustix::fs::fcntl_getfl(&output).map_err(io::Error::from)?;
        rustix::fs::fcntl_setfl(&output, flags - rustix::fs::OFlags::NONBLOCK).map_err(io::Error::from)?;
        Ok((CaptureProcess { child, input: Some(input) }, File::from(output)))
    }

    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Makes the child end its capture, with all packets that have arrived.
    pub fn stop(&mut self) {
        self.input = None;
    }

    /// Kills the child.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.start_kill()
    }

    /// Waits until the child has ended. Returns the signal that ended it, if one did.
    pub async fn wait(&mut self) -> io::Result<Option<i32>> {
        use std::os::unix::process::ExitStatusExt as _;
        Ok(self.child.wait().await?.signal())
    }
}
