//! Start of a process with the least rights, so that it cannot outlive this process.

use std::io;
use std::path::Path;
use std::process::Stdio;

use gateway_core::plan::OpenVpnProcess;
use tokio::process::Child;

use crate::os::child_process::{self, NoSetpriv};
use crate::os::required_programs;

/// Name of the socket in the tunnel's folder, which is the working directory of the process. The length of the
/// folder's path therefore does not matter, and the folder identifies an orphan.
pub(super) const SOCKET: &str = "management";

/// Time limit for the server's first reply, in seconds.
const FIRST_WORD: &str = "10";

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the program openvpn is not installed")]
    NoOpenVpn,
    #[error(transparent)]
    NoSetpriv(#[from] NoSetpriv),
    #[error("openvpn cannot be started: {0}")]
    Start(#[from] io::Error),
}

pub(super) fn spawn(process: &OpenVpnProcess, folder: &Path) -> Result<Child, Error> {
    let openvpn = required_programs::find("openvpn").ok_or(Error::NoOpenVpn)?;
    // Root, because only root may open the device, but with no capability except network administration.
    let mut command = child_process::with_capabilities("+net_admin")?;
    command.arg(openvpn).args(arguments(process));
    command.current_dir(folder).env_clear().env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    Ok(child_process::spawn(command)?)
}

fn arguments(process: &OpenVpnProcess) -> Vec<String> {
    let mark = process.fwmark.0.to_string();
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

#[cfg(test)]
mod tests {
    use gateway_common::wire::Mark;

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
            fwmark: Mark(0x4701_0001),
            randomises_hostname: false,
        };
        let line = arguments(&process).join(" ");
        for word in ["SECRETKEY", "alice", "wonderland", "looking-glass"] {
            assert!(!line.contains(word), "{line}");
        }
        assert!(line.contains("--dev ov-home --dev-type tun --mark 1191247873 "), "{line}");
    }
}
