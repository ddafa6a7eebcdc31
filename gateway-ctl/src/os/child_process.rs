//! Start of processes that do not outlive this one.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use tokio::process::{Child, Command};

use super::required_programs;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Debug, thiserror::Error)]
#[error("the program setpriv of util-linux is not installed")]
pub struct NoSetpriv;

/// Returns a command that runs a program as root with these capabilities only (`+net_admin,+net_raw`), and that the
/// kernel ends with the thread that starts it.
pub(crate) fn with_capabilities(capabilities: &str) -> Result<Command, NoSetpriv> {
    ended_by("KILL", capabilities)
}

/// Returns the same command for a program that the kernel ends by this signal.
pub(crate) fn ended_by(signal: &str, capabilities: &str) -> Result<Command, NoSetpriv> {
    let mut command = Command::new(required_programs::find("setpriv").ok_or(NoSetpriv)?);
    command.args(["--pdeathsig", signal, "--no-new-privs", "--inh-caps", "-all"]);
    command.arg("--bounding-set").arg(format!("-all,{capabilities}"));
    Ok(command)
}

/// Spawns the command from one thread that never ends. The kernel's parent-death signal follows the *thread* that
/// forked.
pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
    static FORKER: OnceLock<Sender<Job>> = OnceLock::new();
    let forker = FORKER.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        std::thread::spawn(move || jobs.into_iter().for_each(|job| job()));
        sender
    });
    let (sender, child) = channel();
    let runtime = tokio::runtime::Handle::current();
    let job: Job = Box::new(move || {
        let _inside = runtime.enter();
        // The receiver waits below.
        let _ = sender.send(command.spawn());
    });
    forker.send(job).map_err(|_| io::Error::other("the thread that forks has ended"))?;
    child.recv().map_err(io::Error::other)?
}
