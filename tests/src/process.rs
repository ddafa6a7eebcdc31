//! Child processes that cannot outlive the tests. Their guard kills them, and the kernel does if the tests themselves
//! are killed.
//!
//! The kernel's parent-death signal follows the *thread* that forked. Therefore one thread that never ends forks all
//! children.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::wait::wait_until;

type Job = Box<dyn FnOnce() + Send>;

/// A background process. Dropping it kills it and waits for its end.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
}

impl Process {
    pub fn spawn(mut command: Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        // SAFETY: the closure makes one async-signal-safe system call.
        unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?)) };
        // A Ctrl-C at the terminal goes to the parent only, which then ends its children in order.
        command.process_group(0);
        let child = fork_on_the_lasting_thread(command).with_context(|| format!("start {name}"))?;
        Ok(Self { child, name })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the exit status if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill9(&mut self) -> Result<()> {
        self.child.kill().with_context(|| format!("kill {}", self.name))?;
        self.child.wait().with_context(|| format!("wait for {}", self.name))?;
        Ok(())
    }

    /// Sends SIGKILL to the process and its children.
    pub fn kill_group(&mut self) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).context("pid")?);
        // The process leads its own group. An empty group is no error.
        let _ = killpg(pid, Signal::SIGKILL);
        self.kill9()
    }

    /// Sends SIGTERM and waits for the end.
    pub fn terminate(&mut self, deadline: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.ended() {
            return Ok(status);
        }
        let pid = Pid::from_raw(i32::try_from(self.child.id()).context("pid")?);
        kill(pid, Signal::SIGTERM).with_context(|| format!("signal {}", self.name))?;
        let what = format!("{} to end after SIGTERM", self.name);
        wait_until(deadline, &what, || self.ended())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has ended already, which is the desired state.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a readable exit status of a process.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown end".to_owned(),
    }
}

fn fork_on_the_lasting_thread(mut command: Command) -> io::Result<Child> {
    static FORKER: OnceLock<Sender<Job>> = OnceLock::new();
    let forker = FORKER.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        std::thread::spawn(move || jobs.into_iter().for_each(|job| job()));
        sender
    });
    let (sender, child) = channel();
    let job: Job = Box::new(move || {
        // The receiver waits below.
        let _ = sender.send(command.spawn());
    });
    forker.send(job).map_err(|_| io::Error::other("the thread that forks has ended"))?;
    child.recv().map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_dies_with_its_guard() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let process = Process::spawn(command).expect("sleep");
        let proc = std::path::PathBuf::from(format!("/proc/{}", process.pid()));
        assert!(proc.exists());
        drop(process);
        assert!(!proc.exists());
    }

    #[test]
    fn a_process_outlives_the_thread_that_started_it() {
        let mut process = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            command.arg("60");
            Process::spawn(command).expect("sleep")
        })
        .join()
        .expect("thread");
        assert!(process.ended().is_none());
        let status = process.terminate(Duration::from_secs(5)).expect("ends");
        assert_eq!(describe(status), "signal 15");
    }
}
