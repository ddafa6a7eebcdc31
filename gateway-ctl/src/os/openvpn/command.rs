//! Start of a process with the least rights, so that it cannot outlive this process.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use gateway_core::plan::OpenVpnProcess;
use tokio::process::{Child, Command};

use crate::os::required_programs;

/// Name of the socket in the tunnel's folder, which is the working directory of the process. The length of the
/// folder's path therefore does not matter, and the folder identifies an orphan.
pub const SOCKET: &str = "management";

/// Time limit for the server's first reply, in seconds.
const FIRST_WORD: &str = "10";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the program openvpn is not installed")]
    NoOpenVpn,
    #[error("the program setpriv of util-linux is not installed")]
    NoSetpriv,
    #[error("openvpn cannot be started: {0}")]
    Start(#[from] io::Error),
}

pub fn spawn(process: &OpenVpnProcess, folder: &Path) -> Result<Child, Error> {
    let openvpn = required_programs::find("openvpn").ok_or(Error::NoOpenVpn)?;
    let setpriv = required_programs::find("setpriv").ok_or(Error::NoSetpriv)?;
    let mut command = Command::new(setpriv);
    // Root, because only root may open the device, but with no capability except network administration.
    command.args(["--pdeathsig", "KILL", "--no-new-privs", "--inh-caps", "-all"]);
    command.args(["--bounding-set", "-all,+net_admin"]);
    command.arg(openvpn).args(arguments(process));
    command.current_dir(folder).env_clear().env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    Ok(fork(command)?)
}

fn arguments(process: &OpenVpnProcess) -> Vec<String> {
    let mark = process.fwmark.to_string();
    let interface = process.interface.as_str();
    let words: &[&str] = &[
        "--connect-timeout",
        FIRST_WORD,
        "--config",
        "stdin",
        // Last, so that the file cannot override these options.
        "--dev",
        interface,
        "--dev-type",
        "tun",
        "--mark",
        &mark,
        "--nobind",
        "--management",
        SOCKET,
        "unix",
        "--management-client",
        "--management-hold",
        "--management-query-passwords",
        "--management-query-remote",
        "--script-security",
        "0",
        "--ifconfig-noexec",
        "--route-noexec",
        "--persist-tun",
        "--persist-key",
        "--auth-retry",
        "none",
        "--connect-retry",
        "1",
        "1",
        "--disable-dco",
        "--suppress-timestamps",
        "--verb",
        "3",
    ];
    words.iter().map(|word| (*word).to_owned()).collect()
}

type Job = Box<dyn FnOnce() + Send>;

/// Spawns the command from one thread that never ends. The kernel's parent-death signal follows the *thread* that
/// forked.
fn fork(mut command: Command) -> io::Result<Child> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_on_the_command_line() {
        let secret = |text: &str| gateway_model::Secret::new(text);
        let process = OpenVpnProcess {
            interface: "ov-home".into(),
            config: secret("client\n<key>\nSECRETKEY\n</key>\n"),
            username: secret("alice"),
            password: secret("wonderland"),
            key_passphrase: secret("looking-glass"),
            mtu: None,
            fwmark: 0x4701_0001,
        };
        let line = arguments(&process).join(" ");
        for word in ["SECRETKEY", "alice", "wonderland", "looking-glass"] {
            assert!(!line.contains(word), "{line}");
        }
        assert!(line.contains("--dev ov-home --dev-type tun --mark 1191247873 "), "{line}");
    }
}
