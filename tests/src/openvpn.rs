//! A real OpenVPN server at a VPN exit, with its own certificate authority.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::netns::{Entrance, Namespace, Prefix};
use crate::process::Process;
use crate::wait::wait_for;
use crate::wireguard::Exit;

pub const PORT: u16 = 1194;
const STARTED: Duration = Duration::from_secs(20);

/// A server that can be killed and restarted.
#[derive(Debug)]
pub struct Server {
    process: Mutex<Option<Process>>,
    entrance: Entrance,
    folder: TempDir,
    address: Ipv4Addr,
    interface: String,
    /// Third octet of the inner addresses.
    number: u8,
    options: String,
    /// Protocol of the server: `udp`, `udp6`, `tcp-server`.
    transport: &'static str,
}

impl Server {
    /// Starts a server at this exit; `options` are lines of its configuration.
    pub fn start(exit: &Exit, prefix: &Prefix, options: &str) -> Result<Server> {
        let folder = tempfile::Builder::new().prefix("openvpn-").tempdir().context("temporary directory")?;
        make_certificates(&exit.namespace, folder.path())?;
        let number = exit.place.inner_v4.octets()[2];
        let server = Server {
            process: Mutex::new(None),
            entrance: exit.namespace.entrance(),
            folder,
            address: exit.place.v4,
            interface: prefix.interface(&format!("ov{number}")),
            number,
            options: options.to_owned(),
            transport: "udp",
        };
        server.start_again()?;
        Ok(server)
    }

    /// Restarts the server after its end.
    pub fn start_again(&self) -> Result<()> {
        fs::write(self.path("server.conf"), self.configuration()).context("configuration of the server")?;
        let log = fs::File::create(self.log_file()).context("log of the server")?;
        let mut command = self.entrance.command("openvpn");
        command.arg("--config").arg(self.path("server.conf"));
        command.stdin(Stdio::null()).stderr(log.try_clone().context("log")?).stdout(log);
        *self.process() = Some(Process::spawn(command)?);
        wait_for(STARTED, "the OpenVPN server to be ready", || {
            self.log().contains("Initialization Sequence Completed")
        })
        .with_context(|| self.log())
    }

    /// Replaces the transport protocol, effective from the next start.
    pub fn set_transport(&mut self, transport: &'static str) {
        self.transport = transport;
    }

    /// Replaces the options of the configuration, effective from the next start.
    pub fn set_options(&mut self, options: &str) {
        options.clone_into(&mut self.options);
    }

    /// Kills the server with SIGKILL: it neither answers nor sends an exit message.
    pub fn kill9(&self) -> Result<()> {
        self.process().take().context("the server does not run")?.kill9()
    }

    pub fn log_file(&self) -> PathBuf {
        self.path("server.log")
    }

    pub fn log(&self) -> String {
        fs::read(self.log_file()).map(|log| String::from_utf8_lossy(&log).into_owned()).unwrap_or_default()
    }

    /// Returns the server's own addresses inside the tunnel.
    pub fn inner(&self) -> (Ipv4Addr, Ipv6Addr) {
        let number = u16::from(self.number);
        (Ipv4Addr::new(10, 67, self.number, 1), Ipv6Addr::new(0xfd67, number, 0, 0, 0, 0, 0, 1))
    }

    /// Returns the client's file with the additional lines `more`.
    pub fn file(&self, more: &str) -> Result<String> {
        let read = |name: &str| fs::read_to_string(self.path(name)).with_context(|| name.to_owned());
        Ok(format!(
            "client\ndev tun\nproto udp\nremote {} {PORT}\nresolv-retry infinite\nnobind\npersist-key\npersist-tun\n\
             remote-cert-tls server\nverb 3\n{more}\n<ca>\n{}</ca>\n<cert>\n{}</cert>\n<key>\n{}</key>\n\
             <tls-crypt>\n{}</tls-crypt>\n",
            self.address,
            read("ca.crt")?,
            read("client.crt")?,
            read("client.key")?,
            read("tls-crypt.key")?,
        ))
    }

    /// Returns the client's file with a key encrypted by this passphrase.
    pub fn file_with_encrypted_key(&self, passphrase: &str) -> Result<String> {
        let arguments = ["pkcs8", "-topk8", "-v2", "aes-256-cbc", "-passout", "stdin", "-in"];
        let key = self.path("client.key").display().to_string();
        let mut command = self.entrance.command("openssl");
        command.args(arguments).arg(&key).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("openssl")?;
        let mut input = child.stdin.take().context("no standard input")?;
        input.write_all(format!("{passphrase}\n").as_bytes()).context("passphrase")?;
        drop(input);
        let output = child.wait_with_output().context("openssl")?;
        ensure!(output.status.success(), "openssl pkcs8 failed");
        let plain = fs::read_to_string(&key).context("client.key")?;
        let encrypted = String::from_utf8(output.stdout).context("a key in PEM")?;
        Ok(self.file("")?.replace(&plain, &encrypted))
    }

    /// Returns the tunnel object of the gateway's API for this server.
    pub fn tunnel(&self, name: &str) -> Result<Value> {
        Ok(json!({"name": name, "type": "openvpn", "config": self.file("")?}))
    }

    /// Returns a line of the client's key, which no output may show.
    pub fn secret(&self) -> Result<String> {
        let key = fs::read_to_string(self.path("client.key")).context("client.key")?;
        key.lines().nth(1).map(str::to_owned).context("a key has lines")
    }

    /// Makes the server also require this user name and password, effective from the next start.
    pub fn demand(&mut self, username: &str, password: &str) -> Result<()> {
        let script = self.path("verify.sh");
        let text = format!("#!/bin/sh\n[ \"$(cat \"$1\")\" = \"{username}\n{password}\" ]\n");
        fs::write(&script, text).context("verify.sh")?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).context("verify.sh")?;
        let more = format!("script-security 2\nauth-user-pass-verify {} via-file\n", script.display());
        self.options.push_str(&more);
        Ok(())
    }

    /// Makes the server assign this address and mask to every client, effective from the next start.
    pub fn give(&mut self, address: &str) -> Result<()> {
        let folder = self.path("clients");
        fs::create_dir_all(&folder).context("clients")?;
        fs::write(folder.join("DEFAULT"), format!("ifconfig-push {address}\n")).context("DEFAULT")?;
        self.options.push_str(&format!("client-config-dir {}\n", folder.display()));
        Ok(())
    }

    fn configuration(&self) -> String {
        let path = |name: &str| self.path(name).display().to_string();
        let number = self.number;
        format!(
            "dev {}\ndev-type tun\nproto {}\nport {PORT}\ntopology subnet\nserver 10.67.{number}.0 255.255.255.0\n\
             server-ipv6 fd67:{number}::/64\nca {}\ncert {}\nkey {}\ndh none\ntls-crypt {}\nkeepalive 1 4\n\
             duplicate-cn\nverb 3\n{}\n",
            self.interface,
            self.transport,
            path("ca.crt"),
            path("server.crt"),
            path("server.key"),
            path("tls-crypt.key"),
            self.options,
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates an authority, a server and a client certificate.
fn make_certificates(namespace: &Namespace, folder: &Path) -> Result<()> {
    let at = folder.display();
    let mut script = format!(
        "set -e\ncd {at}\nnew() {{ openssl ecparam -name prime256v1 -genkey -noout -out $1.key; }}\nnew ca\n\
         openssl req -x509 -new -key ca.key -subj /CN=authority -days 30 -out ca.crt \
         -addext basicConstraints=critical,CA:TRUE\n"
    );
    for (name, usage) in [("server", "serverAuth"), ("client", "clientAuth")] {
        script.push_str(&format!(
            "new {name}\nopenssl req -new -key {name}.key -subj /CN={name} -out {name}.csr\n\
             printf 'basicConstraints=CA:FALSE\\nkeyUsage=digitalSignature\\nextendedKeyUsage={usage}\\n' > {name}.ext\n\
             openssl x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out {name}.crt \
             -extfile {name}.ext\n"
        ));
    }
    script.push_str("openvpn --genkey tls-crypt tls-crypt.key\n");
    namespace.feed("sh", &["-s"], &script).map(drop)
}
