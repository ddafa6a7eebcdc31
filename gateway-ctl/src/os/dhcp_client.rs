//! DHCP client process of one interface: udhcpc of BusyBox.
//!
//! Its script only prints the lease, so the process changes nothing: it has no right to. It asks for no routes.
//!
//! Decision 0107 says why.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use gateway_core::dhcp_report::SCRIPT;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout};

use super::child_process::{self, NoSetpriv};
use super::required_programs;

/// Longest line of the output that is read as one.
const MAX_LINE: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the program udhcpc is not installed (packages udhcpc and busybox have it)")]
    NoProgram,
    #[error(transparent)]
    NoSetpriv(#[from] NoSetpriv),
    #[error("cannot write the script {}", file.display())]
    Script { file: PathBuf, source: io::Error },
    #[error("cannot start the DHCP client")]
    Start(#[source] io::Error),
}

/// Running client. Dropping it kills it.
#[derive(Debug)]
pub struct DhcpClient {
    child: Child,
    reports: Lines<BufReader<ChildStdout>>,
    log: Lines<BufReader<ChildStderr>>,
}

/// Returns the program with its leading arguments, or `None` if it is not installed.
pub fn program() -> Option<(PathBuf, &'static [&'static str])> {
    let alone = required_programs::find("udhcpc").map(|file| (file, &[] as &[&str]));
    alone.or_else(|| Some((required_programs::find("busybox")?, &["udhcpc"])))
}

/// Writes the script of the clients into a folder, and returns its path. The folder is not below `/run`, from which
/// systems do not execute programs.
pub fn write_script(folder: &Path) -> Result<PathBuf, Error> {
    let file = folder.join("report-lease");
    let write = || {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // A new file: the old one may be running.
        let new = folder.join("report-lease.new");
        let _ = std::fs::remove_file(&new);
        let mut made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(&new)?;
        io::Write::write_all(&mut made, SCRIPT.as_bytes())?;
        drop(made);
        std::fs::rename(&new, &file)
    };
    write().map_err(|source| Error::Script { file: file.clone(), source })?;
    Ok(file)
}

impl DhcpClient {
    /// Starts a client. It runs until it is stopped, and asks again and again while no server answers.
    pub fn start(interface: &str, script: &Path) -> Result<DhcpClient, Error> {
        let (file, arguments) = program().ok_or(Error::NoProgram)?;
        let mut command = child_process::with_capabilities("+net_raw,+net_bind_service")?;
        command.arg(file).args(arguments);
        command.args(["-f", "-R", "-i", interface, "-t", "4", "-T", "2", "-A", "10"]);
        // No options beyond these, and no name of the program.
        command.args(["-o", "-O", "subnet", "-O", "router", "-O", "dns", "-V", "", "-s"]).arg(script);
        command.env_clear().env("LC_ALL", "C").current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let mut child = child_process::spawn(command).map_err(Error::Start)?;
        let missing = || Error::Start(io::ErrorKind::BrokenPipe.into());
        let reports = child.stdout.take().ok_or_else(missing)?;
        let log = child.stderr.take().ok_or_else(missing)?;
        Ok(DhcpClient { child, reports: BufReader::new(reports).lines(), log: BufReader::new(log).lines() })
    }

    /// Returns the next line that the script prints, or the text of the client's end.
    pub async fn next_line(&mut self) -> Result<String, String> {
        let mut last = String::new();
        loop {
            tokio::select! {
                line = self.reports.next_line() => match line {
                    Ok(Some(line)) if line.len() <= MAX_LINE => return Ok(line),
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => break,
                },
                Ok(Some(line)) = self.log.next_line() => {
                    tracing::debug!(line, "DHCP client");
                    last = line;
                }
            }
        }
        while let Ok(Some(line)) = self.log.next_line().await {
            last = line;
        }
        let status =
            self.child.wait().await.map_or_else(|error| error.to_string(), |status| status.to_string());
        Err(if last.is_empty() { status } else { last })
    }

    /// Makes the client renew its lease now, or ask for one now.
    pub fn renew(&self) {
        self.signal(Signal::SIGUSR1);
    }

    /// Makes the client release its lease and end.
    pub async fn stop(mut self, limit: std::time::Duration) {
        self.signal(Signal::SIGTERM);
        // Then the drop kills it.
        let _ = tokio::time::timeout(limit, self.child.wait()).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.child.id().and_then(|pid| i32::try_from(pid).ok()) {
            // It may have ended.
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::dhcp_report::{Report, parse};

    use super::*;

    #[test]
    fn script_prints_what_the_parser_reads_and_is_for_root_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let script = write_script(&folder.path().join("dhcp")).unwrap();
        assert_eq!(write_script(&folder.path().join("dhcp")).unwrap(), script, "again");
        assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o700);
        let mut command = std::process::Command::new(&script);
        command.arg("bound").env_clear().env("ip", "192.0.2.7").env("mask", "24").env("lease", "60");
        command.env("router", "192.0.2.1").env("staticroutes", "0.0.0.0/1 192.0.2.66");
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let Some(Report::Leased(lease)) = parse(&output) else { panic!("{output}") };
        assert_eq!((lease.address.to_string().as_str(), lease.seconds), ("192.0.2.7/24", 60));
    }
}
