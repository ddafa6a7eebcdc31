//! SOCKS5 proxies of the tests: real servers at an exit's addresses, which the internet then sees as source.
//!
//! Dante supports TCP and UDP, microsocks TCP only.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::Process;
use crate::wait::wait_ok;
use crate::wireguard::Exit;

pub const PORT: u16 = 1080;
const STARTED: Duration = Duration::from_secs(15);

/// Server of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server<'a> {
    Dante,
    Microsocks { login: Option<(&'a str, &'a str)> },
}

/// A running proxy with its children. Dropping it ends them.
#[derive(Debug)]
pub struct Proxy {
    process: Process,
    _directory: TempDir,
    address: IpAddr,
}

impl Proxy {
    /// Starts the server in an exit's namespace. It listens at the exit's addresses.
    pub fn start(exit: &Exit, server: Server<'_>) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("gateway-socks-").tempdir().context("folder")?;
        let port = PORT.to_string();
        let mut command = match server {
            Server::Dante => {
                let (v4, v6) = (exit.place.v4, exit.place.v6);
                // The configuration needs both families, and addresses instead of the interface, which has a link-local
                // one.
                let configuration = format!(
                    "errorlog: stderr\ninternal.protocol: ipv4 ipv6\nexternal.protocol: ipv4 ipv6\n\
                     internal: {v4} port = {PORT}\ninternal: {v6} port = {PORT}\nexternal: {v4}\nexternal: {v6}\n\
                     socksmethod: none\nclientmethod: none\nuser.privileged: root\nuser.unprivileged: nobody\n\
                     client pass {{ from: 0/0 to: 0/0 }}\n\
                     socks pass {{ from: 0/0 to: 0/0 command: connect udpassociate udpreply }}\n"
                );
                let file = directory.path().join("danted.conf");
                fs::write(&file, configuration).context("danted's configuration")?;
                let mut command = exit.namespace.command("danted");
                command.arg("-f").arg(file).arg("-p").arg(directory.path().join("danted.pid"));
                command
            }
            Server::Microsocks { login } => {
                let mut command = exit.namespace.command("microsocks");
                command.args(["-i", "::", "-p", &port]);
                if let Some((username, password)) = login {
                    command.args(["-u", username, "-P", password]);
                }
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = exit.namespace.spawn(command)?;
        let at = SocketAddr::from((exit.place.v4, PORT));
        wait_ok(STARTED, "the proxy to listen", || {
            exit.namespace.within(|| TcpStream::connect_timeout(&at, STARTED)).context("connect")
        })?;
        Ok(Self { process, _directory: directory, address: at.ip() })
    }

    /// Sends SIGKILL. The kernel resets the connections and refuses new ones.
    pub fn kill9(&mut self) -> Result<()> {
        self.process.kill_group()
    }

    /// Returns the object for `POST /proxies`.
    pub fn object(&self, name: &str) -> Value {
        // Short intervals, as other tests check the timing.
        let check = json!({"interval_sec": 5, "timeout_sec": 2});
        json!({"name": name, "address": self.address, "port": PORT, "health_check": check})
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The process may have been killed before.
        let _ = self.process.kill_group();
    }
}
