//! hostapd as a process: it drives the radio of an access point.
//!
//! Its configuration, which has passphrases, comes by the standard input and is never in a file. It works in a folder of its
//! own with its control sockets, by which an orphan is recognised. When the daemon dies, the kernel sends SIGTERM and not
//! SIGKILL: hostapd then dismisses its stations and takes its interfaces down, which nothing would do for it.

mod control;

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use gateway_model::Secret;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use super::child_process::{self, NoSetpriv};
use super::{orphans, required_programs};

pub use control::HostapdControl;

pub const PROGRAM: &str = "hostapd";
/// Longest line of the output that is kept.
const MAX_LINE: usize = 1024;
/// Folder of the control sockets, relative to that of the process: paths of sockets have a limit.
pub const SOCKETS: &str = ".";
const INPUT: &str = "/proc/self/fd/0";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the program hostapd is not installed (Debian package hostapd)")]
    NoProgram,
    #[error(transparent)]
    NoSetpriv(#[from] NoSetpriv),
    #[error("cannot make the folder {}", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("cannot start hostapd")]
    Start(#[source] io::Error),
}

/// Running hostapd. Dropping it makes it end.
#[derive(Debug)]
pub struct Hostapd {
    child: Child,
    log: Lines<BufReader<ChildStdout>>,
}

/// Ends what an earlier daemon has left in the folder. Blocks.
pub fn end_orphans(folder: &Path) {
    orphans::end(PROGRAM, folder);
}

/// Waits until the process has ended by itself, and kills it after a time. Blocks.
pub fn wait_for_end(folder: &Path, limit: Duration) {
    orphans::wait(PROGRAM, folder, limit);
}

impl Hostapd {
    /// Starts hostapd with a configuration.
    pub async fn start(config: &Secret, folder: &Path) -> Result<Hostapd, Error> {
        let file = required_programs::find(PROGRAM).ok_or(Error::NoProgram)?;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| Error::Folder { folder: folder.to_owned(), source })?;
        let mut command = child_process::ended_by("TERM", "+net_admin,+net_raw")?;
        command.arg(file).arg(INPUT);
        command.current_dir(folder).env_clear().env("LC_ALL", "C");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.process_group(0);
        let mut child = child_process::spawn(command).map_err(Error::Start)?;
        let missing = || Error::Start(io::ErrorKind::BrokenPipe.into());
        let log = BufReader::new(child.stdout.take().ok_or_else(missing)?).lines();
        let mut input = child.stdin.take().ok_or_else(missing)?;
        let mut process = Hostapd { child, log };
        if let Err(error) = input.write_all(config.expose().as_bytes()).await {
            process.end();
            return Err(Error::Start(error));
        }
        Ok(process)
    }

    /// Returns the next line of the log, or the reason of the end.
    pub async fn next_line(&mut self) -> Result<String, String> {
        if let Ok(Some(mut line)) = self.log.next_line().await {
            let end = line.floor_char_boundary(MAX_LINE);
            line.truncate(end);
            return Ok(line);
        }
        let status = self.child.wait().await;
        Err(status.map_or_else(|error| error.to_string(), |status| status.to_string()))
    }

    fn end(&mut self) {
        if let Some(pid) = self.child.id().and_then(|pid| i32::try_from(pid).ok()) {
            // It may have ended.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
    }
}

impl Drop for Hostapd {
    fn drop(&mut self) {
        self.end();
    }
}
