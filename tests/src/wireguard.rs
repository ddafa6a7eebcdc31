//! A VPN exit: a WireGuard server in its own namespace that forwards into the internet under its own address.
//!
//! The server is wireguard-go, so that the daemon's tunnels are tested against another implementation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::netns::{Namespace, Prefix};
use crate::process::Process;
use crate::wait::{wait_for, wait_ok};

pub const PORT: u16 = 51820;
const STARTED: Duration = Duration::from_secs(10);

/// A WireGuard key pair in its usual text form.
#[derive(Clone)]
pub struct KeyPair {
    pub private: String,
    pub public: String,
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPair").field("public", &self.public).finish_non_exhaustive()
    }
}

impl KeyPair {
    pub fn generate(namespace: &Namespace) -> Result<Self> {
        let private = namespace.run("wg", &["genkey"])?.trim().to_owned();
        let public = namespace.feed("wg", &["pubkey"], &private)?.trim().to_owned();
        Ok(Self { private, public })
    }
}

/// Addresses of an exit, inside and outside its tunnel.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub label: &'static str,
    /// Address that the internet sees as the source of this exit's traffic.
    pub v4: Ipv4Addr,
    pub v6: Ipv6Addr,
    /// Exit's own addresses inside the tunnel. The gateway has `.2` and `::2`.
    pub inner_v4: Ipv4Addr,
    pub inner_v6: Ipv6Addr,
}

impl Place {
    pub fn client_v4(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.inner_v4) + 1)
    }

    pub fn client_v6(&self) -> Ipv6Addr {
        Ipv6Addr::from(u128::from(self.inner_v6) + 1)
    }
}

/// A VPN exit with its server process, which can be killed and restarted.
#[derive(Debug)]
pub struct Exit {
    pub namespace: Namespace,
    pub place: Place,
    /// Keys of the server.
    pub keys: KeyPair,
    /// Keys of the gateway.
    pub client: KeyPair,
    interface: String,
    engine: Mutex<Option<Process>>,
}

impl Exit {
    /// Creates an exit. The namespace must have a route to the internet already.
    pub fn new(namespace: Namespace, prefix: &Prefix, place: Place) -> Result<Self> {
        namespace.forward()?;
        namespace.nft(
            "table inet exit {\n chain out {\n type nat hook postrouting priority srcnat\n \
             oifname \"eth0\" masquerade\n }\n}\n",
        )?;
        let keys = KeyPair::generate(&namespace)?;
        let client = KeyPair::generate(&namespace)?;
        let interface = prefix.interface(place.label);
        let exit = Self { namespace, place, keys, client, interface, engine: Mutex::new(None) };
        exit.start()?;
        Ok(exit)
    }

    /// Starts or restarts the server.
    pub fn start(&self) -> Result<()> {
        let mut command = self.namespace.command("wireguard-go");
        command.args(["--foreground", &self.interface]);
        command.env("LOG_LEVEL", "error").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let engine = self.namespace.spawn(command)?;
        *self.engine() = Some(engine);
        let control = self.control();
        wait_for(STARTED, "wireguard-go to open its control socket", || control.exists())?;
        wait_ok(STARTED, "wireguard-go to take its configuration", || self.configure())
    }

    /// Kills the server with SIGKILL: it neither answers nor sends an exit message.
    pub fn kill9(&self) -> Result<()> {
        let mut engine = self.engine();
        engine.take().context("the exit runs not")?.kill9()?;
        let control = self.control();
        std::fs::remove_file(&control).with_context(|| format!("remove {}", control.display()))
    }

    /// Returns the interface of its server, on which packets are in clear.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    pub fn address(&self, ipv6: bool) -> IpAddr {
        if ipv6 { self.place.v6.into() } else { self.place.v4.into() }
    }

    pub fn endpoints(&self) -> [SocketAddr; 2] {
        [SocketAddr::from((self.place.v4, PORT)), SocketAddr::from((self.place.v6, PORT))]
    }

    /// Returns the tunnel object of the gateway's API for this exit.
    pub fn tunnel(&self, name: &str) -> Value {
        json!({
            "name": name,
            "type": "wireguard",
            "private_key": self.client.private,
            "addresses": [
                format!("{}/24", self.place.client_v4()),
                format!("{}/64", self.place.client_v6()),
            ],
            "peers": [{
                "public_key": self.keys.public,
                "endpoint": SocketAddr::from((self.place.v4, PORT)).to_string(),
                "allowed_ips": ["0.0.0.0/0", "::/0"],
                "persistent_keepalive": 5,
            }],
        })
    }

    /// Returns the same tunnel as a file for `wg-quick`.
    pub fn configuration_file(&self) -> String {
        format!(
            "[Interface]\nPrivateKey = {}\nAddress = {}/24, {}/64\n\n[Peer]\nPublicKey = {}\nEndpoint = {}:{PORT}\n\
             AllowedIPs = 0.0.0.0/0, ::/0\nPersistentKeepalive = 5\n",
            self.client.private,
            self.place.client_v4(),
            self.place.client_v6(),
            self.keys.public,
            self.place.v4,
        )
    }

    /// Returns the tunnel object with the addresses of another exit's client, and lets the server of this exit take them:
    /// VPN providers give all their customers the same address.
    pub fn tunnel_with_address_of(&self, other: &Exit, name: &str) -> Result<Value> {
        let (v4, v6) = (other.place.client_v4(), other.place.client_v6());
        let (interface, allowed) = (&self.interface, format!("{v4}/32,{v6}/128"));
        self.namespace
            .run("wg", &["set", interface, "peer", &self.client.public, "allowed-ips", &allowed])?;
        self.namespace
            .ip(&format!("route replace {v4}/32 dev {interface}\nroute replace {v6}/128 dev {interface}"))?;
        let mut tunnel = self.tunnel(name);
        tunnel["addresses"] = json!([format!("{v4}/32"), format!("{v6}/128")]);
        Ok(tunnel)
    }

    fn configure(&self) -> Result<()> {
        let interface = &self.interface;
        let configuration = format!(
            "[Interface]\nPrivateKey = {}\nListenPort = {PORT}\n[Peer]\nPublicKey = {}\nAllowedIPs = {}/32, {}/128\n",
            self.keys.private,
            self.client.public,
            self.place.client_v4(),
            self.place.client_v6(),
        );
        self.namespace.feed("wg", &["setconf", interface, "/dev/stdin"], &configuration)?;
        self.namespace.ip(&format!(
            "address replace {}/24 dev {interface}\naddress replace {}/64 dev {interface}\nlink set {interface} up",
            self.place.inner_v4, self.place.inner_v6
        ))
    }

    fn control(&self) -> PathBuf {
        Path::new("/var/run/wireguard").join(format!("{}.sock", self.interface))
    }

    fn engine(&self) -> MutexGuard<'_, Option<Process>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Exit {
    fn drop(&mut self) {
        if self.engine().take().is_some() {
            // The name of the socket contains this process's id, so no other process uses it.
            let _ = std::fs::remove_file(self.control());
        }
    }
}

/// Reports whether the host's kernel has WireGuard. Otherwise tunnels use the userspace engine.
pub fn kernel_has_wireguard(namespace: &Namespace) -> bool {
    let mut command = namespace.command("ip");
    let tried = quiet(&mut command).args(["link", "add", "wgprobe", "type", "wireguard"]).status();
    let made = tried.is_ok_and(|status| status.success());
    if made {
        let removed = namespace.ip("link del wgprobe");
        return removed.is_ok();
    }
    false
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}
