//! A web server of the tests' internet: Caddy, which speaks HTTP/1.1, HTTP/2 and HTTP/3, and announces the latter
//! (Alt-Svc, RFC 7838).

use std::fs;
use std::net::{IpAddr, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::certificate::ServerCertificate;
use crate::netns::Namespace;
use crate::process::Process;
use crate::wait::wait_ok;

pub const PORT: u16 = 443;
const START: Duration = Duration::from_secs(30);

/// A running server. Dropping it ends it, and removes its files.
#[derive(Debug)]
pub struct WebServer {
    // Field order is drop order: the process before its files.
    process: Process,
    _directory: TempDir,
}

impl WebServer {
    /// Starts a server of these files at addresses of the namespace, for all names.
    pub fn start(
        namespace: &Namespace,
        addresses: &[IpAddr],
        certificate: &ServerCertificate,
        files: &[(&str, &str)],
    ) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("gateway-web-").tempdir().context("folder")?;
        let root = directory.path().join("root");
        fs::create_dir(&root).context("folder of the files")?;
        for (name, content) in files {
            fs::write(root.join(name), content).with_context(|| format!("write {name}"))?;
        }
        let bind: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
        let configuration = format!(
            "{{\n admin off\n auto_https off\n}}\nhttps://:{PORT} {{\n bind {}\n tls {} {}\n root * {}\n \
             file_server\n}}\n",
            bind.join(" "),
            certificate.file().display(),
            certificate.key_file().display(),
            root.display()
        );
        let file = directory.path().join("Caddyfile");
        fs::write(&file, configuration).context("configuration of Caddy")?;
        let mut command = namespace.command("caddy");
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file);
        // It stores its state below these.
        for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            command.env(variable, directory.path());
        }
        let log_file = directory.path().join("log");
        let log = fs::File::create(&log_file).context("log of Caddy")?;
        command.stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
        let process = namespace.spawn(command)?;
        let mut server = Self { process, _directory: directory };
        wait_ok(START, "Caddy to listen", || {
            ensure!(
                server.process.ended().is_none(),
                "it ended: {}",
                fs::read_to_string(&log_file).unwrap_or_default()
            );
            for address in addresses {
                namespace.within(|| TcpStream::connect((*address, PORT)))?;
            }
            Ok(())
        })?;
        Ok(server)
    }
}
